/**
 * The last calls that a rank issued, as the period finder takes them: a class for each call, its time and its number in the
 * communicator. Typed arrays of a bounded size.
 */
import { FLAG, KIND, NONE, RECORD } from "../../../ingest/probe-ring/layout.ts";
import {
  type CallClass,
  type CallSequence,
  OTHER,
  P2P,
  REDUCES,
} from "../../../methods/iterations/call-classes.ts";
import type { RingFollower } from "../rings/follow-ring.ts";
import { isOperator, isShim } from "../rings/kept-operators.ts";
import { whole } from "../rings/ring-header.ts";

const FIRST_CALLS = 1024;
const MOST_CALLS = 1 << 15;
/** Classes beyond which sizes no longer count: batches of varying length give every call another size. */
const MOST_CLASSES = 4096;
/** A record that is just being written is waited for so many polls. */
const TRIES = 3;
const ALL_REDUCE = 1;
const ALL_GATHER = 2;
const REDUCE_SCATTER = 3;
const REDUCE = 5;
const ALL_TO_ALL = 6;
const ELEMENTS_VARY = -1;

/** Which calls count, and whether their sizes do. */
export interface CallView {
  readonly withSizes: boolean;
  /** All-to-all among experts becomes sends and receives, other ones in every iteration. */
  readonly withTransfers: boolean;
}

/** The plainest last. */
export const VIEWS: readonly CallView[] = [
  { withSizes: true, withTransfers: true },
  { withSizes: false, withTransfers: true },
  { withSizes: true, withTransfers: false },
  { withSizes: false, withTransfers: false },
];

/** A record that was lost: equal to no call. */
const LOST: CallClass = { group: NONE, kind: OTHER, role: "lost", elements: 0, shard: 0 };

type MutableClass = CallClass & { elements: number; shard: number };

export class CallWindow {
  #sized = new Int32Array(FIRST_CALLS);
  #timesNs = new Float64Array(FIRST_CALLS);
  #seq = new Float64Array(FIRST_CALLS);
  /** Class 0 stands for records that were lost. */
  readonly #sizedClasses: MutableClass[] = [{ ...LOST }];
  readonly #plainClasses: MutableClass[] = [{ ...LOST }];
  /** Sized class → plain class. */
  readonly #plainOf: number[] = [0];
  readonly #plainByHead = new Map<number, number>();
  readonly #sizedByHead = new Map<number, Map<number, number>>();
  #length = 0;
  /** The ticket that is read next; -1 before the first. */
  #ticket = -1;
  #tries = 0;
  #hasPlugin = false;

  /** Calls held. */
  get length(): number {
    return this.#length;
  }

  classesOf({ withSizes }: CallView): readonly CallClass[] {
    return withSizes ? this.#sizedClasses : this.#plainClasses;
  }

