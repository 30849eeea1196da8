/**
 * Whether a running job's code became slower, and by what: summaries of all machines in, decisions out. A regression is an
 * iteration that is longer than all healthy ones for some windows in a row, and a part of it (loading, collections,
 * synchronisation, matrix products) that grew on most machines and explains the growth. Longer iterations that no part explains
 * are not accused here: the search for a slow device has them.
 */
import { median } from "../../maths/robust.ts";
import type { Cause } from "../../model/cause.ts";
import type { FoundRegression } from "../../model/regression.ts";
import {
  WORK_PARTS,
  mean,
  merged,
  quantile,
  type WorkPart,
  type WorkSummary,
} from "../../model/work-summary.ts";

const WINDOW_MS = 15_000;
/** The first windows of a run compile, fill caches and find their pace. */
const WARM_UP = 4;
const LEAST_HEALTHY = 8;
/** An hour. */
const MOST_HEALTHY = 240;
const WINDOWS_TO_CONFIRM = 3;
const WINDOWS_TO_RESOLVE = 4;
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
/** The same work: products of another batch or model are no slower kernels. */
const SAME_FLOPS = 0.02;
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
  readonly flops: number;
}

/** What a job of the same name, size and work looked like; kept from run to run. */
export interface WorkBaseline {
  readonly key: string;
  readonly windows: readonly WorkWindow[];
}

export type RegressionDecision =
  | { readonly do: "open"; readonly found: FoundRegression }
  | { readonly do: "resolve" }
  | null;

interface Heard {
  interval: number;
  atMs: number;
  /** Of the window that goes on. */
  summaries: WorkSummary[];
  /** By part: the tenth that spends most, in healthy windows and in the last one. */
  healthy: Partial<Record<WorkPart, number>>;
  last: Partial<Record<WorkPart, number>>;
}

const CAUSES: Readonly<Partial<Record<WorkPart, Cause>>> = {
  dataloader: "dataloader",
  "garbage-collection": "garbage-collection",
  synchronization: "synchronization",
  products: "slow-kernel",
};

export class RegressionDetector {
  readonly #agents = new Map<string, Heard>();
  readonly #key: string;
  #healthy: WorkWindow[];
  /** Whether all healthy windows are of an earlier run. */
  #isOfBefore: boolean;
  #windowFromMs = -Infinity;
  #windows = 0;
  #high: { readonly sinceMs: number; windows: number } | null = null;
  #calm = 0;
  #isOpen: boolean;

  /** `isOpen`: a regression was found before the service was started again. */
  constructor(key: string, baseline: WorkBaseline | null, isOpen = false) {
    this.#key = key;
    this.#healthy = baseline?.key === key ? [...baseline.windows].slice(-MOST_HEALTHY) : [];
    this.#isOfBefore = this.#healthy.length > 0;
    this.#isOpen = isOpen;
  }

