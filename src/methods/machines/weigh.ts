/**
 * What a machine's evidence is worth in the light of what else is known: whether the job was held up, whether others show the
 * same, whether it can be an accident of sampling.
 */
import { exporterOf } from "./absence.ts";
import { healthCounter } from "../../model/health-counters.ts";
import { detailed, unlikeShare, type Evidence } from "./evidence.ts";
import type { JobPace } from "./job-pace.ts";
import { standsStill } from "./telemetry.ts";
import { deviationBetween, type View } from "./views.ts";
import { gpusWait } from "./waiting-gpus.ts";

export interface Circumstances {
  /** Of all machines. */
  readonly evidence: readonly Evidence[];
  readonly views: readonly View[];
  readonly pace: JobPace;
  readonly continuityS: number;
  /** The end of the data. */
  readonly toS: number;
}

/** `own` is of one machine: what of it counts, whether the job was held up by it, and what of it accuses. */
export function weigh(own: readonly Evidence[], given: Circumstances): Evidence[] {
  const { evidence, views, pace, continuityS, toS } = given;
  const slowing = withoutMerelyBusy(own, pace, views);
  return withoutUnhindered(withoutLoneMoments(slowing, pace), pace).map((one) => {
    // What was counted stays, and the job may be well again.
    const untilS = isCount(one) ? Math.min(one.toS, one.fromS + continuityS) : one.toS;
    const isHeldUp =
      one.isHeldUp === true ||
      (pace.heldUp(one.fromS, untilS) === true && !isRoutine(one, evidence));
    const isAlarming = isHeldUp || isAboveAlarm(one, toS);
    const decides =
      one.decides || (isAlarming && isLoneCount(one, evidence)) || isThrottling(one, views);
    return { ...one, isHeldUp, decides };
  });
}

/** Whoever is busier together with others, or again and again, does what it always does: writes checkpoints, loads data. */
function isRoutine(one: Evidence, all: readonly Evidence[]): boolean {
  return (
    one.isBusier &&
    all.some(
      (other) =>
        other.isBusier &&
        other.kind === one.kind &&
        other.toS - other.fromS >= (one.toS - one.fromS) / 2 &&
        (other.machine === one.machine
          ? other.fromS >= one.toS || other.toS <= one.fromS
          : Math.abs(other.fromS - one.fromS) <= TOGETHER_S),
    )
  );
}

const TOGETHER_S = 60;

function isCount({ deviation: { metric } }: Evidence): boolean {
  return healthCounter(metric)?.how === "gained";
}

const HOT_BEFORE_S = 600;
/** Of what matters in clocks, which healthy GPUs differ by. */
const LEAST_CLOCK_FALL = 0.6;

/** A warm place harms nobody; a machine that became hot while its clock fell against the others' is throttled. */
function isThrottling(
  { deviation, machine, fromS, toS }: Evidence,
  views: readonly View[],
): boolean {
  if (deviation.metric !== "gpu-temperature" || deviation.direction !== "high") return false;
  return views.some((view) => {
    if (view.metric.id !== "gpu-clocks" || view.side !== "low") return false;
    const edgeS = view.grid.stepS;
    const before = deviationBetween(view, machine, fromS - HOT_BEFORE_S, fromS - edgeS);
    return before - deviationBetween(view, machine, fromS + edgeS, toS) >= LEAST_CLOCK_FALL;
  });
}

/** More errors an hour than the makers' own checks allow by far: no sound machine has so many, whatever its job does. */
function isAboveAlarm(one: Evidence, toS: number): boolean {
  const counter = healthCounter(one.deviation.metric);
  if (counter?.alarmPerHour === undefined) return false;
  const { fromS, deviation } = detailed(one);
  const overS = counter.how === "rate" ? 1 : toS - fromS;
  return (3600 * deviation.value) / overS >= counter.alarmPerHour;
}

/** Errors are counted on sound machines too; those that one machine alone counts while the job slows down are why it does. */
function isLoneCount(one: Evidence, all: readonly Evidence[]): boolean {
  const { metric, direction } = one.deviation;
  return (
    one.episode?.view.metric.decidesAlone === true &&
    all.every(
      (other) =>
        other.machine === one.machine ||
        other.deviation.metric !== metric ||
        other.deviation.direction !== direction,
    )
  );
}

/**
 * A machine whose GPUs did a third less than the others' would hold all of them up. Where these go on as fast as before, and
 * nothing but profiling fields says so, the fields are wrong: a watch that was set up anew, a sampling of its own.
 */
function withoutUnhindered(given: readonly Evidence[], pace: JobPace): Evidence[] {
  const evidence = withoutOldValues(given, pace);
  const isProfiled = ({ kind, deviation, episode }: Evidence): boolean =>
    kind === "gpu-work" &&
    deviation.direction === "low" &&
    episode!.view.grid.source.startsWith("DCGM_FI_PROF_");
  const ofGpus = (one: Evidence): boolean =>
    GPU_KINDS.includes(one.kind) && one.decides && !isProfiled(one);
  return evidence.filter(
    (one) =>
      !isProfiled(one) ||
      evidence.some((other) => ofGpus(other) && other.fromS < one.toS && other.toS > one.fromS) ||
      pace.unhindered(one.fromS, one.toS) !== true,
  );
}

