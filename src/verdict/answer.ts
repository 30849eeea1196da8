/** The answer in its parts: who, what physically, how much slower, who only waits (model/answer.ts). */
import { cutText, durationWords, intermittentWords, rankWords, thousands } from "../base/text.ts";
import type { Answer } from "../model/answer.ts";
import { isHealthCounter, type Measured, physicalWords } from "../model/deviation-words.ts";
import { factOf, slowTimesOf, type RegressedMetric } from "../model/facts.ts";
import type { Finding, VerdictKind } from "../model/finding.ts";
import type { Rank } from "../model/ids.ts";
import { kernelXidOf } from "../model/kernel-xid.ts";
import type { Job } from "../model/job.ts";
import { pastWords } from "../model/past-verdict.ts";
import type { Suspect } from "../model/verdict.ts";
import { adviceFor, type OneOrMany } from "./advice.ts";
import { slowDownOf } from "./slow-down.ts";
import { isGpu, whereWords, whoWords } from "./who.ts";

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
  job: Job,
  kind: VerdictKind,
  suspects: readonly Suspect[],
  victims: readonly Rank[],
  findings: readonly Finding[],
  since: number | null,
): Answer | null {
  const [first] = suspects;
  if (!first) return null;
  const possible = causesOf(first, suspects);
  const isOpen = possible.length > 1;
  const seen = isOpen
    ? openWords(job, kind, possible, findings)
    : seenOf(job, kind, first, findings);
  const others = suspects
    .slice(1, MOST_CLAUSES)
    .filter((one) => one.cause !== first.cause && !possible.includes(one));
  const alike = suspects.filter(({ cause }) => cause === first.cause);
  const isAlone = alike.length === 1;
  const isCode = isAlone && isOfCode(kind, first, findings);
  const who = isCode
    ? TRAINING_CODE
    : isAlone
      ? whoWords(job, isOpen ? ranksOf(first) : first, gpuIndex(seen?.device ?? null))
      : alikeWords(job, alike);
  const what = isAlone && seen !== null ? seen.what : doesWords(job, kind, first, alike, findings);
  const over = overOf(kind, first, findings);
  const tense = (text: string): string => (over === null ? text : pastWords(text));
  const also = others.map(
    (one) => `${whoWords(job, one)} ${tense(doesWords(job, kind, one, [one], findings))}`,
  );
  const slower = slowerWords(kind, first, findings, since);
  const waits = waitingWords(kind, victims, suspects, job.worldSize);
  const waiting = waits === null ? null : `${waits}${slowBeforeWords(suspects, findings)}`;
  return {
    who,
    what: [tense(what), ...also].join(", and "),
    isSeen: seen !== null && seen.isFigure !== true,
    effect:
      over === null
        ? effectWords(kind, first, findings, since, slower)
        : `slowed the job down from iteration ${over.iteration} to ${over.until}; it is over now`,
    slower,
    ...(over === null ? {} : { isOver: true as const }),
    waiting: over === null ? waiting : (waiting?.replace(/only waits?$/, "only waited") ?? null),
    where: isCode ? [`seen on ${rankWords(first.ranks)}`] : isAlone ? whereWords(job, first) : [],
    device: isAlone && !isOpen && isGpu(first) ? deviceOf(job, first, seen) : null,
  };
}

/** Suspects of the same ranks: causes among which nothing decides. */
function causesOf(first: Suspect, suspects: readonly Suspect[]): readonly Suspect[] {
  const ranks = first.ranks.join();
  return ranks === "" ? [first] : suspects.filter((one) => one.ranks.join() === ranks);
}

/** Not as the owner of the device that one of the causes means. */
function ranksOf(suspect: Suspect): Suspect {
  return suspect.type === "gpu"
    ? { ...suspect, type: "rank", cause: "unknown" }
    : { ...suspect, cause: "unknown" };
}

/** "computes slowly, or is held up by its CPU: 190 ms of its own per iteration, 128 ms before" */
function openWords(
  job: Job,
  kind: VerdictKind,
  possible: readonly Suspect[],
  findings: readonly Finding[],
): Seen {
  const does = possible.map((one) => doesWords(job, kind, one, [one], findings)).join(", or ");
  const ids = new Set(possible[0]!.evidence);
  const own = findings.filter(({ id }) => ids.has(id));
  const figures = firstOf(own, (finding) => figureWords(finding, possible[0]!, does));
  return { ...(figures ?? { what: does, device: null }), isFigure: true };
}

