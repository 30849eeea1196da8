/**
 * What may have begun, and how probable each is after a block: nothing; a rank is slow since some block, or now and then; two are; a
 * machine; a wire. Priors are rates: so many faults an hour.
 */
import { getOrInsert } from "../../../base/group-by.ts";
import type { Evidence } from "./evidence.ts";
import type { KeptBlock } from "./kept-block.ts";
import type { Kind } from "./kinds.ts";
import type { LogHiccups, SpikeEvidence } from "./spikes.ts";

/** A rank becomes slow once in so long: a month. */
const RANK_FAULT_MS = 720 * 3.6e6;
/** Of ranks that become slow, how many do together with another one. */
const ANOTHER = 0.05;
/** Of ranks that become slow, how many are so now and then. */
const SPIKING = 0.3;
/** Evidence counts so many times: fitted on recorded jobs. */
export const TEMPER = 1.5;
/** Of those that stand out most so many are tried as two that became slow together. */
const TRIED = 3;
/** A growth more than so large a part of another's may have its reason. */
const SAME_REASON = 0.5;
/** Hiccups must explain all blocks since the longest window that is about as likely as the likeliest. */
const NEARLY = 3;
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
    // Whichever of the wires that are slow together is the slowest.
    const key = `${type} ${kind} ${type === "wire" ? "" : items[0]}`;
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
  /** Number of the block with which an item's last fault ended; and the last one that came now and then. */
  floorOf(this: void, item: number): number;
  spikesSince(this: void, item: number): number;
}

/** Wires that are slow since some block, for one reason. */
export function addWires(to: Hypotheses, evidence: Evidence, known: Known, last: KeptBlock): void {
  for (const w of evidence.windows.keys()) addWiresSince(to, evidence, w, known, last);
}

/** Ranks that are slow since some block, alone or two together. */
export function addRanks(
  to: Hypotheses,
  evidence: Evidence,
  known: Known,
  logHiccups: LogHiccups,
): void {
  /** By rank: its hypotheses, of the shortest window first. */
  const alone = new Map<number, Since[]>();
  for (const [w, { blocks, spanMs }] of evidence.windows.entries()) {
    const open = openItems(evidence, w, known);
    for (const item of open) {
      const one = lasting(evidence, w, known, [item], evidence.apart(w, item, known.named));
      to.add(one);
      if (one.log > -Infinity)
        getOrInsert(alone, item, () => []).push({ blocks, log: one.log, rate: logRate(spanMs) });
    }
    addPairs(to, evidence, w, known, open);
  }
  for (const all of alone.values()) addHiccups(to, all, logHiccups, 1);
}

/** What lasts may be hiccups of one of these ranks. `all`: of the shortest window first. */
export function addHiccups(
  to: Hypotheses,
  all: readonly Since[],
  logHiccups: LogHiccups,
  ranks: number,
): void {
  const best = all.reduce((a, b) => (b.log > a.log ? b : a));
  const longest = all.findLast(({ log }) => log > best.log - NEARLY)!;
  to.addHarmless(best.log - best.rate + logHiccups(longest.blocks, ranks));
}

/** Slow since the beginning of a window of so many blocks: how likely that is, its rate included. */
export interface Since {
  readonly blocks: number;
  readonly log: number;
  readonly rate: number;
}

function addPairs(
  to: Hypotheses,
  evidence: Evidence,
  w: number,
  known: Known,
  open: readonly number[],
): void {
  const { named } = known;
  const shifts = evidence.shifts[w]!;
  if (shifts.length < 4) return;
  const top: number[] = [];
  for (const item of open) keepLargest(top, item, shifts);
  const both = Math.log((2 * ANOTHER) / (shifts.length - 1));
  for (const [i, one] of top.entries())
    for (const other of top.slice(i + 1)) {
      const log = evidence.apart(w, one, [...named, other]);
      if (!(log > 0)) continue;
      const next = evidence.apart(w, other, [...named, one]);
      // What moves two by chance may move them together: the surer one's word counts half.
      const sum = Math.min(log, next) + Math.max(log, next) / 2;
      to.add(lasting(evidence, w, known, [one, other], sum, both));
    }
}

/**
 * A NIC has two ends, a link between machines is everybody's of both: wires that grew by more than half as much as the one that grew
 * most have its reason, unless those are most of all.
 */
function addWiresSince(
  to: Hypotheses,
  evidence: Evidence,
  w: number,
  known: Known,
  last: KeptBlock,
): void {
  const { kind } = evidence;
  const shifts = evidence.shifts[w]!;
  const open = openItems(evidence, w, known);
  if (open.length === 0) return;
  const top = open.reduce((a, b) => (shifts[b]! > shifts[a]! ? b : a));
  if (!(kind.isFelt?.(last.block, top, shifts[top]!) ?? true)) return;
  const items = open.filter((item) => shifts[item]! > SAME_REASON * shifts[top]!);
  if (2 * items.length > shifts.length) return;
  items.sort((a, b) => shifts[b]! - shifts[a]!);
  const log = evidence.apart(w, top, [...known.named, ...items]);
  to.add({ ...lasting(evidence, w, known, items, log), isOne: true });
}

/** What of the window moved away, and is not named yet. */
function openItems(evidence: Evidence, w: number, { named, floorOf }: Known): number[] {
  const { number } = evidence.windows[w]!.from;
  const isNamed = new Set(named);
  const shifts = evidence.shifts[w]!;
  const open: number[] = [];
  for (let item = 0; item < shifts.length; item++)
    if (shifts[item]! > 0 && !isNamed.has(item) && number >= floorOf(item)) open.push(item);
  return open;
}

function lasting(
  evidence: Evidence,
  w: number,
  { hasGrown }: Known,
  items: readonly number[],
  log: number,
  prior = 0,
): Hypothesis {
  const { kind, index, windows } = evidence;
  const { from, spanMs } = windows[w]!;
  const pace = hasGrown ? 0 : evidence.pace(w);
  return {
    type: kind.type,
    shape: "lasting",
    kind: index,
    items,
    isOne: false,
    since: from.number,
    log: logRate(spanMs) + kind.logPrior + prior + TEMPER * (log + pace),
  };
}

function keepLargest(top: number[], place: number, shifts: Float32Array): void {
  let at = top.length;
  while (at > 0 && shifts[top[at - 1]!]! < shifts[place]!) at--;
  if (at < TRIED) top.splice(at, 0, place);
  if (top.length > TRIED) top.pop();
}

/** What is slow now and then; the job's first rank has duties that look like it: it evaluates, it saves. */
export function addSpikes(
  to: Hypotheses,
  kind: Kind,
  index: number,
  found: readonly SpikeEvidence[],
  last: KeptBlock,
  firstPlace: number,
): void {
  const rate = logRate(last.block.lengthMs) + Math.log(SPIKING) + kind.logPrior;
  const add = ({ place, beside, log, since }: SpikeEvidence): void =>
    to.add({
      type: kind.type,
      shape: "now-and-then",
      kind: index,
      items: [place, ...beside],
      isOne: true,
      since,
      log: rate + log,
    });
  if (kind.type === "wire") {
    // What spikes together has one reason.
    if (found.length > 0) add(found.reduce((a, b) => (b.log > a.log ? b : a)));
    return;
  }
  for (const one of found) {
    add(one);
    if (one.place === firstPlace) to.addHarmless(rate + one.log);
  }
}
