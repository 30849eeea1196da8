/** The answer in its parts: who, what physically, how much slower, who only waits (model/answer.ts). */
import { cutText, durationWords, intermittentWords, rankWords, thousands } from "../base/text.ts";
import type { Answer } from "../model/answer.ts";
import { isHealthCounter, physicalWords } from "../model/deviation-words.ts";
import { factOf, factsOf, slowTimesOf, type RegressedMetric } from "../model/facts.ts";
import type { Finding, VerdictKind } from "../model/finding.ts";
import type { Rank } from "../model/ids.ts";
import { kernelXidOf } from "../model/kernel-xid.ts";
import { pastWords } from "../model/past-verdict.ts";
import type { Suspect } from "../model/verdict.ts";
import { adviceFor, type OneOrMany } from "./advice.ts";
import { type Case, evidenceOf, firstOf, isStop, slowDownOf } from "./case.ts";
import { BETWEEN, isGpu, whereWords, whoWords } from "./who.ts";

const EFFECTS: Partial<Record<VerdictKind, string>> = {
  crash: "ended the job",
  "fail-slow": "slows the job down",
  regression: "makes the job slower than necessary",
  "faulty-machine": "may slow down or stop the job",
};

const MOST_QUOTE = 200;
/** Iterations by which one onset is dated apart from the job's times and from its ranks'. */
const SAME_ONSET = 10;
/** A regression that takes this share of what the step takes longer explains it. */
const MOST_OF = 0.8;
/** Beyond the first three, suspects are listed below the answer. */
const MOST_CLAUSES = 3;

/** null where nobody is suspected: then there is only the summary. */
export function answerOf(
  given: Case,
  suspects: readonly Suspect[],
  victims: readonly Rank[],
  since: number | null,
): Answer | null {
  const { job, kind } = given;
  const [first] = suspects;
  if (!first) return null;
  const possible = causesOf(first, suspects);
  const isOpen = possible.length > 1;
  const seen = isOpen ? openWords(given, possible) : seenOf(given, first);
  const others = suspects
    .slice(1, MOST_CLAUSES)
    .filter((one) => one.cause !== first.cause && !possible.includes(one));
  const alike = suspects.filter(({ cause }) => cause === first.cause);
  const isAlone = alike.length === 1;
  const isCode = isAlone && isOfCode(given, first);
  const who = isCode
    ? TRAINING_CODE
    : isAlone
      ? whoWords(job, isOpen ? ranksOf(first) : first, gpuIndex(seen?.device ?? null))
      : alikeWords(given, alike);
  const what = isAlone && seen !== null ? seen.what : doesWords(given, first, alike);
  const over = overOf(given, first);
  const tense = (text: string): string => (over === null ? text : pastWords(text));
  const also = others.map((one) => `${whoWords(job, one)} ${tense(doesWords(given, one))}`);
  const slower = slowerWords(given, first, since);
  const waits = waitingWords(given, victims, suspects);
  const waiting = waits === null ? null : `${waits}${slowBeforeWords(given, suspects)}`;
  return {
    who,
    what: [tense(what), ...also].join(", and "),
    isSeen: seen !== null && seen.isFigure !== true,
    effect:
      over === null
        ? `${EFFECTS[kind] ?? "hangs the job"}${howSlow(given, first, since, slower)}`
        : `slowed the job down from iteration ${over.iteration} to ${over.until}; it is over now`,
    slower,
    ...(over === null ? {} : { isOver: true as const }),
    waiting: over === null ? waiting : (waiting?.replace(/only waits?$/, "only waited") ?? null),
    where: isCode ? [`seen on ${rankWords(first.ranks)}`] : isAlone ? whereWords(job, first) : [],
    device: isAlone && !isOpen && isGpu(first) ? deviceOf(given, first, seen) : null,
  };
}

/** Suspects of the same ranks: causes among which nothing decides. */
function causesOf(first: Suspect, suspects: readonly Suspect[]): readonly Suspect[] {
  const ranks = first.ranks.join();
  return ranks === "" ? [first] : suspects.filter((one) => one.ranks.join() === ranks);
}

