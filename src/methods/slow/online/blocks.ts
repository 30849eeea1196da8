/**
 * Half-second slots of all ranks, as agents tell them, become the judge's blocks: half a second, or an iteration where that is
 * longer. A block that cuts an iteration would compare its phases.
 */
import {
  type ShareColumns,
  SLOT_MS,
  UNKNOWN_SHARE,
  WHOLE_SHARE,
} from "../../../model/rank-shares.ts";
import { median } from "../../../maths/robust.ts";
import type { Block, JudgedJob } from "./online-judge.ts";

/** So long after its end nobody waits any longer for ranks that have not told of a slot. */
const GRACE_MS = 3000;
/** A rank is waited for that told something of so many slots before. */
const HEARD_SLOTS = 20;
/** Iterations whose median is the usual one: many, so that a fault does not change what a block is. */
const USUAL_ITERATIONS = 64;
const LATEST_ITERATIONS = 3;
/** An iteration that lasts longer than so many usual ones is not waited for. */
const LONG_ITERATIONS = 8;
/** Slots so long ago, or so far ahead of us, are of a clock that is wrong. */
const OLDEST_MS = 300_000;
const AHEAD_MS = 60_000;
const MOST_SLOTS = OLDEST_MS / SLOT_MS;

/** What one agent tells of its ranks: a SharesReport. */
export interface ToldShares extends ShareColumns {
  readonly ranks: readonly number[];
  readonly firstSlot: number;
  /** Keys of groups. */
  readonly wires: readonly string[];
}

/** Sums over the slots of a block; by place, by wire. */
interface Slot {
  readonly inside: Float32Array;
  readonly late: Float32Array;
  readonly gpu: Float32Array;
  readonly onWire: Float32Array;
  readonly issued: Float32Array;
  readonly ended: Float32Array;
  readonly wireMs: Float32Array;
  readonly wireCount: Float32Array;
}

export class BlockBuilder {
  readonly #placeOf = new Map<number, number>();
  readonly #wireOf = new Map<string, number>();
  readonly #slots = new Map<number, Slot>();
  /** By place: the last slot that was told. */
  readonly #heard: Float64Array;
  /** The slot with which the next block begins. */
  #next = -Infinity;
  #newest = -Infinity;
  /** Durations of the last iterations, and ends of those that no block holds yet. */
  readonly #durations: number[] = [];
  #ends: number[] = [];

  /** `wireKeys`: keys of the job's groups, in their order. */
  constructor({ ranks }: JudgedJob, wireKeys: readonly string[]) {
    for (const [place, rank] of ranks.entries()) this.#placeOf.set(rank, place);
    for (const [wire, key] of wireKeys.entries()) this.#wireOf.set(key, wire);
    this.#heard = new Float64Array(ranks.length).fill(-Infinity);
  }