/**
 * Tenants, uploads and logs keep a machine busier than its peers for as long as they like. Where the job is no slower than
 * before, or the machine was so before anything could be compared, they harm nobody, unless its own GPUs wait.
 */
function withoutMerelyBusy(
  evidence: readonly Evidence[],
  pace: JobPace,
  views: readonly View[],
): Evidence[] {
  if (!pace.isKnown) return [...evidence];
  return evidence.flatMap((one) => {
    const { isBusier, fromS, toS } = one;
    if (!isBusier || (pace.heldUp(fromS, toS) === true && pace.slowedWith(fromS, toS) !== false))
      return [one];
    return gpusWait(one, views) ? [{ ...one, isHeldUp: true }] : [];
  });
}

/**
 * A measured value that stands still is an old one where the job goes on as fast as before, though the GPU never showed it
 * before (its exporter stopped in a pause). What else of the GPUs seems low meanwhile (clocks, links, memory) is as old.
 */
function withoutOldValues(evidence: readonly Evidence[], pace: JobPace): Evidence[] {
  const old = evidence.filter(
    (one) =>
      one.kind === "gpu-work" && standsStill(one) && pace.unhindered(one.fromS, one.toS) === true,
  );
  const isAsOld = ({ fromS, toS, deviation, episode, kind }: Evidence): boolean =>
    deviation.direction === "low" &&
    kind !== "state" &&
    episode !== null &&
    exporterOf(episode.view.grid) === "gpu" &&
    old.some((one) => fromS < one.toS && toS > one.fromS);
  return evidence.filter((one) => !isAsOld(one));
}

const GPU_KINDS = ["gpu-work", "gpu-memory", "thermal", "state", "absence"];

/** Read at a moment, not over the time since the last sample. */
const MOMENTARY = [
  "gpu-power-draw",
  "gpu-power-for-activity",
  "pcie-bandwidth",
  "pcie-usage",
  "nvlink-bandwidth",
];
/** Whether any kernel runs: GPUs that wait in a collective are at 100 %, so that one sampled between two of them is far off. */
const BUSY = ["gpu-duty-cycle", "gpu-graphics-engine-activity"];

/**
 * Sampled as seldom as iterations come, such a metric may meet the same part of them for minutes, and another part on
 * the next machine. A machine that does less, or whose link is slow, shows it elsewhere for a good part of the time; one
 * whose GPUs have gaps holds the job up.
 */
function withoutLoneMoments(evidence: readonly Evidence[], pace: JobPace): Evidence[] {
  const isMomentary = ({ deviation: { metric } }: Evidence): boolean =>
    MOMENTARY.includes(metric) || BUSY.includes(metric);
  const overlapS = (one: Evidence, other: Evidence): number =>
    Math.min(one.toS, other.toS) - Math.max(one.fromS, other.fromS);
  return evidence.filter((one) => {
    if (!isMomentary(one)) return true;
    if (one.episode!.view.grid.stepS < COARSE_S) return true;
    // An energy counter adds up all that was drawn.
    if (one.episode!.view.grid.source.includes("ENERGY")) return true;
    const isHeldUp = pace.heldUp(one.fromS, one.toS) === true;
    if (BUSY.includes(one.deviation.metric) && isHeldUp) return true;
    // Whoever works on, in every sample, while the others wait.
    const { metric, direction } = one.deviation;
    const isAlone =
      metric === "gpu-power-for-activity" || (metric === "gpu-power-draw" && direction === "high");
    if (isAlone && isHeldUp && unlikeShare(one) >= ALL_ALONG) return true;
    const agrees = (other: Evidence): boolean =>
      other.decides && overlapS(one, other) >= BORNE_OUT * (one.toS - one.fromS);
    return evidence.some(
      (other) => agrees(other) && (!isMomentary(other) || agreeAllAlong(one, other)),
    );
  });
}

/** Power and the duty cycle, in every sample: no part of an iteration is met for so long that both are low all along. */
function agreeAllAlong(one: Evidence, other: Evidence): boolean {
  const isOf = (first: Evidence, second: Evidence): boolean =>
    BUSY.includes(first.deviation.metric) && second.deviation.metric === "gpu-power-draw";
  return (
    one.deviation.direction === other.deviation.direction &&
    (isOf(one, other) || isOf(other, one)) &&
    unlikeShare(one) >= ALL_ALONG &&
    unlikeShare(other) >= ALL_ALONG
  );
}

const ALL_ALONG = 0.95;

const BORNE_OUT = 0.3;
const COARSE_S = 5;
