/**
 * Reads what `py-spy dump` prints, as text and with --json.
 * Defined in benfred/py-spy: src/dump.rs (print_traces) and src/stack_trace.rs (StackTrace, Frame).
 */
import type { Frame } from "../model/operators.ts";
import type { ThreadStack } from "../model/stacks.ts";

const PROCESS = /^Process (\d{1,10}): /;
const THREAD = /^Thread (0x[0-9a-fA-F]+|\d{1,20}) \(([a-z+]*)\)(?:: "(.*)")?$/;
/** Native frames have no line number; deeper lines are the arguments and locals of --locals. */
const FRAME = /^ {4}(\S.*) \(([^()]*?)(?::(\d{1,9}))?\)$/;

export function isPySpyThread(line: string): boolean {
  return line.startsWith("Thread ") && THREAD.test(line);
}

interface ProcessStacks {
  readonly pid: number | null;
  readonly threads: ThreadStack[];
}

/** Several processes in one file; of a process that comes twice the later dump counts. */
export class PySpyStacks {
  readonly #done: ProcessStacks[] = [];
  #open: ProcessStacks | null = null;
  #frames: Frame[] | null = null;

  /** Whether the line belongs to this format. */
  line(text: string, no: number): boolean {
    if (text.startsWith("    ")) {
      if (!this.#frames) return false;
      const m = FRAME.exec(text);
      if (m)
        this.#frames.push({ func: m[1] as string, file: m[2] as string, line: Number(m[3] ?? 0) });
      return true;
    }
    if (text.startsWith("Process ")) {
      const m = PROCESS.exec(text);
      if (!m) return false;
      this.#start(Number(m[1]));
      return true;
    }
    if (!text.startsWith("Thread ")) return text.startsWith("Python v");
    const m = THREAD.exec(text);
    if (!m) return false;
    const name = m[3] ?? "";
    const open = this.#processFor(name);
    this.#frames = [];
    open.threads.push({
      name: name || (m[1] as string),
      isMain: name === "MainThread" || (name === "" && m[1] === String(open.pid)),
      status: m[2] as string,
      frames: this.#frames,
      line: no,
    });
    return true;
  }

  /** One element of `py-spy dump --json`. False where it is not one. */
  json(thread: unknown, line: number): boolean {
    if (typeof thread !== "object" || thread === null) return false;
    const t = thread as Record<string, unknown>;
    if (!Array.isArray(t["frames"])) return false;
    const pid = typeof t["pid"] === "number" ? t["pid"] : null;
    if (!this.#open || this.#open.pid !== pid) this.#start(pid);
    const name = typeof t["thread_name"] === "string" ? t["thread_name"] : "";
    // Threads are listed once, so a second MainThread of the same process begins a later dump of it.
    if (name === "MainThread" && this.#open?.threads.some((o) => o.name === name)) this.#start(pid);
    this.#open?.threads.push({
      name,
      isMain: name === "MainThread",
      status: `${t["active"] === true ? "active" : "idle"}${t["owns_gil"] === true ? "+gil" : ""}`,
      frames: t["frames"].map(jsonFrame).filter((f) => f !== null),
      line,
    });
    return true;
  }

  end(): ProcessStacks[] {
    this.#close();
    const last = new Map<number, ProcessStacks>();
    for (const p of this.#done) if (p.pid !== null) last.set(p.pid, p);
    return this.#done.filter((p) => p.pid === null || last.get(p.pid) === p);
  }

  #processFor(threadName: string): ProcessStacks {
    // Hand-made collections leave the "Process" lines out; a second main thread is another process then.
    const second = threadName === "MainThread" && this.#open?.threads.some((t) => t.isMain);
    if (!this.#open || (this.#open.pid === null && second)) return this.#start(null);
    return this.#open;
  }

  #start(pid: number | null): ProcessStacks {
    this.#close();
    this.#open = { pid, threads: [] };
    return this.#open;
  }

  #close(): void {
    if (this.#open && this.#open.threads.length > 0) this.#done.push(this.#open);
    this.#open = null;
    this.#frames = null;
  }
}

function jsonFrame(value: unknown): Frame | null {
  if (typeof value !== "object" || value === null) return null;
  const f = value as Record<string, unknown>;
  const file = f["filename"] ?? f["short_filename"];
  return {
    func: typeof f["name"] === "string" ? f["name"] : "",
    file: typeof file === "string" ? file : "",
    line: typeof f["line"] === "number" ? f["line"] : 0,
  };
}
