/**
 * How sure the verdict is: the probability of its first suspect, as often as such verdicts turned out right
 * (calibration.ts), less for what is missing: ranks without any trace may hide another culprit; and no more than the
 * method that decided has earned on real jobs. The judge of slowness knows all of that itself: what it says, or that nobody is
 * slow, is taken as it is.
 */
import { thousandths } from "../base/numbers.ts";
import { logConfidenceOf, saysStoodStill } from "../model/facts.ts";
import type { Rank } from "../model/ids.ts";
import type { Job } from "../model/job.ts";
import { isLogsAlone } from "../model/logs-alone.ts";
import { staleness } from "../model/staleness.ts";
import { calibrated, earned, NOBODY } from "./calibration.ts";
import {
  type Case,
  evidenceOf,
  firstOf,
  isStop,
  judgedConfidence,
  slowDownOf,
  SUREST,
} from "./case.ts";
import type { Hypothesis } from "./hypotheses.ts";
import { isLoud, type Posterior } from "./posterior.ts";
import { machineOf } from "./who.ts";

/** At 0.8 a verdict is acted upon: less where evidence of another kind names somebody else. */
const CONTRADICTED = 0.79;
/** Who, but not what: the half of an answer. */
const WITHOUT_CAUSE = 0.6;
/** What, but not who: something in the network of several machines. */
const NOT_SINGLED_OUT = 0.6;
const MIXED_RUNS = 0.7;
/** What the lost end of a suspect's dump takes: its last operators are known from counters alone. */
const LOST_ENDS = 0.5;
/** What may be a moment of a job that runs. */
const NOT_SHOWN_TO_STAND = 0.8;
const UNSEEN = 0.4;
/** Of a job that seems healthy and whose ranks the judge could not compare: a slow one may hide. */
const NOT_COMPARED = 0.85;

export function confidenceOf(
  given: Case,
  culprits: readonly Hypothesis[],
  posterior: Posterior,
): number {
  const { job, kind, findings } = given;
  const [first] = culprits;
  if (!first) return withoutSuspects(given);
  if (first.isJudged) {
    // Ranks that wait for a slow one look stuck: that they stopped the job is no contradiction.
    const isContradicted = posterior.rivals.some(
      (rival) => isLoud(rival) && !isStop(rival.hypothesis),
    );
    const most = isContradicted ? CONTRADICTED : SUREST;
    return thousandths(Math.min(most, first.weight));
  }
  const logConfidence = firstOf(evidenceOf(given, first), logConfidenceOf);
  // Nothing but logs: then what `faultline logs` says of them is all that there is to be said.
  if (logConfidence !== null && isLogsAlone(job)) return thousandths(logConfidence);
  const blamed = new Set(culprits.flatMap(({ ranks }) => ranks));
  const unseen = untracedRanks(job).filter((rank) => !blamed.has(rank)).length;
  // Monitoring sees the machines of ranks that left nothing else.
  const isSeen = culprits.every((culprit) => culprit.kind === "faulty-machine");
  const share = job.worldSize > 0 && !isSeen ? unseen / job.worldSize : 0;
  const named =
    (first.cause === "unknown" ? WITHOUT_CAUSE : 1) *
    (isOneOfMany(job, first) ? NOT_SINGLED_OUT : 1);
  const ends = kind === "hang" ? 1 - LOST_ENDS * lostEnds(job, blamed) : 1;
  const shown = kind === "hang" && !isShownToStand(given) ? NOT_SHOWN_TO_STAND : 1;
  const whole = (1 - UNSEEN * share) * (job.mixesRuns ? MIXED_RUNS : 1) * named * ends * shown;
  // The finding whose accusation weighs most comes first.
  const deciding = findings.find(({ id }) => id === first.evidence[0])!;
  const stated = Math.min(SUREST, calibrated(posterior.probability) * whole);
  return thousandths(stated * earned(kind, deciding.method));
}

/**
 * Dumps of a job that runs look like those of a hang if they do not tell when they were taken, or if somebody makes the others wait
 * for a while: a checkpoint, an evaluation on rank 0. Rings tell more than that.
 */
function isShownToStand({ job, findings }: Case): boolean {
  return (
    job.dumps.size === 0 ||
    (job.probes ?? []).length > 0 ||
    job.watchdog.length > 0 ||
    job.failures.length > 0 ||
    findings.some(saysStoodStill) ||
    staleness(job) === "stale"
  );
}

/** Whether a NIC is meant and several are named: a ring does not show which of its members holds it up. */
function isOneOfMany(job: Job, { type, ranks }: Hypothesis): boolean {
  return type === "nic" && ranks.length > 1 && machineOf(job, ranks) === null;
}

/** Of the suspects, the share whose last operators are lost with the end of their dumps; a ring beside it has them. */
function lostEnds(job: Job, blamed: ReadonlySet<Rank>): number {
  const probed = new Set(job.probes?.map(({ rank }) => rank));
  const lost = [...blamed].filter(
    (rank) => job.dumps.get(rank)?.dump.isCut === true && !probed.has(rank),
  );
  return lost.length / Math.max(1, blamed.size);
}

/** Ranks of the job of which no file tells. */
export function untracedRanks(job: Job): Rank[] {
  const traced = new Set<Rank | null>([
    ...job.dumps.keys(),
    ...job.logs.keys(),
    ...(job.probes ?? []).map(({ rank }) => rank),
    ...(job.watched?.keys() ?? []),
    ...job.rankOperators.ranks,
  ]);
  return [...job.ranks.keys()].filter((rank) => !traced.has(rank));
}

function withoutSuspects({ job, kind, findings }: Case): number {
  // That it is slow is nearly sure; the half of the answer that names somebody is missing.
  if (kind === "fail-slow") return thousandths(NOBODY.slow * (slowDownOf(findings)?.weight ?? 0));
  if (kind === "healthy") {
    // Who brings a profiler's trace asks whether the code is slow, which one run does not tell.
    if ((job.kernels?.length ?? 0) > 0 && !job.traceBaseline?.length)
      return thousandths(NOBODY.unmeasured * earned(kind, "nobody"));
    const judged = firstOf(findings, judgedConfidence);
    return thousandths(judged ?? NOBODY.healthy * earned(kind, "nobody") * NOT_COMPARED);
  }
  if (kind === "hang") {
    const logConfidence = firstOf(findings.filter(saysStoodStill), logConfidenceOf);
    return logConfidence !== null && isLogsAlone(job) ? thousandths(logConfidence) : NOBODY.hang;
  }
  return NOBODY.undetermined;
}