/** Not as the owner of the device that one of the causes means. */
function ranksOf(suspect: Suspect): Suspect {
  const type = suspect.type === "gpu" ? "rank" : suspect.type;
  return { ...suspect, type, cause: "unknown" };
}

/** "computes slowly, or is held up by its CPU: 190 ms of its own per iteration, 128 ms before" */
function openWords(given: Case, possible: readonly Suspect[]): Seen {
  const [first] = possible as [Suspect];
  const does = possible.map((one) => doesWords(given, one)).join(", or ");
  const figures = firstOf(evidenceOf(given, first), (finding) => figureWords(finding, first, does));
  return { what: figures ?? does, device: null, isFigure: true };
}

/** Who reads that a job is slower asks by how much, and since when: also where nobody knows that is said. */
function howSlow(
  given: Case,
  suspect: Suspect,
  since: number | null,
  slower: string | null,
): string {
  if (given.kind !== "fail-slow") return "";
  const slowDowns = factsOf(given.findings, "slow-down");
  const often = slowDowns.find(({ intermittent }) => intermittent);
  const { slow = 0, of: all = 0 } = often?.intermittent ?? {};
  const now = often ? `: ${intermittentWords(slow, all, often.ratio)}` : "";
  const isUndated =
    since === null &&
    evidenceOf(given, suspect).some((one) => slowTimesOf(one)?.sinceStart === true);
  const from = isUndated ? ", from the first iterations seen on" : "";
  const unknown = slower === null && !often ? ` (${unknownWords(given)})` : "";
  return `${now}${from}${unknown}`;
}

/** Why nobody knows by how much: the proof below has numbers, and none of them is the answer. */
function unknownWords({ findings }: Case): string {
  const [slow] = factsOf(findings, "slow-down");
  if (slow)
    return `by how much is not known: since iteration ${slow.iteration} already, it takes ${slow.ratio.toFixed(2)} times as long`;
  const even = factsOf(findings, "even-iterations").find(({ riseFrom }) => riseFrom === undefined);
  if (even) return `by less than its iteration times vary, ${(100 * even.variation).toFixed(0)} %`;
  return "by what factor is not known";
}

export const TRAINING_CODE = "the training code";

/** Whether all ranks that were traced do the same more slowly than they did: then no rank is at fault, but what they run. */
export function isOfCode(given: Case, suspect: Suspect): boolean {
  if (given.kind !== "regression" || suspect.type !== "code" || suspect.ranks.length < 2)
    return false;
  const own = evidenceOf(given, suspect).filter((finding) => factOf(finding, "regressed-metric"));
  return own.length > 0 && own.every(({ clears }) => clears.length === 0);
}

/** From which iteration to which it was slow, where it no longer is; what comes and goes is not over. */
function overOf(given: Case, suspect: Suspect): { iteration: number; until: number } | null {
  if (given.kind !== "fail-slow") return null;
  if (factsOf(given.findings, "slow-down").some(({ intermittent }) => intermittent)) return null;
  const slow = slowDownOf(evidenceOf(given, suspect));
  const { iteration, until, sinceStart } = (slow && slowTimesOf(slow)) ?? {};
  if (iteration === undefined || typeof until !== "number" || sinceStart === true) return null;
  return { iteration, until };
}

/** The GPU that monitoring names for the first suspect, where the job's own files do not. */
export function measuredGpu(given: Case, suspect: Suspect): number | null {
  return gpuIndex(seenOf(given, suspect)?.device ?? null);
}

/** As monitoring calls it. */
function deviceOf({ job }: Case, { ranks }: Suspect, seen: Seen | null): string | null {
  const index = job.ranks.get(ranks[0]!)?.gpu ?? null;
  return index === null ? (seen?.device ?? null) : `gpu${index}`;
}

function gpuIndex(device: string | null): number | null {
  const index = /^gpu(\d{1,3})$/.exec(device ?? "")?.[1];
  return index === undefined ? null : Number(index);
}

