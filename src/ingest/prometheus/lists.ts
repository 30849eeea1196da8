/** What a server has: names of metrics and their types. Each list is asked for once, and waited for once. */
import type { MetricType } from "../../model/metrics.ts";
import { ServerFailure } from "./failure.ts";
import { requestJson } from "./http.ts";
import { type Matcher, selector } from "./matchers.ts";
import type { Server } from "./server.ts";
import { memoryOf, once } from "./server-memory.ts";

/** A server has some thousand names; its metadata some hundred bytes for each. */
const MOST_LIST_BYTES = 1 << 26;
const NAMES_LIMIT_MS = 20_000;
/** Types can be guessed from names: they are not worth a long wait. */
const TYPES_LIMIT_MS = 10_000;

/** The names of metrics that have series under the matchers; null where the server cannot list them. */
export function metricNames(
  server: Server,
  matchers: readonly Matcher[],
  startS: number,
  endS: number,
): Promise<ReadonlySet<string> | null> {
  const memory = memoryOf(server);
  return once(memory.names, keyOf(matchers, startS, endS), async () => {
    if (memory.hasSlowNames) return null;
    const query: [string, string][] = [
      ["start", String(startS)],
      ["end", String(endS)],
    ];
    if (matchers.length > 0) query.push(["match[]", selector("", matchers)]);
    const asked = { path: "/api/v1/label/__name__/values", query, limitMs: NAMES_LIMIT_MS };
    try {
      const { json } = await requestJson(server.target, asked, MOST_LIST_BYTES);
      const data = json["data"];
      return Array.isArray(data) ? new Set(data.map(String)) : null;
    } catch (failure) {
      if (!(failure instanceof ServerFailure)) throw failure;
      if (failure.kind === "bad-query" && !/non-empty matcher/.test(failure.message)) throw failure;
      if (failure.kind === "unreachable" || failure.kind === "aborted") throw failure;
      if (failure.kind === "timeout") memory.hasSlowNames = true;
      return null;
    }
  });
}

/** Types as scraped exporters declare them, of the time of a call. Not all servers know: then all are unknown. */
export function metricTypes(
  server: Server,
  matchers: readonly Matcher[],
  startS: number,
  endS: number,
): Promise<ReadonlyMap<string, MetricType>> {
  const memory = memoryOf(server);
  return once(memory.types, keyOf(matchers, startS, endS), async () => {
    const types = new Map<string, MetricType>();
    if (memory.hasSlowTypes) return types;
    const query = [["limit_per_metric", "1"]] as const;
    const asked = { path: "/api/v1/metadata", query, limitMs: TYPES_LIMIT_MS };
    try {
      const { json } = await requestJson(server.target, asked, MOST_LIST_BYTES);
      for (const [name, entries] of Object.entries(json["data"] ?? {})) {
        const type = (entries as readonly ({ type?: unknown } | null)[] | null)?.[0]?.type;
        if (type === "counter" || type === "gauge") types.set(name, type);
      }
    } catch (failure) {
      if (!(failure instanceof ServerFailure) || failure.kind === "aborted") throw failure;
      if (failure.kind === "timeout") memory.hasSlowTypes = true;
    }
    return types;
  });
}

function keyOf(matchers: readonly Matcher[], startS: number, endS: number): string {
  return JSON.stringify([matchers, startS, endS]);
}
