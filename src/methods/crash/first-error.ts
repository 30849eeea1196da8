/**
 * crash/first-error: the process whose own error came first in cause, not in clock. Most of what a
 * crashed job prints are echoes (watchdogs, closed connections, aborts) of one process that died;
 * clocks of different hosts do not order them, and torchrun's "first observed failure" is the first
 * that one agent happened to see. So: own errors before echoes, a specific error before a generic
 * GPU error, and a process that fell silent while others report its connection closed. Who ends a job from outside is
 * its end, and the cause only where the job ran until then (before-the-end.ts).
 */
import { largest } from "../../base/numbers.ts";
import { count, cutText, rankWords } from "../../base/text.ts";
import {
  cameBefore,
  CLOCK_TOLERANCE_MS,
  connectionsClosedFirst,
  followsOn,
  isEnding,
  isTimeout,
  isWatchdogTimeout,
} from "../../model/connections.ts";
import { deadly } from "../../model/process-ended.ts";
import type { LogJudgement } from "../../model/facts.ts";
import type { Accusation, NewFinding, SuspectType } from "../../model/finding.ts";
import type { Place, Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { LogCause } from "../../model/log-report.ts";
import type { LogFailure } from "../../model/log.ts";
import type { Method } from "../../model/method.ts";
import { failuresOf } from "../../model/cause-failures.ts";
import { beforeTheEnd, type BeforeTheEnd } from "./before-the-end.ts";
import { kernelSawGpuOf } from "../../model/kernel-xid.ts";

export const firstError: Method = {
  id: "crash/first-error",
  applies: (job) => job.failures.length > 0 || job.torchrun.length > 0,
  *run(given) {
    const failures = deadly(given);
    const job = { ...given, failures };
    const judged = judgedCause(job);
    const own = ownFailures(job, judged);
    const echoes = failures.filter((failure) => failure.role === "echo");
    const before = beforeTheEnd(job, failures);
    const heard = [...ownFailures(job, undefined), ...echoes];
    const root = chooseRoot(job, own, echoes, before, { judged: judged ?? null, heard });
    if (root) yield root;
    else if (before.did === "stand still") yield* stoodStill(failures, before);
    const accused = root?.accuses.flatMap((accusation) => accusation.ranks) ?? [];
    // After the first error all errors are its consequences; where nobody knows whose was first, they are not.
    const victims =
      accused.length > 0
        ? new Set(given.failures.flatMap((failure) => failure.rank ?? []))
        : complaining(given.failures);
    for (const rank of accused) victims.delete(rank);
    if (echoes.length > 0) {
      const ranks = [...victims].sort((a, b) => a - b);
      const where = ranks.length > 0 ? ` on ${rankWords(ranks)}` : "";
      yield {
        says: `${count(echoes.length, "message")}${where} only report that another process is late or gone, first: ${cutText(echoes[0]!.text, 120)}`,
        weight: 0.3,
        at: echoes.slice(0, 3).map(placeOf),
        data: { fact: "echoed-errors", echoes: echoes.length, ranks },
        accuses: [],
        clears: ranks,
      };
    }
  },
};

/** Ranks that tell of others, and not of an error of their own before that. */
function complaining(failures: readonly LogFailure[]): Set<Rank> {
  const isFirstEcho = new Map<Rank, boolean>();
  for (const { rank, role } of failures)
    if (rank !== null && !isFirstEcho.has(rank)) isFirstEcho.set(rank, role === "echo");
  return new Set([...isFirstEcho].flatMap(([rank, isEcho]) => (isEcho ? rank : [])));
}

/**
 * What broke is the log report's to say, with its confidence; here is who was first. Null where it names nothing;
 * undefined where all lines were not read (a live agent's failures).
 */
function judgedCause({ logReport }: Job): LogCause | null | undefined {
  if (logReport === undefined) return undefined;
  return logReport.cause?.role === "root" ? logReport.cause : null;
}

/** The first own failure of each rank; a rank dies once. */
function ownFailures(job: Job, judged: LogCause | null | undefined): LogFailure[] {
  const first = new Map<string, LogFailure>();
  const named = new Set(judged ? failuresOf(job, judged) : []);
  // What a probe saw in a process is not the logs' to judge.
  const read = new Set(judged === undefined ? [] : job.logDigest?.files.map(({ name }) => name));
  const isAfterEnd = followsOn(job.failures.filter(isEnding));
  const isAfterTimeout = followsOn(job.failures.filter(isTimeout));
  for (const failure of job.failures) {
    if (failure.role !== "own" || isEnding(failure)) continue;
    if (read.has(failure.file) && !named.has(failure)) continue;
    // What the logs' judgement names is no aftermath. Otherwise: processes that are asked to end fail in many ways, and
    // signals that follow a time-out are how a hang ends.
    const isSignal = failure.cause === "process-gone" || failure.cause === "unknown";
    const isSequel = isAfterEnd(failure) || (isSignal && isAfterTimeout(failure));
    if (!named.has(failure) && (isSequel || isAftermath(job, failure))) continue;
    const key = failure.rank === null ? failure.file : String(failure.rank);
    const known = first.get(key);
    if (!known || specificity(job, failure) > specificity(job, known)) first.set(key, failure);
  }
  return [...first.values()];
}

/** In a merged log without prefixes nobody's GPU error that follows a timeout belongs to the timeout. */
function isAftermath(job: Job, failure: LogFailure): boolean {
  if (failure.rank !== null || specificity(job, failure) > 2) return false;
  return job.failures.some(
    (other) => other.file === failure.file && other.line < failure.line && other.role === "echo",
  );
}

/**
 * How much an error says about its own process: a generic GPU error is often somebody else's, unless the
 * kernel tells of the same GPU.
 */
function specificity(job: Job, failure: LogFailure): number {
  if (failure.cause === "gpu-error") return kernelSawGpuOf(job, failure.rank) ? 3 : 1;
  if (failure.cause === "process-gone" || failure.cause === "unknown") return 2;
  return 3;
}

function chooseRoot(
  job: Job,
  own: readonly LogFailure[],
  echoes: readonly LogFailure[],
  before: BeforeTheEnd,
  { judged, heard }: { judged: LogCause | null; heard: readonly LogFailure[] },
): NewFinding | null {
  const best = largest(
    own.map((failure) => specificity(job, failure)),
    0,
  );
  const candidates = own.filter((failure) => specificity(job, failure) === best);
  const silent = best === 3 ? [] : silentDeaths(job, heard);
  // A generic GPU error beside a silent process: who shares a GPU or a kernel with it suffers that too.
  if (silent.length > 0 && !(best === 1 && cameBeforeClosing(candidates, echoes))) {
    return silentFinding(job, silent, echoes, judged);
  }
  if (candidates.length > 0) {
    const named = new Set(judged ? failuresOf(job, judged) : []);
    const by = candidates.every((failure) => named.has(failure)) ? judged : null;
    return ownFinding(job, withRank(job, candidates, heard), by);
  }
  // Others than the processes themselves say what broke: how they ended then says no more.
  if (judged && judged.cause !== "scheduler" && judged.confidence >= SURE) return null;
  const endings = job.failures.filter(isEnding);
  const isStill = before.did === "stand still";
  const exited = torchrunFinding(job, isStill || endings.length > 0);
  return exited ?? (isStill || endings.length === 0 ? null : endFinding(endings, before, judged));
}

/** What the logs say so surely needs no exit codes beside it. */
const SURE = 0.5;

/** What the judgement adds to a finding about those who tell of it. */
function judgement(judged: LogCause | null): LogJudgement {
  if (!judged) return {};
  const { category, signature: record, confidence: logConfidence } = judged;
  return { category, record, logConfidence };
}

/** Nobody's fault inside the job. */
function endFinding(
  endings: readonly LogFailure[],
  before: BeforeTheEnd,
  judged: LogCause | null,
): NewFinding {
  const { text, signature } = earliest(endings);
  const why = `the job was ended from outside: ${cutText(text, 160)}`;
  return {
    says: before.says === "" ? why : `${why}; ${before.says}`,
    weight: 0.92,
    at: endings.slice(0, 6).map(placeOf),
    data: {
      fact: "ended-from-outside",
      signature,
      ranUntilEnd: before.did === "run",
      ...judgement(judged?.cause === "scheduler" ? judged : null),
    },
    accuses: [accuse("rank", [], "scheduler", 0.92, why)],
    clears: [],
  };
}

/** How it ended explains nothing then; that it stood still is news where the watchdog does not say so. */
function* stoodStill(failures: readonly LogFailure[], before: BeforeTheEnd): Generator<NewFinding> {
  const ending = failures.find(isEnding);
  if (!ending && failures.some(isWatchdogTimeout)) return;
  const end = ending ? ` before it was ended (${cutText(ending.text, 120)})` : "";
  yield {
    says: `the job hung${end}: ${before.says}`,
    weight: 0.3,
    at: [...before.at, ...(ending ? [placeOf(ending)] : [])],
    data: {
      fact: "stood-still",
      stoodStill: true,
      ...(before.sinceMs === null ? {} : { since: new Date(before.sinceMs).toISOString() }),
    },
    accuses: [],
    clears: [],
  };
}

/**
 * Ranks whose log simply ends (no error, no echo, no answer to a call for dumps) while others report
 * a closed connection before any operator timed out: killed from outside.
 */
function silentDeaths(job: Job, named: readonly LogFailure[]): Rank[] {
  if (connectionsClosedFirst(job) !== true) return [];
  const heard = new Set<Rank>();
  for (const failure of named) if (failure.rank !== null) heard.add(failure.rank);
  for (const report of job.watchdog) if (report.rank !== null) heard.add(report.rank);
  const ended = [...job.logs.values()]
    .filter(
      (log) => log.rank !== null && !heard.has(log.rank) && !log.finished && log.dumpLine <= 0,
    )
    .map((log) => log.rank!);
  if (ended.length > 0) return ended.sort((a, b) => a - b);
  // A rank that finished in order closes its connections too.
  if ([...job.logs.values()].some((log) => log.finished)) return [];
  // All logs that are here speak: then a missing one is that of the process that is gone.
  const unlogged = [...job.ranks.keys()].filter((rank) => !job.logs.has(rank) && !heard.has(rank));
  return unlogged.length * 4 <= job.worldSize ? unlogged : [];
}

function isWholeMachine(job: Job, ranks: readonly Rank[]): boolean {
  const machine = job.ranks.get(ranks[0]!)?.machine ?? null;
  const size = [...job.ranks.values()].filter((one) => one.machine === machine).length;
  return machine !== null && size === ranks.length;
}

function cameBeforeClosing(own: readonly LogFailure[], echoes: readonly LogFailure[]): boolean {
  const first = earliest(own);
  const closed = echoes.filter((failure) => failure.cause === "process-gone");
  return closed.length > 0 && clearlyLater(earliest(closed), first);
}

function silentFinding(
  job: Job,
  ranks: readonly Rank[],
  echoes: readonly LogFailure[],
  judged: LogCause | null,
): NewFinding {
  const closed = echoes.filter((failure) => failure.cause === "process-gone");
  const logged = ranks.every((rank) => job.logs.has(rank));
  const leaving = ranks.length === 1 ? lastWords(job, ranks[0]!) : null;
  if (leaving) return leaving;
  const what = logged ? "ends without an error" : "is missing";
  const why = `the log of ${rankWords(ranks)} ${what}, and other ranks report that their peer closed the connection: the process died without reporting an error`;
  const places = new Set(ranks.map((rank) => job.ranks.get(rank)?.machine ?? `rank ${rank}`)).size;
  const few = places === 1 ? 0.85 : places <= 3 ? 0.6 : 0.3;
  // One rank may die alone; several on one machine died of the same thing, if they are all of it.
  const weight =
    (ranks.length > 1 && places === 1 && !isWholeMachine(job, ranks) ? 0.6 : few) *
    (logged ? 1 : 0.6);
  return {
    says: why,
    weight,
    at: [
      ...ranks.slice(0, 4).flatMap((rank) => endOfLog(job, rank)),
      ...closed.slice(0, 2).map(placeOf),
    ],
    data: {
      fact: "silent-end",
      silent: ranks,
      ...judgement(judged?.cause === "process-gone" ? judged : null),
    },
    accuses: ranks.map((rank) => accuse("rank", [rank], "process-gone", weight, why)),
    clears: [],
  };
}

/** A program that stops by itself says why in words of its own: as an error, or that it leaves. */
const LEAVES =
  /\b(?:ERROR|CRITICAL|FATAL)\b|\b(?:exit(?:ing|ed)?|abort(?:ing|ed)|giving up|gave up|stopping|quitting|bailing out|finished|done|complete[d]?|exhausted)\b/i;
const LEFT_WEIGHT = 0.6;

function lastWords(job: Job, rank: Rank): NewFinding | null {
  const log = job.logs.get(rank);
  if (!log || !LEAVES.test(log.lastText)) return null;
  const why = `rank ${rank} exited on its own while the others continued; its last line was: ${cutText(log.lastText, 160)}`;
  return {
    says: why,
    weight: LEFT_WEIGHT,
    at: endOfLog(job, rank),
    data: { fact: "silent-end", silent: [rank] },
    accuses: [accuse("rank", [rank], "user-program", LEFT_WEIGHT, why)],
    clears: [],
  };
}

/** An error that names no rank (the kernel's log of a machine) is that of the one process that was killed. */
function withRank(
  job: Job,
  failures: readonly LogFailure[],
  heard: readonly LogFailure[],
): readonly LogFailure[] {
  const named = failures.filter((failure) => failure.rank !== null);
  if (named.length > 0) return named;
  const killed = job.torchrun
    .filter((failure) => failure.signal === "SIGKILL")
    .map(({ rank }) => rank);
  const gone = killed.length > 0 ? killed : silentDeaths(job, heard);
  return gone.length === 1 ? failures.map((failure) => ({ ...failure, rank: gone[0]! })) : failures;
}

function ownFinding(
  job: Job,
  candidates: readonly LogFailure[],
  judged: LogCause | null,
): NewFinding {
  const ranks = [...new Set(candidates.flatMap((failure) => failure.rank ?? []))].sort(
    (a, b) => a - b,
  );
  const first = earliest(candidates);
  const at = candidates.slice(0, 6).map(placeOf);
  const common = candidates.every(
    (failure) => failure.signature === first.signature && failure.at === first.at,
  );
  const where = first.at ? ` at ${first.at}` : "";
  const quote = cutText(first.text, 160);
  const raised = ranks.length > 0 ? ranks.length : printed(job, first);
  const isAll = ranks.length > 1 && ranks.length === job.worldSize;
  if (common && (isAll || (raised > 2 && raised > job.worldSize / 2))) {
    const who = ranks.length > 0 ? count(raised, "rank") : "many processes";
    const why = `${who} died of the same error${where}: ${quote}`;
    const weight = 0.85;
    const cause = judged?.cause ?? first.cause;
    const type: SuspectType = cause === "user-config" ? "config" : "code";
    return {
      says: why,
      weight,
      at,
      data: {
        fact: "own-error",
        signature: first.signature,
        code: first.at,
        text: quote,
        ...judgement(judged),
      },
      accuses: [accuse(type, ranks, cause, weight, why)],
      clears: [],
    };
  }
  // Several ranks with errors of their own: the ones that nothing else explains share the blame,
  // unless the clock of one host, or a clear second between hosts, orders them.
  const suspects = candidates.filter(
    (failure) => failure === first || !clearlyLater(failure, first),
  );
  const weight = suspects.length === 1 ? (specificity(job, first) === 3 ? 0.92 : 0.8) : 0.75;
  // Whose process it was nobody says; whose machine, where that is what broke, the line may.
  const machine = ranks.length === 0 ? brokenMachine(judged) : null;
  const accuses = suspects.map((failure) => ({
    ...accuse(
      machine === null ? "rank" : "machine",
      failure.rank === null ? [] : [failure.rank],
      judged?.cause ?? failure.cause,
      weight,
      `${failure.rank === null ? "a process" : `rank ${failure.rank}`} died of its own error${failure.at ? ` at ${failure.at}` : ""}: ${cutText(failure.text, 160)}`,
    ),
    ...(machine === null ? {} : { name: machine }),
  }));
  return {
    says: accuses[0]!.why,
    weight,
    at,
    data: {
      fact: "own-error",
      signature: first.signature,
      code: first.at,
      text: quote,
      ranks,
      ...judgement(judged),
    },
    accuses,
    clears: [],
  };
}

function brokenMachine(judged: LogCause | null): string | null {
  const [machine, ...others] = judged?.nodes ?? [];
  const isMachines = judged?.category.startsWith("hardware.") || judged?.cause === "host-memory";
  if (machine === undefined || others.length > 0 || !isMachines) return null;
  return /^rank \d/.test(machine) ? null : machine;
}

/** How often nobody in particular printed the same: without prefixes as many did, or nearly. */
function printed({ failures }: Job, { file, signature, at }: LogFailure): number {
  return failures
    .filter(
      (one) =>
        one.rank === null && one.file === file && one.signature === signature && one.at === at,
    )
    .reduce((sum, { times = 1 }) => sum + times, 0);
}

function earliest(failures: readonly LogFailure[]): LogFailure {
  return failures.reduce((first, next) =>
    (next.timeMs ?? Infinity) < (first.timeMs ?? Infinity) ? next : first,
  );
}

function clearlyLater(failure: LogFailure, first: LogFailure): boolean {
  if (failure.timeMs === null || first.timeMs === null) return false;
  return failure.timeMs > first.timeMs + CLOCK_TOLERANCE_MS;
}

/**
 * Exit codes alone: what is neither a clean-up by the launcher nor an abort after a watchdog. Of a job that was ended, or
 * stood still: what came before that. The report itself is always last; its entries have times.
 */
function torchrunFinding(job: Job, isEnded: boolean): NewFinding | null {
  const stops = job.failures.filter((one) => isEnding(one) || isTimeout(one));
  const telling = job.torchrun.filter(
    (failure) =>
      !/SIGTERM|SIGABRT/.test(failure.signal) &&
      stops.every((stop) => cameBefore({ ...failure, file: "" }, stop)),
  );
  const candidates = telling.length > 0 || isEnded ? telling : job.torchrun;
  if (candidates.length === 0) return null;
  const killed = candidates.filter((failure) => failure.signal === "SIGKILL");
  const chosen = killed.length > 0 ? killed : candidates.filter((failure) => failure.isFirst);
  const roots = chosen.length > 0 ? chosen : candidates.slice(0, 1);
  const weight = roots.length === 1 ? 0.6 : 0.4;
  const accuses = roots.slice(0, 4).map((failure) => {
    const end = failure.signal
      ? `was ended by ${failure.signal}`
      : `exited with code ${failure.exitCode}`;
    const cause = failure.signal ? "process-gone" : "user-program";
    return accuse(
      "rank",
      [failure.rank],
      cause,
      weight,
      `the process of rank ${failure.rank} ${end}, as torchrun reports`,
    );
  });
  return {
    says: accuses[0]!.why,
    weight,
    at: roots.slice(0, 4).map(({ file, line }) => ({ file, line })),
    data: {
      fact: "exit-codes",
      exitCodes: Object.fromEntries(
        job.torchrun.map((failure) => [failure.rank, failure.exitCode]),
      ),
    },
    accuses,
    clears: [],
  };
}

function accuse(
  type: SuspectType,
  ranks: readonly Rank[],
  cause: Accusation["cause"],
  weight: number,
  why: string,
): Accusation {
  return { kind: "crash", type, ranks, link: null, cause, weight, why };
}

function placeOf(failure: LogFailure): Place {
  return { file: failure.file, line: failure.line };
}

function endOfLog(job: Job, rank: Rank): Place[] {
  const log = job.logs.get(rank);
  if (!log) return [];
  return [log.lastLine > 0 ? { file: log.file, line: log.lastLine } : { file: log.file }];
}
