/** The operators among the kept records of a native ring: read where they lie, and only those that are asked for. */
import { FLAG, KIND, NONE, RECORD } from "../../../ingest/probe-ring/layout.ts";
import { isOpen, type RingFollower } from "./follow-ring.ts";
import type { IndexedIteration } from "../iterations/iteration-index.ts";
import { whole } from "./ring-header.ts";

export const COLLECTIVE = 0;
export const SENDING = 1;
export const RECEIVING = 2;
const SEND_CALL = 1;

/** The operators of one iteration, in the order of issue. Offsets hold until the ring is polled again. */
export interface KeptOperators {
  readonly count: number;
  readonly bytes: Buffer;
  /** Where each record lies in `bytes`. */
  readonly at: Float64Array;
  readonly op: Uint8Array;
  /** Index of its communicator in the ring; NONE where it has none. */
  readonly communicator: Int32Array;
  /** Whether all its records are there. */
  readonly isWhole: boolean;
}

/** Where plug-in and shim both record, each call is there twice: the plug-in's count. */
export function isShim(bytes: Buffer, at: number): boolean {
  return (bytes[at + RECORD.flags]! & FLAG.shim) !== 0;
}

export function isOperator(bytes: Buffer, at: number): boolean {
  const kind = bytes[at + RECORD.kind];
  return kind === KIND.collective || kind === KIND.p2p;
}

export function operatorsOf(
  follower: RingFollower,
  { first, behind, isSure }: IndexedIteration,
  skipShim: boolean,
): KeptOperators {
  const { kept: bytes } = follower;
  const many = Math.max(0, behind - Math.max(first, follower.oldest));
  const at = new Float64Array(many);
  const op = new Uint8Array(many);
  const communicator = new Int32Array(many);
  let isWhole = isSure && first >= follower.oldest;
  let count = 0;
  for (let ticket = behind - many; ticket < behind; ticket++) {
    const place = follower.placeOf(ticket);
    if (place < 0) {
      isWhole = false;
      continue;
    }
    if (!isOperator(bytes, place) || (skipShim && isShim(bytes, place))) continue;
    at[count] = place;
    op[count] = opOf(bytes, place);
    communicator[count++] = bytes.readUInt16LE(place + RECORD.group);
  }
  return {
    count,
    bytes,
    at: at.subarray(0, count),
    op: op.subarray(0, count),
    communicator: communicator.subarray(0, count),
    isWhole,
  };
}

export function opOf(bytes: Buffer, at: number): number {
  if (bytes[at + RECORD.kind] === KIND.collective) return COLLECTIVE;
  return bytes[at + RECORD.func] === SEND_CALL ? SENDING : RECEIVING;
}

/** Milliseconds from its start to its end; NaN where one of them is not known. */
export function durationMs(bytes: Buffer, at: number): number {
  const started = whole(bytes, at + RECORD.startedNs);
  const ended = whole(bytes, at + RECORD.endedNs);
  if (started === 0 || ended === 0) return NaN;
  const ms = (ended - started) / 1e6;
  return ms >= 0 ? ms : NaN;
}

/** Of a transfer the other side's rank in its communicator. */
export function peerIn({ bytes, at, op }: KeptOperators, i: number): number | null {
  return op[i] === COLLECTIVE ? null : bytes.readInt32LE(at[i]! + RECORD.c);
}

export interface IterationSums {
  readonly collectiveMs: number;
  readonly sendMs: number;
  readonly recvMs: number;
  readonly issueMs: number;
  /** Whether some of its operators go on. */
  readonly isOpen: boolean;
}

/** `isAlone`: whether NCCL runs nothing for a communicator, or for a transfer to a peer in it: nobody times that. */
export function sumsOf(
  operators: KeptOperators,
  isAlone: (communicator: number, peer: number | null) => boolean,
): IterationSums {
  const { bytes, at, op, communicator, count, isWhole } = operators;
  const sums = [0, 0, 0];
  let open = false;
  let firstNs = Infinity;
  let lastNs = -Infinity;
  for (let i = 0; i < count; i++) {
    const place = at[i]!;
    const issued = whole(bytes, place + RECORD.issuedNs);
    if (issued < firstNs) firstNs = issued;
    if (issued > lastNs) lastNs = issued;
    const group = communicator[i]!;
    if (group !== NONE && isAlone(group, peerIn(operators, i))) continue;
    if (isOpen(bytes, place)) open = true;
    sums[op[i]!]! += durationMs(bytes, place);
  }
  const known = (ms: number): number => (isWhole ? ms : NaN);
  return {
    collectiveMs: known(sums[COLLECTIVE]!),
    sendMs: known(sums[SENDING]!),
    recvMs: known(sums[RECEIVING]!),
    issueMs: known(count > 0 ? (lastNs - firstNs) / 1e6 : NaN),
    isOpen: open,
  };
}
