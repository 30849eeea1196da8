/** What exporters' labels say: which machine, which part of it, and whether the catalog wants the series. */
import { servedBy } from "../../model/metric-catalog.ts";

/** Labels that name the machine, the best first (dcgm-exporter renamed Hostname in May 2026). */
const MACHINE_LABELS = ["hostname", "Hostname", "node", "nodename", "machine", "host", "instance"];

/** "node0007.cluster.local:9100" → "node0007.cluster.local"; "[::1]:9100" → "[::1]". */
export function machineOfLabels(labels: ReadonlyMap<string, string>): string | null {
  for (const label of MACHINE_LABELS) {
    const value = labels.get(label);
    if (value !== undefined && value !== "") return value.replace(/(?<=[^:]|\]):\d{1,5}$/, "");
  }
  return null;
}

/** What part of the machine a series speaks of. */
export function deviceOfLabels(labels: ReadonlyMap<string, string>): string {
  const gpu = labels.get("gpu") ?? labels.get("minor_number");
  if (gpu !== undefined && gpu !== "") return `gpu${gpu}`;
  const cpu = labels.get("cpu");
  if (cpu !== undefined) return `cpu${cpu}`;
  const mount = labels.get("mountpoint");
  if (mount !== undefined) return mount;
  const device = labels.get("device") ?? labels.get("nic") ?? "";
  const port = labels.get("port");
  return port === undefined || port === "1" || port === "" ? device : `${device}/${port}`;
}

/** Whether the catalog wants a series with these labels under this name. */
export function isWanted(name: string, labels: ReadonlyMap<string, string>): boolean {
  return servedBy(name).some(({ source: { match = {}, exclude = {} } }) => {
    for (const label in match) if (labels.get(label) !== match[label]) return false;
    for (const label in exclude) {
      const value = labels.get(label);
      const found = value === undefined ? null : exclude[label]!.exec(value);
      if (found && found.index === 0 && found[0].length === value!.length) return false;
    }
    return true;
  });
}
