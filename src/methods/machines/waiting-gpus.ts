/**
 * Whether the GPUs of a busy machine wait for their own host. Those of all others spin in a collective meanwhile and look
 * busy, so that gaps in the work of one machine alone show who keeps the job waiting, even where it was so from the first
 * sample on and nothing can be compared with before.
 */
import type { Evidence } from "./evidence.ts";
import { peersOf } from "./roles.ts";
import type { View } from "./views.ts";

const BUSY = ["gpu-duty-cycle", "gpu-graphics-engine-activity"];
/** Of what matters. */
const LEAST_GAP = 0.5;
/** The next machine may have this share of it. */
const NEXT_SHARE = 0.4;
const PEERS = 200;
const LEAST_SAMPLES = 6;

export function gpusWait({ machine, fromS, toS }: Evidence, views: readonly View[]): boolean {
  return views
    .filter(({ metric, side }) => BUSY.includes(metric.id) && side === "low")
    .some((view) => {
      const own = meanOf(view, machine, fromS, toS);
      const others = peersOf(view.peers.role, machine, PEERS)
        .map((m) => meanOf(view, m, fromS, toS))
        .filter((one) => one === one)
        .sort((a, b) => a - b);
      const { scale } = view;
      const usual = scale.to(others[others.length >> 1] ?? NaN);
      const gap = usual - scale.to(own);
      return gap >= LEAST_GAP * scale.material && usual - scale.to(others[0]!) <= NEXT_SHARE * gap;
    });
}

/** Over all of its GPUs. A mean: gaps are seen in some samples, and none in the middle one. */
function meanOf({ grid }: View, m: number, fromS: number, toS: number): number {
  const { ticks, startS, stepS, mean } = grid;
  const first = Math.max(0, Math.ceil((fromS - startS) / stepS));
  const last = Math.max(first, Math.min(ticks, Math.floor((toS - startS) / stepS)));
  const seen = mean.subarray(m * ticks + first, m * ticks + last).filter((one) => one === one);
  return seen.length < LEAST_SAMPLES ? NaN : seen.reduce((sum, one) => sum + one, 0) / seen.length;
}
