/**
 * When operators really started. NCCL at times hands the probe the time stamp of an earlier operator for an operator's start (seen
 * with 2.28, in jobs that send and receive): the probe writes down the time of the call then, because nothing starts before it was
 * called. Two rules of NCCL tell better: sends and receives of one group are one kernel, and start together; kernels of one
 * communicator run one behind the other.
 */
import { NEVER } from "./slot-sweep.ts";

/** Calls of one group of sends and receives come right behind each other: the probe notes each as it is called. */
const GROUP_NS = 1e6;

/** Columns of operators in the order of their calls; nanoseconds. */
export interface StartColumns {
  readonly count: number;
  readonly issued: Float64Array;
  /** As the ring has them; the same as `issued` where the stamp was an earlier one. */
  readonly stamped: Float64Array;
  readonly started: Float64Array;
  readonly ended: Float64Array;
  readonly communicator: Uint16Array;
  readonly isTransfer: Uint8Array;
}

/** Of a communicator, while its operators are walked through. */
interface Walk {
  /** When all operators before the group that is walked through had ended. */
  before: number;
  /** The group: operators from here on, the last call of it, whether it is of transfers, and when its kernel started and ended. */
  members: number[];
  lastCall: number;
  areTransfers: boolean;
  started: number;
  ended: number;
}

/** Sets `started`. `endOf`: when the last operator of a communicator ended that is not among these; 0 before the first. */
export function mendStarts(columns: StartColumns, endOf: (communicator: number) => number): void {
  const { count, issued, stamped, started, ended, communicator, isTransfer } = columns;
  const walks = new Map<number, Walk>();
  for (let i = 0; i < count; i++) {
    const own = communicator[i]!;
    let walk = walks.get(own);
    if (walk === undefined) walks.set(own, (walk = newWalk(endOf(own))));
    const continues =
      walk.areTransfers && isTransfer[i] === 1 && issued[i]! - walk.lastCall <= GROUP_NS;
    if (!continues) {
      close(walk, columns);
      walk.areTransfers = isTransfer[i] === 1;
    }
    walk.lastCall = issued[i]!;
    walk.members.push(i);
    if (stamped[i]! > issued[i]!) walk.started = Math.min(walk.started, stamped[i]!);
    walk.ended = Math.max(walk.ended, ended[i]!);
    started[i] = stamped[i]!;
  }
  for (const walk of walks.values()) close(walk, columns);
}

function newWalk(before: number): Walk {
  return { before, members: [], lastCall: 0, areTransfers: false, started: NEVER, ended: 0 };
}

/** The kernel of a group: what started when. */
function close(walk: Walk, { issued, stamped, started, ended }: StartColumns): void {
  for (const i of walk.members)
    if (stamped[i] === issued[i]) {
      const kernel = walk.started < NEVER ? walk.started : Math.max(issued[i]!, walk.before);
      started[i] = Math.min(kernel, ended[i]!);
    }
  walk.before = Math.max(walk.before, walk.ended);
  walk.members = [];
  walk.started = NEVER;
  walk.ended = 0;
}
