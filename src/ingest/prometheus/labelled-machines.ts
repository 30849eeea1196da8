/** What a server's series call machines: one metric of each exporter, and the info metrics that say who is who. */
import { getOrInsert } from "../../base/group-by.ts";
import type { NameClaim, NameLink } from "../../model/machine-names.ts";
import { claimsOfLabels, isInfo, linkOfLabels, machineOfLabels } from "../metrics/metric-labels.ts";
import { requestJson } from "./http.ts";
import { type Matcher, parseMatchers, selector } from "./matchers.ts";
import type { Server } from "./server.ts";

/** Some hundred bytes for each of eight GPUs of some thousand machines. */
const MOST_BYTES = 1 << 26;
const LIMIT_MS = 10_000;

interface LabelledMachines {
  readonly machines: readonly string[];
  readonly claims: readonly (readonly NameClaim[])[];
  readonly links: readonly NameLink[];
}

interface LabelledQuery {
  readonly match: string;
  readonly startS: number;
  readonly endS: number;
  /** Metrics that are going to be pulled; one of each exporter is asked for its labels. */
  readonly names: readonly string[];
  /** What the server has; null where it does not tell. */
  readonly there: ReadonlySet<string> | null;
}

/** Empty where the server does not tell: names are a help, not a need. */
export async function labelledMachines(
  server: Server,
  { match, startS, endS, names, there }: LabelledQuery,
): Promise<LabelledMachines> {
  const byExporter = new Map<string, string>();
  for (const name of names) {
    const exporter = /^[A-Za-z]+/.exec(name)?.[0] ?? name;
    if (!byExporter.has(exporter) && (there === null || there.has(name)))
      byExporter.set(exporter, name);
  }
  const own = [...byExporter.values(), "node_uname_info"].map((name) =>
    selector(name, parseMatchers(match)),
  );
  // The job's matchers hold for its exporters; kube-state-metrics is another job. Of all pods of a cluster only those that
  // run on every machine matter, and so do exporters.
  const ofDaemons: Matcher = { label: "created_by_kind", op: "=", value: "DaemonSet" };
  const wanted = [...own, selector("kube_node_info", []), selector("kube_pod_info", [ofDaemons])];
  const claims = new Map<string, Map<string, NameClaim>>();
  const links: NameLink[] = [];
  for (const labels of await seriesOf(server, wanted, startS, endS)) {
    const name = labels.get("__name__") ?? "node_uname_info";
    if (isInfo(name)) {
      const link = linkOfLabels(name, labels);
      if (link) links.push(link);
      continue;
    }
    const machine = machineOfLabels(labels);
    if (machine === null) continue;
    const known = getOrInsert(claims, machine, () => new Map<string, NameClaim>());
    for (const claim of claimsOfLabels(labels, machine))
      known.set(`${claim.label} ${claim.value}`, claim);
  }
  const machines = [...claims.keys()].sort();
  return { machines, claims: machines.map((name) => [...claims.get(name)!.values()]), links };
}

async function seriesOf(
  server: Server,
  wanted: readonly string[],
  startS: number,
  endS: number,
): Promise<Map<string, string>[]> {
  try {
    const query: [string, string][] = [
      ...wanted.map((one): [string, string] => ["match[]", one]),
      ["start", String(startS)],
      ["end", String(endS)],
    ];
    const asked = { path: "/api/v1/series", query, limitMs: LIMIT_MS };
    const { json } = await requestJson(server.target, asked, MOST_BYTES);
    const data = Array.isArray(json["data"]) ? (json["data"] as unknown[]) : [];
    return data.map(
      (labels) =>
        new Map(
          Object.entries((labels ?? {}) as Record<string, unknown>).filter(
            (entry): entry is [string, string] => typeof entry[1] === "string",
          ),
        ),
    );
  } catch {
    return [];
  }
}
