/**
 * NCCL Inspector's JSON lines, formats v4.0 to v4.4 (NVIDIA/nccl, plugins/profiler/inspector:
 * inspector_json.cc, and inspector_json_reader.py for v4.3 on). One file a process, "host-pidN.log"; a line
 * for each operator that has ended. Only those: an operator that hangs is not in the file.
 *
 * Up to v4.2 every line carries `header` (the communicator) and `metadata` (the process). From v4.1 a
 * `dump_stats` line stands before each communicator's dump and says how many lines follow; from v4.3 only it
 * carries header and metadata. Operators wait for a dump in a ring per communicator (1,024 by default) and are
 * overwritten where dumps are too rare; v4.0 does not say so, and its first releases wrote only the last
 * collective of each interval. So sequence numbers have gaps.
 */
import { count } from "../base/text.ts";
import type { Defect, Reading } from "../model/reading.ts";
import { ProcessLog } from "./nccl-inspector/process-log.ts";
import { fieldsOf, parseFields, type Fields } from "../base/json.ts";
import { amount, text } from "./nccl-inspector/record.ts";
import { MAX_OPERATORS } from "./operators-file/growing-columns.ts";
import { LineSink } from "./line-sink.ts";
import type { Head, Reader } from "./reader.ts";

const FORMAT = "nccl-inspector";
/** A verbose line with 64 channels is 16 kB; proxy traces with nested steps are longer. */
const MAX_LINE_BYTES = 1 << 20;
/** Files of several processes are the work of `cat`. */
const MAX_PROCESSES = 65_536;

export const ncclInspector: Reader = {
  format: FORMAT,
  sniff({ text: head }: Head): boolean {
    if (!/^\s*\{/.test(head)) return false;
    if (!/"(?:coll_perf|p2p_perf|dump_stats|proxy_trace)"\s*:/.test(head)) return false;
    return /"(?:inspector_output_format_version|coll_sn|p2p_sn)"\s*:/.test(head);
  },
  open: (file) => new InspectorSink(file),
};

/** Where a line's operator belongs. */
interface Owner {
  readonly log: ProcessLog;
  readonly group: number;
}

class InspectorSink extends LineSink {
  readonly #processes = new Map<string, ProcessLog>();
  /** Of the last dump_stats line, and how many of its lines are still to come. */
  #owner: Owner | null = null;
  #expected = 0;
  #records = 0;
  #unread = { lines: 0, first: 0 };
  #ownerless = { lines: 0, first: 0 };
  #dropped = 0;
  #absent = 0;
  #tooMany = 0;
  #version = "";

  constructor(file: string) {
    super(file, MAX_LINE_BYTES);
  }

  finish(): Reading {
    this.#absent += this.#expected;
    const logs = [...this.#processes.values()].filter((log) => log.count > 0);
    const operators = logs.map((log) => log.build(this.file, FORMAT));
    return {
      file: this.file,
      format: FORMAT,
      rank: operators.length === 1 ? operators[0]!.rank : null,
      records: this.#records,
      defects: this.#defects(),
      ...(operators.length > 0 ? { operators } : {}),
    };
  }

  line(line: string, number: number): void {
    if (line.trim() === "") return;
    const record = parseFields(line);
    const stats = record && fieldsOf(record["dump_stats"]);
    if (record && stats) {
      this.#dump(record, stats, number);
      return;
    }
    // A line that cannot be read was one of the dump's too.
    const isExpected = this.#expected > 0;
    if (isExpected) this.#expected--;
    const header = record && fieldsOf(record["header"]);
    const owner = header ? this.#find(header, record) : isExpected ? this.#owner : null;
    const coll = record && fieldsOf(record["coll_perf"]);
    const p2p = record && fieldsOf(record["p2p_perf"]);
    if (!coll && !p2p) {
      // Proxy traces are no operators; NCCL_INSPECTOR_ENABLE_PROXY=1 adds them.
      if (!record || !fieldsOf(record["proxy_trace"])) note(this.#unread, number);
    } else if (!owner) note(this.#ownerless, number);
    else if (this.#records >= MAX_OPERATORS) this.#tooMany++;
    else {
      const { log, group } = owner;
      const isRead = coll ? log.collective(group, coll) : log.p2p(group, p2p!);
      if (isRead) this.#records++;
      else note(this.#unread, number);
    }
  }

  #dump(record: Fields, stats: Fields, number: number): void {
    this.#absent += this.#expected;
    const header = fieldsOf(record["header"]);
    this.#owner = header ? this.#find(header, record) : null;
    if (!this.#owner) note(this.#ownerless, number);
    this.#expected = 0;
    for (const kind of ["coll", "p2p", "proxy"]) {
      this.#expected += Math.trunc(amount(stats[`${kind}_records`], 0));
    }
    for (const kind of ["coll", "p2p"]) {
      this.#dropped += Math.trunc(amount(stats[`${kind}_dropped_since_last_dump`], 0));
    }
  }

  #find(header: Fields, record: Fields): Owner | null {
    const metadata = fieldsOf(record["metadata"]);
    if (!metadata) return null;
    const host = text(metadata["hostname"]).slice(0, 256);
    const pid = amount(metadata["pid"], -1);
    const key = `${pid} ${host}`;
    let log = this.#processes.get(key);
    if (!log) {
      if (this.#processes.size >= MAX_PROCESSES) return null;
      log = new ProcessLog(host, pid < 0 ? null : pid, amount(metadata["dump_timestamp_us"], 0));
      this.#processes.set(key, log);
      const version = text(metadata["inspector_output_format_version"]);
      if (!/^v?4\./.test(version)) this.#version = version.slice(0, 16) || "without a number";
    }
    const group = log.communicator(header);
    return group < 0 ? null : { log, group };
  }

  #defects(): Defect[] {
    const file = this.file;
    const defects: Defect[] = [];
    const say = (what: string, line?: number): void => {
      defects.push({ file, what, ...(line === undefined ? {} : { line }) });
    };
    if (this.#version !== "") {
      say(`Inspector format ${this.#version} is unknown (known: v4.x); read as far as possible`);
    }
    if (this.#dropped > 0)
      say(`${were(this.#dropped)} dropped by the ring before they were written`);
    if (this.#absent > 0) {
      say(`${count(this.#absent, "record")} announced by dump_stats but not in the file`);
    }
    if (this.#unread.lines > 0) {
      const what = `${count(this.#unread.lines, "line")} cannot be read; the first is this one`;
      say(what, this.#unread.first);
    }
    if (this.#ownerless.lines > 0) {
      const what = `${count(this.#ownerless.lines, "line")} without a communicator or process; the first is this one`;
      say(what, this.#ownerless.first);
    }
    if (this.#tooMany > 0) {
      say(`${were(this.#tooMany)} left out: more than ${count(MAX_OPERATORS, "operator")}`);
    }
    return defects;
  }
}

function note(problem: { lines: number; first: number }, line: number): void {
  if (problem.lines++ === 0) problem.first = line;
}

function were(n: number): string {
  return `${count(n, "operator")} ${n === 1 ? "was" : "were"}`;
}
