/**
 * What PyTorch's watchdog says of a process group: which operator timed out, and how far this rank had got. Read
 * here for PyTorch 1.13 to 2.11. Defined in pytorch/pytorch: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
 * (logPrefix, checkTimeout, watchdog and heartbeat messages) and TraceUtils.h (the desync report).
 */
import { getOrInsert } from "../../base/group-by.ts";
import type { Stamp } from "../log-time.ts";
import type { Stream } from "./stream.ts";

const NOT_JOINED = /\[([\d, ]{1,2000})\] finished collective #(\d{1,15}), but didn't join/;
const NOT_FINISHED = /\[([\d, ]{1,2000})\] joined but didn't finish collective #(\d{1,15})/;
const NEVER_JOINED = /ranks \[([\d, ]{1,2000})\] are the lagging ranks that caused/;

interface Lagging {
  /** Within the process group that the report is about. */
  readonly ranks: readonly number[];
  readonly enqueued: number;
  readonly completed: number;
}

/** "[PG ID 2 PG GUID 5(DATA_PARALLEL_0) Rank 1]"; until 2.4 "[PG 5 Rank 1]" and "[PG 5 (DATA_PARALLEL_0) Rank 1]". */
const GROUP =
  /\[PG (?:ID \d{1,9} PG GUID )?([^\s(\]]{1,120})(?: ?\(([^)\]]{0,200})\))? Rank (-?\d{1,9})\]/;
