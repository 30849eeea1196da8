/**
 * torchrun's closing report, and the line before it, which other launchers have too. Defined in pytorch/pytorch:
 * torch/distributed/elastic/multiprocessing/errors/__init__.py (ChildFailedError) and
 * torch/distributed/elastic/multiprocessing/api.py.
 */
import type { FailureClass } from "../failure-class.ts";
import { parseStamp } from "../log-time.ts";
import type { Stamp } from "../log-time.ts";
import { SIGNALS } from "../signals.ts";

const FIELD = /^\s*(time|host|rank|exitcode|error_file|traceback)\s*:\s?(.*)$/;
const ITEM = /^\s*\[\d{1,6}\]:\s*$/;
const RANK = /^(\d{1,6})(?: \(local_rank: (\d{1,6})\))?/;
const EXIT = /^(-?\d{1,6})\s*\(pid: (\d{1,10})\)/;
const SIGNAL = /\((SIG\w{1,12})\)/;
/** "failed \(exitcode: -9) local_rank: 0 (pid: 123) of binary: …" */
const FAILED = /failed \(exitcode: (-?\d{1,6})\) local_rank: (\d{1,6}) \(pid: (\d{1,10})\)/;
/** DeepSpeed's launcher/launch.py: "['python', …, '--local_rank=7', …] exits with return code = -9" */
const DEEPSPEED = /--local_rank=(\d{1,6})\b.{0,8000}\] exits with return code = (-?\d{1,6})/;
/** Open MPI: "mpirun noticed that process rank 3 with PID 12 on node n1 exited on signal 9 (Killed)." */
const MPIRUN = /noticed that process rank (\d{1,6}) with PID .{1,300} exited on signal (\d{1,3})/;

export interface OpenTorchrun {
  readonly line: number;
  rank: number;
  local: number;
  host: string;
  pid: number;
  exitCode: number;
  signal: string;
  stamp: Stamp | null;
  readonly isFirst: boolean;
}

export class TorchrunReport {
  readonly #add: (failure: OpenTorchrun) => void;
  #inReport = false;
  #isFirst = false;
  #item: OpenTorchrun | null = null;
  #lines = 0;

  constructor(add: (failure: OpenTorchrun) => void) {
    this.#add = add;
  }

  get active(): boolean {
    return this.#inReport;
  }

  /** The rank whose traceback the report is quoting; -1 outside one. */
  get rank(): number {
    return this.#item?.rank ?? -1;
  }

  /** Whether the line belongs to the report's frame (not to a traceback quoted in it). */
  line(body: string, no: number): boolean {
    if (body.includes("(first observed failure)")) {
      this.#enter(true);
      return true;
    }
    const text = body.trim();
    if (text === "Failures:") {
      this.#enter(false);
      return true;
    }
    if (!this.#inReport) return false;
    // A quoted traceback may be long; a report that never ends is a cut one.
    if (text.startsWith("====") || ++this.#lines > 400) {
      this.#close();
      this.#inReport = false;
      return true;
    }
    if (ITEM.test(body)) {
      this.#close();
      this.#item = {
        line: no,
        rank: -1,
        local: -1,
        host: "",
        pid: 0,
        exitCode: 0,
        signal: "",
        stamp: null,
        isFirst: this.#isFirst,
      };
      return true;
    }
    const field = FIELD.exec(body);
    if (!field || !this.#item) return text.startsWith("----") || text === "<NO_OTHER_FAILURES>";
    return this.#field(this.#item, field[1] as string, field[2] as string);
  }

  end(): void {
    this.#close();
  }

  #enter(isFirst: boolean): void {
    this.#close();
    this.#inReport = true;
    this.#isFirst = isFirst;
    this.#lines = 0;
  }

  #field(item: OpenTorchrun, name: string, value: string): boolean {
    if (name === "time") item.stamp = parseStamp(value);
    else if (name === "host") item.host = value.trim();
    else if (name === "rank") {
      const m = RANK.exec(value);
      if (m) item.rank = Number(m[1]);
      if (m?.[2] !== undefined) item.local = Number(m[2]);
    } else if (name === "exitcode") {
      const m = EXIT.exec(value);
      if (m) {
        item.exitCode = Number(m[1]);
        item.pid = Number(m[2]);
        item.signal = SIGNAL.exec(value)?.[1] ?? SIGNALS[-item.exitCode] ?? "";
      }
    } else if (name === "traceback") {
      item.signal = SIGNAL.exec(value)?.[1] ?? item.signal;
      // What is quoted from here on is the failed rank's own.
      return !value.startsWith("Traceback");
    }
    return true;
  }

  #close(): void {
    if (this.#item && this.#item.rank >= 0) this.#add(this.#item);
    this.#item = null;
  }
}

/** What launchers say of the first child that they saw fail, where that is all there is. */
export const EXIT_NEEDLES: readonly string[] = [
  "failed (exitcode",
  "exits with return code",
  "noticed that process rank",
];

interface Exit {
  readonly about: { readonly local: number } | { readonly rank: number };
  readonly class: FailureClass;
}

export function exitLine(body: string): Exit | null {
  if (!EXIT_NEEDLES.some((needle) => body.includes(needle))) return null;
  const torchrun = FAILED.exec(body);
  if (torchrun)
    return { about: { local: Number(torchrun[2]) }, class: exitClass(Number(torchrun[1])) };
  const deepspeed = DEEPSPEED.exec(body);
  if (deepspeed)
    return { about: { local: Number(deepspeed[1]) }, class: exitClass(Number(deepspeed[2])) };
  const mpi = MPIRUN.exec(body);
  return mpi && { about: { rank: Number(mpi[1]) }, class: exitClass(-Number(mpi[2])) };
}

/** Signature of these lines. */
export const EXIT_STATUS = "exit-status";

/** An exit status alone accuses only where the process cannot have chosen it. */
function exitClass(exitCode: number): FailureClass {
  const signature = EXIT_STATUS;
  if (exitCode === -9) return { signature, role: "own", cause: "process-gone" };
  if (exitCode === -11 || exitCode === -7 || exitCode === -8)
    return { signature, role: "own", cause: "user-program" };
  return {
    signature,
    role: "echo",
    cause: exitCode === -15 || exitCode === -1 ? "scheduler" : "unknown",
  };
}
