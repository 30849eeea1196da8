/**
 * Single lines of NCCL_DEBUG output, wherever they stand: in a file of their own or between a job's other
 * lines. Defined in NVIDIA/nccl: src/debug.cc (the head of a line), src/init.cc (communicators).
 */
import type { NcclProcess } from "../model/log.ts";
import { commHash } from "./ras-report.ts";

/** "host:pid:tid [device]" before "NCCL INFO" or "file.cc:12 (component) NCCL WARN". */
const HEAD = /([^\s:[\]]{1,255}):(\d{1,10}):(\d{1,10}) \[(-?\d{1,4})\] /;
const INIT =
  /comm (\S+) rank (\d{1,9}) nranks (\d{1,9}) cudaDev (-?\d{1,4}) (?:nvmlDev -?\d{1,4} )?busId (\w{1,16}) ?(.{0,200}?) ?- Init (?:START|COMPLETE)/;
const COMM_ID = /commId (0x[0-9a-fA-F]{1,16})/;
const SPLIT = /parent (\S+) \w+Count (\d{1,12}) color (-?\d{1,12})/;
const HOST_ID = /NCCL_HOSTID set (?:by environment )?to (\S{1,255})/;

export interface NcclLine {
  readonly host: string;
  readonly pid: number;
  readonly isWarning: boolean;
  /** What follows "NCCL INFO " or "NCCL WARN ". */
  readonly message: string;
}

/** Null where the line is not NCCL's. `line.includes(" NCCL ")` is the cheap question to ask before. */
export function parseNcclLine(line: string): NcclLine | null {
  const info = line.indexOf(" NCCL INFO ");
  const warn = info < 0 ? line.indexOf(" NCCL WARN ") : -1;
  const at = Math.max(info, warn);
  if (at < 0) return null;
  const head = HEAD.exec(line.slice(0, at + 1));
  if (!head) return null;
  return {
    host: head[1] as string,
    pid: Number(head[2]),
    isWarning: warn >= 0,
    message: line.slice(at + 11),
  };
}

/** Collects the processes that NCCL's lines introduce. */
export class NcclProcesses {
  readonly #seen = new Map<string, NcclProcess>();
  /** "host:pid" → its entry with the largest communicator, which is the whole job as a rule. */
  readonly #largest = new Map<string, NcclProcess>();
  readonly #hostIds = new Map<string, string>();
  /** Pointers are per process: a split names its parent by one. */
  readonly #commIds = new Map<string, string>();

  info(line: NcclLine): void {
    const { host, pid, message } = line;
    if (message.includes("- Init ")) {
      const m = INIT.exec(message);
      if (m) this.#init(line, m);
    } else if (message.startsWith("NCCL_HOSTID")) {
      const m = HOST_ID.exec(message);
      if (m) this.#hostIds.set(`${host}:${pid}`, m[1] as string);
    }
  }

  get list(): NcclProcess[] {
    return [...this.#seen.values()].map((p) => ({
      ...p,
      hostId: this.#hostIds.get(`${p.host}:${p.pid}`) ?? p.host,
    }));
  }

  /** The rank of a process in its largest communicator; null where unknown. */
  rankOf(host: string, pid: number): number | null {
    return this.#largest.get(`${host}:${pid}`)?.commRank ?? null;
  }

  #init({ host, pid }: NcclLine, m: RegExpExecArray): void {
    const comm = `${host}:${pid}:${m[1]}`;
    const rest = m[6] as string;
    const id = COMM_ID.exec(rest);
    const split = SPLIT.exec(rest);
    let commId = "";
    if (id) commId = commHash(id[1] as string);
    else if (split)
      commId = `${this.#commIds.get(`${host}:${pid}:${split[1]}`) ?? "?"}/${split[2]}/${split[3]}`;
    this.#commIds.set(comm, commId);
    // START and COMPLETE tell the same; an address that is used again for another communicator does not.
    const key = `${comm}:${commId}`;
    if (this.#seen.has(key) || this.#seen.size >= 200_000) return;
    const process: NcclProcess = {
      host,
      hostId: host,
      pid,
      commRank: Number(m[2]),
      commSize: Number(m[3]),
      commId,
      gpu: Number(m[4]),
      busId: m[5] as string,
    };
    this.#seen.set(key, process);
    const known = this.#largest.get(`${host}:${pid}`);
    if (!known || process.commSize > known.commSize) this.#largest.set(`${host}:${pid}`, process);
  }
}
