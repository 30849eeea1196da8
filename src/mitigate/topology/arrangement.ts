/**
 * Slots at their places, and what another swap would cost: O(stages) instead of O(slots), since a swap changes two
 * replicas and the exchange of two stages, and of all others only the latest matters. For every stage (and for the end
 * of a replica) the three latest replicas are kept: one of them is always untouched by a swap.
 *
 * With redistributed micro-batches the makespan is that of fractions of micro-batches, a replica taking at least one:
 * (total + Σ fixed / time) / Σ 1 / time. It is a lower bound that needs no allocation; plans are judged exactly at the
 * end (`judge`).
 */
import {
  exchangeMs,
  inverse,
  iterationMs,
  rowWidth,
  timeReplica,
  type JobTables,
  type Rebalance,
} from "./cost-model.ts";

const KEPT = 3;

export class Arrangement {
  readonly job: JobTables;
  readonly placeOf: Int32Array;
  readonly slotAt: Int32Array;
  cost = 0;
  /** Mean of what replicas and exchanges take: tells apart what costs the same, until the last straggler has moved. */
  load = 0;
  /** Of the swap asked last. */
  loadOfSwap = 0;
  /** Where the time is lost: a swap that touches neither gains nothing (without redistribution). */
  criticalStage = 0;
  criticalReplica = 0;
  /** How many swaps have been asked for: the measure of work, the same on every machine. */
  asked = 0;

  readonly isShared: boolean;
  readonly #width: number;
  readonly #rows: Float64Array;
  readonly #scratch: Float64Array;
  readonly #exchange: Float64Array;
  /** By stage, and last for the least that a replica takes: the latest three, and whose they are. */
  readonly #latest: Float64Array;
  readonly #whose: Int32Array;
  readonly #total: number;
  #sumMs = 0;
  #exchangeSum = 0;
  /** Σ 1 / time and Σ fixed / time. */
  #rate = 0;
  #fixedShare = 0;

  /** `isShared`: micro-batches are shared out anew. */
  constructor(job: JobTables, placeOf: Int32Array, isShared: boolean) {
    const { replicas, stages } = job;
    this.job = job;
    this.placeOf = placeOf.slice();
    this.slotAt = inverse(placeOf);
    this.isShared = isShared;
    this.#width = rowWidth(stages);
    this.#rows = new Float64Array(replicas * this.#width);
    this.#scratch = new Float64Array(2 * this.#width);
    this.#exchange = new Float64Array(stages);
    this.#latest = new Float64Array((stages + 1) * KEPT);
    this.#whose = new Int32Array((stages + 1) * KEPT);
    this.#total = job.microBatches.reduce((sum, m) => sum + m, 0);
    for (let r = 0; r < replicas; r++)
      timeReplica(job, this.slotAt, r, this.#rows, r * this.#width);
    for (let s = 0; s < stages; s++) this.#exchange[s] = exchangeMs(job, placeOf, this.slotAt, s);
    this.#sumUp();
  }

  copy(): Arrangement {
    return new Arrangement(this.job, this.placeOf, this.isShared);
  }

  /** Exact cost, with the real allocation of micro-batches where they are shared out. */
  judge(rebalance?: Rebalance): number {
    return rebalance ? iterationMs(this.job, this.placeOf, rebalance) : this.cost;
  }

  /** To be called when the factors of a slot have changed. */
  refresh(slot: number): void {
    const { job, placeOf, slotAt } = this;
    const replica = placeOf[slot]! % job.replicas;
    const stage = Math.floor(placeOf[slot]! / job.replicas);
    timeReplica(job, slotAt, replica, this.#rows, replica * this.#width);
    this.#exchange[stage] = exchangeMs(job, placeOf, slotAt, stage);
    this.#sumUp();
  }

  swap(a: number, b: number): void {
    this.#exchangePlaces(a, b);
    this.refresh(a);
    this.refresh(b);
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
    const { job, placeOf, slotAt } = this;
    const { replicas, stages } = job;
    const scratch = this.#scratch;
    const rowB = this.#width;
    this.asked++;
    const stageA = Math.floor(placeOf[a]! / replicas);
    const stageB = Math.floor(placeOf[b]! / replicas);
    const replicaA = placeOf[a]! - stageA * replicas;
    const replicaB = placeOf[b]! - stageB * replicas;
    this.#exchangePlaces(a, b);
    timeReplica(job, slotAt, replicaA, scratch, 0);
    if (replicaB !== replicaA) timeReplica(job, slotAt, replicaB, scratch, rowB);
    let exchangeA = this.#exchange[stageA]!;
    let exchangeB = this.#exchange[stageB]!;
    if (stageA !== stageB && this.#changesExchange(a, b)) {
      exchangeA = exchangeMs(job, placeOf, slotAt, stageA);
      exchangeB = exchangeMs(job, placeOf, slotAt, stageB);
    }
    this.#exchangePlaces(a, b);

    const both = replicaB !== replicaA;
    const endA = this.#end(replicaA, scratch, 0);
    const endB = both ? this.#end(replicaB, scratch, rowB) : 0;
    let sumMs = this.#sumMs - this.#end(replicaA, this.#rows, replicaA * rowB) + endA;
    if (both) sumMs += endB - this.#end(replicaB, this.#rows, replicaB * rowB);
    let makespan = 0;
    if (this.isShared) {
      let rate = this.#rate + this.#rateChange(replicaA, 0);
      let share = this.#fixedShare + this.#shareChange(replicaA, 0);
      if (both) {
        rate += this.#rateChange(replicaB, rowB);
        share += this.#shareChange(replicaB, rowB);
      }
      let least = this.#latestWithout(stages, replicaA, replicaB);
      least = Math.max(least, scratch[stages]! + scratch[stages + 1]!);
      if (both) least = Math.max(least, scratch[rowB + stages]! + scratch[rowB + stages + 1]!);
      makespan = Math.max(least, (this.#total + share) / rate);
    }
    const baseA = this.isShared ? makespan : endA;
    const baseB = this.isShared ? makespan : endB;
    const limit = limitMs - job.restMs;
    let cost = 0;
    for (let s = 0; s < stages; s++) {
      let done = this.#latestWithout(s, replicaA, replicaB) + makespan;
      const doneA = baseA - scratch[s]!;
      if (doneA > done) done = doneA;
      if (both) {
        const doneB = baseB - scratch[rowB + s]!;
        if (doneB > done) done = doneB;
      }
      done += s === stageA ? exchangeA : s === stageB ? exchangeB : this.#exchange[s]!;
      if (done > limit) return Infinity;
      if (done > cost) cost = done;
    }
    const exchanges =
      stageA === stageB
        ? this.#exchangeSum
        : this.#exchangeSum -
          this.#exchange[stageA]! -
          this.#exchange[stageB]! +
          exchangeA +
          exchangeB;
    this.loadOfSwap = sumMs / replicas + exchanges / stages;
    return cost + job.restMs;
  }

  /** Only slots with a slow NIC or link change an exchange, unless a stage may come to sit in one machine. */
  #changesExchange(a: number, b: number): boolean {
    const { network, links, slotsPerMachine, replicas } = this.job;
    return (
      slotsPerMachine >= replicas ||
      network[a]! > 1 ||
      network[b]! > 1 ||
      links.from[a + 1]! > links.from[a]! ||
      links.from[b + 1]! > links.from[b]!
    );
  }

  #end(replica: number, rows: Float64Array, at: number): number {
    const { stages, microBatches } = this.job;
    return rows[at + stages + 1]! + microBatches[replica]! * rows[at + stages]!;
  }

  #rateChange(replica: number, at: number): number {
    const { stages } = this.job;
    return 1 / this.#scratch[at + stages]! - 1 / this.#rows[replica * this.#width + stages]!;
  }

  #shareChange(replica: number, at: number): number {
    const { stages } = this.job;
    const old = replica * this.#width + stages;
    return (
      this.#scratch[at + stages + 1]! / this.#scratch[at + stages]! -
      this.#rows[old + 1]! / this.#rows[old]!
    );
  }

