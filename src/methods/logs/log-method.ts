/**
 * What the logs say, for a verdict that other evidence joins. What a process tells of itself is `crash/first-error`'s to
 * put into a finding, with who was first; here is what others tell: kernels, drivers, networks, storage, schedulers.
 */
import type { FaultMatchers } from "../../library/matcher.ts";
import { shippedMatchers } from "../../library/shipped.ts";
import type { Category } from "../../model/fault-record.ts";
import type { NewFinding, SuspectType } from "../../model/finding.ts";
import type { Job } from "../../model/job.ts";
import type { IndicatingLine, LogCause, LogReport } from "../../model/log-report.ts";
import { isLogsAlone } from "../../model/logs-alone.ts";
import type { Method } from "../../model/method.ts";
import { processEnded } from "../../model/process-ended.ts";
import { failuresOf } from "../../model/cause-failures.ts";
import { analyseLogs } from "./analyse-logs.ts";
import type { NormalPool } from "./cross-job.ts";
import { EXCEPTION } from "./known-lines.ts";
import { count, cutText, rankWords } from "../../base/text.ts";
import { isWatchdogTimeout } from "../../model/connections.ts";
import type { Rank } from "../../model/ids.ts";

/** Who says so must be few to be accused of it. */
const MOST_RANKS = 8;
const MOST_NODES = 2;
const BLOCKED = /task \S+:(\d{1,10}) blocked for more than/;

interface AccusedRanks {
  readonly ranks: readonly Rank[];
  /** What narrowed a machine down, for people; "" where nothing did. */
  readonly because: string;
  /** Whether all who could be meant are known to wait for others. */
  readonly isNobody?: boolean;
}

/** What is known beside the logs themselves: records of faults, and what healthy jobs say. */
export interface LogKnowledge {
  readonly matchers: FaultMatchers;
  readonly pool: NormalPool;
}

const NO_POOL = { jobs: 0, has: () => false, hasRecord: () => false };

/** What methods build on: the judgement of all that the logs say, made once. */
export function withLogReport(job: Job, known?: LogKnowledge): Job {
  if (job.logDigest === undefined) return job;
  const { matchers, pool } = known ?? { matchers: shippedMatchers(), pool: NO_POOL };
  return { ...job, logReport: analyseLogs(job.logDigest, matchers, pool) };
}

/** What stands for each category among suspects. */
const SUSPECT: Readonly<Record<Category, SuspectType>> = {
  "hardware.network": "nic",
  "hardware.accelerator": "gpu",
  "hardware.node": "machine",
  "hardware.storage": "storage",
  "user.config": "config",
  "user.program": "code",
  "user.software": "config",
  "user.misoperation": "config",
  framework: "code",
  platform: "config",
};
/** Processes that use it wait: it is a crash only where a process ended. */
const MAKES_WAIT: readonly Category[] = ["hardware.network", "hardware.storage"];
/** A guess is shown as one, but shown: what a verdict may name at all begins here. */
const LEAST_WEIGHT = 0.45;
/** Beside other evidence a guess is none. */
const LEAST_BESIDE = 0.35;

export const logCause: Method = {
  id: "logs/library",
  applies: ({ logReport: report }) =>
    report !== undefined && (report.cause !== null || unexplained(report).length > 0),
  *run(job) {
    const report = job.logReport!;
    if (report.cause !== null) yield findingOf(job, report, report.cause);
    const lines = unexplained(report);
    if (lines.length > 0) yield unexplainedFinding(lines, report);
  },
};

/** Kinds of lines that are named. */
const MOST_UNEXPLAINED = 8;

/** Beside a known cause only what healthy jobs never write: there, other differences follow from the cause as a rule. */
function unexplained({ cause, indicating }: LogReport): readonly IndicatingLine[] {
  const kinds = new Map<string, IndicatingLine>();
  for (const line of indicating) {
    const isNew = line.signature === null && (cause === null || line.why.includes("cross-job"));
    if (isNew && !kinds.has(line.template)) kinds.set(line.template, line);
    if (kinds.size === MOST_UNEXPLAINED) break;
  }
  return [...kinds.values()];
}

/** A fact for people, which accuses nobody: what nobody knows may be harmless. */
function unexplainedFinding(lines: readonly IndicatingLine[], report: LogReport): NewFinding {
  const [first] = lines as [IndicatingLine];
  const where = first.node === null ? "" : ` on ${first.node}`;
  const time = first.timeMs === null ? null : timeText(first.timeMs);
  const when = time === null ? "" : ` at ${time}`;
  const against = first.why.includes("cross-job")
    ? `not in the logs of ${count(report.healthyJobs, "healthy job")}`
    : first.why.includes("spatial")
      ? "unlike other nodes"
      : "not seen in earlier iterations";
  const others =
    lines.length === 1 ? "" : `; ${count(lines.length - 1, "more kind")} of such lines`;
  return {
    says: `the library does not know this line, which is ${against}${where}${when}: ${cutText(first.text, MOST_SAID)}${others}`,
    weight: 0,
    at: lines.map(({ file, line }) => ({ file, line })),
    data: {
      fact: "unexplained-lines",
      lines: lines.map(({ text, file, line, count: of, node, rank, timeMs, why }) => ({
        text: cutText(text, MOST_TEXT),
        file,
        line,
        count: of,
        node,
        rank,
        time: timeMs === null ? null : timeText(timeMs),
        why,
      })),
    },
    accuses: [],
    clears: [],
  };
}

const MOST_SAID = 160;
const MOST_TEXT = 500;