/** "ranks 3 and 5", with their machine where they share one; machines by their names. */
function alikeWords({ job }: Case, suspects: readonly Suspect[]): string {
  const ranks = [...new Set(suspects.flatMap((one) => one.ranks))].sort((a, b) => a - b);
  const isRanks = suspects.every(({ type }) => type === "rank" || type === "gpu");
  if (isRanks && ranks.length > 0) {
    const [machine, ...others] = new Set(suspects.map((one) => one.machine));
    return `${rankWords(ranks)}${others.length === 0 && machine ? ` on ${machine}` : ""}`;
  }
  const names = suspects.slice(0, MOST_CLAUSES).map((one) => whoWords(job, one));
  const more = suspects.length - names.length;
  return names.join(" and ") + (more > 0 ? ` and ${more} more` : "");
}

const NO_TRACE: OneOrMany = [
  "left no trace: its process is gone, or its files are missing",
  "left no trace: their processes are gone, or their files are missing",
];

const STOPPED: OneOrMany = [
  "is stopped: its process is in state T, as SIGSTOP leaves it",
  "are stopped: their processes are in state T, as SIGSTOP leaves them",
];

const TRACED: OneOrMany = [
  "is stopped: a debugger holds its process",
  "are stopped: debuggers hold their processes",
];

/** What the cause comes to, in words that fit any such suspect. */
function doesWords(given: Case, suspect: Suspect, alike: readonly Suspect[] = [suspect]): string {
  const { kind, job } = given;
  const { cause, type } = suspect;
  const advice = adviceFor(cause, kind);
  if (alike.length === 1 && advice.device !== undefined && isGpu(suspect)) {
    const xid = cause === "gpu-hang" ? kernelXidOf(job, suspect.ranks[0]!) : null;
    return xid === null ? advice.device : `stopped working: ${xid}`;
  }
  if (cause === "network-slow" && BETWEEN.has(type))
    return alike.length > 1 ? "are slow" : "is slow";
  const ranks = alike.flatMap((one) => one.ranks);
  const own =
    kind === "crash" ? advice.crashed : kind === "hang" ? seenProcess(given, suspect, ranks) : null;
  const is = own ?? advice.is;
  const isOneOfMany = type === "machine" && alike.length === 1 && ranks.length > 1;
  if (isOneOfMany && cause === "process-gone" && isStop(given))
    return is === NO_TRACE
      ? "left no trace: its processes are gone, or its files are missing"
      : `is gone: its ${ranks.length} processes died without an error message`;
  const isMany =
    type === "machine" ? alike.length > 1 : ranks.length > 1 && !isOfCode(given, suspect);
  return typeof is === "string" ? is : is[isMany ? 1 : 0];
}

/** What the operating system shows of processes that stopped or are gone; null where the advice's words fit. */
function seenProcess(
  { job }: Case,
  { cause, type }: Suspect,
  ranks: readonly Rank[],
): OneOrMany | null {
  const shows = (rank: Rank, states: RegExp): boolean =>
    (job.probes ?? []).some((probe) => probe.rank === rank && states.test(probe.state));
  if (cause === "process-stopped" && type === "rank") {
    if (ranks.every((rank) => shows(rank, /T/))) return STOPPED;
    if (ranks.every((rank) => shows(rank, /t/))) return TRACED;
  }
  // A missing dump alone proves no death.
  return cause === "process-gone" && !ranks.some((rank) => shows(rank, /[XZ]/)) ? NO_TRACE : null;
}

interface Seen {
  readonly what: string;
  readonly device: string | null;
  /** How long it takes, which is the effect: metrics may still tell the physical cause. */
  readonly isFigure?: true;
}

/** What shows it: metrics, an error line, a stack, figures of its own time. The first that there is. */
function seenOf(given: Case, suspect: Suspect): Seen | null {
  const physical = measured(given, suspect);
  if (physical) return physical;
  const own = evidenceOf(given, suspect);
  const does = doesWords(given, suspect);
  const shown =
    (given.kind === "crash" ? firstOf(own, errorWords) : null) ??
    // Of a GPU that stopped, the CPU's stack shows a line that only waits for it.
    (isGpu(suspect) ? null : firstOf(own, (finding) => stackWords(finding, suspect, does)));
  if (shown !== null) return { what: shown, device: null };
  const figures = firstOf(own, (finding) => figureWords(finding, suspect, does));
  return figures === null ? null : { what: figures, device: null, isFigure: true };
}

