/**
 * NCCL_DEBUG logs (NCCL_DEBUG_FILE, or the output of a job that prints little else): who the processes are, and
 * what NCCL warns of. The lines are defined in NVIDIA/nccl, see ./nccl-lines.ts.
 */
import { getOrInsert } from "../base/group-by.ts";
import type { LogFailure } from "../model/log.ts";
import type { Defect, Reading } from "../model/reading.ts";
import { settle, TEXT_CHARS } from "./failure-class.ts";
import type { FailureClass } from "./failure-class.ts";
import { FirstAndLast } from "./first-and-last.ts";
import { openLog } from "./log-engine.ts";
import { parseStamp, resolveStamp } from "./log-time.ts";
import type { Stamp } from "./log-time.ts";
import { NcclProcesses, parseNcclLine } from "./nccl-lines.ts";
import type { NcclLine } from "./nccl-lines.ts";
import { classifyNcclWarning } from "./rank-log/classify.ts";
import type { PartialDigest } from "./logs/partial-digest.ts";
import type { LogEngine } from "./logs/scanner.ts";
import { rankFromName } from "./reader.ts";
import type { Head, LogOpening, Reader, Sink } from "./reader.ts";

const FORMAT = "nccl-log";
/** Below this share a file is a job's log with NCCL's lines in it. */
const SHARE = 0.6;

export const ncclDebugLog: Reader = {
  format: FORMAT,
  isLog: true,
  sniff(head: Head): boolean {
    if (!head.text.includes(" NCCL ")) return false;
    let nccl = 0;
    let others = 0;
    for (const line of head.text.split("\n")) {
      if (parseNcclLine(line)) nccl++;
      else if (line.trim() !== "") others++;
    }
    return nccl > 0 && nccl >= SHARE * (nccl + others);
  },
  open(file: string, known?: LogOpening): Sink {
    return new NcclLogSink(file, known);
  },
};

interface Warning extends NcclLine {
  readonly line: number;
  readonly stamp: Stamp | null;
  readonly class: FailureClass;
}

class NcclLogSink implements Sink {
  readonly #file: string;
  readonly #engine: LogEngine;
  digest: PartialDigest | null = null;
  readonly #processes = new NcclProcesses();
  readonly #warnings = new FirstAndLast<Warning>();
  readonly #pids = new Set<string>();
  #fullTimeMs: number | null = null;
  #records = 0;

  constructor(file: string, known?: LogOpening) {
    this.#file = file;
    this.#engine = openLog(file, (text, no) => this.#line(text, no), known);
  }

  push(chunk: Uint8Array): void {
    this.#engine.push(chunk);
  }

  end(): Reading {
    this.#engine.end();
    this.digest = this.#engine.digest();
    const defects: Defect[] = [];
    if (this.#warnings.dropped > 0) {
      defects.push({
        file: this.#file,
        what: `${this.#warnings.dropped} NCCL warnings were left out`,
      });
    }
    const rank = this.#rank();
    return {
      file: this.#file,
      format: FORMAT,
      rank,
      records: this.#records,
      defects,
      ncclProcesses: this.#processes.list,
      failures: this.#failures(rank),
    };
  }

  #line(text: string, no: number): void {
    if (!text.includes(" NCCL ")) return;
    const line = parseNcclLine(text);
    if (!line) return;
    this.#records++;
    if (this.#pids.size < 100_000) this.#pids.add(`${line.host}:${line.pid}`);
    if (!line.isWarning) {
      this.#processes.info(line);
      return;
    }
    const stamp = parseStamp(text.slice(0, text.indexOf(line.host)));
    if (stamp?.hasYear) this.#fullTimeMs = stamp.ms;
    const found = classifyNcclWarning(line.message);
    if (found) this.#warnings.add({ ...line, line: no, stamp, class: found });
  }

  /** A marked name wins: with eager sub-groups only, the largest communicator is not the whole job. */
  #rank(): number | null {
    const name = this.#file.slice(this.#file.lastIndexOf("/") + 1);
    if (/rank[-_.]?\d/i.test(name)) return rankFromName(name);
    const [only] = this.#pids;
    if (this.#pids.size !== 1 || only === undefined) return null;
    const colon = only.lastIndexOf(":");
    return this.#processes.rankOf(only.slice(0, colon), Number(only.slice(colon + 1)));
  }

  #failures(fileRank: number | null): LogFailure[] {
    const byProcess = new Map<string, Warning[]>();
    for (const warning of this.#warnings.entries) {
      const key = `${warning.host}:${warning.pid}`;
      getOrInsert(byProcess, key, () => []).push(warning);
    }
    const failures: LogFailure[] = [];
    for (const warnings of byProcess.values()) {
      const [first] = warnings;
      if (!first) continue;
      const rank = fileRank ?? this.#processes.rankOf(first.host, first.pid);
      const open = warnings.map((w) => ({
        failure: {
          rank,
          file: this.#file,
          line: w.line,
          timeMs: resolveStamp(w.stamp, this.#fullTimeMs),
          role: w.class.role,
          cause: w.class.cause,
          signature: w.class.signature,
          text: w.message.slice(0, TEXT_CHARS),
          at: null,
        },
        canBeAftermath: w.class.canBeAftermath ?? false,
        progressLine: 0,
      }));
      failures.push(...settle(open));
    }
    return failures.sort((a, b) => a.line - b.line);
  }
}
