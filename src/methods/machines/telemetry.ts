/**
 * The monitoring breaks more often than the machines do. What must move together is held against each other: a GPU
 * whose duty cycle reads 0 while its power and its tensor cores are as everybody's is a GPU that works.
 */
import { amount } from "../../base/amount.ts";
import { largest, smallest } from "../../base/numbers.ts";
import type { MetricGrid } from "../../model/fleet.ts";
import type { TelemetryFault } from "../../model/machine-report.ts";
import { exporterOf } from "./absence.ts";
import type { Evidence } from "./evidence.ts";
import { frozenSpans, isAnalogue, isFine, isNothing } from "./frozen.ts";
import { deviationBetween, type View } from "./views.ts";

/** All of them fall when a GPU stops, and none of them alone. */
const GPU_WORK = [
  "gpu-duty-cycle",
  "gpu-power-draw",
  "gpu-sm-activity",
  "gpu-tensor-core-activity",
  "gpu-graphics-engine-activity",
  "gpu-fp-engine-activity",
  "gpu-memory-bandwidth",
];
/** Of what matters: below it a metric is as its peers' are, above it it agrees that something is wrong. */
const AS_PEERS = 0.4;
const AGREES = 0.5;
const LEAST_SAMPLES = 4;
const LEAST_TURNS = 8;
const LOOK_BACK = 60;
const SERVED_OLD = "stands still like the GPU's other metrics: the exporter serves an old value";

export interface Sorted {
  readonly machine: readonly Evidence[];
  readonly telemetry: readonly { readonly fault: TelemetryFault; readonly evidence: Evidence }[];
}

/** Tells evidence against the machine from evidence against its monitoring. `evidence` is of one machine. */
export function sortOut(
  name: string,
  evidence: readonly Evidence[],
  views: readonly View[],
): Sorted {
  const machine: Evidence[] = [];
  const telemetry: { fault: TelemetryFault; evidence: Evidence }[] = [];
  const spans = evidence.some(isGpuMetric) ? frozenSpans(evidence[0]!.machine, views) : [];
  // Half of it: an episode's edges are a block wide, and the value may have been like the peers' at first.
  const isBeside = ({ fromS, toS }: Evidence): boolean =>
    spans.some(
      (span) => Math.min(toS, span.toS) - Math.max(fromS, span.fromS) >= 0.5 * (toS - fromS),
    );
  for (const one of evidence) {
    const why =
      brokenSensor(one, evidence, views) ??
      (isGpuMetric(one) && one.kind !== "state" && isBeside(one) ? SERVED_OLD : null);
    if (why === null) machine.push(one);
    else {
      const { fromS: sinceS, isOpen, toS, deviation } = one;
      const untilS = isOpen ? null : toS;
      telemetry.push({
        fault: { machine: name, metric: deviation.metric, sinceS, untilS, why },
        evidence: one,
      });
    }
  }
  return { machine, telemetry };
}

export function isProfiling({ source }: MetricGrid): boolean {
  return source.startsWith("DCGM_FI_PROF_");
}

function brokenSensor(
  one: Evidence,
  all: readonly Evidence[],
  views: readonly View[],
): string | null {
  const { deviation, episode, kind } = one;
  if (deviation.metric === "reporting" && deviation.device !== null)
    return one.decides ? null : silentExporter(one, all);
  if (!episode) return null;
  const frozen = frozenSensor(one);
  if (frozen !== null) return frozen;
  const constant = constantOf(one);
  const { title } = episode.view.metric;
  if (constant === null) return null;
  if (
    kind === "cpu" &&
    constant === 0 &&
    !all.some((other) => other.kind === "gpu-work" || other.kind === "absence")
  ) {
    return `${title} reads exactly 0 while the machine does its work: the exporter is broken`;
  }
  // Profiling fields come from one watch and fail together: they do not confirm each other.
  const isProfiled = constant === 0 && isProfiling(episode.view.grid);
  if (!GPU_WORK.includes(deviation.metric) && !isProfiled) return null;
  const coupled = views.filter(
    ({ metric: { id }, side, grid }) =>
      side === deviation.direction &&
      GPU_WORK.includes(id) &&
      id !== deviation.metric &&
      !(isProfiled && isProfiling(grid)),
  );
  const moved = coupled.map((view) => ({
    title: view.metric.title,
    off:
      deviationBetween(view, one.machine, one.fromS, one.toS) *
      (deviation.direction === "low" ? -1 : 1),
  }));
  const against = moved.filter(({ off }) => off < AS_PEERS);
  if (against.length === 0 || moved.some(({ off }) => off >= AGREES)) return null;
  const fine = against.slice(0, 2).map((other) => other.title);
  if (isProfiled)
    return `its GPUs' profiling metrics (DCGM_FI_PROF_*) read exactly 0 while ${fine.join(" and ")} are as at its peers: profiling does not run there (it needs SYS_ADMIN, and one user at a time), so that it was not compared in these`;
  return `${title} reads exactly ${constant} while ${fine.join(" and ")} are as at its peers: the GPU works, its monitoring does not`;
}

