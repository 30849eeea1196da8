/**
 * Whether a running job's code became slower, and by what: summaries of all machines in, decisions out. A regression is an
 * iteration that is longer than all healthy ones for some windows in a row, and a part of it (loading, collections,
 * synchronisation, matrix products of the same shapes) that grew on most machines and explains the growth. Where none of these
 * did and most ranks spend more time outside communication, issue latencies tell whether their CPUs or their kernels are
 * slower (FLARE §5.2.2); where they do not, collectives of the same sizes may take longer: the bandwidth is lower (FLARE
 * §5.2.1). What remains is not accused here: the search for a slow device has it. Where the job does other work than before
 * (longer sequences, larger batches) nothing of that is compared: what is healthy is learnt anew.
 */
import { median } from "../../../maths/robust.ts";
import type { Cause } from "../../../model/cause.ts";
import type { FoundRegression } from "../../../model/regression.ts";
import {
  WORK_PARTS,
  mean,
  merged,
  quantile,
  type Histogram,
  type WorkPart,
  type WorkSummary,
} from "../../../model/work-summary.ts";

const WINDOW_MS = 15_000;
/** The first windows of a run compile, fill caches and find their pace. */
const WARM_UP = 4;
const LEAST_HEALTHY = 8;
/** An hour. */
const MOST_HEALTHY = 240;
const WINDOWS_TO_CONFIRM = 3;
const WINDOWS_TO_RESOLVE = 4;
/** The job does other work for good: an evaluation is shorter, as a rule. */
const WINDOWS_TO_CHANGE = 4;
/** Of the time of products whose shapes came in most healthy windows: it is the same work where at least so much comes again. */
const SAME_SHAPES = 0.5;
/** Growth of an iteration that anybody would act on. */
const LEAST_GROWTH = 0.03;
/** How far above the longest healthy window counts, in units of how far that is from the middle. */
const BEYOND = 1.5;
/** Of the growth of the iteration that a part must explain; collections hit one rank after the other. */
const EXPLAINS = 0.5;
const COLLECTIONS_EXPLAIN = 0.1;
/** How many times as many waits for the GPU are new ones. */
const MORE_CALLS = 1.5;
/** Of the growth: by so much a part must exceed healthy windows, on the whole and on each machine that counts. */
const EXCEEDS = 0.3;
const COLLECTIONS_EXCEED = 0.05;
/** Collections come in bursts: so many times what healthy windows reach. */
const MORE_COLLECTIONS = 2;
/** More than this share of the machines that have the part. */
const BREADTH = 0.5;
/**
 * Of the share by which iterations grew: by so much products of the same shapes must take longer; collectives at least by
 * the whole of it, because they are a part of the iteration, and some of them are hidden behind products.
 */
const EXPLAIN = { shapes: 0.5, transfers: 1 } as const;
/** Issue latencies, of healthy ones: a CPU that is as far ahead of its GPU as before; one that no longer is. */
const STILL_AHEAD = 0.7;
const NO_LONGER_AHEAD = 0.5;
/** Machines that must have been heard in a window, of those known. */
const LEAST_HEARD = 0.5;
const FORGOTTEN_MS = 120_000;

export interface WorkWindow {
  /** Median of the iterations, milliseconds. */
  readonly stepMs: number;
  /** The tenth that spends most on a part, and the mean: not all ranks load, and not all collect at once. */
  readonly high: Readonly<Partial<Record<WorkPart, number>>>;
  readonly mean: Readonly<Partial<Record<WorkPart, number>>>;
  readonly synchronizations: number;
  /** Median time of a product, by shape. */
  readonly shapes: Readonly<Record<string, number>>;
  /** Time of a collective by operator and size, where it waits least for others. Missing in windows of older services. */
  readonly transfers?: Readonly<Record<string, number>>;
}

export type RegressionDecision =
  | { readonly do: "open"; readonly found: FoundRegression }
  /** Iterations are as they were, or can no longer be compared with those. */
  | { readonly do: "resolve"; readonly why: "as-before" | "other-work" }
  /** Healthy windows of earlier runs that did the same work would help. */
  | { readonly do: "recall"; readonly work: string }
  | null;

interface Heard {
  interval: number;
  atMs: number;
  /** Of the window that goes on. */
  summaries: WorkSummary[];
  /** By part: what ranks spend on it, in healthy windows and in the last one. */
  healthy: Partial<Record<WorkPart, number>>;
  last: Partial<Record<WorkPart, number>>;
  shapes: Readonly<Record<string, number>>;
  transfers: Readonly<Record<string, number>>;
}

