/** One verdict from all findings: kind, suspects, victims, confidence, and what would help. */
import { groupBy } from "../base/group-by.ts";
import { thousandths } from "../base/numbers.ts";
import { rankWords } from "../base/text.ts";
import { factOf, factsOf, saysStoodStill } from "../model/facts.ts";
import type { Finding, VerdictKind } from "../model/finding.ts";
import type { Job } from "../model/job.ts";
import { wasSurvived } from "../model/process-ended.ts";
import type { Action, Suspect, Verdict } from "../model/verdict.ts";
import { actionsOf } from "./actions.ts";
import { adviceFor } from "./advice.ts";
import { answerOf } from "./answer.ts";
import { type Case, isSlow, slowDownOf } from "./case.ts";
import { summarise } from "./summary.ts";
import { hypotheses, type Hypothesis } from "./hypotheses.ts";
import { confidenceOf, untracedRanks } from "./confidence.ts";
import { posteriorOf } from "./posterior.ts";
import { reasoningOf } from "./reasoning.ts";
import { victimsOf } from "./victims.ts";
import { wouldHelp } from "./would-help.ts";
import { whenDidItHappen } from "./when.ts";
import { machineOf, machinesBetween } from "./who.ts";

/** A second suspect counts as a further culprit when it is nearly as well supported as the first. */
const CO_CULPRIT_SHARE = 0.6;
const MIN_WEIGHT = 0.3;
const MAX_SUSPECTS = 64;
/** Of a suspect whose cause is one of several: at 0.8 it would be acted upon. */
const MOST_OF_OPEN = 0.79;

export function fuse(
  job: Job,
  findings: readonly Finding[],
  didNotRun: readonly string[],
): Verdict {
  const all = withoutGuesses(hypotheses(job, findings), findings);
  const ranked = all.filter(({ weight }) => weight >= MIN_WEIGHT);
  const best = ranked[0];
  // A crash makes the others hang, and a job that was slow before it stopped has stopped all the same. Who ended it from
  // outside ended a hang, unless it is known to have run until then.
  const ranUntilEnd = factsOf(findings, "ended-from-outside").some((end) => end.ranUntilEnd);
  const isEnd = ({ cause }: Hypothesis): boolean => cause === "scheduler" && !ranUntilEnd;
  const stopped = (wanted: VerdictKind): Hypothesis | undefined =>
    ranked.find(
      (one) =>
        one.kind === wanted && !isEnd(one) && one.weight >= CO_CULPRIT_SHARE * (best?.weight ?? 1),
    );
  const hung = best && (isSlow(best) || isEnd(best)) ? stopped("hang") : undefined;
  const lead = narrowest(stopped("crash") ?? hung ?? best, ranked);
  const sharing = lead ? ranked.filter((other) => sharesBlame(other, lead)) : [];
  const blameworthy = sharing.filter((one) => !sharing.some((other) => isPartOf(other, one)));
  const culprits = wholeLinks(job, wholeMachines(job, blameworthy))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, MAX_SUSPECTS);
  const without = kindWithoutSuspect(job, findings);
  // What a faulty machine did to the job, something else tells.
  const isOfMachine = lead?.kind === "faulty-machine" && ["hang", "fail-slow"].includes(without);
  const kind = lead && !isOfMachine ? lead.kind : without;
  const given: Case = { job, kind, findings };
  const total = culprits.reduce((sum, { weight }) => sum + weight, 0);
  const suspects = culprits
    .flatMap((culprit) => suspectsOf(job, culprit, culprit.weight / Math.max(1, total)))
    .sort((a, b) => b.score - a.score);
  const victims = victimsOf(given, suspects, all);
  const posterior = posteriorOf(lead ?? null, all, blameworthy);
  const confidence = confidenceOf(given, culprits, posterior);
  const when = whenDidItHappen(given, suspects);
  const answer = answerOf(given, suspects, victims, when.iteration);
  return {
    schema: "faultline.verdict/1",
    ...(job.name === "" ? {} : { job: job.name }),
    kind,
    summary: summarise(given, answer, victims, confidence),
    ...(answer === null ? {} : { answer }),
    confidence,
    when,
    suspects,
    victims,
    owner: suspects[0] ? adviceFor(suspects[0].cause, kind).owner : null,
    actions: once(
      [...groupBy(suspects, ({ cause }) => cause).values()].flatMap((alike) =>
        actionsOf(given, alike),
      ),
    ),
    reasoning: reasoningOf(given, merged(lead, culprits), posterior),
    findings: findings.map(({ id, method, says, weight, at, data }) => ({
      id,
      method,
      says,
      weight: thousandths(weight),
      // A dump has no lines: 0 means the file.
      at: at.map(({ file, line = 0 }) => ({ file, line })),
      data,
    })),
    inputs: job.inputs,
    missing: [
      ...job.missing,
      ...untracedWords(job),
      ...new Set(findings.flatMap(({ lacks }) => lacks ?? [])),
      ...didNotRun,
    ],
    wouldHelp: wouldHelp(given, suspects, confidence),
  };
}

