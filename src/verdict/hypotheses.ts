/**
 * From findings to hypotheses (who, what). Every finding is a likelihood: how much more often it is said of the guilty
 * than of others (reliability.ts). Findings of different kinds of files multiply, findings of one kind are fooled
 * together and only the strongest counts; what was likely beforehand comes first (prior.ts). An accusation against ranks
 * that the wait graph shows waiting is worth little, whatever accuses them: a stack outside communication, or an error
 * printed in the aftermath. Whom the judge of slowness names has its posterior as weight, whoever else names them.
 */
import { groupBy } from "../base/group-by.ts";
import { factOf, factsOf } from "../model/facts.ts";
import type { Cause } from "../model/cause.ts";
import type { Accusation, Finding, SuspectType } from "../model/finding.ts";
import type { Rank } from "../model/ids.ts";
import type { Job } from "../model/job.ts";
import { isSlow, judgedConfidence, slowDownOf, SUREST } from "./case.ts";
import { joinMachines } from "./machine-evidence.ts";
import { decidedBy, isOfSide, possibleCauses, type PossibleCause } from "./possible-causes.ts";
import { priorOf, type Prior } from "./prior.ts";
import { EVIDENCE_OF, logOdds, probabilityOf, trustIn, type Evidence } from "./reliability.ts";
import { machineOf } from "./who.ts";

export interface Hypothesis {
  readonly kind: Accusation["kind"];
  readonly type: SuspectType;
  readonly ranks: readonly Rank[];
  readonly link: readonly [string, string] | null;
  readonly name: string | null;
  /** One, or those among which nothing decides, the likelier first. */
  readonly causes: readonly PossibleCause[];
  /** The first of them. */
  readonly cause: Cause;
  /** Whether its weight is the posterior of the judge of slowness. */
  readonly isJudged: boolean;
  /** log-odds of its being true, as if nobody else were accused. */
  readonly odds: number;
  /** The same, had no other method cleared its ranks; and which did. */
  readonly undamped: number;
  readonly dampedBy: readonly string[];
  /** `odds` as a probability; of whom the judge names, its posterior. */
  readonly weight: number;
  readonly why: string;
  readonly evidence: readonly string[];
  /** Who says so. */
  readonly methods: readonly string[];
  /** What each finding did to the odds, those that counted, the strongest first. */
  readonly support: readonly Support[];
  readonly prior: Prior | null;
}

export interface Support {
  readonly finding: string;
  /** What it multiplied the odds by, as a logarithm; above 0. */
  readonly logTimes: number;
}

interface Vote {
  readonly finding: Finding;
  readonly accusation: Accusation;
  /** Without what others clear, and with it. */
  readonly stated: number;
  readonly weight: number;
  readonly isJudged: boolean;
  /** Methods that clear the ranks. */
  readonly dampedBy: readonly string[];
}

/** What an accusation is still worth when the ranks it names are known to wait. */
const CLEARED_FACTOR = 0.1;

/** What it is worth when the dumps name somebody else and the rank it names was alive to write one. */
const NOT_IMPLICATED_FACTOR = 0.3;

/** A machine unlike its peers in a job that runs as evenly as before: odd, but not what ails the job. */
const HARMLESS_FACTOR = 0.3;

/** A rise that is no slow-down yet, but is there. */
const ROSE = 1.05;

/** The chance of any suspect that a method names, before its weight counts: by judgement. */
const NAMED_BEFORE = 0.12;

export function hypotheses(job: Job, findings: readonly Finding[]): Hypothesis[] {
  const cleared = clearedBy(findings);
  const implicated = implicatedByDumps(findings);
  const isEven = runsEvenly(job, findings);
  const votes = findings.flatMap((finding) => finding.accuses.map((one) => voteOf(finding, one)));
  const ranked = [...groupBy(votes, ({ accusation }) => keyOf(accusation)).values()]
    .map((own) => hypothesis(job, own))
    .sort((a, b) => b.odds - a.odds || (a.ranks[0] ?? 0) - (b.ranks[0] ?? 0));
  return joinMachines(ranked);

  function voteOf(finding: Finding, accusation: Accusation): Vote {
    const { ranks, kind } = accusation;
    const judged = judgedConfidence(finding);
    // Who else is slow has been weighed by the judge: only that the job stopped clears whom it names.
    const clearing = cleared.filter(
      ({ method, isOfSlow }) =>
        method !== finding.method && (!isOfSlow || (isSlow(accusation) && judged === null)),
    );
    const waits =
      ranks.length > 0 &&
      !isStopped(finding) &&
      ranks.every((rank) => clearing.some(({ clears }) => clears.has(rank)));
    const isSpared =
      implicated.size > 0 &&
      kind === "hang" &&
      ranks.every((rank) => !implicated.has(rank) && job.dumps.has(rank));
    // One of them at most: a faulty machine is no hang.
    const harmless = isEven && kind === "faulty-machine" ? HARMLESS_FACTOR : 1;
    const spared = isSpared ? NOT_IMPLICATED_FACTOR : 1;
    const stated = judged ?? accusation.weight;
    return {
      finding,
      accusation,
      stated,
      weight: stated * (waits ? CLEARED_FACTOR : harmless * spared),
      isJudged: judged !== null,
      dampedBy: waits ? [...new Set(clearing.map(({ method }) => method))] : [],
    };
  }
}

/** Accusations of the same ranks are one; a machine and its only rank are not, and are joined later. */
function keyOf({ kind, name, ranks, cause, why }: Accusation): string {
  const of = kind === "faulty-machine" ? `machine ${name}/` : "";
  return of + (ranks.length > 0 ? ranks.join() : `${cause}/${why}`);
}