/** A part that grew, and how much of the iteration's growth it explains. */
interface Explanation extends Omit<FoundRegression, "sinceMs" | "stepMs" | "healthyStepMs"> {
  readonly share: number;
}

const CAUSES = {
  dataloader: "dataloader",
  "garbage-collection": "garbage-collection",
  synchronization: "synchronization",
} as const satisfies Partial<Record<WorkPart, Cause>>;

export class RegressionDetector {
  readonly #agents = new Map<string, Heard>();
  #healthy: WorkWindow[] = [];
  #windowFromMs = -Infinity;
  #windows = 0;
  #work: string | null = null;
  /** What `#work` was made of. */
  #programs: ReadonlySet<string> = new Set();
  /** Windows in a row with other work. */
  #others = 0;
  #high: { readonly sinceMs: number; windows: number } | null = null;
  #calm = 0;

  /** What the job does, hashed; null before it is known, and where it changes all the time. */
  get work(): string | null {
    return this.#work;
  }

  /** As many as tell how windows vary; empty while there are too few. */
  get healthy(): readonly WorkWindow[] {
    return this.#healthy.length < LEAST_HEALTHY ? [] : this.#healthy.slice(-KEPT_WINDOWS);
  }

  /** Of earlier runs that did the same work. */
  recall(windows: readonly WorkWindow[]): void {
    this.#healthy = [...windows, ...this.#healthy].slice(-MOST_HEALTHY);
  }

  take(agent: string, summary: WorkSummary, nowMs: number): void {
    const heard = this.#agents.get(agent);
    if (heard?.interval === summary.interval) return;
    if (!heard) {
      const { interval } = summary;
      const none = { healthy: {}, last: {}, shapes: {}, transfers: {} };
      const made = { interval, atMs: nowMs, summaries: [summary], ...none };
      this.#agents.set(agent, made);
      return;
    }
    heard.interval = summary.interval;
    heard.atMs = nowMs;
    heard.summaries.push(summary);
  }