/** Whether what it rests on stands still, of a metric that never does or of a clock or temperature beside it. */
export function isFrozen(one: Evidence): boolean {
  return isGpuMetric(one) && constantOf(one) !== null && one.kind !== "state";
}

/** Whether a measured value, and not just nothing, stands still. */
export function standsStill(one: Evidence): boolean {
  if (!isGpuMetric(one) || !isAnalogue(one.deviation.metric)) return false;
  const constant = constantOf(one) ?? frozenDevice(one);
  return constant !== null && !isNothing(one.episode!.view, constant);
}

/** A measured value that stands still is an old one. */
function frozenSensor(one: Evidence): string | null {
  const { deviation, episode } = one;
  if (!episode || !isAnalogue(deviation.metric)) return null;
  const constant = constantOf(one) ?? frozenDevice(one);
  if (constant === null || isNothing(episode.view, constant) || !stoodBefore(one, constant)) {
    return null;
  }
  const { title, unit } = episode.view.metric;
  return `${title} has read exactly ${amount(constant, unit)} all the time, which no live GPU does: the exporter serves an old value`;
}

function isGpuMetric({ episode }: Evidence): boolean {
  return episode !== null && exporterOf(episode.view.grid) === "gpu";
}

/** An old value is one that the machine had before; a GPU that stops has a new one, and may hold it to the watt. */
function stoodBefore({ machine, fromS, episode }: Evidence, constant: number): boolean {
  const { grid, values, scale } = episode!.view;
  const { ticks, startS, stepS } = grid;
  // Back to where it began to stand.
  let until = Math.min(ticks, Math.max(0, Math.floor((fromS - startS) / stepS)));
  const at = (t: number): number => values[machine * ticks + t]!;
  while (until > 0 && (at(until - 1) === constant || Number.isNaN(at(until - 1)))) until--;
  const before: number[] = [];
  for (let t = Math.max(0, until - LOOK_BACK); t < until; t++) {
    if (!Number.isNaN(at(t))) before.push(at(t));
  }
  if (before.length < LEAST_SAMPLES) return isFine(constant);
  // It may have stopped in any part of an iteration, so the range counts, not the middle.
  const slack = scale.material / 4;
  const old = scale.to(constant);
  return (
    old >= scale.to(smallest(before, Infinity)) - slack &&
    old <= scale.to(largest(before, -Infinity)) + slack
  );
}

/** A machine's lowest value is one device's now and another's then: one that shows the same whenever it is its turn. */
function frozenDevice({ machine, fromS, toS, episode }: Evidence): number | null {
  const { grid, values, side } = episode!.view;
  const whose = side === "low" ? grid.lowDevice : grid.highDevice;
  if (!whose) return null;
  const { ticks, startS, stepS } = grid;
  const last = Math.min(ticks, Math.floor((toS - startS) / stepS));
  const only = new Map<number, { value: number; seen: number }>();
  for (let t = Math.max(0, Math.ceil((fromS - startS) / stepS)); t < last; t++) {
    const at = machine * ticks + t;
    const value = values[at]!;
    if (value !== value) continue;
    const known = only.get(whose[at]!);
    if (!known) only.set(whose[at]!, { value, seen: 1 });
    else if (known.value === value) known.seen++;
    else known.seen = -Infinity;
  }
  return [...only.values()].find(({ seen }) => seen >= LEAST_TURNS)?.value ?? null;
}

/** The only value that the machine showed in that time; null where it changed or hardly anything was seen. */
function constantOf({ machine, fromS, toS, episode }: Evidence): number | null {
  const { grid, values, peers } = episode!.view;
  const { ticks, startS, stepS } = grid;
  // The first and the last block may lie half in what comes before and after.
  const edge = peers.blocks.ticksPerBlock > 1 ? peers.blocks.ticksPerBlock : 0;
  const first = Math.max(0, Math.ceil((fromS - startS) / stepS) + edge);
  const last = Math.min(ticks, Math.floor((toS - startS) / stepS) - edge);
  let only = NaN;
  let seen = 0;
  for (let t = first; t < last; t++) {
    const value = values[machine * ticks + t]!;
    if (value !== value) continue;
    if (seen++ === 0) only = value;
    else if (value !== only) return null;
  }
  return seen >= LEAST_SAMPLES ? only : null;
}

/** One exporter is silent while the other shows nothing out of the ordinary. */
function silentExporter({ deviation, fromS }: Evidence, all: readonly Evidence[]): string | null {
  const others = all.filter(
    (other) => other.deviation.metric !== "reporting" && other.toS > fromS && other.decides,
  );
  if (others.length > 0) return null;
  const which = deviation.device === "gpu" ? "the GPU exporter" : "the host's exporter";
  const rest =
    deviation.device === "gpu"
      ? "the host's metrics go on as before"
      : "the GPUs' metrics go on as before";
  return `${which} has fallen silent while ${rest}`;
}
