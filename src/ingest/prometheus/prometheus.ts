/**
 * Pulls the raw samples of a set of metrics from a server that speaks Prometheus' API, by the fastest way that it
 * knows. A metric comes as a whole or not at all: half of its machines would look like dead ones.
 */
import { UserError } from "../../base/errors.ts";
import type { MetricSet, MetricType } from "../../model/metrics.ts";
import { LabelledSeries } from "../metrics/labelled-series.ts";
import { MetricSetBuilder, type BuilderCounts } from "../metrics/metric-set-builder.ts";
import { ServerFailure, toUserError } from "./failure.ts";
import { parseMatchers, selector, type Matcher } from "./matchers.ts";
import { memoryOf, once } from "./server-memory.ts";
import { PARALLEL, type Server } from "./server.ts";
import { TakeByTheBestWay } from "./take.ts";
import type { Way } from "./ways.ts";
import { servedBy } from "../../model/metric-catalog.ts";
import { requestJson } from "./http.ts";

/** A server has some thousand names; its metadata some hundred bytes for each. */
const MOST_LIST_BYTES = 1 << 26;
const NAMES_LIMIT_MS = 20_000;

/** Types can be guessed from names: they are not worth a long wait. */
const TYPES_LIMIT_MS = 10_000;

export { latestValues, type LatestValue } from "./latest-values.ts";
export { parseMatchers } from "./matchers.ts";
export { labelledMachines } from "./labelled-machines.ts";
export { connect, type ConnectOptions, nowS, type Server } from "./server.ts";
export type { Way } from "./ways.ts";

export interface PullOptions {
  /** Label matchers as the user writes them: job="train",cluster=~"a.*" */
  readonly match: string;
  /** Exporters' names of metrics. */
  readonly names: readonly string[];
  /** Unix seconds of the server's clock; both ends belong to it. */
  readonly startS: number;
  readonly endS: number;
  readonly via?: "auto" | Way;
  /** Of query-range. */
  readonly stepS?: number;
  /** No samples of any name are an answer: an empty set. For callers that ask for names bit by bit. */
  readonly allowNothing?: boolean;
}

export interface Pulled {
  readonly set: MetricSet;
  /** The ways that were used: "remote-read". */
  readonly via: string;
  readonly counts: BuilderCounts;
  /** Sentences: what could not be pulled and why, and what makes the rest doubtful. */
  readonly defects: readonly string[];
  /** Names that have no series here at this time; most sites lack some. */
  readonly missing: readonly string[];
  readonly bytes: number;
}

const DEFAULT_STEP_S = 15;
const MOST_CLOCK_OFFSET_MS = 60_000;

/** Which metrics there are under the matchers at that time; null where the server does not tell. */
export async function availableNames(
  server: Server,
  match: string,
  startS: number,
  endS: number,
): Promise<ReadonlySet<string> | null> {
  try {
    return await metricNames(server, parseMatchers(match), startS, endS);
  } catch (failure) {
    throw toUserError(failure, server.url);
  }
}

export async function pull(server: Server, options: PullOptions): Promise<Pulled> {
  const matchers = parseMatchers(options.match);
  const { startS, endS, stepS = DEFAULT_STEP_S, via = "auto" } = options;
  const span = { startMs: Math.round(startS * 1000), endMs: Math.round(endS * 1000) };
  if (!(span.endMs > span.startMs) || !(stepS > 0)) {
    throw new UserError("the time asked for has no length", "Give an end behind the start.", 2);
  }
  try {
    const [there, types] = await Promise.all([
      metricNames(server, matchers, startS, endS),
      metricTypes(server, matchers, startS, endS),
    ]);
    const builder = new MetricSetBuilder();
    const series = new JoinedSeries(builder, (name) => types.get(name) ?? "unknown");
    const wanted = [...new Set(options.names)];
    const names = wanted.filter((name) => there === null || there.has(name));
    const said = new Map<string, readonly string[]>();
    const taker = new TakeByTheBestWay(server, via, series);
    const failures: ServerFailure[] = [];
    const memory = memoryOf(server);
    await inParallel(names, async (name) => {
      try {
        if (memory.isSilent) throw new ServerFailure("timeout", "the server is silent");
        const all = [...matchers, ...catalogMatchers(name)];
        const what = { name, matchers: all, stepMs: Math.round(stepS * 1000) };
        said.set(name, await taker.take(what, span));
        memory.noteAnswer();
      } catch (failure) {
        if (!(failure instanceof ServerFailure) || failure.kind === "aborted") throw failure;
        const isSilence = failure.kind === "timeout" || failure.kind === "unreachable";
        if (isSilence && !memory.isSilent) memory.noteSilence();
        failures.push(failure);
        builder.drop(name);
        said.set(name, [`${name} could not be pulled: ${failure.message}.`]);
      }
    });
    // Nothing of what is there came: the reason is one and the same.
    if (names.length > 0 && failures.length === names.length) throw failures[0]!;
    const set = inOrder(builder.finish(), wanted);
    const got = new Set(set.samples.map(({ name }) => name));
    if (got.size === 0 && !options.allowNothing) throw nothing(server, options, series);
    const defects = [
      ...clockDefects(server),
      ...names.flatMap((name) => said.get(name) ?? []),
      ...remarks(builder.counts, taker.ways()),
    ];
    // Where others came, they are nothing to tell of: every site has series of disks and interfaces that are none.
    if (got.size === 0 && series.unwanted > 0) {
      defects.push(`${series.unwanted} series were left out by their labels.`);
    }
    return {
      set,
      via: taker.ways().join(", "),
      counts: builder.counts,
      defects,
      missing: wanted.filter((name) => !got.has(name) && !builder.isDropped(name)),
      bytes: taker.bytes,
    };
  } catch (failure) {
    throw toUserError(failure, server.url);
  }
}

