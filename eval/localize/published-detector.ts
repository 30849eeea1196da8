/** Whether an operator of a rank is abnormal in an iteration: the paper's forest (§4.2.2), or the 3-sigma rule. */
import { predictRow } from "../maths/forest.ts";
import type { Detector } from "../holmes/detector/detector.ts";
import { featureRows, PATTERNS, type PlaceFeatures } from "../holmes/detector/features.ts";
import type { Simulation } from "../../src/simulate/cluster/times.ts";
import { jobOperators } from "./job-operators.ts";
import type { KeptJob } from "./kept-job.ts";

export type IsAbnormal = (rank: number, op: number, iteration: number) => boolean;

/** Iterations that features, δ and rates look back on, at most: §5.1, "System configuration". */
export const WINDOW = 100;

/** Answers are kept: several pivots and operators ask for the same. */
function remembered(job: KeptJob, decide: IsAbnormal): IsAbnormal {
  const most = Math.max(...job.simulation.programs.map(({ count }) => count));
  const known = new Map<number, boolean>();
  return (rank, op, iteration) => {
    const key = (iteration * job.simulation.spec.gpus + rank) * most + op;
    let answer = known.get(key);
    if (answer === undefined) known.set(key, (answer = decide(rank, op, iteration)));
    return answer;
  };
}

/** `leastShare` of the iteration: what labels do not call abnormal the forest is not asked about. */
export function forestRule(
  job: KeptJob,
  { forest, cut }: Detector,
  leastShare: number,
): IsAbnormal {
  const { tookMs } = jobOperators(job);
  const { lanes } = job.simulation.lanes;
  const fixed = job.simulation.programs.map((_, stage) => placeFeatures(job.simulation, stage));
  const place = Int32Array.of(0);
  return remembered(job, (rank, op, iteration) => {
    const own = tookMs(rank, op, iteration);
    if (own < leastShare * job.iterationMs[iteration - 1]!) return false;
    const first = Math.max(1, iteration + 1 - WINDOW);
    const length = iteration + 1 - first;
    const all = fixed[Math.floor(rank / lanes)]!;
    const rows = featureRows(
      {
        places: 1,
        durationMs: Float64Array.from({ length }, (_, i) => tookMs(rank, op, first + i)),
        iterationMs: Float64Array.from({ length }, (_, i) => job.iterationMs[first + i - 1]!),
      },
      {
        ranks: all.ranks.subarray(op, op + 1),
        bytes: all.bytes.subarray(op, op + 1),
        pattern: all.pattern.subarray(op, op + 1),
      },
      length - 1,
      place,
    );
    // The forest asks for the paper's features only, which come first in a row.
    return predictRow(forest, rows) >= cut;
  });
}

/** Longer than mean + 3 deviations of its own window, and a tenth more than the mean. */
export function sigmaRule(job: KeptJob): IsAbnormal {
  const { tookMs } = jobOperators(job);
  return remembered(job, (rank, op, iteration) => {
    const first = Math.max(1, iteration + 1 - WINDOW);
    const length = iteration + 1 - first;
    let mean = 0;
    for (let i = first; i <= iteration; i++) mean += tookMs(rank, op, i) / length;
    let squares = 0;
    for (let i = first; i <= iteration; i++) squares += (tookMs(rank, op, i) - mean) ** 2;
    const own = tookMs(rank, op, iteration);
    return own > mean + 3 * Math.sqrt(squares / length) && own > 1.1 * mean;
  });
}

/** By operator of a stage's program. */
export function placeFeatures({ spec, programs }: Simulation, stage: number): PlaceFeatures {
  const { kind, role, bytes } = programs[stage]!;
  // By role: tensor, context, data, expert, pipeline, embedding, world.
  const sizes: readonly number[] = [
    spec.tp,
    spec.cp,
    spec.dp * spec.cp,
    spec.ep,
    2,
    2,
    spec.gpus,
    1,
  ];
  return {
    ranks: Float64Array.from(role, (code) => sizes[code]!),
    bytes,
    pattern: Uint8Array.from(kind, (code) => PATTERN_OF[code]!),
  };
}

/** By kind of operator in the simulator's programs. */
const PATTERN_OF: readonly number[] = [
  ...["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "send", "recv"].map((name) =>
    (PATTERNS as readonly string[]).indexOf(name),
  ),
  PATTERNS.length,
];