/** Of its machine, and of its GPU where one is meant. */
function measured({ job, kind, findings }: Case, suspect: Suspect): Seen | null {
  const machine = suspect.machine ?? suspect.name;
  if (machine === null || suspect.type === "link" || suspect.type === "switch") return null;
  const metrics = factsOf(findings, "odd-machine")
    .filter((odd) => odd.machine === machine)
    .flatMap((odd) => odd.metrics);
  // Clocks and power of a job that stands still are those of idle GPUs: only errors tell what broke.
  const telling = kind === "hang" ? metrics.filter(isHealthCounter) : metrics;
  const index = isGpu(suspect) ? (job.ranks.get(suspect.ranks[0]!)?.gpu ?? null) : null;
  return physicalWords(telling, index === null ? null : `gpu${index}`);
}

function errorWords(finding: Finding): string | null {
  const error = factOf(finding, "own-error");
  if (error?.text === undefined) return null;
  const where = error.code === null ? "" : ` at ${codeWords(error.code)}`;
  return `died${where}: ${quoted(error.text)}`;
}

/** "train.py:150 __iter__" → "train.py:150 in __iter__". */
export function codeWords(code: string): string {
  return code.replace(/^(\S+:\d+) (?=\S)/, "$1 in ");
}

/** Whole sentences, where there are some: of an error message the first ones tell. */
function quoted(text: string): string {
  if (text.length <= MOST_QUOTE && !text.endsWith("…")) return text.replace(/\.$/, "");
  const end = text.lastIndexOf(". ", MOST_QUOTE);
  return end > MOST_QUOTE / 4 ? text.slice(0, end) : cutText(text, MOST_QUOTE);
}

function stackWords(finding: Finding, { ranks }: Suspect, does: string): string | null {
  if (ranks.length !== 1) return null;
  const at = factOf(finding, "python-stacks")?.outside?.[ranks[0]!] ?? null;
  if (at !== null) return `${does}; its Python stands at ${cutText(at, MOST_QUOTE)}`;
  const call = factOf(finding, "open-call")?.call;
  return call === undefined ? null : `${does}; it stands in ${cutText(call, MOST_QUOTE)}`;
}

function figureWords(finding: Finding, { cause, ranks }: Suspect, does: string): string | null {
  const { ranks: compared = [] } = factOf(finding, "slow-rank")?.judged.compared ?? {};
  const [before, now] = compared.find(({ rank }) => ranks.includes(rank))?.ownMs ?? [null, 0];
  if (before !== null && now > before)
    return `${does}: ${durationWords(now)} of its own per iteration, ${durationWords(before)} before`;
  const tested = factOf(finding, "tested-slow");
  if (tested) return `${does}: ${tested.ratio.toFixed(2)} times slower than its peers when tested`;
  const device = factOf(finding, "slow-device");
  if (device && device.growthMs > 0)
    return `${does}: communication takes ${durationWords(device.growthMs)} longer per iteration`;
  const { call, calls } = factOf(finding, "regressed-metric") ?? {};
  if (call !== undefined) {
    const often = calls ? `, ${tidy(calls[0])} times per step instead of ${tidy(calls[1])}` : "";
    return `${does}: in ${cutText(call, MOST_QUOTE)}${often}`;
  }
  const code = factOf(finding, "stopped-rank")?.code;
  if (cause === "collective-mismatch" && code) return `${does}, at ${cutText(code, MOST_QUOTE)}`;
  const extraMs = factOf(finding, "python-time")?.extraMs;
  return extraMs === undefined ? null : `${does}: ${durationWords(extraMs)} more per iteration`;
}

