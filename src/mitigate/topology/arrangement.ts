/**
 * Slots at their places, and what another swap would cost: O(stages) instead of O(slots), since a swap changes two
 * replicas and the exchange of two stages, and of all others only the latest matters (`latest.ts`, `exchanges.ts`).
 *
 * With redistributed micro-batches the makespan is that of fractions of micro-batches, a replica taking at least one:
 * (total + Σ fixed / time) / Σ 1 / time. It is a lower bound that needs no allocation; plans are judged exactly at the
 * end (`judge`).
 */
import {
  inverse,
  iterationMs,
  rowWidth,
  timeReplica,
  transferMs,
  type JobTables,
  type Rebalance,
} from "./cost-model.ts";
import { makeExchanges, type Exchanges } from "./exchanges.ts";
import { makeLatest, type Latest } from "./latest.ts";
import type { Work } from "./work.ts";

/** What a swap, an allocation of micro-batches for a replica and an iteration for a slot take, in steps. */
const SWAP_STEPS = 24;
const ALLOCATION_STEPS = 30;
const ITERATION_STEPS = 4;

export class Arrangement {
  readonly job: JobTables;
  readonly placeOf: Int32Array;
  readonly slotAt: Int32Array;
  readonly isShared: boolean;
  readonly work: Work;
  cost = 0;
  /** Mean of what replicas and exchanges take: tells apart what costs the same, until the last straggler has moved. */
  load = 0;
  /** Of the swap asked last. */
  loadOfSwap = 0;
  /** Where the time is lost: a swap that touches neither gains nothing (without redistribution). */
  criticalStage = 0;
  criticalReplica = 0;

  readonly #width: number;
  readonly #scratch: Float64Array;
  /** By replica: bottleneck, what it takes besides, and its end. */
  readonly #time: Float64Array;
  readonly #fixed: Float64Array;
  readonly #end: Float64Array;
  /** By place. */
  readonly #transfers: Float64Array;
  readonly #exchanges: Exchanges;
  /** By stage, and last for the least that a replica takes. */
  readonly #latest: Latest;
  readonly #total: number;
  #sumMs = 0;
  #exchangeSum = 0;
  /** Σ 1 / time and Σ fixed / time. */
  #rate = 0;
  #fixedShare = 0;

  /** `isShared`: micro-batches are shared out anew. */
  constructor(job: JobTables, placeOf: Int32Array, isShared: boolean, work: Work) {
    const { replicas, stages } = job;
    this.job = job;
    this.placeOf = placeOf.slice();
    this.slotAt = inverse(placeOf);
    this.isShared = isShared;
    this.work = work;
    this.#width = rowWidth(stages);
    this.#scratch = new Float64Array(2 * this.#width);
    this.#time = new Float64Array(replicas);
    this.#fixed = new Float64Array(replicas);
    this.#end = new Float64Array(replicas);
    this.#transfers = Float64Array.from(placeOf, (_, p) => transferMs(job, this.slotAt, p));
    this.#exchanges = makeExchanges(job, this.placeOf, this.slotAt, work);
    this.#latest = makeLatest(stages + 1, replicas);
    this.#total = job.microBatches.reduce((sum, m) => sum + m, 0);
    for (let r = 0; r < replicas; r++) {
      this.#timeInto(r, 0);
      this.#take(r, (column, value) => this.#latest.put(column, r, value));
    }
    this.#latest.fill();
    work.spent += 4 * placeOf.length + 2 * job.links.of.length;
    this.#sumUp();
  }

  /** What asking for a swap of healthy slots costs. */
  get stepsOfSwap(): number {
    return SWAP_STEPS + 2 * this.job.stages;
  }

  copy(): Arrangement {
    return new Arrangement(this.job, this.placeOf, this.isShared, this.work);
  }

  /** Exact cost, with the real allocation of micro-batches where they are shared out. */
  judge(rebalance?: Rebalance): number {
    if (!rebalance) return this.cost;
    const { replicas, compute, links } = this.job;
    this.work.spent +=
      ITERATION_STEPS * compute.length + ALLOCATION_STEPS * replicas + 2 * links.of.length;
    return iterationMs(this.job, this.placeOf, rebalance);
  }

