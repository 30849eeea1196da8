/** What exporters' labels say: which machine, which part of it, and whether the catalog wants the series. */
import {
  isPodName,
  isProperName,
  type NameClaim,
  type NameLink,
} from "../../model/machine-names.ts";
import { servedBy } from "../../model/metric-catalog.ts";

/**
 * Labels that name the machine, the best first (dcgm-exporter renamed Hostname in May 2026). Prometheus puts "exported_"
 * before an exporter's own label where the target has the same.
 */
const MACHINE_LABELS = [
  "hostname",
  "Hostname",
  "node",
  "nodename",
  "machine",
  "host",
  "node_name",
  "kubernetes_node",
  "k8s_node_name",
  "host_name",
  "exported_hostname",
  "exported_node",
  "exported_instance",
  "instance",
] as const;
/** A GPU stays in its machine, whatever its exporter is called. */
const GPU_LABELS = ["UUID", "uuid"] as const;

/** "node0007.cluster.local:9100" → "node0007.cluster.local"; "[::1]:9100" → "[::1]". */
function withoutPort(value: string): string {
  return value.replace(/(?<=[^:]|\]):\d{1,5}$/, "");
}

/** The best of its labels; an exporter's pod is a machine's name only where there is no other. */
export function machineOfLabels(labels: ReadonlyMap<string, string>): string | null {
  const pod = labels.get("pod");
  let last: string | null = null;
  for (const label of MACHINE_LABELS) {
    const value = labels.get(label);
    if (value === undefined || value === "") continue;
    const name = withoutPort(value);
    if (name !== pod && !isPodName(name) && name !== "localhost") return name;
    last ??= name;
  }
  return last;
}

/** What else these labels call the machine. */
export function claimsOfLabels(labels: ReadonlyMap<string, string>, machine: string): NameClaim[] {
  const claims: NameClaim[] = [];
  const claim = (label: string): void => {
    const value = labels.get(label);
    if (value === undefined || value === "") return;
    const name = withoutPort(value);
    if (name !== machine) claims.push({ label, value: name });
  };
  MACHINE_LABELS.forEach(claim);
  GPU_LABELS.forEach(claim);
  const pod = podOf(labels);
  if (pod !== null) claims.push({ label: "pod", value: pod });
  return claims;
}

/** The exporter's pod, or the one that has the GPU: both run on the machine. Names are unique within a namespace only. */
function podOf(labels: ReadonlyMap<string, string>): string | null {
  const pod = labels.get("pod") ?? "";
  return pod === "" ? null : `${labels.get("namespace") ?? ""}/${pod}`;
}

/** Metrics that are always 1 and say in labels who is who. */
const INFO_METRICS: readonly string[] = [
  "node_uname_info",
  "kube_node_info",
  "kube_pod_info",
  "nvidia_smi_gpu_info",
];

export function isInfo(name: string): boolean {
  return INFO_METRICS.includes(name);
}

/** What such a series says; null where it says nothing of a machine. */
export function linkOfLabels(name: string, labels: ReadonlyMap<string, string>): NameLink | null {
  const of = (...wanted: readonly string[]): string[] =>
    wanted.map((label) => withoutPort(labels.get(label) ?? "")).filter((value) => value !== "");
  if (name === "nvidia_smi_gpu_info") return null;
  // kube-state-metrics tells of others: its own instance and pod are not the machine's.
  const names =
    name === "kube_node_info"
      ? of("node", "internal_ip")
      : name === "kube_pod_info"
        ? of("node", "host_ip", "pod_ip")
        : of("nodename", "node", "instance");
  const pod = name === "kube_node_info" ? null : podOf(labels);
  if (names.length + (pod === null ? 0 : 1) < 2 || !isProperName(names[0]!)) return null;
  return { names, pod, from: name };
}

/** Of a GPU that is known by its UUID alone: which one of the machine's it is, all of them tell together. */
export const BY_UUID = "uuid ";

const GPU_NUMBERS = ["gpu", "minor_number", "gpu_index", "gpu_id", "index"] as const;

/** Its number, else its place on the bus, else its UUID. */
function gpuOfLabels(labels: ReadonlyMap<string, string>): string | null {
  const device = labels.get("device") ?? "";
  let uuid = labels.get("UUID") ?? labels.get("uuid") ?? "";
  for (const label of [...GPU_NUMBERS, "device"]) {
    const value = labels.get(label) ?? "";
    if (value === "") continue;
    const number = /^(?:nvidia|gpu)?(\d{1,3})$/i.exec(value);
    if (number && (label !== "device" || value.startsWith("nvidia"))) return `gpu${number[1]}`;
    if (label === "gpu" && value.startsWith("GPU-")) uuid = value;
    else if (label === "gpu") return `gpu${value}`;
  }
  const bus = labels.get("pci_bus_id") ?? labels.get("pci_bus") ?? "";
  if (bus !== "") return bus.toLowerCase();
  return uuid === "" || device !== "" || labels.has("mountpoint") ? null : `${BY_UUID}${uuid}`;
}

/** nvidia_gpu_exporter's series have a UUID; one of them says which number that is. */
export function numberedGpu(
  name: string,
  labels: ReadonlyMap<string, string>,
): { readonly uuid: string; readonly gpu: string } | null {
  if (name !== "nvidia_smi_gpu_info") return null;
  const uuid = labels.get("uuid") ?? "";
  const gpu = labels.get("index") ?? "";
  return uuid === "" || gpu === "" ? null : { uuid, gpu: `gpu${gpu}` };
}

/** What part of the machine a series speaks of. */
export function deviceOfLabels(labels: ReadonlyMap<string, string>): string {
  const gpu = gpuOfLabels(labels);
  if (gpu !== null) return gpu;
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
