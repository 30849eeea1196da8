/** What machines call themselves: node_exporter knows them by address, dcgm-exporter by name. */
import { machineOfLabels } from "../metrics/metric-labels.ts";
import { requestJson } from "./http.ts";
import { parseMatchers, selector } from "./matchers.ts";
import type { Server } from "./server.ts";

/** Some hundred bytes for each machine. */
const MOST_BYTES = 1 << 24;
const LIMIT_MS = 10_000;

/**
 * "10.0.0.15" → "gpu-005", of node_uname_info. Empty where the server does not tell: names are a help, not a need. An
 * address that two machines had at this time belongs to neither: half of one's samples must not go to the other.
 */
export async function nodeNames(
  server: Server,
  match: string,
  startS: number,
  endS: number,
): Promise<ReadonlyMap<string, string>> {
  try {
    const query = [
      ["match[]", selector("node_uname_info", parseMatchers(match))],
      ["start", String(startS)],
      ["end", String(endS)],
    ] as const;
    const asked = { path: "/api/v1/series", query, limitMs: LIMIT_MS };
    const { json } = await requestJson(server.target, asked, MOST_BYTES);
    return namesOf(json["data"]);
  } catch {
    return new Map();
  }
}

function namesOf(data: unknown): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const disputed = new Set<string>();
  for (const labels of Array.isArray(data) ? (data as unknown[]) : []) {
    const { instance, nodename } = (labels ?? {}) as { instance?: unknown; nodename?: unknown };
    if (typeof instance !== "string" || typeof nodename !== "string" || nodename === "") continue;
    const address = machineOfLabels(new Map([["instance", instance]]));
    if (address === null) continue;
    if ((names.get(address) ?? nodename) !== nodename) disputed.add(address);
    names.set(address, nodename);
  }
  for (const address of disputed) names.delete(address);
  return names;
}
