/**
 * How long tensors take from one stage to the next, iteration by iteration, from the passes at both ends. A pass
 * begins at max(end of the receiver's previous pass, end of the sender's pass + transfer): the gap between sender
 * and receiver bounds the transfer from above, and equals it where the receiver had nothing else to do. The least
 * gap of an iteration is thus the best bound; queues behind a slow link elsewhere make the other gaps longer, but
 * the first micro-batches of an iteration, and the last, meet no queue.
 */
import type { Bounds } from "../../../maths/rise.ts";
import type { RankSteps, StepPasses } from "./stage-steps.ts";

export interface LinkDelays {
  readonly from: RankSteps;
  readonly to: RankSteps;
  /** Iterations that both ends tell of, as printed, in order; one point of the bounds each. */
  readonly steps: readonly number[];
  /** Milliseconds; includes what the clock of `to` is ahead. */
  readonly forward: Bounds;
  /** Milliseconds; less what the clock of `to` is ahead. */
  readonly backward: Bounds;
}

/** `idleMs`: a receiver that did nothing for so long was waiting. */
export function linkDelays(from: RankSteps, to: RankSteps, idleMs: number): LinkDelays {
  const steps = [...from.steps.keys()].filter((step) => to.steps.has(step)).sort((a, b) => a - b);
  const forward = empty(steps.length);
  const backward = empty(steps.length);
  for (const [i, step] of steps.entries()) {
    const a = from.steps.get(step)!;
    const b = to.steps.get(step)!;
    setLeast(forward, i, a, a.forward, b, b.forward, to, idleMs);
    setLeast(backward, i, b, b.backward, a, a.backward, from, idleMs);
  }
  return { from, to, steps, forward, backward };
}

function setLeast(
  bounds: Bounds,
  at: number,
  { table: sender }: StepPasses,
  sent: readonly number[],
  { table: receiver }: StepPasses,
  received: readonly number[],
  { idleMs: idleOf }: RankSteps,
  idleMs: number,
): void {
  const idle = idleOf.get(receiver)!;
  let least = Infinity;
  let leastIdle = Infinity;
  for (const [i, row] of received.entries()) {
    const source = sent[i];
    if (source === undefined) break;
    const gap = receiver.startMs[row]! - sender.startMs[source]! - sender.durationMs[source]!;
    least = Math.min(least, gap);
    if (idle[row]! > idleMs) leastIdle = Math.min(leastIdle, gap);
  }
  if (least === Infinity) return;
  bounds.value[at] = least;
  // A shorter gap into a busy receiver shows that the waiting ones waited for more than the transfer.
  bounds.tight[at] = leastIdle <= least + idleMs ? 1 : 0;
}

function empty(length: number): Bounds {
  return { value: new Float64Array(length).fill(NaN), tight: new Uint8Array(length) };
}