/** Ranks of which there is nothing at all, where nothing else says so: 16 of a job's 64 ranks are not the job. */
function untracedWords(job: Job): string[] {
  const ranks = untracedRanks(job);
  if (ranks.length === 0 || job.missing.some((text) => text.includes("left no"))) return [];
  if (ranks.length === job.ranks.size) return [];
  return [`${rankWords(ranks)} left nothing among these files`];
}

/**
 * A symptom is shown as a guess where nothing better is known. It says nothing of a job that stood still before, and
 * nothing beside somebody who is accused for a reason.
 */
function withoutGuesses(all: readonly Hypothesis[], findings: readonly Finding[]): Hypothesis[] {
  const guesses = new Set(
    findings.flatMap((finding) => (factOf(finding, "log-cause")?.isGuess ? finding.id : [])),
  );
  const isGuess = ({ evidence }: Hypothesis): boolean => evidence.every((id) => guesses.has(id));
  const stoodStill = factsOf(findings, "stood-still").length > 0;
  const isKnown = all.some((one) => one.weight >= MIN_WEIGHT && !isGuess(one));
  return all.filter((one) => !(isGuess(one) && (stoodStill || isKnown)));
}

/** One for each cause that may be it: of several none is sure. */
function suspectsOf(job: Job, culprit: Hypothesis, score: number): Suspect[] {
  const { type, ranks, link, name, causes, evidence } = culprit;
  const most = causes.length > 1 ? MOST_OF_OPEN : 1;
  return causes.map(({ cause, share, why }) => ({
    type,
    ranks,
    machine: machineOf(job, ranks) ?? (type === "machine" ? name : null),
    ...machinesBetween(job, culprit),
    link,
    name,
    cause,
    score: Math.floor(Math.min(most, score * share) * 1000) / 1000,
    why: causes.length > 1 ? why : culprit.why,
    evidence,
  }));
}

/** As it is among the suspects: perhaps as part of its machine. */
function merged(
  lead: Hypothesis | undefined,
  culprits: readonly Hypothesis[],
): Hypothesis | undefined {
  return (
    culprits.find(({ evidence }) => lead?.evidence.every((id) => evidence.includes(id))) ?? lead
  );
}

/** Every rank of a machine with the same trouble is one suspect: the machine. */
function wholeMachines(job: Job, culprits: readonly Hypothesis[]): Hypothesis[] {
  const groups = groupBy(culprits, ({ ranks, cause }) => `${machineOf(job, ranks)}/${cause}`);
  return [...groups.values()].flatMap((list) => {
    const [first] = list as [Hypothesis];
    const machine = machineOf(job, first.ranks);
    const size = [...job.ranks.values()].filter((one) => one.machine === machine).length;
    const named = list.flatMap(({ ranks }) => ranks).length;
    if (list.length < 2 || machine === null || named !== size) return list;
    const one = first.ranks.length === 1 ? "for one of them, " : "";
    const why = `all ${size} ranks of ${machine} have the same problem; ${one}${first.why}`;
    // Loaders of all ranks do not become slow at once: what they share is the machine's CPU.
    const causes = first.causes.map((cause) =>
      isSlow(first) && cause.cause === "dataloader"
        ? { ...cause, cause: "cpu-stall" as const }
        : cause,
    );
    return [{ ...asOne(list), type: "machine" as const, why, causes, cause: causes[0]!.cause }];
  });
}

