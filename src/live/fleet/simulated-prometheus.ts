/**
 * As much of Prometheus' HTTP API as our client and a page ask for: names, types, samples of one name by labels, raw,
 * at a moment or by steps. No expressions: whoever sends one is told.
 */
import { errorText } from "../../base/errors.ts";
import type { MetricSeries, SimulatedMetrics } from "./simulated-metrics.ts";

export interface MetricsServer {
  /** `path` below the server's root: "/api/v1/query". */
  answer(
    this: void,
    path: string,
    query: URLSearchParams,
  ): { readonly status: number; readonly body: unknown };
}

/** So long a last sample stands for the present. */
const LOOKBACK_MS = 300_000;
const MOST_STEPS = 11_000;

export function metricsServer(metrics: SimulatedMetrics, nowMs: () => number): MetricsServer {
  return {
    answer(path, query) {
      try {
        if (path === "/api/v1/status/buildinfo") return success({ version: "simulated" });
        if (path === "/api/v1/label/__name__/values")
          return success(metrics.names.map(({ name }) => name));
        if (path === "/api/v1/metadata")
          return success(
            Object.fromEntries(metrics.names.map(({ name, type }) => [name, [{ type }]])),
          );
        // Exporters tell names of machines themselves: no other names need be known.
        if (path === "/api/v1/series") return success([]);
        if (path === "/api/v1/query") return success(instant(metrics, query, nowMs()));
        if (path === "/api/v1/query_range") return success(ranged(metrics, query, nowMs()));
        return { status: 404, body: { status: "error", error: "there is no such path" } };
      } catch (error) {
        const said = errorText(error);
        return { status: 400, body: { status: "error", errorType: "bad_data", error: said } };
      }
    },
  };
}

const success = (data: unknown): { status: number; body: unknown } => ({
  status: 200,
  body: { status: "success", data },
});

function instant(found: SimulatedMetrics, query: URLSearchParams, nowMs: number): unknown {
  const text = query.get("query") ?? "";
  if (text === "vector(1)")
    return { resultType: "vector", result: [{ metric: {}, value: [nowMs / 1000, "1"] }] };
  const asked = selectorOf(text);
  const atMs = timeMs(query.get("time"), nowMs);
  const series = select(found, asked, nowMs);
  if (asked.rangeMs === null)
    return {
      resultType: "vector",
      result: series.flatMap((one) => {
        const value = valueAt(found, one, atMs);
        return value === null
          ? []
          : [{ metric: metricOf(asked.name, one), value: [atMs / 1000, value] }];
      }),
    };
  const fromMs = atMs - asked.rangeMs;
  return {
    resultType: "matrix",
    result: series.map((one) => ({
      metric: metricOf(asked.name, one),
      values: ticksOf(found, one, fromMs, atMs),
    })),
  };
}

function ranged(found: SimulatedMetrics, query: URLSearchParams, nowMs: number): unknown {
  const asked = selectorOf(query.get("query") ?? "");
  const fromMs = timeMs(query.get("start"), nowMs);
  const toMs = timeMs(query.get("end"), nowMs);
  const stepMs = 1000 * Number(query.get("step"));
  if (!(stepMs > 0) || !((toMs - fromMs) / stepMs < MOST_STEPS))
    throw new Error("exceeded maximum resolution of 11,000 points per timeseries");
  const times = Array.from(
    { length: Math.max(0, Math.floor((toMs - fromMs) / stepMs) + 1) },
    (_, i) => fromMs + i * stepMs,
  );
  return {
    resultType: "matrix",
    result: select(found, asked, nowMs).map((one) => ({
      metric: metricOf(asked.name, one),
      values: times.flatMap((at) => {
        const value = valueAt(found, one, at);
        return value === null ? [] : [[at / 1000, value]];
      }),
    })),
  };
}

function metricOf(name: string, { labels }: MetricSeries): Record<string, string> {
  return { __name__: name, ...labels };
}

function ticksOf(
  { stepMs }: SimulatedMetrics,
  { values, firstMs }: MetricSeries,
  fromMs: number,
  toMs: number,
): [number, string][] {
  const found: [number, string][] = [];
  const first = Math.max(0, Math.ceil((fromMs - firstMs) / stepMs));
  for (let tick = first; tick < values.length; tick++) {
    const at = firstMs + tick * stepMs;
    if (at > toMs) break;
    if (!Number.isNaN(values[tick]!)) found.push([at / 1000, String(values[tick])]);
  }
  return found;
}

function valueAt(
  { stepMs }: SimulatedMetrics,
  { values, firstMs }: MetricSeries,
  atMs: number,
): string | null {
  const last = Math.min(values.length - 1, Math.floor((atMs - firstMs) / stepMs));
  for (let tick = last; tick >= 0 && (last - tick) * stepMs < LOOKBACK_MS; tick--)
    if (!Number.isNaN(values[tick]!)) return String(values[tick]);
  return null;
}

interface Selector {
  readonly name: string;
  readonly matchers: readonly ((labels: Readonly<Record<string, string>>) => boolean)[];
  readonly rangeMs: number | null;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const MATCHER = /\s*([A-Za-z_]\w*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")\s*(?:,|$)/y;

/** NAME, or {__name__="NAME"}, with matchers and a range. */
function selectorOf(text: string): Selector {
  const [, bare = "", inner = "", digits, unit] =
    /^\s*([A-Za-z_:][\w:]*)?\s*(?:\{([^}]*)\})?\s*(?:\[(\d+)(ms|s|m|h)\])?\s*$/.exec(text) ?? [];
  let name = bare;
  const matchers: Selector["matchers"][number][] = [];
  MATCHER.lastIndex = 0;
  let at = 0;
  while (at < inner.trimEnd().length) {
    const found = MATCHER.exec(inner);
    if (!found) throw new Error("only matchers of labels are understood");
    at = MATCHER.lastIndex;
    const [, label, op, quoted] = found as unknown as [string, string, string, string];
    const value = JSON.parse(quoted) as string;
    if (label === "__name__" && op === "=") name = value;
    else matchers.push(matcherOf(label, op, value));
  }
  if (name === "") throw new Error("only the samples of one name can be asked for");
  return { name, matchers, rangeMs: digits === undefined ? null : Number(digits) * UNITS[unit!]! };
}

function matcherOf(label: string, op: string, value: string): Selector["matchers"][number] {
  const pattern = op.endsWith("~") ? new RegExp(`^(?:${value})$`) : null;
  return (labels) => {
    const has = labels[label] ?? "";
    const fits = pattern ? pattern.test(has) : has === value;
    return op.startsWith("!") ? !fits : fits;
  };
}

function select(
  found: SimulatedMetrics,
  { name, matchers }: Selector,
  nowMs: number,
): readonly MetricSeries[] {
  const all = found.series(name, nowMs) ?? [];
  return all.filter(({ labels }) => matchers.every((fits) => fits(labels)));
}

function timeMs(text: string | null, otherwise: number): number {
  if (text === null || text === "") return otherwise;
  const seconds = Number(text);
  const at = Number.isNaN(seconds) ? Date.parse(text) : 1000 * seconds;
  if (Number.isNaN(at)) throw new Error("a time is seconds since 1970");
  return at;
}
