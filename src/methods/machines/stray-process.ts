/**
 * A process that is not the job's on a GPU of the job. All slow down and wait for that GPU, which alone goes on at what it
 * did before, or at more, with a clock that did not fall: a slow GPU does less.
 */
import { median } from "../../maths/robust.ts";
import { SHARED_GPU } from "../../model/deviation-words.ts";
import type { Evidence } from "./evidence.ts";
import type { Judged } from "./judge.ts";
import { peersOf } from "./roles.ts";
import type { View } from "./views.ts";

const WORK = [
  "gpu-power-draw",
  "gpu-sm-activity",
  "gpu-tensor-core-activity",
  "gpu-memory-bandwidth",
];
const BEFORE_S = 600;
const EDGE_S = 30;
const PEERS = 20;
/** Of what was before: less is a GPU that slowed down. */
const AS_BEFORE = 0.95;
const MORE = 1.03;
/** Peers that wait do no more than this share. */
const WAITS = 0.93;
/** A CUDA context alone takes this much, in MiB. */
const CONTEXT_MIB = 200;

/** `judged` with that observation, where it is one. */
export function withStrayProcess(judged: Judged, views: readonly View[]): Judged {
  const { machine, evidence } = judged;
  const busy = evidence.find(
    ({ kind, deviation, isHeldUp }) =>
      kind === "gpu-work" && deviation.direction === "high" && isHeldUp === true,
  );
  if (!busy) return judged;
  const changeOf = (view: View, m: number): { before: number; now: number } => ({
    before: usual(view, m, busy.fromS - BEFORE_S, busy.fromS - EDGE_S),
    now: usual(view, m, busy.fromS + EDGE_S, busy.toS),
  });
  const ratioOf = (view: View, m: number): number => {
    const { before, now } = changeOf(view, m);
    return now / before;
  };
  const on = (ids: readonly string[], side: View["side"]): View[] =>
    views.filter(({ metric: { id }, side: own }) => ids.includes(id) && own === side);
  const work = on(WORK, "high").filter((view) => ratioOf(view, machine) > 0);
  const [first] = work;
  const clockFell = on(["gpu-clocks"], "low").some((view) => ratioOf(view, machine) < AS_BEFORE);
  const own = work.map((view) => ratioOf(view, machine));
  if (!first || clockFell || own.some((ratio) => ratio < AS_BEFORE)) return judged;
  const peers = median(peersOf(first.peers.role, machine, PEERS).map((m) => ratioOf(first, m)));
  const takesMemory = on(["gpu-memory-used"], "high").some((view) => {
    const { before, now } = changeOf(view, machine);
    return now - before >= CONTEXT_MIB;
  });
  if (!(peers <= WAITS) || !(takesMemory || own.some((ratio) => ratio >= MORE))) return judged;
  const seen: Evidence = {
    ...busy,
    decides: true,
    strength: evidence.reduce((most, { strength }) => Math.max(most, strength), 0) + 1,
    deviation: {
      ...busy.deviation,
      metric: SHARED_GPU,
      value: own[0]!,
      peers,
    },
    episode: null,
  };
  return { ...judged, evidence: [seen, ...evidence] };
}

/** Median of its samples between two times. */
function usual({ grid, values }: View, m: number, fromS: number, toS: number): number {
  const { ticks, startS, stepS } = grid;
  const first = Math.max(0, Math.ceil((fromS - startS) / stepS));
  const last = Math.max(first, Math.min(ticks, Math.floor((toS - startS) / stepS)));
  const row = values.subarray(m * ticks + first, m * ticks + last);
  return median(Float64Array.from(row.filter((value) => value === value)));
}