/** Connections of several ranks between the same two machines are one suspect: the network between these. */
function wholeLinks(job: Job, culprits: readonly Hypothesis[]): Hypothesis[] {
  const groups = groupBy(culprits, (culprit) => {
    const { machines } = culprit.type === "link" ? machinesBetween(job, culprit) : {};
    return machines?.length === 2 ? [...machines].sort().join(" ") + culprit.cause : culprit;
  });
  return [...groups.values()].map((list) => {
    const [first] = list as [Hypothesis];
    if (list.length === 1) return first;
    const [a, b] = machinesBetween(job, first).machines!;
    return { ...asOne(list), link: [a!, b!] };
  });
}

/** The first, with the ranks and the evidence of all. */
function asOne(list: readonly Hypothesis[]): Hypothesis {
  const ranks = [...new Set(list.flatMap((one) => one.ranks))].sort((a, b) => a - b);
  const evidence = [...new Set(list.flatMap((one) => one.evidence))];
  return { ...list[0]!, ranks, evidence };
}

/** A link that is found in a set of ranks which cannot communicate is what is wrong with all of them. */
function narrowest(
  lead: Hypothesis | undefined,
  ranked: readonly Hypothesis[],
): Hypothesis | undefined {
  if (!lead || lead.type !== "link") return lead;
  const within = ranked.find(
    (other) =>
      other.kind === lead.kind &&
      other.weight >= CO_CULPRIT_SHARE * lead.weight &&
      isPartOf(other, lead),
  );
  return within ?? lead;
}

/** Of two links: what communicates among fewer ranks, and all of them among the other's. */
function isPartOf(one: Hypothesis, whole: Hypothesis): boolean {
  return (
    one.type === "link" &&
    whole.type === "link" &&
    one.ranks.length < whole.ranks.length &&
    one.ranks.every((rank) => whole.ranks.includes(rank))
  );
}

function sharesBlame(other: Hypothesis, lead: Hypothesis): boolean {
  if (other === lead) return true;
  // Whom else the judge of slowness does not name beside it contradicts it.
  if (lead.isJudged && !other.isJudged) return false;
  if (other.weight < CO_CULPRIT_SHARE * lead.weight) return false;
  if (other.kind !== lead.kind) return false;
  // Links that meet at a rank are two.
  if (other.type === "link" && lead.type === "link") return true;
  // A set that contains a culprit found on its own adds nothing.
  return !other.ranks.some((rank) => lead.ranks.includes(rank));
}

function kindWithoutSuspect(job: Job, findings: readonly Finding[]): VerdictKind {
  const hangs = findings.some(
    (finding) =>
      finding.method === "hang/watchdog" ||
      saysStoodStill(finding) ||
      (finding.method.startsWith("hang/") && finding.weight >= 0.5 && finding.clears.length > 0),
  );
  if (hangs) return "hang";
  if (slowDownOf(findings)) return "fail-slow";
  // Only who has seen everybody may say that all is well.
  const sawAll =
    job.dumps.size >= job.worldSize && ![...job.dumps.values()].some(({ dump }) => dump.isCut);
  const idle = sawAll && factsOf(findings, "nothing-pending").some(({ pending }) => pending === 0);
  const logs = [...job.logs.values()];
  const finished =
    logs.length > 0 && logs.length * 2 >= job.worldSize && logs.every((log) => log.finished);
  const left = new Set(
    job.probes
      ?.filter(({ ended }) => ended?.how === "exit" && ended.code === 0)
      .map(({ rank }) => rank),
  );
  const allLeft = left.size > 0 && left.size >= job.worldSize;
  const isSound = job.failures.every((failure) => wasSurvived(job, failure));
  if (isSound && (finished || idle || allLeft)) return "healthy";
  // Where monitoring is all there is, machines that are alike and a job that goes on are all one can ask for.
  const onlyMetrics = job.dumps.size + job.logs.size + job.iterations.length === 0;
  if (onlyMetrics && factsOf(findings, "alike-machines").some(({ allAlike }) => allAlike))
    return "healthy";
  return "undetermined";
}

/** Two causes of the same ranks may ask for the same. */
function once(actions: readonly Action[]): Action[] {
  const last = new Map(actions.map((action) => [`${action.do} ${action.target}`, action]));
  return actions.filter((action) => last.get(`${action.do} ${action.target}`) === action);
}
