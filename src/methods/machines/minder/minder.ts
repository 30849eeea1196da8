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
import { metricEmbedder, WINDOW } from "./embedding.ts";
import type { MinderModels } from "./model-file.ts";
import { DEFAULT_OPTIONS, type MinderOptions } from "./options.ts";
import { machinesIn } from "./preprocess.ts";
import { deviationOf, lasting, titleOf } from "./report-words.ts";

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
  for (const grid of grids) {
    const machines = machinesIn(fleet, [grid]);
    const threshold = options.scores[grid.metric] ?? options.similarityThreshold;
    if (highestScore(machines.length) <= threshold) {
      const why = tooFew(machines.length, threshold);
      if (!missing.includes(why)) missing.push(why);
      continue;
    }
    const needed = Math.ceil(options.continuityS / (options.stride * grid.stepS) - 1e-9);
    const found = findCandidates(
      metricEmbedder(grid, machines, models),
      machines.length,
      grid.ticks,
      {
        threshold,
        stride: options.stride,
        needed: Math.max(1, needed),
      },
    );
    jitter.push(...jitterOf(fleet, grid, machines, found.short, options));
    if (!found.faulty) continue;
    faulty = faultyOf(fleet, grid, machines, found.faulty, threshold);
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

function endOf({ startS, stepS, ticks }: MetricGrid): number {
  return startS + stepS * (ticks - 1);
}

function gridOf(fleet: Fleet, metric: string, all: readonly string[]): MetricGrid | undefined {
  const find = (name: string): MetricGrid | undefined =>
    fleet.grids.find((grid) => grid.metric === name && grid.coverage > 0);
  const other = STAND_INS[metric];
  return find(metric) ?? (other === undefined || all.includes(other) ? undefined : find(other));
}

function tooFew(machines: number, threshold: number): string {
  const most = highestScore(machines).toFixed(2);
  return `Minder cannot tell: its threshold is ${threshold}, and among ${machines} machines no normal score exceeds ${most}.`;
}

/**
 * A window is unlike from the first sample that is: its last one when the deviation begins, its first when it ends.
 */
function timesOf(grid: MetricGrid, run: CandidateRun): readonly [number, number] {
  const fromS = grid.startS + grid.stepS * (run.firstTick + (run.firstTick > 0 ? WINDOW - 1 : 0));
  const toS = run.isOpen ? endOf(grid) : grid.startS + grid.stepS * run.lastTick;
  return [fromS, Math.max(fromS, toS)];
}

function faultyOf(
  fleet: Fleet,
  grid: MetricGrid,
  machines: Int32Array,
  run: CandidateRun,
  threshold: number,
): FaultyMachine {
  const machine = machines[run.machine]!;
  const [fromS, toS] = timesOf(grid, run);
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
  grid: MetricGrid,
  machines: Int32Array,
  runs: readonly CandidateRun[],
  { stride }: MinderOptions,
): Jitter[] {
  return runs
    .filter((run) => run.windows * stride >= SHORTEST_JITTER)
    .sort((a, b) => b.windows - a.windows || a.firstTick - b.firstTick)
    .map((run) => {
      const [fromS, toS] = timesOf(grid, run);
      const { metric } = grid;
      const name = fleet.machines[machines[run.machine]!]!;
      const why = `${name} was unlike the others in ${titleOf(metric)} for ${lasting(toS - fromS)}, then like them again.`;
      return { machine: name, metric, fromS, toS, why };
    });
}
