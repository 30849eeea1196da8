/**
 * A ring's hops in time, by NCCL's rules: eight buffers a connection; a step is filled by the sender's GPU once the hop
 * before has brought its data, is posted when the receiver has given credit, and is on the wire until it is through, one
 * after the other. Says for how long each hop had something on the wire. For tests of what that tells.
 */
import type { Random } from "../../../src/base/random.ts";
import { BUFFERS } from "./proxies.ts";

/** What a GPU takes to reduce a step, where a healthy hop takes 1 to carry it. */
const GPU = 0.1;
const JITTER = 0.2;

/** By hop; `factors`: how much longer each takes to carry a step. */
export function timedRing(factors: readonly number[], steps: number, random: Random): number[] {
  const size = factors.length;
  const column = (): Float64Array[] => factors.map(() => new Float64Array(steps));
  const [filled, through] = [column(), column()];
  const onWire = new Float64Array(size);
  for (let step = 0; step < steps; step++)
    for (const [hop, factor] of factors.entries()) {
      const before = through[(hop + size - 1) % size]!;
      const [own, done] = [filled[hop]!, through[hop]!];
      const next = filled[(hop + 1) % size]!;
      const at = (times: Float64Array, index: number): number => times[index] ?? 0;
      const hasRoom = at(done, step - BUFFERS);
      own[step] = GPU + Math.max(at(before, step - 1), at(own, step - 1), hasRoom);
      // The receiver has emptied a buffer when it has filled the step after with what was in it.
      const credit = at(next, step - BUFFERS + 1);
      const began = Math.max(own[step]!, step >= BUFFERS ? credit : 0);
      const free = at(done, step - 1);
      done[step] = Math.max(began, free) + factor * (1 + JITTER * (2 * random() - 1));
      // With what is on the wire already it counts once.
      onWire[hop]! += done[step]! - Math.max(began, free);
    }
  return [...onWire];
}
