import { noise } from "./noise.ts";
import type { Op } from "../../../src/simulate/flight/op.ts";
import { isP2p } from "../../../src/simulate/flight/op.ts";
import { WAIT_ALL } from "./op-rules.ts";

/** What happened on one rank. Times are nanoseconds since the job's epoch, NaN for what did not happen. */
export interface RankRun {
  readonly ops: readonly Op[];
  /** Collectives: number of the call in its group, from 1. P2P: number in its direction, from 0. */
  readonly slot: Int32Array;
  issued: number;
  readonly createdNs: Float64Array;
  readonly startNs: Float64Array;
  readonly endNs: Float64Array;
}

/** A rank while it runs. */
export interface RankState extends RankRun {
  /** Index of the previous operator that is not asynchronous, or -1. */
  readonly syncBefore: Int32Array;
  /** Index of the previous operator on the same NCCL stream (group, or direction of a pair), or -1. */
  readonly channelBefore: Int32Array;
  nextSync: number;
  waiting: number[];
  ended: number;
  lastEndNs: number;
  cpuNs: number;
}

/** Lets one rank's CPU issue and its GPU start whatever nothing holds back any more. */
export function advance(
  run: RankState,
  rank: number,
  limit: number,
  hangAt: number,
  seed: number,
  start: (rank: number, index: number, timeNs: number) => void,
): void {
  for (let moved = true; moved;) {
    moved = false;
    while (run.issued < limit && mayIssue(run)) {
      issue(run, rank, seed);
      moved = true;
    }
    while (run.nextSync < run.issued && run.ops[run.nextSync]?.async === true) run.nextSync++;
    if (run.nextSync < run.issued && isFree(run, run.nextSync, hangAt)) {
      const index = run.nextSync++;
      start(rank, index, startTime(run, rank, index, seed));
      moved = true;
    }
    for (let i = 0; i < run.waiting.length;) {
      const index = run.waiting[i] as number;
      if (isFree(run, index, hangAt)) {
        run.waiting.splice(i, 1);
        start(rank, index, startTime(run, rank, index, seed));
        moved = true;
      } else i++;
    }
  }
}

function issue(run: RankState, rank: number, seed: number): void {
  const index = run.issued++;
  const op = run.ops[index] as Op;
  if (op.hostWait !== 0) run.cpuNs = Math.max(run.cpuNs, awaitedNs(run, index) + 30_000);
  run.cpuNs += 20_000 + 60_000 * noise(seed, rank, index, 2);
  run.createdNs[index] = run.cpuNs;
  if (op.async) run.waiting.push(index);
}

export function hasEnded(run: RankRun, index: number): boolean {
  return index < 0 || !Number.isNaN(run.endNs[index]);
}

function isFree(run: RankState, index: number, hangAt: number): boolean {
  return (
    index < hangAt &&
    hasEnded(run, run.syncBefore[index] as number) &&
    hasEnded(run, run.channelBefore[index] as number)
  );
}

function mayIssue(run: RankState): boolean {
  const { hostWait } = run.ops[run.issued] as Op;
  if (hostWait === 0) return true;
  return hostWait === WAIT_ALL ? run.ended === run.issued : hasEnded(run, awaited(run, run.issued));
}

/** The operator that the CPU waits for before it issues `index`: the stream's, not an asynchronous one. */
function awaited(run: RankState, index: number): number {
  const at = index - (run.ops[index] as Op).hostWait;
  return run.ops[at]?.async === true ? (run.syncBefore[at] as number) : at;
}

function awaitedNs(run: RankState, index: number): number {
  if (run.ops[index]?.hostWait === WAIT_ALL) return run.lastEndNs;
  const at = awaited(run, index);
  return at < 0 ? 0 : (run.endNs[at] as number);
}

function startTime(run: RankState, rank: number, index: number, seed: number): number {
  const sync = run.syncBefore[index] as number;
  const channel = run.channelBefore[index] as number;
  const readyNs = Math.max(
    (run.createdNs[index] as number) + 8_000,
    sync < 0 ? 0 : (run.endNs[sync] as number),
    channel < 0 ? 0 : (run.endNs[channel] as number),
  );
  const { gapNs } = run.ops[index] as Op;
  return readyNs + 2_000 + gapNs * (0.7 + 0.6 * noise(seed, rank, index, 3));
}

/** Works out what each operator has to wait for on its own rank. */
export function link(ops: readonly Op[]): RankState {
  const count = ops.length;
  const slot = new Int32Array(count);
  const syncBefore = new Int32Array(count);
  const channelBefore = new Int32Array(count);
  const channels = new Map<number, { count: number; last: number }>();
  let sync = -1;
  ops.forEach((op, index) => {
    const key = op.group * 4096 + (isP2p(op) ? op.peer * 2 + (op.kind === "send" ? 2 : 3) : 0);
    let channel = channels.get(key);
    if (channel === undefined) channels.set(key, (channel = { count: 0, last: -1 }));
    slot[index] = isP2p(op) ? channel.count++ : ++channel.count;
    channelBefore[index] = channel.last;
    channel.last = index;
    syncBefore[index] = sync;
    if (!op.async) sync = index;
  });
  return {
    ops,
    slot,
    issued: 0,
    createdNs: new Float64Array(count).fill(NaN),
    startNs: new Float64Array(count).fill(NaN),
    endNs: new Float64Array(count).fill(NaN),
    syncBefore,
    channelBefore,
    nextSync: 0,
    waiting: [],
    ended: 0,
    lastEndNs: 0,
    cpuNs: 0,
  };
}