  /** For the next run, and for the next service. */
  get baseline(): WorkBaseline {
    // As many as tell how windows vary; a document holds them.
    return { key: this.#key, windows: this.#healthy.slice(-KEPT_WINDOWS) };
  }

  take(agent: string, summary: WorkSummary, nowMs: number): void {
    const heard = this.#agents.get(agent);
    if (heard?.interval === summary.interval) return;
    if (!heard) {
      const { interval } = summary;
      const made = { interval, atMs: nowMs, summaries: [summary], healthy: {}, last: {} };
      this.#agents.set(agent, made);
      return;
    }
    heard.interval = summary.interval;
    heard.atMs = nowMs;
    heard.summaries.push(summary);
  }

  tick(nowMs: number): RegressionDecision {
    // A clock that was set back begins a new window.
    if (nowMs < this.#windowFromMs || this.#windowFromMs === -Infinity) this.#windowFromMs = nowMs;
    if (nowMs - this.#windowFromMs < WINDOW_MS) return null;
    const fromMs = this.#windowFromMs;
    this.#windowFromMs = nowMs;
    return this.#close(fromMs, nowMs);
  }

  #close(fromMs: number, nowMs: number): RegressionDecision {
    for (const [agent, { atMs }] of this.#agents)
      if (nowMs - atMs > FORGOTTEN_MS) this.#agents.delete(agent);
    const all = [...this.#agents.values()];
    const heard = all.filter(({ summaries }) => summaries.length > 0);
    const summaries = heard.flatMap((one) => one.summaries);
    for (const one of heard) {
      one.last = highs(one.summaries);
      one.summaries = [];
    }
    const window = heard.length >= LEAST_HEARD * all.length ? windowOf(summaries) : null;
    // Nothing ended in it: a checkpoint, an evaluation, a hang.
    if (!window) return null;
    if (++this.#windows <= WARM_UP) return null;
    // After a restart of the service in the middle of a regression the work is still the same.
    if (this.#isOfBefore && !this.#isOpen) this.#check(window);
    if (this.#healthy.length < LEAST_HEALTHY) {
      if (!this.#isOpen) this.#learn(window, heard);
      return null;
    }
    return this.#isHigh(window)
      ? this.#onHigh(window, heard, fromMs)
      : this.#onHealthy(window, heard);
  }

  /** An earlier run tells only of the same work: another batch or model has other products. */
  #check({ flops }: WorkWindow): void {
    this.#isOfBefore = false;
    const usual = median(this.#healthy.map((one) => one.flops));
    const isSame = flops > 0 && Math.abs(flops - usual) <= SAME_FLOPS * usual;
    if (!isSame) this.#healthy = [];
  }

  #onHealthy(window: WorkWindow, heard: readonly Heard[]): RegressionDecision {
    this.#high = null;
    this.#calm++;
    if (!this.#isOpen) this.#learn(window, heard);
    if (!this.#isOpen || this.#calm < WINDOWS_TO_RESOLVE) return null;
    this.#isOpen = false;
    return { do: "resolve" };
  }

  #onHigh(window: WorkWindow, heard: readonly Heard[], fromMs: number): RegressionDecision {
    this.#calm = 0;
    this.#high ??= { sinceMs: fromMs, windows: 0 };
    if (++this.#high.windows < WINDOWS_TO_CONFIRM || this.#isOpen) return null;
    const found = this.#explain(window, heard, this.#high.sinceMs);
    if (!found) return null;
    this.#isOpen = true;
    return { do: "open", found };
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
    const growth = window.stepMs - healthyStepMs;
    const found = WORK_PARTS.flatMap((part): (FoundRegression & { share: number })[] => {
      const cause = CAUSES[part];
      const share = cause === undefined ? 0 : this.#share(part, window, growth);
      if (cause === undefined || share === 0) return [];
      const exceeds = part === "garbage-collection" ? COLLECTIONS_EXCEED : EXCEEDS;
      const have = heard.filter(({ last }) => last[part] !== undefined);
      const grew = have.filter(({ last, healthy }) => {
        // Of a machine that came with the regression nothing healthy is known: the job's own windows stand for it.
        const usual = healthy[part] ?? this.#most("high", part);
        return last[part]! - usual >= exceeds * growth;
      });
      if (have.length === 0 || grew.length <= BREADTH * have.length) return [];
      return [
        {
          cause,
          part,
          share,
          sinceMs,
          stepMs: window.stepMs,
          healthyStepMs,
          partMs: window.high[part] ?? 0,
          healthyPartMs: median(this.#healthy.map((one) => one.high[part] ?? 0)),
          machines: grew.length,
          of: have.length,
        },
      ];
    });
    const [best] = found.sort((a, b) => b.share - a.share);
    if (!best) return null;
    const { share: _, ...rest } = best;
    return rest;
  }

  /** Of the iteration's growth that the part explains; 0 where it does not. */
  #share(part: WorkPart, window: WorkWindow, growth: number): number {
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
    // Whoever waits for the GPU waits longer when anything is slower: only more waits are new work of the code.
    if (part === "synchronization") {
      const usual = median(this.#healthy.map((one) => one.synchronizations));
      return window.synchronizations >= MORE_CALLS * usual + 1 ? excess / growth : 0;
    }
    if (part === "products") {
      const usual = median(this.#healthy.map((one) => one.flops));
      return Math.abs(window.flops - usual) <= SAME_FLOPS * usual ? excess / growth : 0;
    }
    return excess / growth;
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

function highs(summaries: readonly WorkSummary[]): Partial<Record<WorkPart, number>> {
  const found: Partial<Record<WorkPart, number>> = {};
  for (const part of WORK_PARTS) {
    const all = merged(summaries.flatMap(({ parts }) => parts[part] ?? []));
    if (all.count.length > 0) found[part] = quantile(all, HIGH);
  }
  return found;
}

/** null where no iteration ended. */
function windowOf(summaries: readonly WorkSummary[]): WorkWindow | null {
  const steps = merged(summaries.flatMap(({ parts }) => parts.step ?? []));
  if (steps.count.length === 0) return null;
  const means: Partial<Record<WorkPart, number>> = {};
  for (const part of WORK_PARTS) {
    const all = merged(summaries.flatMap(({ parts }) => parts[part] ?? []));
    if (all.count.length > 0) means[part] = mean(all);
  }
  const of = (pick: (summary: WorkSummary) => number): number => median(summaries.map(pick));
  return {
    stepMs: quantile(steps, 0.5),
    high: highs(summaries),
    mean: means,
    synchronizations: of((one) => one.synchronizations),
    flops: of((one) => one.flops),
  };
}