const WORK =
  /WorkNCCL\((?:SeqNum=(\d{1,15}), )?OpType=(\w{1,60})(?:, NumelIn=(\d{1,15}), NumelOut=(\d{1,15}))?/;
const BRACKET = /\[Rank (\d{1,9})\]/;
const FRONTIER =
  /at (?:NCCL )?work(?: sequence id)?: (\d{1,15})[,.]? (?:PG status: )?last enqueued (?:NCCL )?work: (-?\d{1,15}), last completed (?:NCCL )?work: (-?\d{1,15})/;
const STATUS =
  /Last enqueued NCCL work: (-?\d{1,15}), last completed (?:NCCL work)?: ?(-?\d{1,15})/;
const OPTIONS = /initialization options: .{0,200}?\bsize: (\d{1,9}), global rank: (\d{1,9})/;
/** Until 2.2 messages carry no time; their rank is all that tells the writer in a log without prefixes. */
const OLD_STYLE = /\[[EWIF] ProcessGroup/;

/** Where the text of a report is repeated: as the watchdog thread ends, in an exception, in what(). */
const REPEATED = /terminated with exception|what\(\):|Original reason|Error: /;
/** How many reports of one writer may wait for their second line. */
const MAX_OPEN = 64;

export interface OpenReport {
  readonly stream: Stream;
  /** Known only where the message itself names it. */
  readonly rank: number | null;
  readonly line: number;
  readonly stamp: Stamp | null;
  group: string;
  desc: string;
  groupRank: number;
  readonly seq: number;
  op: string;
  numelIn?: number;
  numelOut?: number;
  enqueued: number;
  completed: number;
}

export interface OpenGroup {
  readonly stream: Stream;
  readonly name: string;
  desc: string;
  readonly groupRank: number;
  size: number;
}

export class WatchdogLines {
  readonly #add: (report: OpenReport) => void;
  readonly #open = new Map<Stream, OpenReport[]>();
  readonly #groups = new Map<Stream, Map<string, OpenGroup>>();
  #lagging: Lagging[] = [];
  /** Members of the default group, 0 where no line says. */
  worldSize = 0;

  constructor(add: (report: OpenReport) => void) {
    this.#add = add;
  }

  get groups(): OpenGroup[] {
    return [...this.#groups.values()].flatMap((of) => [...of.values()]);
  }

  line(body: string, no: number, stamp: Stamp | null, stream: Stream): void {
    const lagging = laggingRanks(body);
    if (lagging && this.#lagging.length < 16) this.#lagging.push(lagging);
    const group = body.includes("[PG ") ? GROUP.exec(body) : null;
    if (group) this.#group(body, group, stream);
    const frontier = body.includes("last enqueued") ? FRONTIER.exec(body) : null;
    if (frontier) this.#frontier(frontier, group, no, stamp, stream);
    else if (body.includes("WorkNCCL(")) this.#work(body, group, no, stamp, stream);
    else if (group && body.includes("dump signal")) {
      const status = STATUS.exec(body);
      if (status)
        this.#report(
          { stream, no, stamp, group, seq: -1, op: "" },
          Number(status[1]),
          Number(status[2]),
        );
    }
  }

  #group(body: string, group: RegExpExecArray, stream: Stream): void {
    const name = group[1] as string;
    const known = getOrInsert(this.#groups, stream, () => new Map<string, OpenGroup>());
    const entry = known.get(name) ?? {
      stream,
      name,
      desc: "",
      groupRank: Number(group[3]),
      size: 0,
    };
    if (known.size < 4096) known.set(name, entry);
    if (group[2] && entry.desc === "") entry.desc = group[2];
    const options = body.includes("global rank") ? OPTIONS.exec(body) : null;
    if (!options) return;
    entry.size = Number(options[1]);
    stream.sayGlobalRank(Number(options[2]));
    if (isDefault(name, entry.desc)) this.worldSize = Math.max(this.worldSize, entry.size);
  }

  #work(
    body: string,
    group: RegExpExecArray | null,
    no: number,
    stamp: Stamp | null,
    stream: Stream,
  ): void {
    const work = WORK.exec(body);
    if (!work) return;
    const seq = work[1] === undefined ? -1 : Number(work[1]);
    const op = work[2] as string;
    const bracket = BRACKET.exec(body);
    const old = OLD_STYLE.test(body) && bracket !== null;
    const rank = old ? Number(bracket[1]) : null;
    // A repetition may come without the prefix.
    const again = REPEATED.test(body);
    const reported = again ? [...this.#open.values()].flat() : (this.#open.get(stream) ?? []);
    if ((again || old) && reported.some((r) => r.seq === seq && r.op === op && r.rank === rank))
      return;
    const report = this.#report({ stream, no, stamp, group, seq, op, rank }, -1, -1);
    if (work[3] !== undefined) {
      report.numelIn = Number(work[3]);
      report.numelOut = Number(work[4]);
    }
    if (!group && bracket) report.groupRank = Number(bracket[1]);
  }

  #frontier(
    m: RegExpExecArray,
    group: RegExpExecArray | null,
    no: number,
    stamp: Stamp | null,
    stream: Stream,
  ): void {
    const seq = Number(m[1]);
    const name = group?.[1] ?? "";
    const waiting = (this.#open.get(stream) ?? []).find(
      (r) =>
        r.seq === seq && (r.enqueued < 0 ? r.group === "" || r.group === name : r.group === name),
    );
    const report = waiting ?? this.#report({ stream, no, stamp, group, seq, op: "" }, -1, -1);
    // "[Rank 1] Watchdog caught …" prints the rank in whichever group failed first; this line has the right one.
    if (group) {
      report.group = name;
      report.desc = group[2] ?? report.desc;
      report.groupRank = Number(group[3]);
    }
    report.enqueued = Number(m[2]);
    report.completed = Number(m[3]);
    this.#tellLagging(report);
  }

  #report(
    about: {
      stream: Stream;
      no: number;
      stamp: Stamp | null;
      group: RegExpExecArray | null;
      seq: number;
      op: string;
      rank?: number | null;
    },
    enqueued: number,
    completed: number,
  ): OpenReport {
    const { stream, no, stamp, group, seq, op, rank } = about;
    const report: OpenReport = {
      stream,
      rank: rank ?? null,
      line: no,
      stamp,
      group: group?.[1] ?? "",
      desc: group?.[2] ?? "",
      groupRank: group ? Number(group[3]) : -1,
      seq,
      op,
      enqueued,
      completed,
    };
    const open = this.#open.get(stream) ?? [];
    open.push(report);
    if (open.length > MAX_OPEN) open.shift();
    this.#open.set(stream, open);
    this.#add(report);
    return report;
  }

  /**
   * The desync report tells how far other ranks got: the frontier of ranks whose own logs may be missing. Its
   * ranks count within the group that the next line names; they are global ones in the default group.
   */
  #tellLagging(report: OpenReport): void {
    const lagging = this.#lagging;
    this.#lagging = [];
    const global = isDefault(report.group, report.desc);
    for (const { ranks, enqueued, completed } of lagging) {
      for (const r of ranks.slice(0, 256)) {
        const stream = report.stream.unknown;
        this.#add({
          ...report,
          stream,
          rank: global ? r : null,
          groupRank: r,
          seq: -1,
          op: "",
          enqueued,
          completed,
        });
      }
    }
  }
}

function isDefault(name: string, desc: string): boolean {
  return name === "0" || desc === "default_pg" || name === "default_pg";
}

/**
 * The report that PyTorch adds to a timeout with TORCH_NCCL_DESYNC_DEBUG=1: which ranks lag, and how far they are.
 * Defined in pytorch/pytorch: torch/csrc/distributed/c10d/TraceUtils.h (analyzeLaggingRanks, analyzeMissingRanks).
 */
function laggingRanks(body: string): Lagging | null {
  if (!body.includes("collective #") && !body.includes("lagging ranks")) return null;
  const m = NOT_JOINED.exec(body) ?? NOT_FINISHED.exec(body) ?? NEVER_JOINED.exec(body);
  if (!m) return null;
  const seq = m[2] === undefined ? 0 : Number(m[2]);
  const completed = body.includes("didn't finish") ? Math.max(0, seq - 1) : seq;
  return { ranks: (m[1] as string).split(",").map(Number), enqueued: seq, completed };
}