function slowerWords(given: Case, suspect: Suspect, since: number | null): string | null {
  if (given.kind === "regression") {
    const [regressed] = factsOf(evidenceOf(given, suspect), "regressed-metric");
    return regressed ? regressionWords(regressed) : null;
  }
  if (given.kind !== "fail-slow") return null;
  const isSince = (iteration: number): boolean =>
    since === null || Math.abs(since - iteration) <= SAME_ONSET;
  const slow = slowDownOf(given.findings.filter((finding) => factOf(finding, "slow-down")));
  const fact = slow && factOf(slow, "slow-down");
  if (fact) {
    // What is slow now and then is said in the effect; what the job takes longer since another time is not, or not all,
    // because of this suspect.
    if (fact.intermittent || !isSince(fact.iteration)) return null;
    // Durations in no unit: ratios hold, milliseconds do not.
    if (fact.wastedHours === null) return timesWords(fact.ratio);
    return longerWords(fact.beforeMs, fact.afterMs, fact.ratio);
  }
  // Iterations before and since, as the operators that the judge compared show them.
  for (const { judged } of factsOf(evidenceOf(given, suspect), "slow-rank", "slow-device")) {
    const { healthyMs, slowMs } = judged;
    if (healthyMs !== null && slowMs > healthyMs) return longerWords(healthyMs, slowMs);
  }
  // Of iterations too few to be sure that they became slower, which somebody became then.
  const rose = factsOf(given.findings, "even-iterations").find(
    ({ riseFrom }) => riseFrom !== undefined && isSince(riseFrom),
  );
  return rose?.riseRatio === undefined ? null : `about ${timesWords(rose.riseRatio)}`;
}

function timesWords(ratio: number): string {
  return `${ratio.toFixed(2)} times as long`;
}

function longerWords(beforeMs: number, afterMs: number, ratio = afterMs / beforeMs): string {
  return `${timesWords(ratio)}: ${durationWords(beforeMs)} → ${durationWords(afterMs)} per iteration`;
}

/** How much slower the step is; where it is no slower, the share that this takes of it. */
function regressionWords({ stepMs, share }: RegressedMetric): string {
  const percentage = `${(100 * share).toFixed(1)} % of the step`;
  if (stepMs === undefined) return `longer: ${percentage} more than when healthy`;
  const [now, healthy] = stepMs;
  const figures = `${durationWords(healthy)} → ${durationWords(now)} per step`;
  if (now <= healthy)
    return `no longer than the baseline (${figures}), with ${percentage} lost to this`;
  // What the call itself takes; what the GPU does late because of it is in other kernels' time.
  const own = share * now;
  const moreMs = now - healthy;
  const part =
    own < MOST_OF * moreMs
      ? `; this itself takes ${durationWords(own)} of the ${durationWords(moreMs)}, the rest is not explained by it`
      : "";
  return `${timesWords(now / healthy)} as the baseline: ${figures}${part}`;
}

/** "the other" only where that is all of them: of some nothing may be known. */
function waitingWords(
  { kind, job: { worldSize } }: Case,
  victims: readonly Rank[],
  suspects: readonly Suspect[],
): string | null {
  if (victims.length === 0) return null;
  const isOne = victims.length === 1;
  const blamed = new Set(suspects.flatMap(({ ranks }) => ranks)).size;
  // Of a crash whose rank is unknown, one of them is no victim.
  if (kind === "crash" && blamed === 0) return null;
  const areAll = worldSize === 0 || victims.length + blamed >= worldSize;
  const count = thousands(victims.length);
  const who = isOne ? "1 other rank" : areAll ? `the other ${count} ranks` : `${count} other ranks`;
  if (kind === "crash") return `${who} ${isOne ? "is a victim" : "are victims"} of it`;
  return `${who} only ${isOne ? "waits" : "wait"}`;
}

/** Who has a fault of its own, which did not stop the job. */
function slowBeforeWords({ findings }: Case, suspects: readonly Suspect[]): string {
  const blamed = new Set(suspects.flatMap((one) => one.ranks));
  const ranks = factsOf(findings, "slow-before-stop")
    .flatMap((slow) => slow.ranks)
    .filter((rank) => !blamed.has(rank));
  if (ranks.length === 0) return "";
  return `; ${rankWords(ranks)} ${ranks.length === 1 ? "was" : "were"} slow before that`;
}

function tidy(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}