/** Which answer came first is chance. */
function inOrder(set: MetricSet, names: readonly string[]): MetricSet {
  const place = new Map(names.map((name, i) => [name, i]));
  return {
    ...set,
    samples: set.samples.toSorted((a, b) => place.get(a.name)! - place.get(b.name)!),
  };
}

function nothing(server: Server, { match, names }: PullOptions, series: LabelledSeries): UserError {
  const under = match.trim() === "" ? "" : ` under ${match}`;
  if (series.unwanted > 0) {
    return new UserError(
      `${server.url} has ${series.unwanted} series${under}, but no label says of which machine`,
      "Series need a label hostname, node or instance.",
      3,
    );
  }
  return new UserError(
    `${server.url} has no samples${under} at this time of the ${names.length} metrics asked for`,
    "Check the time and the matchers; dcgm-exporter and node_exporter give these metrics.",
    3,
  );
}

function clockDefects({ clockOffsetMs }: Server): string[] {
  if (Math.abs(clockOffsetMs) <= MOST_CLOCK_OFFSET_MS) return [];
  const seconds = Math.round(Math.abs(clockOffsetMs) / 1000);
  const side = clockOffsetMs > 0 ? "ahead of" : "behind";
  return [
    `The server's clock is ${seconds} s ${side} this machine's: times are the server's, and machines' own logs may differ.`,
  ];
}

function remarks({ tooMany, duplicateSeries }: BuilderCounts, ways: readonly string[]): string[] {
  const found: string[] = [];
  if (ways.includes("query-range")) {
    found.push(
      "query_range repeats a last sample for 5 minutes: a machine that stopped looks alive for as long.",
    );
  }
  if (tooMany > 0) found.push(`${tooMany} samples were beyond what is held and were left out.`);
  if (duplicateSeries > 0) {
    found.push(
      `${duplicateSeries} series say again what others say of the same device (a second replica?) and were left out.`,
    );
  }
  return found;
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      for (const item of left) await work(item);
    }),
  );
}

/**
 * What the catalog wants of a name's labels, for the server to leave out the rest: seven of eight CPU modes.
 * Only what all of the name's uses ask for: a series that one of them needs must come.
 */
function catalogMatchers(name: string): readonly Matcher[] {
  const [first, ...others] = servedBy(name).map(({ source }) => source.match ?? {});
  return Object.entries(first ?? {})
    .filter(([label, value]) => others.every((match) => match[label] === value))
    .map(([label, value]) => ({ label, op: "=", value }));
}

/**
 * Series by their labels, however a way encodes them: where remote read breaks off and raw samples are taken instead,
 * both must write into the same series, or every machine would seem to be scraped twice.
 */
class JoinedSeries extends LabelledSeries {
  readonly #encoded = new Map<string, number>();

  override ofJson(json: string): number | null {
    return this.#encoded.get(json) ?? super.ofJson(json);
  }

  override ofLabels(key: string, labels: Map<string, string>): number {
    const known = this.#encoded.get(key);
    if (known !== undefined) return known;
    const sorted = [...labels].sort(([a], [b]) => (a < b ? -1 : 1));
    const id = super.ofLabels(JSON.stringify(sorted), labels);
    this.#encoded.set(key, id);
    return id;
  }

  override known(key: string): number | undefined {
    return this.#encoded.get(key);
  }
}

/**
 * What a server has: names of metrics and their types. Each list is asked for once, and waited for once.
 * The names of metrics that have series under the matchers; null where the server cannot list them.
 */
function metricNames(
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
function metricTypes(
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
