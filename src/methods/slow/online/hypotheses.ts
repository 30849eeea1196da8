/**
 * What may have begun, and how probable each is after a block: nothing; a rank is slow since some block, or now and then; two are; a
 * machine; a wire. Priors are rates: so many faults an hour.
 */
import type { Evidence } from "./evidence.ts";
import type { KeptBlock } from "./kept-block.ts";
import { LEADS } from "./kinds.ts";
import type { SpikeEvidence } from "./spikes.ts";

/** A rank becomes slow once in so long: a month. */
const RANK_FAULT_MS = 720 * 3.6e6;
/** Of ranks that become slow, how many do together with another one. */
const ANOTHER = 0.05;
/** Of ranks that become slow, how many are so now and then. */
const SPIKING = 0.1;
/** Evidence counts so many times: fitted on recorded jobs. */
export const TEMPER = 1.5;
/** Those that stand out most: so many are kept, and of those so many tried as two that became slow together. */
const TOP = 8;
const TRIED = 3;
const MOST_LOG = 200;

export interface Hypothesis {
  readonly type: "rank" | "machine" | "wire" | "all";
  readonly shape: "lasting" | "now-and-then";
  /** Index of the comparison that shows it. */
  readonly kind: number;
  /** What of that stands out: places of ranks, numbers of communicators; of all: none. */
  readonly items: readonly number[];
  /** Whether they are one culprit; else each is one of its own. */
  readonly isOne: boolean;
  /** With which block it began, at the likeliest. */
  readonly since: number;
  /** How much likelier than that nothing began. */
  readonly log: number;
}

export interface Candidate extends Hypothesis {
  readonly probability: number;
}

export interface Posterior {
  /** That nothing began. */
  readonly nothing: number;
  /** Each with its probability: of a rank, over all times at which it may have begun and whether it is alone. */
  readonly candidates: readonly Candidate[];
}

/** Collects hypotheses; those about the same culprit add up. */
export class Hypotheses {
  readonly #best = new Map<string, Hypothesis>();
  readonly #weight = new Map<string, number>();
  #total = 1;

  add(hypothesis: Hypothesis): void {
    const { log } = hypothesis;
    if (log === -Infinity) return;
    const weight = Math.exp(Math.min(MOST_LOG, log));
    this.#total += weight;
    if (hypothesis.isOne) this.#count(hypothesis, weight);
    // Of two ranks each one is slow.
    else for (const item of hypothesis.items) this.#count({ ...hypothesis, items: [item] }, weight);
  }

  /** Something harmless that looks like a fault. */
  addHarmless(log: number): void {
    this.#total += Math.exp(Math.min(MOST_LOG, log));
  }

  #count(hypothesis: Hypothesis, weight: number): void {
    const { type, kind, items } = hypothesis;
    const key = `${type} ${kind} ${items[0]}`;
    this.#weight.set(key, (this.#weight.get(key) ?? 0) + weight);
    if (!((this.#best.get(key)?.log ?? -Infinity) >= hypothesis.log))
      this.#best.set(key, hypothesis);
  }

  /** The likeliest first. */
  posterior(): Posterior {
    const candidates = [...this.#best].map(([key, hypothesis]) => ({
      ...hypothesis,
      probability: this.#weight.get(key)! / this.#total,
    }));
    candidates.sort((a, b) => b.probability - a.probability);
    return { nothing: 1 / this.#total, candidates };
  }
}

/** Log of how probable it is beforehand that a rank becomes slow in so long. */
export function logRate(ms: number): number {
  return Math.log(Math.min(0.5, ms / RANK_FAULT_MS));
}

export interface Known {
  /** Items of the kind that are slow already. */
  readonly named: readonly number[];
  /** That iterations grew is told by the first fault: a second one need not make them longer. */
  readonly hasGrown: boolean;
  /** Number of the block with which an item's last fault ended. */
  floorOf(this: void, item: number): number;
}

/** What of a kind is slow since some block, alone or two together. */
export function addLasting(
  to: Hypotheses,
  evidence: Evidence,
  { named, hasGrown, floorOf }: Known,
  last: KeptBlock,
): void {
  const { kind, index } = evidence;
  const isNamed = new Set(named);
  for (const [w, window] of evidence.windows.entries()) {
    const rate = logRate(window.spanMs) + kind.logPrior;
    const { number } = window.from;
    const pace = hasGrown ? 0 : evidence.pace(w);
    const add = (items: readonly number[], prior: number, log: number): void =>
      to.add({
        type: kind.type,
        shape: "lasting",
        kind: index,
        items,
        isOne: false,
        since: number,
        log: prior + TEMPER * (log + pace),
      });
    const shifts = evidence.shifts[w]!;
    const weigh = (item: number): void => {
      const log = evidence.apart(w, item, named);
      if (log > -Infinity && (kind.isFelt?.(last.block, item, shifts[item]!) ?? true))
        add([item], rate, log);
    };
    const top: number[] = [];
    for (let item = 0; item < shifts.length; item++) {
      if (!(shifts[item]! > 0) || isNamed.has(item) || number < floorOf(item)) continue;
      keepLargest(top, item, shifts);
      if (kind.isRelated === undefined) weigh(item);
    }
    // Who is related to whom is asked of the few that stand out most.
    if (kind.isRelated !== undefined) for (const item of top) weigh(item);
    // What is related is left out of chance already.
    if (shifts.length < 4 || kind.isRelated !== undefined) continue;
    const both = rate + Math.log((2 * ANOTHER) / (shifts.length - 1));
    for (const [i, one] of top.slice(0, TRIED).entries())
      for (const other of top.slice(i + 1, TRIED)) {
        const log = evidence.apart(w, one, [...named, other]);
        if (!(log > 0)) continue;
        const next = evidence.apart(w, other, [...named, one]);
        // What moves two by chance may move them together: the surer one's word counts half.
        add([one, other], both, Math.min(log, next) + Math.max(log, next) / 2);
      }
  }
}

function keepLargest(top: number[], place: number, shifts: Float32Array): void {
  let at = top.length;
  while (at > 0 && shifts[top[at - 1]!]! < shifts[place]!) at--;
  if (at < TOP) top.splice(at, 0, place);
  if (top.length > TOP) top.pop();
}

/** Ranks that are slow now and then; the job's first rank has duties that look like it: it evaluates, it saves. */
export function addSpikes(
  to: Hypotheses,
  { log, since }: SpikeEvidence,
  last: KeptBlock,
  firstPlace: number,
): void {
  const rate = logRate(last.block.lengthMs) + Math.log(SPIKING);
  for (const [place, odds] of log) {
    to.add({
      type: "rank",
      shape: "now-and-then",
      kind: LEADS,
      items: [place],
      isOne: true,
      since: since.get(place)!,
      log: rate + odds,
    });
    if (place === firstPlace) to.addHarmless(rate + odds);
  }
}
