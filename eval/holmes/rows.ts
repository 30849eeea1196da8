/**
 * Labelled rows out of a simulated job and its twin without the fault. The simulator's noise depends on
 * coordinates alone, so the twin is the same job bit by bit, and the difference is the fault's.
 */
import { randomInt, seeded } from "../../src/base/random.ts";
import { median } from "../../src/maths/robust.ts";
import {
  FEATURE_COUNT,
  featureRows,
  PATTERNS,
  type OperatorWindow,
  type PlaceFeatures,
} from "./detector/features.ts";
import type { LabelledRows } from "./detector/train.ts";
import { simulate } from "../../src/simulate/cluster/engine.ts";
import * as P from "../../src/simulate/cluster/program.ts";
import type { ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import type { Simulation } from "../../src/simulate/cluster/times.ts";
import { ITERATIONS, type DrawnJob } from "./jobs.ts";

/** Iterations that features look back on. */
const WINDOW = 100;
/** Where a window is long enough to know what is usual. */
const EARLIEST = 40;
/** Holmes §3.1, Definition 1, with its default. */
const DELTA = 1.1;
/** Abnormal is what the fault makes longer by a tenth and by a hundredth of the iteration. */
const OF_ITSELF = 0.1;
const OF_ITERATION = 0.01;
const RANKS = 4;
const IRREGULAR = 6;

const PATTERN_OF: readonly number[] = (() => {
  const names = ["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "send", "recv"];
  return [...names.map((name) => (PATTERNS as readonly string[]).indexOf(name)), PATTERNS.length];
})();

interface RankRun {
  readonly window: OperatorWindow;
  readonly fixed: PlaceFeatures;
}

export interface JobRows extends LabelledRows {
  readonly cause: string;
}

export function jobRows(job: DrawnJob): JobRows {
  const random = seeded(job.spec.seed ^ 0x5eed);
  const culprit = job.spec.faults[0]?.ranks[0] ?? 0;
  const ranks = [
    ...new Set([
      culprit,
      ...Array.from({ length: RANKS - 1 }, () => randomInt(random, job.spec.gpus)),
    ]),
  ];
  const healthy = runRanks(job.healthy, ranks);
  const faulty = job.cause === "healthy" ? healthy : runRanks(job.spec, ranks);
  const rows: Float64Array[] = [];
  const labels: number[] = [];
  const iterations = chosenIterations(
    job,
    faulty[0]!.window.iterationMs,
    healthy[0]!.window.iterationMs,
    random,
  );
  ranks.forEach((_, r) => {
    const { window, fixed } = faulty[r]!;
    const { places } = window;
    for (const { at, isIrregular } of iterations) {
      const part = windowAt(window, at);
      rows.push(featureRows(part, fixed, part.iterationMs.length - 1));
      for (let i = at * places; i < (at + 1) * places; i++) {
        const usual = healthy[r]!.window.durationMs[i]!;
        const excess = window.durationMs[i]! - usual;
        const counts =
          excess > OF_ITSELF * usual && excess > OF_ITERATION * window.iterationMs[at]!;
        labels.push(isIrregular && counts ? 1 : 0);
      }
    }
  });
  return {
    features: FEATURE_COUNT,
    rows: concat(rows),
    labels: Uint8Array.from(labels),
    cause: job.cause,
  };
}

/** The window of up to 100 iterations that ends with `at`. */
function windowAt({ places, durationMs, iterationMs }: OperatorWindow, at: number): OperatorWindow {
  const from = Math.max(0, at + 1 - WINDOW);
  return {
    places,
    durationMs: durationMs.subarray(from * places, (at + 1) * places),
    iterationMs: iterationMs.subarray(from, at + 1),
  };
}

/**
 * Irregular iterations, as the monitor would pass them on, and one in which all is well. Iterations that are irregular
 * in the twin, too, are left out: a hiccup of the noise makes operators truly abnormal, but the twin has them as well
 * and cannot say so.
 */
function chosenIterations(
  job: DrawnJob,
  faultyMs: Float64Array,
  healthyMs: Float64Array,
  random: () => number,
): { at: number; isIrregular: boolean }[] {
  const irregular: number[] = [];
  const regular: number[] = [];
  for (let at = EARLIEST; at < faultyMs.length; at++) {
    const past = faultyMs.subarray(Math.max(0, at + 1 - WINDOW), at + 1);
    const mean = past.reduce((sum, ms) => sum + ms, 0) / past.length;
    if (healthyMs[at]! > DELTA * median(healthyMs)) continue;
    if (faultyMs[at]! > DELTA * mean) irregular.push(at);
    else if (faultyMs[at]! < 1.01 * healthyMs[at]!) regular.push(at);
  }
  const draw = (from: number[], count: number): number[] =>
    Array.from(
      { length: Math.min(count, from.length) },
      () => from.splice(randomInt(random, from.length), 1)[0]!,
    );
  return [
    ...draw(irregular, IRREGULAR).map((at) => ({ at, isIrregular: true })),
    ...draw(regular, job.cause === "healthy" ? 3 : 1).map((at) => ({ at, isIrregular: false })),
  ];
}

/** Durations of some ranks' communication operators, iterations × places. */
function runRanks(spec: ClusterSpec, ranks: readonly number[]): RankRun[] {
  const simulation = simulate(spec);
  const { lanes } = simulation.lanes;
  const iterationMs = new Float64Array(ITERATIONS);
  const ops = ranks.map((rank) => {
    const { kind } = simulation.programs[Math.floor(rank / lanes)]!;
    return Int32Array.from(kind.keys()).filter((op) => kind[op] !== P.COMPUTE);
  });
  const durations = ops.map((own) => new Float64Array(ITERATIONS * own.length));
  for (const { iteration, startNs, endNs, stages } of simulation.iterations()) {
    iterationMs[iteration - 1] = (endNs - startNs) / 1e6;
    ranks.forEach((rank, r) => {
      const times = stages[Math.floor(rank / lanes)]!;
      const own = ops[r]!;
      for (let place = 0; place < own.length; place++) {
        const at = own[place]! * lanes + (rank % lanes);
        durations[r]![(iteration - 1) * own.length + place] =
          (times.endNs[at]! - times.startNs[at]!) / 1e6;
      }
    });
  }
  return ranks.map((rank, r) => ({
    window: { places: ops[r]!.length, durationMs: durations[r]!, iterationMs },
    fixed: placeFeatures(simulation, rank, ops[r]!),
  }));
}

function placeFeatures(
  { spec, programs, lanes }: Simulation,
  rank: number,
  ops: Int32Array,
): PlaceFeatures {
  const { kind, role, bytes } = programs[Math.floor(rank / lanes.lanes)]!;
  const sizes: readonly number[] = [spec.tp, spec.cp, spec.dp * spec.cp, spec.ep, 2, 2, spec.gpus];
  return {
    ranks: Float64Array.from(ops, (op) => sizes[role[op]!]!),
    bytes: Float64Array.from(ops, (op) => bytes[op]!),
    pattern: Uint8Array.from(ops, (op) => PATTERN_OF[kind[op]!]!),
  };
}

function concat(parts: readonly Float64Array[]): Float64Array {
  const whole = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function joinRows(parts: readonly LabelledRows[]): LabelledRows {
  const labels = new Uint8Array(parts.reduce((sum, part) => sum + part.labels.length, 0));
  let at = 0;
  for (const part of parts) {
    labels.set(part.labels, at);
    at += part.labels.length;
  }
  return { features: FEATURE_COUNT, rows: concat(parts.map(({ rows }) => rows)), labels };
}
