/** What ended the process, in the words that the probe left: a traceback, a signal, or an exit's code. */
import type { LogFailure } from "../../model/log.ts";
import type { ProbeProcess } from "../../model/probe.ts";
import { TEXT_CHARS, type FailureClass } from "../failure-class.ts";
import { classifyException } from "../rank-log/classify.ts";
import { Tracebacks, type Raised } from "../rank-log/tracebacks.ts";
import { SIGNALS } from "../signals.ts";

type Ended = Pick<ProbeProcess, "ended" | "words" | "writer" | "rank" | "file" | "epochNs">;

/** SIGKILL leaves no words: such a process is found by its absence. */
export function failureOf(process: Ended): LogFailure | null {
  const { ended, rank, file, epochNs } = process;
  const failure = ended && raisedAtEnd(ended, process);
  if (!failure) return null;
  const timeMs = Number.isFinite(ended.atNs) ? Number(epochNs) / 1e6 + ended.atNs / 1e6 : null;
  return {
    rank,
    file,
    line: 0,
    timeMs: timeMs === null ? null : Math.round(timeMs),
    role: failure.class.role,
    cause: failure.class.cause,
    signature: failure.class.signature,
    text: failure.text.slice(0, TEXT_CHARS),
    at: failure.at,
  };
}

type EndFailure = Omit<Raised, "line">;

function raisedAtEnd(
  { how, code }: NonNullable<Ended["ended"]>,
  { words, writer }: Ended,
): EndFailure | null {
  if (how === "exception") return raisedBy(words);
  if (how === "signal") return signalled(code);
  return exited(code, writer);
}

/** What Python leaves with after an exception that nobody caught, an echo as often as not. */
const UNCAUGHT = 1;
/** A shell's way, and that of handlers, to say that a signal was the reason: 128 + its number. */
const BY_SIGNAL = 128;

/** Code 0 is an end in order, or one whose code nobody noted (that takes the C library). */
function exited(status: number, writer: Ended["writer"]): EndFailure | null {
  // The kernel passes on eight bits: exit(-1) is 255.
  const code = status & 0xff;
  if (code === 0) return null;
  // Only the Python ring tells sys.exit(1) from an exception.
  if (writer === "native" && code === UNCAUGHT) return null;
  if (SENT.has(code - BY_SIGNAL)) return signalled(code - BY_SIGNAL);
  const left: FailureClass = { signature: "exit-code", role: "own", cause: "user-program" };
  return { text: `exited with code ${code}`, at: null, class: left };
}

function raisedBy(words: string): EndFailure {
  let first: Raised | null = null;
  const tracebacks = new Tracebacks((raised) => (first ??= raised));
  for (const [index, line] of words.split("\n").entries()) {
    if (line.trim() === "") tracebacks.blank();
    else tracebacks.line(line, index + 1, false);
  }
  tracebacks.finish();
  if (first !== null) return first;
  const text = words.trim().split("\n").at(-1) ?? "";
  return { text: text || "an exception", at: null, class: classifyException(text, []) };
}

/** Sent by a launcher, a scheduler or a person: torchrun ends all others when one has died. */
const SENT = new Set([1, 2, 3, 10, 12, 15]);

function signalled(code: number): EndFailure {
  const name = SIGNALS[code] ?? `signal ${code}`;
  if (SENT.has(code)) {
    const asked: FailureClass = { signature: "signal-received", role: "echo", cause: "scheduler" };
    return { text: `received ${name}`, at: null, class: asked };
  }
  // What aborts may be a watchdog that waited for others.
  const cause = code === SIGSEGV ? "user-program" : "unknown";
  const died: FailureClass = { signature: "signal", role: "own", cause };
  return { text: `ended by signal ${code} (${name})`, at: null, class: died };
}

const SIGSEGV = 11;