  /** `isOpen`: whether a regression of the job is open. */
  tick(nowMs: number, isOpen: boolean): RegressionDecision {
    // A clock that was set back begins a new window.
    if (nowMs < this.#windowFromMs || this.#windowFromMs === -Infinity) this.#windowFromMs = nowMs;
    if (nowMs - this.#windowFromMs < WINDOW_MS) return null;
    const fromMs = this.#windowFromMs;
    this.#windowFromMs = nowMs;
    return this.#close(fromMs, nowMs, isOpen);
  }

  #close(fromMs: number, nowMs: number, isOpen: boolean): RegressionDecision {
    for (const [agent, { atMs }] of this.#agents)
      if (nowMs - atMs > FORGOTTEN_MS) this.#agents.delete(agent);
    const all = [...this.#agents.values()];
    const heard = all.filter(({ summaries }) => summaries.length > 0);
    const summaries = heard.flatMap((one) => one.summaries);
    for (const one of heard) {
      one.last = levels(one.summaries);
      one.shapes = timesOf(one.summaries, "shapes");
      one.transfers = timesOf(one.summaries, "transfers");
      one.summaries = [];
    }
    const transfers = shortest(heard.map((one) => one.transfers));
    const window = heard.length >= LEAST_HEARD * all.length ? windowOf(summaries, transfers) : null;
    // Nothing ended in it: a checkpoint, an evaluation, a hang.
    if (!window) return null;
    if (++this.#windows <= WARM_UP) return null;
    if (this.#isOtherWork(summaries, window)) return this.#onOtherWork(isOpen);
    this.#others = 0;
    if (this.#work === null) {
      this.#work = workOf(summaries);
      this.#programs = new Set(summaries.flatMap((one) => one.programs));
      if (this.#work !== null) return { do: "recall", work: this.#work };
    }
    if (this.#healthy.length < LEAST_HEALTHY) {
      if (!isOpen) this.#learn(window, heard);
      return null;
    }
    return this.#isHigh(window)
      ? this.#onHigh(window, heard, fromMs, isOpen)
      : this.#onHealthy(window, heard, isOpen);
  }

  /** Nothing that it communicated comes again, or hardly any of the products that it always made. */
  #isOtherWork(summaries: readonly WorkSummary[], { shapes }: WorkWindow): boolean {
    const programs = summaries.flatMap((one) => one.programs);
    const isKnown = this.#work !== null && programs.length > 0;
    if (isKnown && !programs.some((one) => this.#programs.has(one))) return true;
    if (this.#healthy.length < LEAST_HEALTHY || Object.keys(shapes).length === 0) return false;
    const usual = Object.entries(this.#usual("shapes")).filter(([shape]) => this.#isSteady(shape));
    const sum = (of: typeof usual): number => of.reduce((all, [, ms]) => all + ms, 0);
    return sum(usual.filter(([shape]) => shape in shapes)) < SAME_SHAPES * sum(usual);
  }

  /** Experts multiply what they are sent: those shapes come and go. */
  #isSteady(shape: string): boolean {
    return this.#healthy.filter(({ shapes }) => shape in shapes).length >= this.#healthy.length / 2;
  }

  #onOtherWork(isOpen: boolean): RegressionDecision {
    this.#high = null;
    if (++this.#others < WINDOWS_TO_CHANGE) return null;
    this.#others = this.#windows = this.#calm = 0;
    this.#healthy = [];
    this.#work = null;
    this.#programs = new Set();
    for (const heard of this.#agents.values()) heard.healthy = {};
    return isOpen ? { do: "resolve", why: "other-work" } : null;
  }

  #onHealthy(window: WorkWindow, heard: readonly Heard[], isOpen: boolean): RegressionDecision {
    this.#high = null;
    this.#calm++;
    if (!isOpen) this.#learn(window, heard);
    return isOpen && this.#calm >= WINDOWS_TO_RESOLVE ? { do: "resolve", why: "as-before" } : null;
  }

  #onHigh(
    window: WorkWindow,
    heard: readonly Heard[],
    fromMs: number,
    isOpen: boolean,
  ): RegressionDecision {
    this.#calm = 0;
    this.#high ??= { sinceMs: fromMs, windows: 0 };
    if (++this.#high.windows < WINDOWS_TO_CONFIRM || isOpen) return null;
    const found = this.#explain(window, heard, this.#high.sinceMs);
    return found && { do: "open", found };
  }

  #learn(window: WorkWindow, heard: readonly Heard[]): void {
    this.#healthy.push(window);
    if (this.#healthy.length > MOST_HEALTHY) this.#healthy.shift();
    for (const { healthy, last } of heard)
      for (const part of WORK_PARTS) {
        const ms = last[part];
        if (ms !== undefined) healthy[part] = followed(healthy[part] ?? ms, ms);
      }
  }

  #isHigh({ stepMs }: WorkWindow): boolean {
    const steps = this.#healthy.map((one) => one.stepMs);
    const middle = median(steps);
    const spread = Math.max(...steps) - middle;
    return stepMs > middle + Math.max(LEAST_GROWTH * middle, BEYOND * spread);
  }

  #explain(window: WorkWindow, heard: readonly Heard[], sinceMs: number): FoundRegression | null {
    const healthyStepMs = median(this.#healthy.map((one) => one.stepMs));
    const about = { sinceMs, stepMs: window.stepMs, healthyStepMs };
    const growth = window.stepMs - healthyStepMs;
    const parts = Object.keys(CAUSES) as (keyof typeof CAUSES)[];
    const found = parts.flatMap((part): Explanation[] => {
      const share = this.#share(part, window, growth);
      const grew = share > 0 ? this.#breadth(part, heard, growth) : null;
      if (!grew) return [];
      return [{ share, cause: CAUSES[part], part, ...grew, ...this.#amounts(part, window) }];
    });
    const products = this.#slower("shapes", window, heard, growth / healthyStepMs);
    const [best] = [...found, ...(products ? [products] : [])].sort((a, b) => b.share - a.share);
    if (!best) return this.#unseen(window, heard, growth, about);
    const { share: _, ...rest } = best;
    return { ...about, ...rest };
  }

  #amounts(part: WorkPart, window: WorkWindow): { partMs: number; healthyPartMs: number } {
    return {
      partMs: window.high[part] ?? 0,
      healthyPartMs: median(this.#healthy.map((one) => one.high[part] ?? 0)),
    };
  }

  /** On how many machines the part grew, of those that have it; null where those are too few. */
  #breadth(
    part: WorkPart,
    heard: readonly Heard[],
    growth: number,
  ): { machines: number; of: number } | null {
    const exceeds = part === "garbage-collection" ? COLLECTIONS_EXCEED : EXCEEDS;
    const have = heard.filter(({ last }) => last[part] !== undefined);
    const grew = have.filter(({ last, healthy }) => {
      // Of a machine that came with the regression nothing healthy is known: the job's own windows stand for it.
      const usual = healthy[part] ?? this.#most("high", part);
      return last[part]! - usual >= exceeds * growth;
    });
    const isBroad = have.length > 0 && grew.length > BREADTH * have.length;
    return isBroad ? { machines: grew.length, of: have.length } : null;
  }

  /** Of the iteration's growth that the part explains; 0 where it does not. */
  #share(part: keyof typeof CAUSES, window: WorkWindow, growth: number): number {
    const high = window.high[part] ?? 0;
    const excess = high - median(this.#healthy.map((one) => one.high[part] ?? 0));
    if (part === "garbage-collection") {
      const own = window.mean[part] ?? 0;
      const usual = median(this.#healthy.map((one) => one.mean[part] ?? 0));
      const isMore = own > MORE_COLLECTIONS * this.#most("mean", part);
      const share = Math.max(own - usual, excess) / growth;
      return isMore && share >= COLLECTIONS_EXPLAIN ? share : 0;
    }
    if (high - this.#most("high", part) < EXCEEDS * growth || excess < EXPLAINS * growth) return 0;
    // Who waits for the GPU waits longer when anything is slower: only more waits are new work of the code.
    if (part === "synchronization") {
      const usual = median(this.#healthy.map((one) => one.synchronizations));
      return window.synchronizations >= MORE_CALLS * usual + 1 ? excess / growth : 0;
    }
    return excess / growth;
  }

  /** Products of the same shapes, or collectives of the same sizes, that take longer on most machines. */
  #slower(
    of: "shapes" | "transfers",
    window: WorkWindow,
    heard: readonly Heard[],
    growthShare: number,
  ): Explanation | null {
    const usual = this.#usual(of);
    const more = slower(window[of] ?? {}, usual);
    const most = Math.max(0, ...this.#healthy.map((one) => slower(one[of] ?? {}, usual)?.by ?? 0));
    const least = EXPLAIN[of] * growthShare;
    if (!more || more.by < least || more.by < BEYOND * most) return null;
    const have = heard.flatMap((one) => slower(one[of], usual) ?? []);
    const grew = have.filter(({ by }) => by >= EXCEEDS * growthShare).length;
    if (grew <= BREADTH * have.length) return null;
    return {
      share: Math.min(1, more.by / growthShare),
      ...(of === "shapes"
        ? { cause: "slow-kernel", part: "products" }
        : { cause: "network-slow", part: "transfers" }),
      partMs: more.nowMs,
      healthyPartMs: more.healthyMs,
      machines: grew,
      of: have.length,
    };
  }

  #usual(of: "shapes" | "transfers"): Record<string, number> {
    const all = new Map<string, number[]>();
    for (const { [of]: times = {} } of this.#healthy)
      for (const [shape, ms] of Object.entries(times))
        all.set(shape, [...(all.get(shape) ?? []), ms]);
    return Object.fromEntries([...all].map(([shape, ms]) => [shape, median(ms)]));
  }

  /** Nothing that is recorded grew, and yet most ranks take longer by themselves: their CPUs, or kernels that are not traced. */
  #unseen(
    window: WorkWindow,
    heard: readonly Heard[],
    growth: number,
    about: Pick<FoundRegression, "sinceMs" | "stepMs" | "healthyStepMs">,
  ): FoundRegression | null {
    const own = (of: WorkWindow): number => of.mean.own ?? 0;
    const latency = (of: WorkWindow): number => of.mean["issue-latency"] ?? 0;
    if (own(window) - median(this.#healthy.map(own)) < EXPLAINS * growth) {
      const found = this.#slower("transfers", window, heard, growth / about.healthyStepMs);
      if (!found) return null;
      const { share: _, ...rest } = found;
      return { ...about, ...rest };
    }
    const grew = this.#breadth("own", heard, growth);
    const usual = median(this.#healthy.map(latency));
    if (!grew || usual === 0) return null;
    const ahead = latency(window) / usual;
    if (ahead < STILL_AHEAD && ahead > NO_LONGER_AHEAD) return null;
    const cause = ahead >= STILL_AHEAD ? "slow-kernel" : "cpu-stall";
    const partMs = own(window);
    const healthyPartMs = median(this.#healthy.map(own));
    // Without shapes, kernels that are slower look like sequences that are longer.
    const isSameWork = Object.keys(window.shapes).length > 0;
    return { ...about, ...grew, cause, part: "own", partMs, healthyPartMs, isSameWork };
  }

  /** Nine of ten healthy windows are below: those with a checkpoint or an evaluation tell of nothing else. */
  #most(of: "high" | "mean", part: WorkPart): number {
    const all = Float64Array.from(this.#healthy, (one) => one[of][part] ?? 0).sort();
    return all[Math.floor(0.9 * (all.length - 1))] ?? 0;
  }
}

/** Follows a level in small steps, so that a window with a checkpoint hardly moves it. */
function followed(level: number, ms: number): number {
  const most = 0.05 * level + 0.01 * ms;
  return level + Math.max(-most, Math.min(most, 0.1 * (ms - level)));
}

const KEPT_WINDOWS = 40;
const HIGH = 0.9;
/** Of a machine: the code hits all its ranks that have the part, a broken device one of them; collections hit one at a time. */
const LEVELS: Readonly<Record<WorkPart, number>> = {
  step: 0.5,
  dataloader: 0.5,
  "garbage-collection": HIGH,
  synchronization: 0.5,
  own: 0.25,
  "issue-latency": 0.5,
};

type Amounts = Partial<Record<WorkPart, number>>;

function measured(
  summaries: readonly WorkSummary[],
  measure: (all: Histogram, part: WorkPart) => number,
): Amounts {
  const found: Amounts = {};
  for (const part of WORK_PARTS) {
    const all = merged(summaries.flatMap(({ parts }) => parts[part] ?? []));
    if (all.count.length > 0) found[part] = measure(all, part);
  }
  return found;
}

const levels = (summaries: readonly WorkSummary[]): Amounts =>
  measured(summaries, (all, part) => quantile(all, LEVELS[part]));

/** Of collectives the tenth that waits least for other ranks: what is left is the transfer (FLARE §5.2.1). */
const TIMES = { shapes: 0.5, transfers: 0.1 } as const;

function timesOf(
  summaries: readonly WorkSummary[],
  of: "shapes" | "transfers",
): Record<string, number> {
  const all = new Map<string, Histogram[]>();
  for (const { [of]: times } of summaries)
    for (const { shape, ms } of times) all.set(shape, [...(all.get(shape) ?? []), ms]);
  return Object.fromEntries(
    [...all].map(([shape, ms]) => [shape, quantile(merged(ms), TIMES[of])]),
  );
}

/** Of each collective the time on the machine that waits least for others. */
function shortest(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const found: Record<string, number> = {};
  for (const times of all)
    for (const [shape, ms] of Object.entries(times))
      found[shape] = Math.min(found[shape] ?? ms, ms);
  return found;
}

/** By how much products of the same shapes take longer, the longest counting most; null where no shape is the same. */
function slower(
  now: Readonly<Record<string, number>>,
  usual: Readonly<Record<string, number>>,
): { readonly by: number; readonly nowMs: number; readonly healthyMs: number } | null {
  let [nowMs, healthyMs, shapes] = [0, 0, 0];
  for (const [shape, ms] of Object.entries(now)) {
    const healthy = usual[shape];
    if (healthy === undefined || healthy === 0) continue;
    shapes++;
    nowMs += ms;
    healthyMs += healthy;
  }
  if (shapes === 0) return null;
  return { by: nowMs / healthyMs - 1, nowMs: nowMs / shapes, healthyMs: healthyMs / shapes };
}

/** What all ranks together communicate: the same for the same model in the same layout, wherever its ranks sit. */
function workOf(summaries: readonly WorkSummary[]): string | null {
  const programs = [...new Set(summaries.flatMap((one) => one.programs))].sort();
  return programs.length === 0 || programs.length > MOST_PROGRAMS_OF_JOB
    ? null
    : programs.join(" ");
}

const MOST_PROGRAMS_OF_JOB = 256;

/** null where no iteration ended. */
function windowOf(
  summaries: readonly WorkSummary[],
  transfers: Readonly<Record<string, number>>,
): WorkWindow | null {
  const steps = merged(summaries.flatMap(({ parts }) => parts.step ?? []));
  if (steps.count.length === 0) return null;
  return {
    stepMs: quantile(steps, 0.5),
    high: measured(summaries, (all) => quantile(all, HIGH)),
    mean: measured(summaries, mean),
    synchronizations: median(summaries.map((one) => one.synchronizations)),
    shapes: timesOf(summaries, "shapes"),
    transfers,
  };
}
