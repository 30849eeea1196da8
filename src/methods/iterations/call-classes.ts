/**
 * A rank's operators as a sequence of classes: equal numbers, equal calls. What an iteration repeats is the
 * class (group, operator, sizes, type, other side), never the time that it takes.
 */
import type { OperatorTable } from "../../model/operators.ts";

/** What a class of calls does for the question where an iteration ends. */
export const OTHER = 0;
/** Sums over ranks: activations of tensor parallelism, or gradients. */
export const REDUCES = 1;
export const P2P = 2;

export interface CallClass {
  readonly group: number;
  readonly kind: typeof OTHER | typeof REDUCES | typeof P2P;
  /** Group and kind, of P2P calls also the other side and the direction: equal at any size. */
  readonly role: string;
  /** Elements of its larger side; of the largest call where sizes do not count. */
  readonly elements: number;
  /** Of its smaller side: what one rank has of a gathered or scattered tensor. */
  readonly shard: number;
}

export interface CallSequence {
  /** Class of each call, in the order in which the rank issued them. */
  readonly symbols: Int32Array;
  /** When the rank issued it, nanoseconds since the epoch of the source. */
  readonly timesNs: Float64Array;
  /** Index into the table. */
  readonly ops: Int32Array;
  readonly classes: readonly CallClass[];
}

/** Greyhound's artifact leaves smaller operators out: norms, losses, flags, barriers. */
const SMALL_ELEMENTS = 1024;

export function isSmall({ elements }: CallClass): boolean {
  return elements < SMALL_ELEMENTS;
}

/**
 * The issue time is the CPU's; start and end are found by a watchdog that looks every 100 ms, and serve only
 * where there is nothing else. Records without any time are left out.
 */
export function callSequence(ops: OperatorTable, withSizes: boolean): CallSequence {
  const symbols = new Int32Array(ops.count);
  const timesNs = new Float64Array(ops.count);
  const index = new Int32Array(ops.count);
  const classes: (CallClass & { elements: number; shard: number })[] = [];
  const ids = new Map<string, number>();
  const kinds = ops.names.map(kindOf);
  const sized = ops.names.map((name) => withSizes && hasSteadySizes(name));
  let count = 0;
  for (let i = 0; i < ops.count; i++) {
    const created = ops.createdNs[i]!;
    const ns = Number.isNaN(created) ? ops.startedNs[i]! : created;
    if (Number.isNaN(ns)) continue;
    const name = ops.name[i]!;
    const p2p = ops.isP2p[i] === 1;
    const sizes = sized[name] === true ? `${ops.inputNumel[i]},${ops.outputNumel[i]}` : "";
    const other = p2p ? `${ops.peer[i]},${ops.isSend[i]}` : "";
    const key = `${ops.group[i]},${name},${ops.dtype[i]},${sizes},${other}`;
    let id = ids.get(key);
    if (id === undefined) {
      id = classes.length;
      ids.set(key, id);
      const group = ops.group[i]!;
      const kind = p2p ? P2P : kinds[name]!;
      classes.push({ group, kind, role: `${group},${kind},${other}`, elements: 0, shard: 0 });
    }
    const known = classes[id]!;
    // NaN where the source does not say.
    const [input, output] = [ops.inputNumel[i]! || 0, ops.outputNumel[i]! || 0];
    known.elements = Math.max(known.elements, input, output);
    known.shard = Math.max(known.shard, Math.min(input, output));
    symbols[count] = id;
    timesNs[count] = ns;
    index[count] = i;
    count++;
  }
  return {
    symbols: symbols.subarray(0, count),
    timesNs: timesNs.subarray(0, count),
    ops: index.subarray(0, count),
    classes,
  };
}

function kindOf(name: string): CallClass["kind"] {
  if (/^(send|recv)\b/i.test(name)) return P2P;
  return /reduce/i.test(name) ? REDUCES : OTHER;
}

/** Experts get as many tokens as the router sends them: other sizes in every iteration. */
function hasSteadySizes(name: string): boolean {
  return !/all_?to_?all/i.test(name);
}
