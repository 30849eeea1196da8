/** Who is named, until it is over, or another one is named and it never was. */
import type { LiveCulprit, LiveJudgement } from "../../../model/live-judgement.ts";
import { type Culprit, endOf, toldOf } from "./culprit.ts";
import type { Evidence } from "./evidence.ts";
import { addRanks, addWires, Hypotheses, type Hypothesis, type Known } from "./hypotheses.ts";
import type { KeptBlock } from "./kept-block.ts";
import { COMMUNICATORS, type Kind, LEADS, SENDERS } from "./kinds.ts";
import { iterationMsOf, meansOf } from "./means.ts";
import type { JudgedJob } from "./online-judge.ts";
import type { RecentBlocks } from "./recent-blocks.ts";
import type { Spikes } from "./spikes.ts";
import { placesOf } from "./together.ts";

/** Iterations that everybody takes longer for, so many blocks long, are the usual ones by now. */
const USUAL_BLOCKS = 240;
/** Somebody is named from this probability on. */
export const NAMED_FROM = 0.9;

export type Ended = LiveJudgement["ended"][number];

export class Culprits {
  readonly #job: JudgedJob;
  readonly #kinds: readonly Kind[];
  readonly #recent: RecentBlocks;
  readonly #spikes: readonly Spikes[];
  #all: Culprit[] = [];
  #nextId = 1;
  /** Nothing that begins in front of this block is weighed: the last fault ended there. */
  #floor = 0;
  /** By kind and item: the same of its own last fault, while another one's lasts. */
  readonly #floors: readonly Map<number, number>[];
  readonly #spikesSince: readonly Map<number, number>[];

  constructor(
    job: JudgedJob,
    kinds: readonly Kind[],
    recent: RecentBlocks,
    spikes: readonly Spikes[],
  ) {
    this.#job = job;
    this.#kinds = kinds;
    this.#recent = recent;
    this.#spikes = spikes;
    this.#floors = kinds.map(() => new Map<number, number>());
    this.#spikesSince = kinds.map(() => new Map<number, number>());
  }

  get isNobody(): boolean {
    return this.#all.length === 0;
  }

  /** Whether somebody is slow all the time, not now and then. */
  get isLasting(): boolean {
    return this.#all.some(isLasting);
  }

  get floor(): number {
    return this.#floor;
  }

  get hypotheses(): readonly Hypothesis[] {
    return this.#all.map(({ hypothesis }) => hypothesis);
  }