/** The operating system itself says that the process does not run: it is not one of those that wait. */
function isStopped(finding: Finding): boolean {
  return factOf(finding, "process-state")?.state === "T";
}

function hypothesis(job: Job, votes: readonly Vote[]): Hypothesis {
  const strongest = [...votes].sort(
    (a, b) => b.weight - a.weight || b.accusation.weight - a.accusation.weight,
  );
  const loudest =
    strongest.find(({ accusation }) => accusation.kind === "crash" && accusation.weight >= 0.5) ??
    strongest[0]!;
  const judge = isSlow(loudest.accusation) ? strongest.find((vote) => vote.isJudged) : undefined;
  const lead = judge ?? loudest;
  const { kind, type, ranks, link, name = null } = lead.accusation;
  const own = judge ? strongest.filter(({ finding }) => finding === judge.finding) : [lead];
  const causes = strongest
    .filter((vote) => !own.includes(vote))
    .reduce(
      (open, { accusation }) => decidedBy(open, kind, accusation.cause),
      possibleCauses(own.map(({ accusation }) => accusation)),
    );
  const machine = machineOf(job, ranks) ?? name;
  const prior = judge ? null : priorOf(kind, type, lead.accusation.cause, machine, job.incidents);
  const support = supportOf(votes, ({ weight }) => weight);
  const odds = oddsOf(support, prior);
  const undamped = supportOf(votes, ({ stated }) => stated);
  return {
    kind,
    type,
    ranks,
    link,
    name,
    causes,
    cause: causes[0]!.cause,
    isJudged: judge !== undefined,
    odds,
    undamped: oddsOf(undamped, prior),
    dampedBy: [...new Set(votes.flatMap(({ dampedBy }) => dampedBy))],
    weight: Math.min(
      SUREST,
      judge ? judge.weight * causeShare(judge, own, votes) : probabilityOf(odds),
    ),
    why: [lead.accusation.why, ...codePlace(lead.finding, strongest)].join("; "),
    evidence: [...new Set([lead, ...strongest].map(({ finding }) => finding.id))],
    methods: [...new Set(votes.map(({ finding }) => finding.method))],
    support,
    prior,
  };
}

/** The strongest of each kind of files. */
function supportOf(votes: readonly Vote[], weightOf: (vote: Vote) => number): Support[] {
  const best = new Map<Evidence, Support>();
  for (const vote of votes) {
    const { id, method } = vote.finding;
    const evidence = EVIDENCE_OF[method];
    const logTimes = trustIn(method, weightOf(vote)) - logOdds(NAMED_BEFORE);
    if (logTimes > (best.get(evidence)?.logTimes ?? 0))
      best.set(evidence, { finding: id, logTimes });
  }
  return [...best.values()].sort((a, b) => b.logTimes - a.logTimes);
}

function oddsOf(support: readonly Support[], prior: Prior | null): number {
  const start = logOdds(NAMED_BEFORE) + (prior?.logTimes ?? 0);
  return support.reduce((sum, { logTimes }) => sum + logTimes, start);
}

/**
 * Iterations were looked at, and took as long at the end as before; or all ranks' operators were, and none is pending: who had died
 * would be waited for.
 */
function runsEvenly(job: Job, findings: readonly Finding[]): boolean {
  const even = factsOf(findings, "even-iterations");
  const isDone =
    job.dumps.size >= job.worldSize &&
    factsOf(findings, "nothing-pending").some(({ pending }) => pending === 0);
  return (
    (isDone || even.length > 0) &&
    !even.some(({ rise }) => rise >= ROSE) &&
    !findings.some(
      (finding) =>
        slowDownOf([finding]) !== null ||
        finding.method === "hang/watchdog" ||
        finding.accuses.some(({ kind }) => ["hang", "crash", "fail-slow"].includes(kind)),
    )
  );
}

/**
 * How sure the judge is of the one cause that it names, given whom: less than of the ranks. Where it leaves the cause open, the
 * confidence is that of the ranks; where something else says the same of them, that decides.
 */
function causeShare(judge: Vote, own: readonly Vote[], votes: readonly Vote[]): number {
  const { cause, weight } = judge.accusation;
  const isSeconded = votes.some(
    (vote) => !own.includes(vote) && isOfSide(cause, vote.accusation.cause),
  );
  if (own.length > 1 || isSeconded || judge.finding.weight === 0) return 1;
  return Math.min(1, weight / judge.finding.weight);
}

/** The line that a stack shows belongs in the sentence, whichever finding leads it. */
function codePlace(lead: Finding, votes: readonly Vote[]): string[] {
  const stack = votes.find(({ finding }) => finding.method === "hang/stacks");
  return stack && stack.finding !== lead && stack.weight >= 0.2 ? [stack.accusation.why] : [];
}

/** Ranks that the wait graph accuses with certainty. */
function implicatedByDumps(findings: readonly Finding[]): Set<Rank> {
  const sure = findings.filter((one) => one.method === "hang/wait-graph" && one.weight >= 0.8);
  return new Set(sure.flatMap(({ accuses }) => accuses.flatMap(({ ranks }) => ranks)));
}

interface Clearing {
  readonly method: string;
  readonly clears: ReadonlySet<Rank>;
  /** A rank that waited while the job was slow may still be the one that stopped it. */
  readonly isOfSlow: boolean;
}

function clearedBy(findings: readonly Finding[]): Clearing[] {
  return findings
    .filter(({ weight, clears }) => weight >= 0.5 && clears.length > 0)
    .map(({ method, clears, accuses }) => ({
      method,
      clears: new Set(clears),
      isOfSlow: accuses.length > 0 && accuses.every(isSlow),
    }));
}