/** What it does to the job. Who reads "slower" asks by how much: also where nobody knows that is said. */
function effectWords(
  kind: VerdictKind,
  first: Suspect,
  findings: readonly Finding[],
  since: number | null,
  slower: string | null,
): string {
  const often = nowAndThen(kind, findings);
  const from = since === null ? undated(kind, first, findings) : "";
  const isUnknown = kind === "fail-slow" && slower === null && often === "";
  const unknown = isUnknown ? ` (${unknownWords(findings)})` : "";
  return `${EFFECTS[kind] ?? "hangs the job"}${often}${from}${unknown}`;
}

/** Why nobody knows by how much: the proof below has numbers, and none of them is the answer. */
function unknownWords(findings: readonly Finding[]): string {
  for (const finding of findings) {
    const slow = factOf(finding, "slow-down");
    if (slow)
      return `by how much is not known: since iteration ${slow.iteration} already, it takes ${slow.ratio.toFixed(2)} times as long`;
    const even = factOf(finding, "even-iterations");
    if (even && even.riseFrom === undefined)
      return `by less than its iteration times vary, ${(100 * even.variation).toFixed(0)} %`;
  }
  return "by what factor is not known";
}

export const TRAINING_CODE = "the training code";

/** Whether all ranks that were traced do the same more slowly than they did: then no rank is at fault, but what they run. */
export function isOfCode(
  kind: VerdictKind,
  { type, ranks, evidence }: Suspect,
  findings: readonly Finding[],
): boolean {
  if (kind !== "regression" || type !== "code" || ranks.length < 2) return false;
  const own = findings.filter(
    (finding) => evidence.includes(finding.id) && factOf(finding, "regressed-metric"),
  );
  return own.length > 0 && own.every(({ clears }) => clears.length === 0);
}

/** From which iteration to which it was slow, where it no longer is; what comes and goes is not over. */
function overOf(
  kind: VerdictKind,
  { evidence }: Suspect,
  findings: readonly Finding[],
): { iteration: number; until: number } | null {
  if (kind !== "fail-slow") return null;
  if (findings.some((finding) => factOf(finding, "slow-down")?.intermittent)) return null;
  const slow = slowDownOf(findings.filter(({ id }) => evidence.includes(id)));
  const { iteration, until, sinceStart } = (slow && slowTimesOf(slow)) ?? {};
  if (iteration === undefined || typeof until !== "number" || sinceStart === true) return null;
  return { iteration, until };
}

/** Of what was slow in all that is recorded, and nothing tells since when. */
function undated(kind: VerdictKind, { evidence }: Suspect, findings: readonly Finding[]): string {
  const own = findings.filter(({ id }) => evidence.includes(id));
  const isUndated = own.some((finding) => slowTimesOf(finding)?.sinceStart === true);
  return kind === "fail-slow" && isUndated ? ", from the first iterations seen on" : "";
}

/** The GPU that monitoring names for the first suspect, where the job's own files do not. */
export function measuredGpu(
  job: Job,
  kind: VerdictKind,
  suspect: Suspect,
  findings: readonly Finding[],
): number | null {
  return gpuIndex(seenOf(job, kind, suspect, findings)?.device ?? null);
}

/** As monitoring calls it. */
function deviceOf(job: Job, { ranks }: Suspect, seen: Seen | null): string | null {
  const index = job.ranks.get(ranks[0]!)?.gpu ?? null;
  return index === null ? (seen?.device ?? null) : `gpu${index}`;
}

function gpuIndex(device: string | null): number | null {
  const index = /^gpu(\d{1,3})$/.exec(device ?? "")?.[1];
  return index === undefined ? null : Number(index);
}

