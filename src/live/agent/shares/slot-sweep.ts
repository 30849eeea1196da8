/** One slot of a rank's time, from the operators that were issued by its end and had not ended before it began. */

/** What an operator has not come to yet. */
export const NEVER = Infinity;

interface SlotShares {
  /** Nanoseconds inside operators; outside, before the next one was issued; outside, after it. */
  inside: number;
  late: number;
  gpu: number;
}

/** Times of operators, in nanoseconds of one clock. */
export interface Operators {
  count: number;
  readonly issued: Float64Array;
  readonly started: Float64Array;
  readonly ended: Float64Array;
}

let order = new Int32Array(256);

/** Adds what the slot from `from` to `to` was spent on. */
export function sweepSlot(operators: Operators, from: number, to: number): SlotShares {
  const { issued, started, ended } = operators;
  const shares = { inside: 0, late: 0, gpu: 0 };
  let at = from;
  // Outside operators: the rank's CPU until it issues what starts next, from then on its GPU.
  const outside = (until: number, call: number): void => {
    const late = Math.min(Math.max(call, at), until) - at;
    shares.late += late;
    shares.gpu += until - at - late;
    at = until;
  };
  const many = inOrderOfStart(operators, to);
  for (let k = 0; k < many; k++) {
    const i = order[k]!;
    const start = Math.max(from, started[i]!);
    const end = Math.min(to, ended[i]!);
    if (end < start) continue;
    if (start > at) outside(start, issued[i]!);
    if (end > at) {
      shares.inside += end - at;
      at = end;
    }
  }
  if (at < to) outside(to, nextCall(operators, to));
  return shares;
}

/** What it waits for at the end of the slot: the first of the operators that wait for its GPU. */
function nextCall({ count, issued, started }: Operators, to: number): number {
  let next = NEVER;
  for (let i = 0; i < count; i++) if (started[i]! >= to && issued[i]! < next) next = issued[i]!;
  return next;
}

/** Those that start before the end of the slot. By insertion: operators start nearly in the order in which they were issued. */
function inOrderOfStart({ count, started }: Operators, to: number): number {
  if (order.length < count) order = new Int32Array(2 * count);
  let many = 0;
  for (let i = 0; i < count; i++) {
    const start = started[i]!;
    if (!(start < to)) continue;
    let k = many++;
    for (; k > 0 && started[order[k - 1]!]! > start; k--) order[k] = order[k - 1]!;
    order[k] = i;
  }
  return many;
}
