/** The newest sample of every series of a metric: an instant query. */
import { getOrInsert } from "../../base/group-by.ts";
import { deviceOfLabels, machineOfLabels } from "../metrics/metric-labels.ts";
import { toUserError } from "./failure.ts";
import { requestJson } from "./http.ts";
import { parseMatchers, selector } from "./matchers.ts";
import { labelledMachines } from "./labelled-machines.ts";
import { nowS, type Server } from "./server.ts";

export interface LatestValue {
  readonly machine: string;
  /** "gpu3"; "" for the machine as a whole. */
  readonly device: string;
  readonly value: number;
}

/** Some hundred bytes for each of some ten thousand GPUs. */
const MOST_BYTES = 1 << 25;
const LIMIT_MS = 10_000;
/** For names of machines: node_exporter's series of the last minutes. */
const NAMES_S = 600;
const ADDRESS = /^(\d+\.\d+\.\d+\.\d+|\[.*\])$/;

/** Of the first of these names that has any; the greatest where a device has several. Throws UserError. */
export async function latestValues(
  server: Server,
  names: readonly string[],
  match: string,
): Promise<LatestValue[]> {
  const matchers = parseMatchers(match);
  let values: LatestValue[] = [];
  for (const name of names) {
    const query = [["query", selector(name, matchers)]] as const;
    const asked = { path: "/api/v1/query", query, limitMs: LIMIT_MS };
    try {
      const { json } = await requestJson(server.target, asked, MOST_BYTES);
      values = valuesOf((json["data"] as { result?: unknown } | undefined)?.result);
    } catch (failure) {
      throw toUserError(failure, server.url);
    }
    if (values.length > 0) break;
  }
  if (!values.some(({ machine }) => ADDRESS.test(machine))) return values;
  const endS = nowS(server);
  const span = { startS: endS - NAMES_S, endS };
  const { links } = await labelledMachines(server, { match, ...span, names: [], there: null });
  const known = new Map<string, Set<string>>();
  for (const { names } of links)
    for (const name of names.slice(1)) getOrInsert(known, name, () => new Set()).add(names[0]!);
  // An address that two machines had at this time belongs to neither.
  const nameOf = (machine: string): string => {
    const [only, ...others] = known.get(machine) ?? [];
    return only !== undefined && others.length === 0 ? only : machine;
  };
  return values.map((one) => ({ ...one, machine: nameOf(one.machine) }));
}

function valuesOf(result: unknown): LatestValue[] {
  const greatest = new Map<string, LatestValue>();
  for (const series of Array.isArray(result) ? (result as unknown[]) : []) {
    const { metric, value } = (series ?? {}) as { metric?: unknown; value?: unknown };
    const number = Array.isArray(value) ? Number(value[1]) : NaN;
    if (!Number.isFinite(number) || typeof metric !== "object" || metric === null) continue;
    const labels = new Map(
      Object.entries(metric).filter(([, text]) => typeof text === "string") as [string, string][],
    );
    const machine = machineOfLabels(labels);
    if (machine === null) continue;
    const device = deviceOfLabels(labels);
    const key = `${machine} ${device}`;
    if (!((greatest.get(key)?.value ?? -Infinity) >= number))
      greatest.set(key, { machine, device, value: number });
  }
  return [...greatest.values()];
}
