/**
 * Minder (NSDI 2025), as the paper describes it: metric by metric in the order of their sensitivity, windows of eight
 * samples denoised by the metric's LSTM-VAE, the machine that is farthest from all others in each window, and an alarm
 * where it is the same one for four minutes. The first metric that names a machine ends the search (§4.4): at most one
 * machine is reported. Machines of all roles are compared with each other, as in the paper (§3.1).
 */
import { largest, smallest } from "../../../base/numbers.ts";
import type { Fleet, MetricGrid } from "../../../model/fleet.ts";
import type {
  FaultyMachine,
  Jitter,
  MachineReport,
  MetricCoverage,
} from "../../../model/machine-report.ts";
import { findCandidates, highestScore, type CandidateRun } from "./candidates.ts";
import {
  concatenated,
  integratedEmbedder,
  metricEmbedder,
  WINDOW,
  type Embedder,
} from "./embedding.ts";
import type { MinderModels } from "./model-file.ts";
import { DEFAULT_OPTIONS, type MinderOptions } from "./options.ts";
import { commonAxis, machinesIn, type Axis } from "./preprocess.ts";
import { clearestMetric, deviationOf, lasting, titleOf } from "./report-words.ts";

/** Metrics that are looked at together: one in Minder, all in the variants CON and INT. */
interface Turn {
  readonly grids: readonly MetricGrid[];
  readonly machines: Int32Array;
  readonly axis: Axis;
  readonly embedder: () => Embedder;
}

/** Where the exporter has no tensor core activity, that of the multiprocessors stands in. */
const STAND_INS: Readonly<Record<string, string>> = {
  "gpu-tensor-core-activity": "gpu-sm-activity",
};

export function runMinder(
  fleet: Fleet,
  models: MinderModels,
  chosen: Partial<MinderOptions> = {},
): MachineReport {
  const options: MinderOptions = { ...DEFAULT_OPTIONS, ...chosen };
  const missing = [...fleet.missing];
  const grids: MetricGrid[] = [];
  const metrics: MetricCoverage[] = [];
  for (const metric of options.metrics) {
    const grid = gridOf(fleet, metric, options.metrics);
    if (grid) grids.push(grid);
    metrics.push({
      name: grid?.metric ?? metric,
      source: grid?.source ?? "",
      coverage: grid?.coverage ?? 0,
      intervalS: grid?.stepS ?? 0,
    });
  }
  const jitter: Jitter[] = [];
  let faulty: FaultyMachine | null = null;
  for (const turn of turnsOf(fleet, grids, models, options)) {
    const { machines, axis } = turn;
    const threshold = thresholdOf(turn, options);
    if (highestScore(machines.length) <= threshold) {
      const why = tooFew(turn, threshold);
      if (!missing.includes(why)) missing.push(why);
      continue;
    }
    const needed = Math.ceil(options.continuityS / (options.stride * axis.stepS) - 1e-9);
    const found = findCandidates(turn.embedder(), machines.length, axis.ticks, {
      measure: options.distance,
      threshold,
      stride: options.stride,
      needed: Math.max(1, needed),
    });
    jitter.push(...jitterOf(fleet, turn, found.short, options));
    if (!found.faulty) continue;
    faulty = faultyOf(fleet, turn, found.faulty, threshold);
    break;
  }
  return {
    method: "minder",
    machines: fleet.machines.length,
    fromS: smallest(
      fleet.grids.map((grid) => grid.startS),
      Infinity,
    ),
    toS: largest(fleet.grids.map(endOf), -Infinity),
    metrics,
    faulty: faulty ? [faulty] : [],
    followers: [],
    telemetry: [],
    jitter: jitter.slice(0, MOST_JITTERS),
    jittersLeftOut: Math.max(0, jitter.length - MOST_JITTERS),
    phases: [],
    missing,
  };
}

function endOf({ startS, stepS, ticks }: Axis): number {
  return startS + stepS * (ticks - 1);
}

function gridOf(fleet: Fleet, metric: string, all: readonly string[]): MetricGrid | undefined {
  const find = (name: string): MetricGrid | undefined =>
    fleet.grids.find((grid) => grid.metric === name && grid.coverage > 0);
  const other = STAND_INS[metric];
  return find(metric) ?? (other === undefined || all.includes(other) ? undefined : find(other));
}

