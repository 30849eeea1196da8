/**
 * A process that came onto a GPU while the job ran: the memory in use, which a job in training does not change, rises at
 * once on one machine alone, by a CUDA context at least, and the GPU does more than its peers from then on. Seen in samples
 * that are too seldom to tell that the job slowed down.
 */
import { STRAY_MEMORY } from "../../model/deviation-words.ts";
import type { MetricGrid } from "../../model/fleet.ts";
import { detailed, evidenceOf } from "./evidence.ts";
import type { Judged } from "./judge.ts";
import { deviationBetween, type View } from "./views.ts";

/** What a CUDA context takes, in MiB; less may be a library that loads. */
const CONTEXT_MIB = 400;
/** A level that does not change. */
const STEADY_MIB = 64;
const LEAST_SAMPLES = 3;
/** Of what matters. */
const LEAST_MORE = 0.6;
/** The next machine may have this share of it. */
const NEXT_SHARE = 0.5;
const BUSIER = ["gpu-sm-activity", "gpu-power-draw", "gpu-temperature"];
const SCORE = 0.55;

export function strayProcess(views: readonly View[]): Judged | null {
  const memory = views.find(
    ({ metric, side }) => metric.id === "gpu-memory-used" && side === "high",
  );
  if (!memory) return null;
  const { grid, peers } = memory;
  const steps = [...peers.role.keys()].flatMap((m) => {
    const step = stepOf(grid, m);
    return step === null ? [] : [{ machine: m, ...step }];
  });
  // Where several take more, the job does.
  const [only, second] = steps.filter(({ grownMib }) => grownMib >= STEADY_MIB);
  if (!only || second || only.grownMib < CONTEXT_MIB) return null;
  const { machine, atS } = only;
  const toS = grid.startS + grid.ticks * grid.stepS;
  const busier = BUSIER.flatMap((id) =>
    views.filter(({ metric, side }) => metric.id === id && side === "high"),
  ).find((view) => {
    const more = (m: number): number =>
      deviationBetween(view, m, atS + grid.stepS, toS) - deviationBetween(view, m, 0, atS);
    const own = more(machine);
    const others = [...peers.role.keys()].filter((m) => m !== machine).map(more);
    return own >= LEAST_MORE && others.every((one) => !(one > NEXT_SHARE * own));
  });
  if (!busier) return null;
  const episode = { machine, fromS: atS, toS, isOpen: true, strength: 1, sigmas: NaN };
  const work = detailed(evidenceOf({ ...episode, view: busier }));
  const seen = evidenceOf({ ...episode, view: memory });
  const { device } = work.deviation;
  const deviation = {
    ...seen.deviation,
    metric: STRAY_MEMORY,
    device,
    value: only.grownMib,
    peers: 0,
  };
  const shared = { ...seen, decides: true, strength: 2, episode: null, deviation };
  return {
    machine,
    fromS: atS,
    untilS: null,
    evidence: [shared, work],
    kinds: ["gpu-memory", work.kind],
    score: SCORE,
  };
}

/** One step of all that a machine's GPUs hold, between two steady levels that last; null where it is not so. */
function stepOf(grid: MetricGrid, m: number): { atS: number; grownMib: number } | null {
  const { mean, reporting, ticks, startS, stepS } = grid;
  const gpus =
    reporting?.subarray(m * ticks, (m + 1) * ticks).reduce((a, b) => Math.max(a, b), 1) ?? 1;
  const held = new Float64Array(ticks);
  let seen = 0;
  /** Where the first level ends, counted in what was seen, and its tick. */
  let end = -1;
  let tick = -1;
  for (let t = 0; t < ticks; t++) {
    const mib = mean[m * ticks + t]! * gpus;
    if (mib !== mib || (reporting && reporting[m * ticks + t] !== gpus)) continue;
    if (seen > 0 && end < 0 && Math.abs(mib - held[0]!) > STEADY_MIB) {
      end = seen;
      tick = t;
    }
    held[seen++] = mib;
  }
  if (end < LEAST_SAMPLES || seen - end < LEAST_SAMPLES) return null;
  // The first sample behind it may be half of it.
  const after = held.subarray(end + 1, seen);
  if (after.some((mib) => Math.abs(mib - after[0]!) > STEADY_MIB)) return null;
  return { atS: startS + tick * stepS, grownMib: after[0]! - held[0]! };
}