  /** `nowMs`: as it came. */
  take(told: ToldShares, nowMs: number): void {
    const { firstSlot, inside } = told;
    const slots = told.ranks.length === 0 ? 0 : inside.length / told.ranks.length;
    const places = told.ranks.map((rank) => this.#placeOf.get(rank) ?? -1);
    const wires = told.wires.map((key) => this.#wireOf.get(key) ?? -1);
    const oldest = Math.max(this.#next, Math.floor((nowMs - OLDEST_MS) / SLOT_MS));
    const newest = Math.floor((nowMs + AHEAD_MS) / SLOT_MS);
    for (let k = 0; k < slots; k++) {
      const number = firstSlot + k;
      if (number < oldest || number > newest) continue;
      this.#newest = Math.max(this.#newest, number);
      this.#takeSlot(told, k, places, wires);
    }
    if (this.#next > -Infinity || this.#newest === -Infinity) return;
    this.#next = Math.max(oldest, firstSlot);
    // The others will tell of it, too.
    for (const [place, heard] of this.#heard.entries())
      this.#heard[place] = Math.max(heard, this.#next);
  }

  /** An iteration of the whole job ended. */
  iterationEnded(endMs: number, durationMs: number): void {
    this.#durations.push(durationMs);
    if (this.#durations.length > USUAL_ITERATIONS) this.#durations.shift();
    this.#ends.push(endMs);
    if (this.#ends.length > MOST_SLOTS) this.#ends.shift();
  }

  /** Blocks that are complete, or that nobody waits for any longer. */
  due(nowMs: number): Block[] {
    const blocks: Block[] = [];
    if (this.#next === -Infinity) return blocks;
    this.#passOver(Math.floor((nowMs - OLDEST_MS) / SLOT_MS));
    let until = this.#next;
    for (; this.#isDue(until, nowMs); until++) {
      if (!this.#isEnd(until)) continue;
      const block = this.#block(this.#next, until);
      if (block !== null) blocks.push(block);
      this.#next = until + 1;
    }
    return blocks;
  }

  /** What is too old: nobody told of anything for long. */
  #passOver(oldest: number): void {
    if (this.#next >= oldest) return;
    for (const number of this.#slots.keys()) if (number < oldest) this.#slots.delete(number);
    this.#next = oldest;
  }

  #takeSlot(
    told: ToldShares,
    k: number,
    places: readonly number[],
    wires: readonly number[],
  ): void {
    const number = told.firstSlot + k;
    let slot = this.#slots.get(number);
    if (slot === undefined) {
      slot = emptySlot(this.#placeOf.size, this.#wireOf.size);
      this.#slots.set(number, slot);
    }
    for (const [i, place] of places.entries()) {
      const at = k * places.length + i;
      if (place < 0 || told.inside[at] === UNKNOWN_SHARE) continue;
      slot.inside[place] = told.inside[at]! / WHOLE_SHARE;
      slot.late[place] = told.late[at]! / WHOLE_SHARE;
      slot.gpu[place] = told.gpu[at]! / WHOLE_SHARE;
      slot.onWire[place] = told.onWire[at]! / WHOLE_SHARE;
      slot.issued[place] = told.issued[at]!;
      slot.ended[place] = told.ended[at]!;
      this.#heard[place] = Math.max(this.#heard[place]!, number);
    }
    for (const [i, wire] of wires.entries()) {
      const at = k * wires.length + i;
      const ms = told.wireMs[at]!;
      if (wire < 0 || Number.isNaN(ms)) continue;
      // Members are on several machines: the one that waited least.
      if (!(slot.wireMs[wire]! <= ms)) slot.wireMs[wire] = ms;
      slot.wireCount[wire] = Math.max(slot.wireCount[wire]!, told.wireCount[at]!);
    }
  }

  #isDue(number: number, nowMs: number): boolean {
    if (!(number <= this.#newest)) return false;
    if ((number + 1) * SLOT_MS + GRACE_MS <= nowMs) return true;
    const slot = this.#slots.get(number);
    if (slot === undefined) return false;
    return slot.inside.every(
      (share, place) => !Number.isNaN(share) || this.#heard[place]! < number - HEARD_SLOTS,
    );
  }

  /** Whether a block ends with this slot. */
  #isEnd(number: number): boolean {
    const usual = this.#durations.length === 0 ? 0 : median(this.#durations);
    const endMs = (number + 1) * SLOT_MS;
    if (usual <= SLOT_MS) return true;
    if (this.#ends.some((end) => end > this.#next * SLOT_MS && end <= endMs)) return true;
    return endMs - this.#next * SLOT_MS >= LONG_ITERATIONS * usual;
  }

  #block(from: number, to: number): Block | null {
    const slots: Slot[] = [];
    for (let number = from; number <= to; number++) {
      slots.push(this.#slots.get(number) ?? emptySlot(this.#placeOf.size, this.#wireOf.size));
      this.#slots.delete(number);
    }
    const endMs = (to + 1) * SLOT_MS;
    const ended = this.#ends.filter((end) => end <= endMs);
    this.#ends = this.#ends.filter((end) => end > endMs);
    const isKnown = this.#durations.length > 0;
    return {
      startMs: from * SLOT_MS,
      lengthMs: slots.length * SLOT_MS,
      silentMs: longestSilence(slots),
      iterations: isKnown ? ended.length : NaN,
      iterationMs: isKnown ? median(this.#durations.slice(-LATEST_ITERATIONS)) : NaN,
      ...(slots.length === 1 ? slots[0]! : joined(slots)),
    };
  }
}

function emptySlot(ranks: number, wires: number): Slot {
  const byPlace = (): Float32Array => new Float32Array(ranks).fill(NaN);
  return {
    inside: byPlace(),
    late: byPlace(),
    gpu: byPlace(),
    onWire: byPlace(),
    issued: byPlace(),
    ended: byPlace(),
    wireMs: new Float32Array(wires).fill(NaN),
    wireCount: new Float32Array(wires),
  };
}

function longestSilence(slots: readonly Slot[]): number {
  let [longest, silent] = [0, 0];
  for (const { ended } of slots) {
    silent = ended.some((many) => many > 0) ? 0 : silent + SLOT_MS;
    longest = Math.max(longest, silent);
  }
  return longest;
}

/** Shares are means, operators are counted. Slots of a rank that were not told are left out of both. */
function joined(slots: readonly Slot[]): Slot {
  const block = emptySlot(slots[0]!.inside.length, slots[0]!.wireMs.length);
  for (let place = 0; place < block.inside.length; place++) {
    const heard = slots.filter(({ inside }) => !Number.isNaN(inside[place]!));
    if (heard.length <= slots.length / 2) continue;
    const sum = (column: keyof Slot): number =>
      heard.reduce((total, slot) => total + slot[column][place]!, 0);
    for (const share of ["inside", "late", "gpu", "onWire"] as const)
      block[share][place] = sum(share) / heard.length;
    for (const count of ["issued", "ended"] as const)
      block[count][place] = (sum(count) * slots.length) / heard.length;
  }
  for (let wire = 0; wire < block.wireMs.length; wire++) {
    let ms = 0;
    for (const slot of slots) {
      if (Number.isNaN(slot.wireMs[wire]!)) continue;
      ms += slot.wireMs[wire]! * slot.wireCount[wire]!;
      block.wireCount[wire]! += slot.wireCount[wire]!;
    }
    if (block.wireCount[wire]! > 0) block.wireMs[wire] = ms / block.wireCount[wire]!;
  }
  return block;
}
