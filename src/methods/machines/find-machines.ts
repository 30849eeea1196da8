/**
 * Which machine is going bad? The machines of a job do the same work, so a faulty one is unlike its peers (Minder
 * §3.1), and stays so (§3.2). No learnt model: medians over peers, limits that follow the number of machines, kinds of
 * evidence that confirm each other, and absence as evidence.
 */
import { groupBy } from "../../base/group-by.ts";
import type { Fleet } from "../../model/fleet.ts";
import type { MachineReport, TelemetryFault } from "../../model/machine-report.ts";
import { busierThanSiblings } from "./busier-than-siblings.ts";
import { absenceEvidence, gapJitters, LEAST_MACHINES } from "./absence-evidence.ts";
import { holdsOther, isKnownMember, withoutAnotherJob } from "./another-job.ts";
import { episodeEvidence, slowEvidence } from "./episode-evidence.ts";
import { coverageOf, notComparedWords } from "./coverage.ts";
import type { Evidence } from "./evidence.ts";
import { faultyMachines } from "./faulty.ts";
import { haltCulprit } from "./halt-culprit.ts";
import { cameWith } from "./halted.ts";
import { jittersOf } from "./jitter.ts";
import { judgeInDetail, withDetails, type Judged } from "./judge.ts";
import { isFine, peaksOf } from "./peaks.ts";
import { phasesOf } from "./phases.ts";
import { withoutOutsiders, workersOnly } from "./outsiders.ts";
import { notJoinedWords } from "./names/not-joined.ts";
import { jobPace } from "./job-pace.ts";
import { withoutWarmUp } from "./restarts.ts";
import { isExplained, slowCulprit, slowdownOf } from "./slow-culprit.ts";
import { powerForActivity } from "./power-for-activity.ts";
import { strayProcess } from "./memory-step.ts";
import { withStrayProcess } from "./stray-process.ts";
import { weigh } from "./weigh.ts";
import { tidySeconds } from "./words.ts";
import { withoutUnchanged } from "./unchanged.ts";
import { sortOut } from "./telemetry.ts";
import { viewsOf, type View } from "./views.ts";

export interface FindOptions {
  /** Seconds for which one kind of evidence must last. Minder's four minutes by default. */
  readonly continuityS?: number;
  /** By metric: deviations below these are no evidence, in units of what peers differ by (train-priorities.ts). */
  readonly sigmas?: Readonly<Record<string, number>>;
}

export const CONTINUITY_S = 240;
/** Data shorter than three times the continuity are judged by a third of their length. */
const SHARE_OF_SHORT_DATA = 1 / 3;
const LEAST_CONTINUITY_S = 90;

export function findMachines(given: Fleet, options: FindOptions = {}): MachineReport {
  const warm = given.grids.map(withoutWarmUp);
  const computed = [powerForActivity(warm), busierThanSiblings(warm)];
  const grids = [...warm, ...computed.filter((grid) => grid !== null)];
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
  missing.push(...notJoinedWords(given), ...notComparedWords(fleet));
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
  const { sigmas = {} } = options;
  const evidence = [
    ...quick,
    ...slowEvidence(fleet, phases, continuityS, quick),
    ...absenceEvidence(fleet, continuityS, toS, missing, pace, halts),
  ].filter(({ deviation }) => !(deviation.sigmas < (sigmas[deviation.metric] ?? 0)));
  const others = holdsOther(fleet);
  const judged: Judged[] = [];
  const telemetry: TelemetryFault[] = [];
  const rest: Evidence[] = [];
  for (const [machine, all] of groupBy(evidence, (one) => one.machine)) {
    const sorted = sortOut(fleet.machines[machine]!, all, views);
    const broken = sorted.telemetry.filter(({ evidence: one }) => lasts(one, continuityS));
    telemetry.push(...broken.map(({ fault }) => fault));
    const own = isKnownMember(fleet, machine)
      ? sorted.machine
      : withoutAnotherJob(sorted.machine, views, { fromS, toS }, phases, others[machine] === 1);
    const counted = weigh(own, { evidence, views, pace, continuityS, toS });
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

function lasts({ fromS, toS, kind }: Evidence, continuityS: number): boolean {
  return kind === "absence" || toS - fromS >= continuityS / 4;
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
