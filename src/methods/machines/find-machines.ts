/**
 * Which machine is going bad? The machines of a job do the same work, so a faulty one is unlike its peers (Minder
 * §3.1), and stays so (§3.2). No learnt model: medians over peers, limits that follow the number of machines, kinds of
 * evidence that confirm each other, and absence as evidence.
 */
import { groupBy } from "../../base/group-by.ts";
import type { Fleet } from "../../model/fleet.ts";
import type { Jitter, MachineReport, Phase, TelemetryFault } from "../../model/machine-report.ts";
import { healthCounter } from "../../model/health-counters.ts";
import { absences, gaps, lostDevices, silences, type Silence } from "./absence.ts";
import { isKnownMember, withoutAnotherJob } from "./another-job.ts";
import { coverageOf } from "./coverage.ts";
import { episodesOf, type Episode } from "./episodes.ts";
import {
  detailed,
  evidenceOf,
  kindOf,
  lossEvidence,
  silenceEvidence,
  unlikeShare,
  type Evidence,
} from "./evidence.ts";
import { faultyMachines } from "./faulty.ts";
import { haltCulprit } from "./halt-culprit.ts";
import { cameWith } from "./halted.ts";
import { jittersOf } from "./jitter.ts";
import { judgeInDetail, leastOf, withDetails, type Judged } from "./judge.ts";
import { extraordinary } from "./ordinary.ts";
import { isFine, peaksOf } from "./peaks.ts";
import { isIn, phasesOf } from "./phases.ts";
import { withoutOutsiders, workersOnly } from "./outsiders.ts";
import { notJoinedWords } from "./names/not-joined.ts";
import { jobPace, type JobPace } from "./job-pace.ts";
import { withoutWarmUp } from "./restarts.ts";
import { isExplained, slowCulprit, slowdownOf } from "./slow-culprit.ts";
import { powerForActivity } from "./power-for-activity.ts";
import { strayProcess } from "./memory-step.ts";
import { gpusWait } from "./waiting-gpus.ts";
import { withStrayProcess } from "./stray-process.ts";
import { withoutUnchanged } from "./unchanged.ts";
import { sortOut } from "./telemetry.ts";
import { deviationBetween, viewsOf, type View } from "./views.ts";

export interface FindOptions {
  /** Seconds for which one kind of evidence must last. Minder's four minutes by default. */
  readonly continuityS?: number;
}

export const CONTINUITY_S = 240;
/** Data shorter than three times the continuity are judged by a third of their length. */
const SHARE_OF_SHORT_DATA = 1 / 3;
const LEAST_CONTINUITY_S = 90;
/** Absence is judged after two intervals and this share of the continuity. */
const ABSENCE_SHARE = 1 / 4;
/** When so many fall silent at once, the monitoring did. */
const OUTAGE_SHARE = 0.3;
const LEAST_MACHINES = 3;