  #latestWithout(column: number, a: number, b: number): number {
    const at = column * KEPT;
    for (let i = at; i < at + KEPT; i++)
      if (this.#whose[i] !== a && this.#whose[i] !== b) return this.#latest[i]!;
    return -Infinity;
  }

  #sumUp(): void {
    const { replicas, stages, restMs } = this.job;
    const rows = this.#rows;
    this.#latest.fill(-Infinity);
    this.#whose.fill(-1);
    this.#sumMs = 0;
    this.#rate = 0;
    this.#fixedShare = 0;
    for (let r = 0; r < replicas; r++) {
      const at = r * this.#width;
      const time = rows[at + stages]!;
      const end = this.#end(r, rows, at);
      this.#sumMs += end;
      this.#rate += 1 / time;
      this.#fixedShare += rows[at + stages + 1]! / time;
      const base = this.isShared ? 0 : end;
      for (let s = 0; s < stages; s++) this.#keep(s, r, base - rows[at + s]!);
      this.#keep(stages, r, time + rows[at + stages + 1]!);
    }
    const makespan = this.isShared
      ? Math.max(this.#latest[stages * KEPT]!, (this.#total + this.#fixedShare) / this.#rate)
      : 0;
    this.#exchangeSum = 0;
    this.cost = 0;
    for (let s = 0; s < stages; s++) {
      this.#exchangeSum += this.#exchange[s]!;
      const end = makespan + this.#latest[s * KEPT]! + this.#exchange[s]!;
      if (end <= this.cost) continue;
      this.cost = end;
      this.criticalStage = s;
    }
    this.criticalReplica = this.#whose[this.criticalStage * KEPT]!;
    this.cost += restMs;
    this.load = this.#sumMs / replicas + this.#exchangeSum / stages;
  }

  #keep(column: number, replica: number, value: number): void {
    const at = column * KEPT;
    let i = at + KEPT;
    while (i > at && this.#latest[i - 1]! < value) {
      i--;
      if (i + 1 < at + KEPT) {
        this.#latest[i + 1] = this.#latest[i]!;
        this.#whose[i + 1] = this.#whose[i]!;
      }
    }
    if (i === at + KEPT) return;
    this.#latest[i] = value;
    this.#whose[i] = replica;
  }
}