  /** To be called when a slot or its links have become slower. */
  refresh(slot: number): void {
    this.#exchanges.slower(slot);
    this.#refresh(slot);
    this.#sumUp();
  }

  swap(a: number, b: number): void {
    this.#exchanges.swap(a, b);
    this.#exchangePlaces(a, b);
    this.#refresh(a);
    this.#refresh(b);
    this.#sumUp();
  }

  #refresh(slot: number): void {
    const { replicas, stages } = this.job;
    const place = this.placeOf[slot]!;
    const replica = place % replicas;
    const looked = this.#latest.looked;
    this.#renewTransfers(place);
    this.#timeInto(replica, 0);
    this.#take(replica, (column, value) => this.#latest.set(column, replica, value));
    this.work.spent += 4 * stages + 3 * this.#linksOf(slot) + this.#latest.looked - looked;
  }

  /** A slot's transfers from the stage before and to the one after. */
  #renewTransfers(place: number): void {
    const before = place - this.job.replicas;
    this.#transfers[place] = transferMs(this.job, this.slotAt, place);
    if (before >= 0) this.#transfers[before] = transferMs(this.job, this.slotAt, before);
  }

  #timeInto(replica: number, at: number): void {
    timeReplica(this.job, this.slotAt, replica, this.#scratch, at, this.#transfers);
  }

  #take(replica: number, put: (column: number, value: number) => void): void {
    const { stages, microBatches } = this.job;
    const row = this.#scratch;
    const time = row[stages]!;
    const fixed = row[stages + 1]!;
    const end = fixed + microBatches[replica]! * time;
    this.#time[replica] = time;
    this.#fixed[replica] = fixed;
    this.#end[replica] = end;
    const base = this.isShared ? 0 : end;
    for (let s = 0; s < stages; s++) put(s, base - row[s]!);
    put(stages, time + fixed);
  }

  #linksOf(slot: number): number {
    const { from } = this.job.links;
    return from[slot + 1]! - from[slot]!;
  }

  #exchangePlaces(a: number, b: number): void {
    const { placeOf, slotAt } = this;
    const place = placeOf[a]!;
    placeOf[a] = placeOf[b]!;
    placeOf[b] = place;
    slotAt[placeOf[a]] = a;
    slotAt[place] = b;
  }

  /** What an iteration would take with a and b exchanged; Infinity as soon as it is seen to be above `limitMs`. */
  costOfSwap(a: number, b: number, limitMs = Infinity): number {
    const { job, placeOf } = this;
    const { replicas, stages, microBatches } = job;
    const scratch = this.#scratch;
    const latest = this.#latest;
    const rowB = this.#width;
    const placeA = placeOf[a]!;
    const placeB = placeOf[b]!;
    const stageA = Math.floor(placeA / replicas);
    const stageB = Math.floor(placeB / replicas);
    const replicaA = placeA - stageA * replicas;
    const replicaB = placeB - stageB * replicas;
    const both = replicaB !== replicaA;
    this.work.spent += this.stepsOfSwap + 3 * (this.#linksOf(a) + this.#linksOf(b));
    this.#timeSwapped(a, b, both);
    const exchanges = this.#exchanges;
    exchanges.ask(a, b);

    const endA = scratch[stages + 1]! + microBatches[replicaA]! * scratch[stages]!;
    let endB = 0;
    let sumMs = this.#sumMs - this.#end[replicaA]! + endA;
    if (both) {
      endB = scratch[rowB + stages + 1]! + microBatches[replicaB]! * scratch[rowB + stages]!;
      sumMs += endB - this.#end[replicaB]!;
    }
    let makespan = 0;
    if (this.isShared) {
      let rate = this.#rate + this.#rateChange(replicaA, 0);
      let share = this.#fixedShare + this.#shareChange(replicaA, 0);
      let least = latest.without(stages, replicaA, replicaB);
      least = Math.max(least, scratch[stages]! + scratch[stages + 1]!);
      if (both) {
        rate += this.#rateChange(replicaB, rowB);
        share += this.#shareChange(replicaB, rowB);
        least = Math.max(least, scratch[rowB + stages]! + scratch[rowB + stages + 1]!);
      }
      makespan = Math.max(least, (this.#total + share) / rate);
    }
    const baseA = this.isShared ? makespan : endA;
    const baseB = this.isShared ? makespan : endB;
    const limit = limitMs - job.restMs;
    let cost = 0;
    for (let s = 0; s < stages; s++) {
      let done = latest.without(s, replicaA, replicaB) + makespan;
      const doneA = baseA - scratch[s]!;
      if (doneA > done) done = doneA;
      if (both) {
        const doneB = baseB - scratch[rowB + s]!;
        if (doneB > done) done = doneB;
      }
      done += s === stageA ? exchanges.askedA : s === stageB ? exchanges.askedB : exchanges.ms[s]!;
      if (done > limit) return Infinity;
      if (done > cost) cost = done;
    }
    let exchangeSum = this.#exchangeSum;
    if (stageA !== stageB)
      exchangeSum +=
        exchanges.askedA - exchanges.ms[stageA]! + exchanges.askedB - exchanges.ms[stageB]!;
    this.loadOfSwap = sumMs / replicas + exchangeSum / stages;
    return cost + job.restMs;
  }

  /** The rows of both replicas as they would be; all else is as before. */
  #timeSwapped(a: number, b: number, both: boolean): void {
    const { replicas } = this.job;
    const placeA = this.placeOf[a]!;
    const placeB = this.placeOf[b]!;
    const transfers = this.#transfers;
    const [atA, atB] = [transfers[placeA]!, transfers[placeB]!];
    const beforeA = placeA < replicas ? 0 : transfers[placeA - replicas]!;
    const beforeB = placeB < replicas ? 0 : transfers[placeB - replicas]!;
    this.#exchangePlaces(a, b);
    this.#renewTransfers(placeA);
    this.#renewTransfers(placeB);
    this.#timeInto(placeA % replicas, 0);
    if (both) this.#timeInto(placeB % replicas, this.#width);
    this.#exchangePlaces(a, b);
    transfers[placeA] = atA;
    transfers[placeB] = atB;
    if (placeA >= replicas) transfers[placeA - replicas] = beforeA;
    if (placeB >= replicas) transfers[placeB - replicas] = beforeB;
  }

  #rateChange(replica: number, at: number): number {
    return 1 / this.#scratch[at + this.job.stages]! - 1 / this.#time[replica]!;
  }

  #shareChange(replica: number, at: number): number {
    const { stages } = this.job;
    return (
      this.#scratch[at + stages + 1]! / this.#scratch[at + stages]! -
      this.#fixed[replica]! / this.#time[replica]!
    );
  }

  #sumUp(): void {
    const { replicas, stages, restMs } = this.job;
    this.work.spent += replicas + stages;
    this.#sumMs = 0;
    this.#rate = 0;
    this.#fixedShare = 0;
    for (let r = 0; r < replicas; r++) {
      this.#sumMs += this.#end[r]!;
      if (!this.isShared) continue;
      this.#rate += 1 / this.#time[r]!;
      this.#fixedShare += this.#fixed[r]! / this.#time[r]!;
    }
    const makespan = this.isShared
      ? Math.max(this.#latest.max(stages), (this.#total + this.#fixedShare) / this.#rate)
      : 0;
    this.#exchangeSum = 0;
    this.cost = 0;
    for (let s = 0; s < stages; s++) {
      const exchange = this.#exchanges.ms[s]!;
      this.#exchangeSum += exchange;
      const end = makespan + this.#latest.max(s) + exchange;
      if (end <= this.cost) continue;
      this.cost = end;
      this.criticalStage = s;
    }
    this.criticalReplica = this.#latest.who(this.criticalStage);
    this.cost += restMs;
    this.load = this.#sumMs / replicas + this.#exchangeSum / stages;
  }
}