export function findMachines(given: Fleet, options: FindOptions = {}): MachineReport {
  const warm = given.grids.map(withoutWarmUp);
  const computed = powerForActivity(warm);
  const grids = computed ? [...warm, computed] : warm;
  const fleet = workersOnly(withoutOutsiders({ ...given, grids }));
  const missing = [...fleet.missing];
  const { fromS, toS } = spanOf(fleet);
  const wantedS = options.continuityS ?? CONTINUITY_S;
  // Jitters last for a minute, whatever the length of the data; by the millisecond everything is shorter.
  const isFineGrained = fleet.grids.every(({ stepS }) => stepS < 0.5);
  const leastS = isFineGrained ? 0 : Math.min(wantedS, LEAST_CONTINUITY_S);
  const continuityS = Math.min(wantedS, Math.max(leastS, (toS - fromS) * SHARE_OF_SHORT_DATA));
  if (continuityS < wantedS) {
    missing.push(
      `only ${tidySeconds(toS - fromS)} of data: a deviation counts from ${tidySeconds(continuityS)} on instead of ${tidySeconds(wantedS)}`,
    );
  }
  if (fleet.machines.length < LEAST_MACHINES) {
    missing.push(
      `${fleet.machines.length} machine${fleet.machines.length === 1 ? "" : "s"}: there are no peers to compare with`,
    );
  }
  missing.push(...notJoinedWords(fleet));
  const activity = phasesOf(fleet);
  const { phases } = activity;
  const pace = jobPace(activity);
  const pauses = phases.filter(({ what }) => what === "pause" || what === "warm-up");
  const halts = phases.filter(({ what }) => what === "halt");
  const ended = halts.filter(({ toS: end }) => end < toS);
  const views = fleet.grids
    .map((grid) => (isFine(grid) ? peaksOf(grid) : grid))
    .flatMap((grid) => viewsOf(fleet, grid, phases));
  missing.push(...crowdWords(views, continuityS));
  const quick = episodeEvidence(views, phases, continuityS / 4);
  const evidence = [
    ...quick,
    ...slowEvidence(fleet, phases, continuityS, quick),
    ...absenceEvidence(fleet, continuityS, toS, missing, pace, halts),
  ];
  const judged: Judged[] = [];
  const telemetry: TelemetryFault[] = [];
  const rest: Evidence[] = [];
  for (const [machine, all] of groupBy(evidence, (one) => one.machine)) {
    const sorted = sortOut(fleet.machines[machine]!, all, views);
    const broken = sorted.telemetry.filter(({ evidence: one }) => lasts(one, continuityS));
    telemetry.push(...broken.map(({ fault }) => fault));
    const own = isKnownMember(fleet, machine)
      ? sorted.machine
      : withoutAnotherJob(sorted.machine, views, { fromS, toS }, phases);
    const slowing = withoutMerelyBusy(own, pace, (one) => gpusWait(one, views));
    const certain = withoutUnhindered(withoutLoneMoments(slowing, pace), pace);
    const counted = certain.map((one) => {
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
    const found = judgeInDetail(counted, continuityS, ended, pauses);
    // Whoever else explains why the job is held up leaves a halt that is one more pause.
    const unheld = counted.map((one) => ({ ...one, isHeldUp: false }));
    const alone = (): Judged | null =>
      judgeInDetail(unheld, continuityS, [], [...pauses, ...halts]);
    if (found) judged.push({ ...found, standsAlone: alone() !== null });
    const isUsed = (one: Evidence): boolean =>
      found !== null &&
      found.evidence.some((used) => used === one || (one.episode && used.episode === one.episode));
    rest.push(...sorted.machine.filter((one) => !isUsed(one)));
  }
  const isBroken = (m: number, metric: string): boolean =>
    telemetry.some((one) => one.machine === fleet.machines[m] && one.metric === metric);
  for (const halt of halts) {
    // Who was unlike long before the halt did not bring it about.
    if (judged.some(({ evidence: own }) => own.some((one) => cameWith(one, halt)))) continue;
    const culprit = haltCulprit(halt, ended.includes(halt), views, isBroken);
    if (culprit) judged.push(withDetails(culprit));
  }
  const slowdown = slowdownOf(activity, continuityS);
  if (slowdown && !isExplained(slowdown, judged)) {
    const culprit = slowCulprit(slowdown, views, isBroken);
    if (culprit) judged.push(culprit);
  }
  const stray = strayProcess(views);
  if (stray && !judged.some(({ machine }) => machine === stray.machine)) judged.push(stray);
  const changed = withoutUnchanged(fleet, judged, missing).map((one) =>
    withStrayProcess(one, views),
  );
  const { faulty, followers } = faultyMachines(fleet, changed, missing, phases);
  const jitters = jittersOf(fleet, rest, MOST_JITTERS);
  const returned = gapJitters(fleet, continuityS, missing);
  return {
    method: "peers",
    machines: given.machines.length,
    fromS,
    toS,
    metrics: coverageOf(fleet),
    faulty,
    followers,
    telemetry: telemetry.sort((a, b) => a.sinceS - b.sinceS),
    jitter: [...jitters.shown, ...returned.slice(0, MOST_JITTERS)].sort(
      (a, b) => a.fromS - b.fromS,
    ),
    jittersLeftOut: jitters.leftOut + Math.max(0, returned.length - MOST_JITTERS),
    phases,
    ...(fleet.names && fleet.names.joined.length > 0 ? { joined: fleet.names.joined } : {}),
    missing,
  };
}

const MOST_JITTERS = 200;

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
  const perHour = healthCounter(one.deviation.metric)?.alarmPerHour;
  if (perHour === undefined) return false;
  const { fromS, deviation } = detailed(one);
  return (3600 * deviation.value) / (toS - fromS) >= perHour;
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
function withoutUnhindered(evidence: readonly Evidence[], pace: JobPace): Evidence[] {
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
  gpusWait: (one: Evidence) => boolean,
): Evidence[] {
  if (!pace.isKnown) return [...evidence];
  return evidence.flatMap((one) => {
    const { isBusier, fromS, toS } = one;
    if (!isBusier || (pace.heldUp(fromS, toS) === true && pace.slowedWith(fromS, toS) !== false))
      return [one];
    return gpusWait(one) ? [{ ...one, isHeldUp: true }] : [];
  });
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

/**
 * In longer blocks noise averages out, and what a noisy metric shows all the time becomes visible. Only for what lasts,
 * and was not seen already.
 */
function slowEvidence(
  fleet: Fleet,
  phases: readonly Phase[],
  continuityS: number,
  quick: readonly Evidence[],
): Evidence[] {
  const seenS = new Map<string, number>();
  for (const one of quick) {
    const key = keyOf(one);
    seenS.set(key, Math.max(seenS.get(key) ?? 0, one.toS - one.fromS));
  }
  const views = fleet.grids
    .filter(({ ticks, stepS }) => ticks * stepS >= LEAST_SLOW_BLOCKS * SLOW_BLOCK_S)
    .flatMap((grid) =>
      grid.stepS < SELDOM_S
        ? viewsOf(fleet, grid, phases, SLOW_BLOCK_S)
        : viewsOf(fleet, grid, phases, grid.stepS, windowOf(grid.stepS)),
    );
  return episodeEvidence(views, phases, continuityS / 4).filter((one) => {
    const lastsS = one.toS - one.fromS;
    if (lastsS <= LONGER * (seenS.get(keyOf(one)) ?? 0)) return false;
    const { blockS, window } = one.episode!.view.peers.blocks;
    // Half a block less is what its edges may add to it.
    if (window === 1) return lastsS - blockS / 2 >= continuityS;
    // A single sample makes every window that holds it unlike: only its own samples tell how long a machine was.
    const needS = Math.max(LEAST_SHARE_OF_IT * continuityS, leastOf(one));
    return unlikeShare(one) * lastsS >= needS;
  });
}

function keyOf({ machine, deviation: { metric, direction } }: Evidence): string {
  return `${machine} ${metric} ${direction}`;
}

/** Two minutes, and four samples. */
function windowOf(stepS: number): number {
  return Math.max(4, Math.round(120 / stepS));
}

const SLOW_BLOCK_S = 60;
/** From here on a block of a minute would have too few samples. */
const SELDOM_S = 10;
const LEAST_SLOW_BLOCKS = 10;
/** What two kinds that agree must last (judge.ts). */
const LEAST_SHARE_OF_IT = 5 / 8;
/** Than what the short blocks showed of it. */
const LONGER = 1.3;

/** Where a quarter of the machines and more are far from the rest nobody is named; that is said. */
function crowdWords(views: readonly View[], continuityS: number): string[] {
  const crowded = views.filter(
    ({ peers, metric }) =>
      metric.decides && peers.crowdedBlocks * peers.blocks.blockS >= continuityS,
  );
  if (crowded.length === 0) return [];
  const titles = [...new Set(crowded.map(({ metric }) => metric.title))].slice(0, 4).join(", ");
  return [
    `a quarter of the machines and more are far from the rest in ${titles}: kinds of machines, stages (give --job FILE), or a fault of many at once; in that nobody is named`,
  ];
}

/**
 * Metrics of which nothing is known are judged together: machines that stray one after the other, each in another of them,
 * do not do the same work, and tell no more of each other than if they strayed in the same one.
 */
function episodeEvidence(
  views: readonly View[],
  phases: readonly Phase[],
  leastS: number,
): Evidence[] {
  const groups = groupBy(views, (view) => (view.metric.group === "other" ? "other" : view));
  return [...groups.values()].flatMap((group) => {
    const episodes = group.flatMap((view) => viewEpisodes(view, phases));
    return extraordinary(episodes, group[0]!.peers.role.length, leastS).map(evidenceOf);
  });
}

/** While the job pauses for a checkpoint, whoever writes it is busier than others; that is no fault. */
function viewEpisodes(view: View, phases: readonly Phase[]): Episode[] {
  const kind = kindOf(view.metric.id, view.metric.group);
  const isQuiet = kind === "state";
  const isBusy = view.side === "high" && ["cpu", "memory", "disk", "tcp"].includes(kind);
  const ignored = (atS: number): boolean =>
    !isQuiet && (isIn(phases, atS, "idle", "warm-up") || (isBusy && isIn(phases, atS, "pause")));
  return episodesOf(view, ignored);
}

function absenceEvidence(
  fleet: Fleet,
  continuityS: number,
  toS: number,
  missing: string[],
  pace: JobPace,
  halts: readonly Phase[],
): Evidence[] {
  if (fleet.isCut) {
    missing.push("a file ends in the middle: who stopped reporting cannot be told from it");
    return [];
  }
  const needS = ABSENCE_SHARE * continuityS;
  // No synchronous job goes on without a machine: its samples are late.
  const isLate = ({ fromS, toS: untilS }: Silence): boolean =>
    untilS - fromS < continuityS && pace.goesOn(fromS, untilS) === true;
  const silent = silences(fleet).filter(
    (one) => one.toS - one.fromS >= Math.max(2 * one.stepS, needS) && !isLate(one),
  );
  const lost = lostDevices(fleet, needS).filter(
    ({ machine }) => !silent.some((one) => one.machine === machine && one.exporter !== "host"),
  );
  const returned = gaps(fleet, needS);
  const away = absences(fleet, returned, continuityS).filter(
    ({ fromS, toS: backS }) => !isOutage(returned, fromS, backS, fleet.machines.length),
  );
  const whole = silent.filter(({ exporter }) => exporter === null);
  if (
    fleet.machines.length >= LEAST_MACHINES &&
    whole.length > Math.max(1, OUTAGE_SHARE * fleet.machines.length)
  ) {
    missing.push(
      `${whole.length} of ${fleet.machines.length} machines stopped reporting: the monitoring failed, or the job ended; nobody is accused of it`,
    );
    return lost.map((one) => lossEvidence(one, toS));
  }
  const ofGpus = silent.filter(({ exporter }) => exporter === "gpu");
  // A driver that lost a GPU may answer nobody.
  const isLost = (one: Silence): boolean =>
    ofGpus.length === 1 && one === ofGpus[0] && halts.some((halt) => cameWith(one, halt));
  return [...silent, ...away]
    .map((one) => ({ ...silenceEvidence(one), ...(isLost(one) ? { decides: true } : {}) }))
    .concat(lost.map((one) => lossEvidence(one, toS)));
}

/** Whether so many were silent at that time that the monitoring was. */
function isOutage(
  returned: readonly Silence[],
  fromS: number,
  toS: number,
  machines: number,
): boolean {
  const silent = new Set(
    returned.filter((one) => one.fromS < toS && one.toS > fromS).map(({ machine }) => machine),
  );
  return machines >= LEAST_MACHINES && silent.size > Math.max(1, OUTAGE_SHARE * machines);
}

function lasts({ fromS, toS, kind }: Evidence, continuityS: number): boolean {
  return kind === "absence" || toS - fromS >= continuityS / 4;
}

/** Gaps that did not last; of an outage of the monitoring one sentence instead of one for each machine. */
function gapJitters(fleet: Fleet, continuityS: number, missing: string[]): Jitter[] {
  const returned = gaps(fleet, continuityS / 4);
  const outages = returned.filter(({ fromS, toS }) =>
    isOutage(returned, fromS, toS, fleet.machines.length),
  );
  if (outages.length > 0) {
    const fromS = outages.reduce((first, one) => Math.min(first, one.fromS), Infinity);
    const toS = outages.reduce((last, one) => Math.max(last, one.toS), -Infinity);
    missing.push(
      `between ${clock(fromS)} and ${clock(toS)} most machines had no samples at times: the monitoring was away, not the machines`,
    );
  }
  return returned
    .filter((one) => !outages.includes(one) && one.toS - one.fromS < continuityS)
    .map(({ machine, fromS, toS, exporter }) => ({
      machine: fleet.machines[machine]!,
      metric: "reporting",
      fromS,
      toS,
      why: `no samples of its ${exporter === "gpu" ? "GPUs" : "host"} for ${tidySeconds(toS - fromS)}, then again`,
    }));
}

function clock(seconds: number): string {
  return new Date(Math.round(1000 * seconds)).toISOString().slice(11, 19);
}

function spanOf({ grids }: Fleet): { fromS: number; toS: number } {
  let fromS = Infinity;
  let toS = -Infinity;
  for (const { startS, stepS, ticks } of grids) {
    fromS = Math.min(fromS, startS);
    toS = Math.max(toS, startS + ticks * stepS);
  }
  return grids.length === 0 ? { fromS: 0, toS: 0 } : { fromS, toS };
}

function tidySeconds(seconds: number): string {
  if (seconds >= 90) return `${Math.round(seconds / 6) / 10} min`;
  return seconds >= 10 ? `${Math.round(seconds)} s` : `${Math.round(seconds * 10) / 10} s`;
}