  /** What of a kind is known, `but` for one culprit. */
  known(kind: number, but: Culprit | null = null): Known {
    const culprits = this.#all.filter((one) => one !== but);
    const named = culprits.flatMap(({ hypothesis }) =>
      hypothesis.kind === kind ? hypothesis.items : [],
    );
    if (kind === COMMUNICATORS) named.push(...this.#overSlowSenders(culprits));
    const [floors, spikes] = [this.#floors[kind]!, this.#spikesSince[kind]!];
    return {
      named,
      hasGrown: culprits.some(isLasting),
      floorOf: (item) => Math.max(this.#floor, floors.get(item) ?? 0),
      spikesSince: (item) => spikes.get(item) ?? 0,
    };
  }

  /** Whoever is over. */
  end(untilMs: number): Ended[] {
    const ended: Ended[] = [];
    for (const culprit of this.#all) {
      if (this.#isUsual(culprit)) return [this.#accept(culprit, untilMs)];
      const behind = this.#endOf(culprit);
      if (behind === null) continue;
      this.#all = this.#all.filter((other) => other !== culprit);
      const first = this.#recent.blocks.find(({ number }) => number >= behind);
      ended.push({ id: culprit.id, untilMs: first?.startMs ?? untilMs, why: "over" });
      const { kind, items, since } = culprit.hypothesis;
      for (const item of items)
        if (isLasting(culprit)) this.#spikes[kind]!.join(item, since, behind);
        else this.#spikesSince[kind]!.set(item, behind);
      if (!isLasting(culprit) || this.isLasting)
        for (const item of items) this.#floors[kind]!.set(item, behind);
      else {
        this.#floor = behind;
        this.#recent.clearFrom(behind);
      }
    }
    return ended;
  }

  /** How probable those are by now. */
  renew(evidence: readonly Evidence[], last: KeptBlock): void {
    for (const culprit of this.#all) {
      const { shape, isOne, kind, items } = culprit.hypothesis;
      if (shape !== "lasting" || isOne) continue;
      const found = new Hypotheses();
      const known = this.known(kind, culprit);
      if (kind === LEADS)
        addRanks(found, evidence[kind]!, known, this.#spikes[kind]!.hiccups(known));
      else addWires(found, evidence[kind]!, known, last);
      const { candidates } = found.posterior();
      const own = candidates.find((one) => one.items[0] === items[0]);
      if (own && own.probability > NAMED_FROM) culprit.probability = own.probability;
    }
  }

  name(hypothesis: Hypothesis, probability: number): void {
    const { blocks } = this.#recent;
    const { type, kind, since, items, shape } = hypothesis;
    const onset = blocks.find(({ number }) => number >= since) ?? blocks.at(-1)!;
    const usual = (onset.usual ?? blocks.findLast((block) => block.usual !== null)!.usual!)[kind]!;
    if (shape === "lasting") this.#recent.nameFrom(since);
    const { first } = this.#kinds[kind]!.references;
    const { quiet } = this.#recent;
    this.#all.push({
      id: this.#nextId++,
      hypothesis,
      places: placesOf(hypothesis, this.#kinds),
      sinceMs: onset.startMs,
      probability,
      // A machine's ranks are compared with those elsewhere.
      series: items.map((item) => (type === "machine" ? first[item]! : usual.surest[item]!)),
      usual,
      before: meansOf(quiet, this.#job.ranks.length),
      iterationMs: iterationMsOf(quiet),
    });
  }

  /** Who does not stand out once the one named now is taken to be slow was never slow. */
  revise(now: Hypothesis, evidence: readonly Evidence[], untilMs: number): Ended[] {
    const wrong = this.#all.filter((one) => isWrong(one, now, evidence, this.#kinds));
    this.#all = this.#all.filter((one) => !wrong.includes(one));
    return wrong.map(({ id }) => ({ id, untilMs, why: "revised" }));
  }

  told(): LiveCulprit[] {
    const { blocks, quiet } = this.#recent;
    return this.#all
      .map((culprit) => {
        const { since, items, kind } = culprit.hypothesis;
        const spiking = isLasting(culprit) ? null : this.#spikes[kind]!.blocksOf(items[0]!);
        const slow = blocks.filter(
          ({ number }) => number >= since && (spiking === null || spiking.has(number)),
        );
        return toldOf(culprit, this.#job, this.#kinds[kind]!, slow, quiet);
      })
      .toSorted((a, b) => b.probability - a.probability);
  }

  #isUsual({ hypothesis: { type, since } }: Culprit): boolean {
    const last = this.#recent.blocks.at(-1)!.number;
    return type === "all" && this.#all.length === 1 && last - since >= USUAL_BLOCKS;
  }

  /** What became slower for everybody and stays so is not slow any more: else nobody would be judged from now on. */
  #accept({ id }: Culprit, untilMs: number): Ended {
    this.#all = [];
    this.#floor = this.#recent.blocks[0]!.number;
    this.#recent.learnAnew(this.#floor);
    return { id, untilMs, why: "over" };
  }

  /** Number of the first block behind its end; null while it lasts. */
  #endOf(culprit: Culprit): number | null {
    const { kind, items, since } = culprit.hypothesis;
    if (isLasting(culprit)) return endOf(culprit, this.#recent.blocks, this.#kinds[kind]!);
    const { isOver, number } = this.#spikes[kind]!.endOf(items[0]!, since);
    return isOver ? number : null;
  }

  /** What goes over the wire of a rank that sends slowly takes longer as well. */
  #overSlowSenders(culprits: readonly Culprit[]): number[] {
    const slow = culprits.filter(({ hypothesis }) => hypothesis.kind === SENDERS);
    const senders = new Set(slow.flatMap(({ places }) => places));
    return [...this.#job.groups.keys()].filter((group) =>
      this.#job.groups[group]!.places.some((place) => senders.has(place)),
    );
  }
}

function isLasting({ hypothesis }: Culprit): boolean {
  return hypothesis.shape === "lasting";
}

function isWrong(
  { hypothesis, places }: Culprit,
  now: Hypothesis,
  evidence: readonly Evidence[],
  kinds: readonly Kind[],
): boolean {
  const { type, kind, shape, since, items } = hypothesis;
  if (hypothesis === now || shape !== "lasting" || type === "machine") return false;
  if (type === "all") return true;
  // What was a part of it: the rest of a machine is slow as well; of communicators, whose wire it is is known now.
  const isIn = placesOf(now, kinds).some((place) => places.includes(place));
  if (isIn && now.type === "machine" && kind === LEADS) return true;
  if (isIn && now.kind === SENDERS && kind === COMMUNICATORS) return true;
  if (now.kind === kind && now.isOne && now.items.includes(items[0]!)) return true;
  const w = evidence[kind]!.windows.findLastIndex(({ from }) => from.number >= since);
  const besides = now.kind === kind ? [...items, ...now.items] : items;
  return w >= 0 && !(evidence[kind]!.apart(w, items[0]!, besides) > 0);
}
