/** One verdict from all findings: kind, suspects, victims, confidence, and what would help. */
import { groupBy } from "../base/group-by.ts";
import { thousandths } from "../base/numbers.ts";
import { rankWords } from "../base/text.ts";
import { factOf, saysStoodStill } from "../model/facts.ts";
import type { Finding, VerdictKind } from "../model/finding.ts";
import type { Rank } from "../model/ids.ts";
import type { Job } from "../model/job.ts";
import { wasSurvived } from "../model/process-ended.ts";
import type { Action, Suspect, Verdict } from "../model/verdict.ts";
import { adviceFor, DUMP_STACKS, type Step } from "./advice.ts";
import { MACHINE_GONE } from "./machine-advice.ts";
import { codePlace, filledIn } from "./advice-words.ts";
import { answerOf, isOfCode, measuredGpu, TRAINING_CODE } from "./answer.ts";
import { commandFor } from "./command.ts";
import { kindOfMachineFault } from "./machine-evidence.ts";
import { summarise } from "./summary.ts";
import { slowDownOf } from "./slow-down.ts";
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
const MOST_NAMED = 8;

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
  const ranUntilEnd = findings.some(
    (finding) => factOf(finding, "ended-from-outside")?.ranUntilEnd,
  );
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
  const kind =
    lead?.kind === "faulty-machine" ? kindOfMachineFault(without) : (lead?.kind ?? without);
  const total = culprits.reduce((sum, { weight }) => sum + weight, 0);
  const suspects = culprits
    .flatMap((culprit) => suspectsOf(job, culprit, culprit.weight / Math.max(1, total)))
    .sort((a, b) => b.score - a.score);
  const victims = victimsOf(job, kind, suspects, all, findings);
  const posterior = posteriorOf(lead ?? null, all, blameworthy);
  const confidence = confidenceOf(job, culprits, posterior, kind, findings);
  const when = whenDidItHappen(job, findings, kind, suspects);
  const answer = answerOf(job, kind, suspects, victims, findings, when.iteration);
  return {
    schema: "faultline.verdict/1",
    ...(job.name === "" ? {} : { job: job.name }),
    kind,
    summary: summarise(job, kind, answer, victims, confidence, findings),
    ...(answer === null ? {} : { answer }),
    confidence,
    when,
    suspects,
    victims,
    owner: suspects[0] ? adviceFor(suspects[0].cause, kind).owner : null,
    actions: once(
      [...groupBy(suspects, ({ cause }) => cause).values()].flatMap((alike) =>
        actionsOf(job, kind, alike, findings),
      ),
    ),
    reasoning: reasoningOf(job, findings, merged(lead, culprits), posterior),
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
    wouldHelp: wouldHelp(job, findings, suspects, kind, confidence),
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
  const stoodStill = findings.some((finding) => factOf(finding, "stood-still"));
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
  const sizes = new Map<string, number>();
  for (const { machine } of job.ranks.values()) {
    if (machine !== null) sizes.set(machine, (sizes.get(machine) ?? 0) + 1);
  }
  const byMachine = new Map<string, Hypothesis[]>();
  for (const culprit of culprits) {
    const key = `${machineOf(job, culprit.ranks)}/${culprit.cause}`;
    byMachine.set(key, [...(byMachine.get(key) ?? []), culprit]);
  }
  return [...byMachine].flatMap(([key, list]) => {
    const ranks = list.flatMap((culprit) => culprit.ranks).sort((a, b) => a - b);
    const machine = key.slice(0, key.lastIndexOf("/"));
    if (list.length < 2 || ranks.length !== sizes.get(machine)) return list;
    const evidence = [...new Set(list.flatMap((culprit) => culprit.evidence))];
    const why = `all ${ranks.length} ranks of ${machine} have the same problem; ${ofOne(list[0]!)}`;
    // Loaders of all ranks do not become slow at once: what they share is the machine's CPU.
    const causes = list[0]!.causes.map((one) =>
      isSlow(list[0]) && one.cause === "dataloader" ? { ...one, cause: "cpu-stall" as const } : one,
    );
    const { cause } = causes[0]!;
    return [{ ...list[0]!, type: "machine" as const, ranks, evidence, why, causes, cause }];
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
    const ranks = [...new Set(list.flatMap((one) => one.ranks))].sort((a, b) => a - b);
    const evidence = [...new Set(list.flatMap((one) => one.evidence))];
    const [a, b] = machinesBetween(job, first).machines!;
    return { ...first, ranks, evidence, link: [a!, b!] };
  });
}

