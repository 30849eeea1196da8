import { COMPLETED, SCHEDULED, STARTED } from "../../model/operators.ts";
import type { GroupStatus, RankRecords } from "./rank-records.ts";
import { uniform } from "../cluster/noise.ts";
import type { Op } from "./op.ts";
import { isP2p } from "./op.ts";

/** What happened on one rank, NaN for what did not; or the last part of it. */
interface RankHistory {
  readonly ops: readonly Op[];
  readonly issued: number;
  readonly createdNs: Float64Array;
  readonly startNs: Float64Array;
  readonly endNs: Float64Array;
  /** Operators of each group before the first of these; absent where the history is whole. */
  readonly before?: ReadonlyMap<number, { readonly collectives: number; readonly p2p: number }>;
}

/** How a rank's process sees its own GPU. */
interface Observer {
  readonly seed: number;
  /** By how much the rank's clock is ahead of the job's. */
  readonly skewNs: number;
  /** When the rank wrote its dump, by the job's clock. */
  readonly dumpNs: number;
  /** From this operator on a broken GPU no longer reports what it does; Infinity otherwise. */
  readonly blindFrom: number;
  /** Whether a broken GPU still shows that the operators began. */
  readonly blindShowsStart: boolean;
}

/** kWatchdogThreadSleepMillis: how often each group's watchdog looks at its operators. */
const POLL_NS = 100_000_000;

/**
 * Turns what happened into what is recorded. Discovery times are not event times: a finished operator
 * is found at the watchdog's next poll, start and end at once, and one that never ends is found to have
 * started only when the dump is written. All recordings look like that.
 */
export function recordRank(rank: number, run: RankHistory, observer: Observer): RankRecords {
  const count = run.issued;
  const { skewNs, dumpNs, seed } = observer;
  let firstId = 0;
  for (const { collectives, p2p } of run.before?.values() ?? []) firstId += collectives + p2p;
  const records = {
    rank,
    firstId,
    ops: run.ops.slice(0, count),
    seq: new Int32Array(count),
    p2pSeq: new Int32Array(count),
    opId: new Int32Array(count),
    state: new Uint8Array(count),
    createdNs: new Float64Array(count),
    startedNs: new Float64Array(count).fill(NaN),
    completedNs: new Float64Array(count).fill(NaN),
    durationMs: new Float32Array(count).fill(NaN),
    status: new Map<number, GroupStatus>(),
  };
  const watchdogs = new Map<number, Watchdog>();
  for (let i = 0; i < count; i++) {
    const op = records.ops[i] as Op;
    let watchdog = watchdogs.get(op.group);
    if (watchdog === undefined) {
      watchdog = newWatchdog(POLL_NS * uniform(seed, rank, op.group, 4), run.before?.get(op.group));
      watchdogs.set(op.group, watchdog);
      records.status.set(op.group, watchdog.status);
    }
    const { status } = watchdog;
    const number = isP2p(op) ? ++watchdog.p2p : ++watchdog.collectives;
    records.seq[i] = watchdog.collectives;
    records.p2pSeq[i] = watchdog.p2p;
    records.opId[i] = watchdog.collectives + watchdog.p2p;
    records.createdNs[i] = (run.createdNs[i] as number) + skewNs;
    status.enqueued = number;

    const isBlind = i >= observer.blindFrom;
    const startNs = run.startNs[i] as number;
    const endNs = isBlind ? NaN : (run.endNs[i] as number);
    if (!Number.isNaN(endNs)) {
      const seenNs = watchdog.discover(endNs);
      records.state[i] = COMPLETED;
      records.startedNs[i] = seenNs + skewNs;
      records.completedNs[i] = seenNs + 1_600 + skewNs;
      records.durationMs[i] = (endNs - startNs) / 1e6;
      status.started = Math.max(status.started, number);
      // The counter is overwritten by whatever the latest poll found last, not by the largest number.
      if (seenNs >= watchdog.lastSeenNs) {
        watchdog.lastSeenNs = seenNs;
        status.completed = number;
      }
    } else if (!Number.isNaN(startNs) && (!isBlind || observer.blindShowsStart)) {
      records.state[i] = STARTED;
      records.startedNs[i] = dumpNs + i * 150 + skewNs;
      status.started = Math.max(status.started, number);
    } else records.state[i] = SCHEDULED;
  }
  return records;
}

interface Watchdog {
  readonly status: GroupStatus;
  collectives: number;
  p2p: number;
  lastSeenNs: number;
  /** Time at which an operator that ended at `endNs` is found. */
  discover(endNs: number): number;
}

function newWatchdog(
  phaseNs: number,
  before: { readonly collectives: number; readonly p2p: number } | undefined,
): Watchdog {
  let poll = -1;
  let found = 0;
  return {
    status: { enqueued: -1, started: -1, completed: -1 },
    collectives: before?.collectives ?? 0,
    p2p: before?.p2p ?? 0,
    lastSeenNs: 0,
    discover(endNs) {
      const at = Math.ceil((endNs - phaseNs) / POLL_NS);
      found = at === poll ? found + 1 : 0;
      poll = at;
      return phaseNs + at * POLL_NS + found * 19_000;
    },
  };
}
