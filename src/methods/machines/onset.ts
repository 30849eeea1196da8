/** When a machine began to be unlike its peers, to the sample: blocks are too coarse to tell who was first. */
import { median } from "../../maths/robust.ts";
import type { Episode } from "./episodes.ts";
import { peersOf } from "./roles.ts";

/** Of the episode's mean deviation: beyond it the machine has left. */
const LEFT = 0.5;
const PEERS_LOOKED_AT = 101;

export function onsetOf({ view, machine, fromS, toS }: Episode): number {
  const { grid, values, scale, peers, side } = view;
  const { ticks, startS, stepS } = grid;
  const { blocks, deviation } = peers;
  if (blocks.ticksPerBlock === 1) return fromS;
  const sign = side === "low" ? -1 : 1;
  const first = Math.round((fromS - blocks.startS) / blocks.blockS);
  const last = Math.round((toS - blocks.startS) / blocks.blockS);
  let sum = 0;
  let seen = 0;
  for (let b = first; b < last; b++) {
    const off = sign * deviation[machine * blocks.count + b]!;
    if (off !== off) continue;
    sum += off;
    seen++;
  }
  const wanted = (LEFT * sum) / seen;
  const others = peersOf(peers.role, machine, PEERS_LOOKED_AT);
  const from = Math.max(0, Math.floor((fromS - startS) / stepS) - blocks.ticksPerBlock);
  const to = Math.min(ticks, Math.floor((fromS - startS) / stepS) + 2 * blocks.ticksPerBlock);
  // What the machine was off by before, at the same grain.
  const off = (t: number): number => {
    const value = values[machine * ticks + t]!;
    const rest = others.map((m) => values[m * ticks + t]!).filter((one) => one === one);
    return sign * (scale.to(value) - median(rest.map((one) => scale.to(one))));
  };
  const before = Array.from({ length: Math.min(from, 2 * blocks.ticksPerBlock) }, (_, i) =>
    off(from - 1 - i),
  ).filter((one) => one === one);
  const usual = before.length > 0 ? median(before) : 0;
  for (let t = from; t < to; t++) {
    if (off(t) - usual >= wanted && !(off(Math.min(ticks - 1, t + 1)) - usual < wanted / 2)) {
      return startS + t * stepS;
    }
  }
  return fromS;
}