/** Earlier times are none: of lines that name no year (ingest puts them into 2000), or that count from a start. */
const FIRST_DATE_MS = Date.UTC(2001, 0);

function timeText(ms: number): string | null {
  return ms >= FIRST_DATE_MS ? new Date(ms).toISOString() : null;
}

function findingOf(job: Job, report: LogReport, cause: LogCause): NewFinding {
  const { category, confidence, nodes } = cause;
  const where = nodes.length > 0 && nodes.length <= 3 ? ` (${nodes.join(", ")})` : "";
  const says = `the logs say: ${cause.title}${where}`;
  const kind = isHang(job, cause) ? "hang" : "crash";
  const { ranks, because, isNobody = false } = accusedRanks(job, cause, kind);
  const why = because === "" ? says : `${says}; ${because}`;
  const isGuess = cause.role !== "root";
  const isAlone = isLogsAlone(job);
  const isAccused =
    cause.cause !== "unknown" &&
    !isNobody &&
    (isAlone ? isTold(cause, kind) : isMachines(cause) && ranks.length > 0) &&
    (isGuess || kind === "hang" || failuresOf(job, cause).length === 0);
  const weight = isAlone ? Math.max(LEAST_WEIGHT, isGuess ? 0 : confidence) : confidence;
  return {
    says: why,
    weight: confidence,
    at: cause.at ? [{ file: cause.at.file, line: cause.at.line }] : [],
    data: {
      fact: "log-cause",
      category,
      signature: cause.signature,
      owner: cause.owner,
      action: cause.action,
      stage: report.stage,
      captures: cause.captures,
      nodes: report.nodes.slice(0, 5).map(({ node, score }) => ({ node, score })),
      logConfidence: confidence,
      ...(isGuess ? { isGuess } : {}),
      ...(isAlone && kind === "hang" && !isAccused ? { stoodStill: true } : {}),
    },
    accuses: isAccused
      ? [
          {
            kind,
            type: SUSPECT[category],
            ranks: isGuess ? [] : ranks,
            link: null,
            name: nodes.length === 1 && !/^rank \d/.test(nodes[0]!) ? nodes[0]! : null,
            cause: cause.cause,
            weight,
            why,
          },
        ]
      : [],
    clears: [],
  };
}

/** A symptom accuses nobody in particular, and of a hang nobody at all: others may know for whom all wait. */
function isTold({ role }: LogCause, kind: "hang" | "crash"): boolean {
  return role === "root" || kind === "crash";
}

/** Beside dumps, stacks and traces the logs speak for what those do not see: machines, networks, storage, platforms. */
function isMachines({ role, category, confidence }: LogCause): boolean {
  return role === "root" && confidence >= LEAST_BESIDE && /^hardware|^platform/.test(category);
}

/** Of what no line says by itself, timeouts and silence are how a hang looks. */
function isHang(job: Job, { category, signature, at }: LogCause): boolean {
  if (/^context\.(?:timeout|rank|first)|^torch\.watchdog|^silence\.stalled/.test(signature))
    return true;
  // An exception ends the process that raises it, whichever others wait.
  const isRaised = EXCEPTION.test(at?.text ?? "");
  return MAKES_WAIT.includes(category) && !processEnded(job) && !isRaised;
}

/**
 * Whose processes a cause is about: who wrote it, else whose the machine is, less those that only wait for others.
 */
function accusedRanks(
  job: Job,
  { ranks, nodes, category }: Pick<LogCause, "ranks" | "nodes" | "category">,
  kind: "hang" | "crash",
): AccusedRanks {
  if (ranks.length > 0) return { ranks: ranks.length <= MOST_RANKS ? [...ranks] : [], because: "" };
  if (nodes.length === 0 || nodes.length > MOST_NODES) return { ranks: [], because: "" };
  const on = [...job.ranks.values()]
    .filter(({ machine }) => machine !== null && nodes.includes(machine))
    .map(({ rank }) => rank)
    .sort((a, b) => a - b);
  // A network that does not carry anything holds everybody inside communication, and so tells nobody apart.
  if (kind !== "hang" || category !== "hardware.storage") return { ranks: on, because: "" };
  const blocked = blockedRanks(job, on);
  if (blocked.length > 0)
    return { ranks: blocked, because: `the kernel says that ${rankWords(blocked)} is blocked` };
  return outsideCommunication(job, on);
}

/** Processes that the kernel calls blocked; ids are unique on a machine only. */
function blockedRanks(job: Job, on: readonly Rank[]): Rank[] {
  const pids = new Set(
    job.failures.flatMap(({ role, text }) => {
      const pid = role === "stall" ? BLOCKED.exec(text)?.[1] : undefined;
      return pid === undefined ? [] : [Number(pid)];
    }),
  );
  if (pids.size === 0) return [];
  return on.filter((rank) => {
    const pid = job.ranks.get(rank)?.pid ?? job.stacks.get(rank)?.pid ?? null;
    return pid !== null && pids.has(pid);
  });
}

/** Who waits for storage has no operator that times out: those of the machine that had one wait for somebody else. */
function outsideCommunication(job: Job, on: readonly Rank[]): AccusedRanks {
  const waits = new Set(job.failures.filter(isWatchdogTimeout).map(({ rank }) => rank));
  const left = on.filter((rank) => !waits.has(rank));
  if (left.length === on.length) return { ranks: on, because: "" };
  if (left.length === 0)
    return {
      ranks: [],
      because: "but all ranks there wait in communication, like the others",
      isNobody: true,
    };
  return {
    ranks: left,
    because: `no operator of ${rankWords(left)} timed out, unlike the others' there`,
  };
}
