/** Settles who wrote what, and puts a log's findings into the model's words. */
import { smallest } from "../../base/numbers.ts";
import type {
  LogFailure,
  LogGroup,
  RankLog,
  TorchrunFailure,
  WatchdogReport,
} from "../../model/log.ts";
import type { Defect, Reading } from "../../model/reading.ts";
import { settle, TEXT_CHARS } from "../failure-class.ts";
import type { OpenFailure } from "../failure-class.ts";
import type { FirstAndLast } from "../first-and-last.ts";
import { parseStamp, resolveStamp } from "../log-time.ts";
import type { NcclProcesses } from "../nccl-lines.ts";
import { isNotice } from "./classify.ts";
import type { IterationLines } from "./iteration-lines.ts";
import type { Found, Stream } from "./stream.ts";
import type { Streams } from "./streams.ts";
import { EXIT_STATUS, type OpenTorchrun } from "./torchrun.ts";
import type { OpenGroup, OpenReport } from "./watchdog.ts";

export interface LogFindings {
  readonly file: string;
  readonly lines: number;
  readonly streams: Streams;
  readonly found: FirstAndLast<Found>;
  readonly reports: FirstAndLast<OpenReport>;
  readonly torchrun: FirstAndLast<OpenTorchrun>;
  readonly groups: readonly OpenGroup[];
  readonly processes: NcclProcesses;
  readonly iterations: IterationLines;
  /** 0 where no line says. */
  readonly worldSize: number;
  readonly fullTimeMs: number | null;
}

export function buildReading(of: LogFindings): Reading {
  const { file, streams, fullTimeMs } = of;
  const fileRank = streams.settle(file, of.worldSize);
  const rankOf = (stream: Stream): number | null => streams.rankOf(stream);
  return {
    file,
    format: "rank-log",
    rank: fileRank,
    records: of.lines,
    defects: defectsOf(of),
    failures: failuresOf(of, rankOf),
    watchdog: of.reports.entries.map((r): WatchdogReport => {
      const { stream, stamp, rank, ...report } = r;
      return {
        ...report,
        rank: rankOf(stream) ?? rank,
        file,
        timeMs: resolveStamp(stamp, fullTimeMs),
      };
    }),
    logGroups: groupsOf(of, rankOf),
    torchrun: of.torchrun.entries.map((t): TorchrunFailure => {
      const { local: _, stamp, ...failure } = t;
      return { ...failure, file, timeMs: resolveStamp(stamp, fullTimeMs) };
    }),
    rankLogs: rankLogsOf(of, rankOf),
    series: of.iterations.series({ file, streams: streams.all, rankOf, fileRank, fullTimeMs }),
    ncclProcesses: of.processes.list,
    worldSize: of.worldSize,
  };
}

/** A rank introduces a group with and without its prefix; first without its description. */
function groupsOf(of: LogFindings, rankOf: (stream: Stream) => number | null): LogGroup[] {
  const groups = new Map<string, LogGroup>();
  for (const { stream, ...group } of of.groups) {
    const rank = rankOf(stream);
    if (rank === null) continue;
    const known = groups.get(`${rank} ${group.name}`);
    const desc = known?.desc || group.desc;
    groups.set(`${rank} ${group.name}`, { ...group, rank, desc, size: known?.size || group.size });
  }
  return [...groups.values()];
}

function defectsOf({ file, found, reports, torchrun, iterations }: LogFindings): Defect[] {
  const defects: Defect[] = iterations.defects(file);
  const left = [
    [found.dropped, "failures"],
    [reports.dropped, "watchdog reports"],
    [torchrun.dropped, "entries of torchrun's report"],
  ] as const;
  for (const [count, what] of left) {
    if (count > 0)
      defects.push({ file, what: `${count} ${what} between the first and the last were left out` });
  }
  return defects;
}

function failuresOf(of: LogFindings, rankOf: (stream: Stream) => number | null): LogFailure[] {
  // torchrun's report tells more than the line before it.
  const reported = of.torchrun.entries.length > 0;
  // Writers whose ranks are unknown are still different processes.
  const byProcess = new Map<number | Stream, OpenFailure[]>();
  for (const found of of.found.entries) {
    if (reported && found.class.signature === EXIT_STATUS) continue;
    const rank = rankOfFailure(found, of, rankOf);
    const list = byProcess.get(rank ?? found.stream) ?? [];
    byProcess.set(rank ?? found.stream, list);
    list.push({
      canBeAftermath: found.class.canBeAftermath ?? false,
      progressLine: found.progressLine,
      failure: {
        rank,
        file: of.file,
        line: found.line,
        timeMs: resolveStamp(found.stamp, of.fullTimeMs),
        role: found.class.role,
        cause: found.class.cause,
        signature: found.class.signature,
        text: found.text.slice(0, TEXT_CHARS),
        at: found.at,
      },
    });
  }
  const inOrder = (a: OpenFailure, b: OpenFailure): number => a.failure.line - b.failure.line;
  return [...byProcess.values()]
    .flatMap((list) => settle(list.sort(inOrder)))
    .sort((a, b) => a.line - b.line);
}

function rankOfFailure(
  found: Found,
  of: LogFindings,
  rankOf: (stream: Stream) => number | null,
): number | null {
  const { about, stream } = found;
  if (about && "local" in about) return of.streams.rankOfLocal(about.local);
  if (about && "rank" in about) return about.rank;
  return rankOf(stream) ?? (about ? of.processes.rankOf(about.host, about.pid) : null);
}

function rankLogsOf(of: LogFindings, rankOf: (stream: Stream) => number | null): RankLog[] {
  const byRank = new Map<number | null, Stream[]>();
  for (const stream of of.streams.all) {
    if (stream.lines === 0) continue;
    const rank = rankOf(stream);
    byRank.set(rank, [...(byRank.get(rank) ?? []), stream]);
  }
  const time = (text: string): number | null => resolveStamp(parseStamp(text), of.fullTimeMs);
  return [...byRank].map(([rank, streams]): RankLog => {
    const latest = (line: (s: Stream) => number): Stream =>
      streams.reduce((best, s) => (line(s) > line(best) ? s : best));
    const iteration = latest((s) => s.iterationLine);
    const last = latest((s) => s.lastLine);
    const words = last.lastText.trim().slice(0, TEXT_CHARS);
    const saysSomething = words !== "" && !isNotice(words);
    const dumps = streams.map((s) => s.dumpLine).filter((line) => line > 0);
    return {
      rank,
      file: of.file,
      lines: streams.reduce((n, s) => n + s.lines, 0),
      lastIteration: iteration.lastIteration,
      lastIterationLine: Math.max(0, iteration.iterationLine),
      lastLine: saysSomething ? last.lastLine : 0,
      lastText: saysSomething ? words : "",
      lastTimeMs: saysSomething ? time(last.lastStamped) : null,
      finished: streams.some((s) => s.finished),
      dumpLine: dumps.length > 0 ? smallest(dumps, Infinity) : 0,
    };
  });
}