function turnsOf(
  fleet: Fleet,
  grids: readonly MetricGrid[],
  models: MinderModels,
  options: MinderOptions,
): Turn[] {
  if (options.combine === "each")
    return grids.map((grid) => {
      const machines = machinesIn(fleet, [grid]);
      const embedder = (): Embedder => metricEmbedder(grid, machines, grid, models, options);
      return { grids: [grid], machines, axis: grid, embedder };
    });
  const { integrated } = models;
  const isIntegrated = options.combine === "integrated";
  const together = isIntegrated
    ? fleet.grids.filter((grid) => integrated?.inputs.includes(grid.metric) && grid.coverage > 0)
    : grids;
  if (together.length === 0 || (isIntegrated && !integrated)) return [];
  const machines = machinesIn(fleet, together);
  const axis = commonAxis(together);
  const embedder = (): Embedder =>
    isIntegrated
      ? integratedEmbedder(together, machines, axis, integrated!, options)
      : concatenated(together.map((grid) => metricEmbedder(grid, machines, axis, models, options)));
  return [{ grids: together, machines, axis, embedder }];
}

function thresholdOf({ grids }: Turn, { scores, similarityThreshold }: MinderOptions): number {
  return (grids.length === 1 ? scores[grids[0]!.metric] : undefined) ?? similarityThreshold;
}

function tooFew({ machines }: Turn, threshold: number): string {
  const most = highestScore(machines.length).toFixed(2);
  return `Minder cannot tell: its threshold is ${threshold}, and among ${machines.length} machines no normal score exceeds ${most}.`;
}

/**
 * A window is unlike from the first sample that is: its last one when the deviation begins, its first when it ends.
 */
function timesOf(axis: Axis, window: number, run: CandidateRun): readonly [number, number] {
  const fromS = axis.startS + axis.stepS * (run.firstTick + (run.firstTick > 0 ? window - 1 : 0));
  const toS = run.isOpen ? endOf(axis) : axis.startS + axis.stepS * run.lastTick;
  return [fromS, Math.max(fromS, toS)];
}

function faultyOf(
  fleet: Fleet,
  { grids, machines, axis }: Turn,
  run: CandidateRun,
  threshold: number,
): FaultyMachine {
  const machine = machines[run.machine]!;
  const [fromS, toS] = timesOf(axis, WINDOW, run);
  const grid = clearestMetric(grids, machine, fromS, toS);
  const most = highestScore(machines.length);
  const deviation = deviationOf(grid, machine, fromS, toS, run.score);
  const name = fleet.machines[machine]!;
  return {
    machine: name,
    metric: grid.metric,
    score: Math.min(1, run.score / most),
    sinceS: fromS,
    untilS: run.isOpen ? null : toS,
    role: "all machines",
    order: 1,
    why: `${name} was the machine farthest from the ${machines.length - 1} others in ${titleOf(grid.metric)} for ${lasting(toS - fromS)}: normal score ${run.score.toFixed(1)} of at most ${most.toFixed(1)}, threshold ${threshold}.`,
    deviations: [deviation],
  };
}

/** Runs of fewer windows than share a sample with each other may be one sample's doing. */
const SHORTEST_JITTER = 2 * WINDOW;
const MOST_JITTERS = 20;

/** Deviations that did not last: no fault, but they slow training down for a while (§6.1). */
function jitterOf(
  fleet: Fleet,
  { grids, machines, axis }: Turn,
  runs: readonly CandidateRun[],
  { stride }: MinderOptions,
): Jitter[] {
  return runs
    .filter((run) => run.windows * stride >= SHORTEST_JITTER)
    .sort((a, b) => b.windows - a.windows || a.firstTick - b.firstTick)
    .map((run) => {
      const machine = machines[run.machine]!;
      const [fromS, toS] = timesOf(axis, WINDOW, run);
      const { metric } = clearestMetric(grids, machine, fromS, toS);
      const name = fleet.machines[machine]!;
      const why = `${name} was unlike the others in ${titleOf(metric)} for ${lasting(toS - fromS)}, then like them again.`;
      return { machine: name, metric, fromS, toS, why };
    });
}