  /** Class of a call in a view; -1 where it does not count there. */
  symbolAt(i: number, { withSizes, withTransfers }: CallView): number {
    const sized = this.#sized[i]!;
    const plain = this.#plainOf[sized]!;
    if (!withTransfers && this.#plainClasses[plain]!.kind === P2P) return -1;
    return withSizes ? sized : plain;
  }

  /** When the rank issued it, by the machine's monotonic clock. */
  timeNs(i: number): number {
    return this.#timesNs[i]!;
  }

  /** Its number in its communicator: of collectives, or of transfers. */
  seq(i: number): number {
    return this.#seq[i]!;
  }

  /** The calls from one on, as a sequence; `ops` are indices into the window. */
  sequence(from: number, view: CallView): CallSequence {
    const room = this.#length - from;
    const symbols = new Int32Array(room);
    const timesNs = new Float64Array(room);
    const ops = new Int32Array(room);
    let count = 0;
    for (let i = from; i < this.#length; i++) {
      const symbol = this.symbolAt(i, view);
      if (symbol < 0) continue;
      symbols[count] = symbol;
      timesNs[count] = this.#timesNs[i]!;
      ops[count++] = i;
    }
    return {
      symbols: symbols.subarray(0, count),
      timesNs: timesNs.subarray(0, count),
      ops: ops.subarray(0, count),
      classes: this.classesOf(view),
    };
  }

  /**
   * Reads what is new in the ring. `sizeOf` tells how many ranks a communicator has; calls on one of a single rank are left
   * out. Answers by how many places earlier calls have moved towards the front, because the oldest were let go.
   */
  read(follower: RingFollower, sizeOf: (communicator: number) => number): number {
    const { kept, next, oldest } = follower;
    let moved = 0;
    if (this.#ticket < 0) this.#ticket = oldest;
    if (this.#ticket < oldest) {
      moved += this.#add(0, NaN, NaN);
      this.#ticket = oldest;
    }
    for (; this.#ticket < next; this.#ticket++) {
      const place = follower.placeOf(this.#ticket);
      if (place < 0) {
        if (this.#tries++ < TRIES) break;
        moved += this.#add(0, NaN, NaN);
      } else if (isOperator(kept, place)) moved += this.#take(kept, place, sizeOf);
      this.#tries = 0;
    }
    return moved;
  }

  #take(bytes: Buffer, at: number, sizeOf: (communicator: number) => number): number {
    if (!isShim(bytes, at)) this.#hasPlugin = true;
    // Where plug-in and shim both record, each call is there twice. Captured calls are replayed unseen.
    else if (this.#hasPlugin) return 0;
    if ((bytes[at + RECORD.flags]! & FLAG.captured) !== 0) return 0;
    const communicator = bytes.readUInt16LE(at + RECORD.group);
    const size = communicator === NONE ? 0 : sizeOf(communicator);
    if (size === 1) return 0;
    const symbol = this.#classOf(bytes, at, communicator, size);
    return this.#add(symbol, whole(bytes, at + RECORD.issuedNs), bytes.readUInt32LE(at + RECORD.b));
  }

  #classOf(bytes: Buffer, at: number, communicator: number, size: number): number {
    const isP2p = bytes[at + RECORD.kind] === KIND.p2p;
    const func = bytes[at + RECORD.func]!;
    const peer = isP2p ? Math.max(0, bytes.readInt32LE(at + RECORD.c)) + 1 : 0;
    const head =
      ((peer * 65_536 + communicator) * 32 + (func & 31)) * 256 + bytes[at + RECORD.dtype]!;
    const grows = func === ALL_GATHER || func === REDUCE_SCATTER;
    // NCCL counts what one rank has of it.
    const shard = whole(bytes, at + RECORD.a);
    const elements = shard * (!isP2p && grows ? Math.max(1, size) : 1);
    let plain = this.#plainByHead.get(head);
    if (plain === undefined) {
      plain = this.#plainClasses.push(newClass(communicator, func, peer, elements, shard)) - 1;
      this.#plainByHead.set(head, plain);
      this.#sizedByHead.set(head, new Map());
    }
    const ofPlain = this.#plainClasses[plain]!;
    if (elements > ofPlain.elements) ofPlain.elements = elements;
    if (shard > ofPlain.shard) ofPlain.shard = shard;
    const isVarying = (!isP2p && func === ALL_TO_ALL) || this.#sizedClasses.length >= MOST_CLASSES;
    const key = isVarying ? ELEMENTS_VARY : elements;
    const bySize = this.#sizedByHead.get(head)!;
    let sized = bySize.get(key);
    if (sized === undefined) {
      sized = this.#sizedClasses.push(newClass(communicator, func, peer, elements, shard)) - 1;
      bySize.set(key, sized);
      this.#plainOf.push(plain);
    }
    return sized;
  }

  /** By how many places earlier calls moved. */
  #add(symbol: number, timeNs: number, seq: number): number {
    let moved = 0;
    if (this.#length === this.#sized.length) {
      if (this.#length < MOST_CALLS) this.#grow();
      else {
        moved = MOST_CALLS / 2;
        for (const column of [this.#sized, this.#timesNs, this.#seq]) column.copyWithin(0, moved);
        this.#length -= moved;
      }
    }
    // What was lost has the time of the call before it, so that no pause is seen there.
    this.#timesNs[this.#length] = symbol === 0 ? (this.#timesNs[this.#length - 1] ?? 0) : timeNs;
    this.#sized[this.#length] = symbol;
    this.#seq[this.#length++] = seq;
    return moved;
  }

  #grow(): void {
    const sized = new Int32Array(2 * this.#length);
    const timesNs = new Float64Array(2 * this.#length);
    const seq = new Float64Array(2 * this.#length);
    sized.set(this.#sized);
    timesNs.set(this.#timesNs);
    seq.set(this.#seq);
    [this.#sized, this.#timesNs, this.#seq] = [sized, timesNs, seq];
  }
}

function newClass(
  group: number,
  func: number,
  peer: number,
  elements: number,
  shard: number,
): MutableClass {
  const reduces = func === ALL_REDUCE || func === REDUCE_SCATTER || func === REDUCE;
  const kind = peer > 0 ? P2P : reduces ? REDUCES : OTHER;
  const role = `${group},${kind},${peer > 0 ? `${peer},${func}` : ""}`;
  return { group, kind, role, elements, shard };
}