function isSlow(one: Hypothesis | undefined): boolean {
  return one?.kind === "fail-slow" || one?.kind === "regression";
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
  const idle =
    sawAll && findings.some((finding) => factOf(finding, "nothing-pending")?.pending === 0);
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
  if (onlyMetrics && findings.some((finding) => factOf(finding, "alike-machines")?.allAlike))
    return "healthy";
  return "undetermined";
}

/** What is said of one of several, as one example. */
function ofOne({ ranks, why }: { readonly ranks: readonly Rank[]; readonly why: string }): string {
  return ranks.length === 1 ? `for one of them, ${why}` : why;
}

/** Two causes of the same ranks may ask for the same. */
function once(actions: readonly Action[]): Action[] {
  const last = new Map(actions.map((action) => [`${action.do} ${action.target}`, action]));
  return actions.filter((action) => last.get(`${action.do} ${action.target}`) === action);
}

/** What to do about suspects of one cause, with commands that can be pasted as they are for the first of them. */
function actionsOf(
  job: Job,
  kind: VerdictKind,
  alike: readonly Suspect[],
  findings: readonly Finding[],
): Action[] {
  const first = alike[0]!;
  const gpu = measuredGpu(job, kind, first, findings);
  const target =
    alike.length === 1 && isOfCode(kind, first, findings) ? TRAINING_CODE : targetOf(job, alike);
  const isWholeMachine = first.type === "machine" && first.cause === "process-gone";
  const isGone = isWholeMachine && (kind === "hang" || kind === "crash");
  const known = isGone ? MACHINE_GONE : adviceFor(first.cause, kind).actions;
  const steps = withStack(job, first, kind, known);
  // Code is corrected where it is written, not on the machine that ran it.
  const place = alike.length === 1 ? codePlace(first, findings) : null;
  return steps.map(([what, why, command, title]) => ({
    do: what,
    ...(title === undefined ? {} : { title }),
    target: what === "fix-code" && place !== null ? `${place} (${rankWords(first.ranks)})` : target,
    why: filledIn(why, job, first, findings),
    ...(command === undefined ? {} : { command: commandFor(job, first, command, gpu) }),
  }));
}

/** A stack that is among the inputs is read, not asked for again. */
function withStack(
  job: Job,
  { ranks }: Suspect,
  kind: VerdictKind,
  steps: readonly Step[],
): readonly Step[] {
  const [rank] = ranks;
  const stack = kind === "hang" && rank !== undefined ? job.stacks.get(rank) : undefined;
  if (!stack || !steps.some(([what]) => what === DUMP_STACKS)) return steps;
  const main = stack.threads.find(({ isMain }) => isMain) ?? stack.threads[0];
  const [frame] = main?.frames ?? [];
  const at = frame ? `${frame.file}:${frame.line} in ${frame.func}` : stack.file;
  const read: Step = [
    "check-code",
    `read its stack, which is among the inputs and stands at ${at}: if that is your code, it waits for something there`,
  ];
  return [read, ...steps.filter(([what]) => what !== DUMP_STACKS)];
}

function targetOf(job: Job, suspects: readonly Suspect[]): string {
  const ranks = suspects.flatMap((suspect) => suspect.ranks).sort((a, b) => a - b);
  const machine = machineOf(job, ranks);
  const [only] = suspects;
  if (suspects.length === 1 && only!.name !== null)
    return ranks.length > 0 ? `${only!.name} (${rankWords(ranks)})` : only!.name;
  if (ranks.length === 0) {
    const names = suspects.flatMap(({ name }) => name ?? []);
    return names.length > 0 ? names.slice(0, MOST_NAMED).join(", ") : "the job";
  }
  const ends = only!.type === "link" && suspects.length === 1 ? machinesOf(job, ranks) : [];
  const at = ends.length === 2 ? ends.join(" and ") : machine;
  return at === null ? rankWords(ranks) : `${at} (${rankWords(ranks)})`;
}

function machinesOf(job: Job, ranks: readonly Rank[]): string[] {
  return [...new Set(ranks.flatMap((rank) => job.ranks.get(rank)?.machine ?? []))];
}