/** "ranks 3 and 5", with their machine where they share one; machines by their names. */
function alikeWords(job: Job, suspects: readonly Suspect[]): string {
  const ranks = [...new Set(suspects.flatMap((one) => one.ranks))].sort((a, b) => a - b);
  const isRanks = suspects.every(({ type }) => type === "rank" || type === "gpu");
  if (isRanks && ranks.length > 0) {
    const machines = new Set(suspects.map(({ machine }) => machine));
    const [machine] = machines;
    return `${rankWords(ranks)}${machines.size === 1 && machine ? ` on ${machine}` : ""}`;
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
function doesWords(
  job: Job,
  kind: VerdictKind,
  suspect: Suspect,
  alike: readonly Suspect[],
  findings: readonly Finding[],
): string {
  const { cause, type } = suspect;
  const advice = adviceFor(cause, kind);
  if (alike.length === 1 && advice.device !== undefined && isGpu(suspect)) {
    const xid = cause === "gpu-hang" ? kernelXidOf(job, suspect.ranks[0]!) : null;
    return xid === null ? advice.device : `stopped working: ${xid}`;
  }
  if (cause === "network-slow" && ["link", "nic", "switch"].includes(type))
    return alike.length > 1 ? "are slow" : "is slow";
  const ranks = alike.flatMap((one) => one.ranks);
  const own =
    kind === "crash" ? advice.crashed : kind === "hang" ? seenProcess(job, suspect, ranks) : null;
  const is = own ?? advice.is;
  const isOneOfMany = type === "machine" && alike.length === 1 && ranks.length > 1;
  if (isOneOfMany && cause === "process-gone" && (kind === "hang" || kind === "crash"))
    return is === NO_TRACE
      ? "left no trace: its processes are gone, or its files are missing"
      : `is gone: its ${ranks.length} processes died without an error message`;
  const isMany =
    type === "machine" ? alike.length > 1 : ranks.length > 1 && !isOfCode(kind, suspect, findings);
  return typeof is === "string" ? is : is[isMany ? 1 : 0];
}

/** What the operating system shows of processes that stopped or are gone; null where the advice's words fit. */
function seenProcess(job: Job, { cause, type }: Suspect, ranks: readonly Rank[]): OneOrMany | null {
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
function seenOf(
  job: Job,
  kind: VerdictKind,
  suspect: Suspect,
  findings: readonly Finding[],
): Seen | null {
  const ids = new Set(suspect.evidence);
  const own = findings.filter(({ id }) => ids.has(id));
  const does = doesWords(job, kind, suspect, [suspect], findings);
  return (
    measured(job, kind, suspect, findings) ??
    firstOf(own, (finding) => errorWords(finding, kind)) ??
    // Of a GPU that stopped, the CPU's stack shows a line that only waits for it.
    (isGpu(suspect) ? null : firstOf(own, (finding) => stackWords(finding, suspect, does))) ??
    figureOf(firstOf(own, (finding) => figureWords(finding, suspect, does)))
  );
}

function figureOf(seen: Seen | null): Seen | null {
  return seen && { ...seen, isFigure: true };
}

function firstOf(
  findings: readonly Finding[],
  words: (one: Finding) => string | null,
): Seen | null {
  for (const finding of findings) {
    const what = words(finding);
    if (what !== null) return { what, device: null };
  }
  return null;
}

/** Of its machine, and of its GPU where one is meant. */
function measured(
  job: Job,
  kind: VerdictKind,
  suspect: Suspect,
  findings: readonly Finding[],
): Seen | null {
  const machine = suspect.machine ?? suspect.name;
  if (machine === null || suspect.type === "link" || suspect.type === "switch") return null;
  const metrics = findings.flatMap((finding): readonly Measured[] => {
    const fact = factOf(finding, "odd-machine");
    return fact !== null && fact.machine === machine ? fact.metrics : [];
  });
  // Clocks and power of a job that stands still are those of idle GPUs: only errors tell what broke.
  const telling = kind === "hang" ? metrics.filter(isHealthCounter) : metrics;
  const index = isGpu(suspect) ? (job.ranks.get(suspect.ranks[0]!)?.gpu ?? null) : null;
  return physicalWords(telling, index === null ? null : `gpu${index}`);
}

function errorWords(finding: Finding, kind: VerdictKind): string | null {
  const error = factOf(finding, "own-error");
  if (error === null || kind !== "crash" || error.text === undefined) return null;
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
  const stacks = factOf(finding, "python-stacks");
  const [rank] = ranks;
  const at = rank === undefined || ranks.length > 1 ? null : (stacks?.outside?.[rank] ?? null);
  if (at !== null) return `${does}; its Python stands at ${cutText(at, MOST_QUOTE)}`;
  const call = factOf(finding, "open-call");
  if (call?.call !== undefined && ranks.length === 1)
    return `${does}; it stands in ${cutText(call.call, MOST_QUOTE)}`;
  return null;
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
  const regressed = factOf(finding, "regressed-metric");
  if (regressed?.call !== undefined) {
    const [now, healthy] = regressed.calls ?? [];
    const often =
      now === undefined || healthy === undefined
        ? ""
        : `, ${tidy(now)} times per step instead of ${tidy(healthy)}`;
    return `${does}: in ${cutText(regressed.call, MOST_QUOTE)}${often}`;
  }
  const code = factOf(finding, "stopped-rank")?.code;
  if (cause === "collective-mismatch" && code) return `${does}, at ${cutText(code, MOST_QUOTE)}`;
  const python = factOf(finding, "python-time");
  if (python?.extraMs !== undefined)
    return `${does}: ${durationWords(python.extraMs)} more per iteration`;
  return null;
}

function slowerWords(
  kind: VerdictKind,
  suspect: Suspect,
  findings: readonly Finding[],
  since: number | null,
): string | null {
  if (kind === "regression") {
    const ids = new Set(suspect.evidence);
    const regressed = findings
      .filter(({ id }) => ids.has(id))
      .map((finding) => factOf(finding, "regressed-metric"))
      .find((fact): fact is RegressedMetric => fact !== null);
    return regressed ? regressionWords(regressed) : null;
  }
  if (kind !== "fail-slow") return null;
  const slow = slowDownOf(findings.filter((finding) => factOf(finding, "slow-down")));
  const fact = slow && factOf(slow, "slow-down");
  if (!fact) return judgedTimes(suspect, findings) ?? roseWords(findings, since);
  // What is slow now and then is said in the effect.
  if (fact.intermittent) return null;
  // What the job takes longer since another time is not, or not all, because of this suspect.
  if (since !== null && Math.abs(since - fact.iteration) > SAME_ONSET) return null;
  // Durations in no unit: ratios hold, milliseconds do not.
  if (fact.wastedHours === null) return timesWords(fact.ratio);
  return `${timesWords(fact.ratio)}: ${durationWords(fact.beforeMs)} → ${durationWords(fact.afterMs)} per iteration`;
}

function timesWords(ratio: number): string {
  return `${ratio.toFixed(2)} times as long`;
}

/** Iterations before and since, as the operators that the judge compared show them. */
function judgedTimes({ evidence }: Suspect, findings: readonly Finding[]): string | null {
  for (const finding of findings) {
    const judged = factOf(finding, "slow-rank", "slow-device")?.judged;
    const { healthyMs = null, slowMs = 0 } = judged ?? {};
    if (!evidence.includes(finding.id) || healthyMs === null || slowMs <= healthyMs) continue;
    return `${timesWords(slowMs / healthyMs)}: ${durationWords(healthyMs)} → ${durationWords(slowMs)} per iteration`;
  }
  return null;
}

/** Of iterations too few to be sure that they became slower, which somebody became then. */
function roseWords(findings: readonly Finding[], since: number | null): string | null {
  for (const finding of findings) {
    const { riseFrom, riseRatio } = factOf(finding, "even-iterations") ?? {};
    if (riseFrom === undefined || riseRatio === undefined) continue;
    if (since !== null && Math.abs(since - riseFrom) > SAME_ONSET) continue;
    return `about ${riseRatio.toFixed(2)} times as long`;
  }
  return null;
}

/** Of a job that is slow now and then: how often, and by how much. */
function nowAndThen(kind: VerdictKind, findings: readonly Finding[]): string {
  if (kind !== "fail-slow") return "";
  for (const finding of findings) {
    const { intermittent, ratio = 1 } = factOf(finding, "slow-down") ?? {};
    if (intermittent) return `: ${intermittentWords(intermittent.slow, intermittent.of, ratio)}`;
  }
  return "";
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
  return `${(now / healthy).toFixed(2)} times as long as the baseline: ${figures}${part}`;
}

/** "the other" only where that is all of them: of some nothing may be known. */
function waitingWords(
  kind: VerdictKind,
  victims: readonly Rank[],
  suspects: readonly Suspect[],
  worldSize: number,
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
function slowBeforeWords(suspects: readonly Suspect[], findings: readonly Finding[]): string {
  const blamed = new Set(suspects.flatMap((one) => one.ranks));
  const ranks = findings
    .flatMap((finding) => factOf(finding, "slow-before-stop")?.ranks ?? [])
    .filter((rank) => !blamed.has(rank));
  if (ranks.length === 0) return "";
  return `; ${rankWords(ranks)} ${ranks.length === 1 ? "was" : "were"} slow before that`;
}

function tidy(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}
