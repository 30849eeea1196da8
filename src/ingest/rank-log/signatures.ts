/** Which failure a text tells of: the table of signatures, applied. */
import type { FailureClass } from "../failure-class.ts";
import { Needles } from "../needles.ts";
import { ECHOES, NCCL_ERROR } from "./echo-signatures.ts";
import { ENDS, MACHINE_FAILURES } from "./machine-signatures.ts";
import { PROGRAM_FAILURES } from "./program-signatures.ts";
import { firstMatch } from "./signature.ts";

/** Echoes first: an error that MPS passes on is worded as a CUDA error too. */
const PARTICULAR = [...ECHOES, ...MACHINE_FAILURES, ...PROGRAM_FAILURES, ...ENDS];
const ALL = [...PARTICULAR, NCCL_ERROR];

/** Exceptions that say "something failed below": after an echo they are most likely its aftermath. */
const GENERIC_EXCEPTION =
  /^(?:[\w.]+\.)?(?:RuntimeError|AcceleratorError|SystemError|InternalError)\b/;

/** `text`: the exception's line, `more`: the lines of its message that follow. */
export function classifyException(text: string, more: readonly string[]): FailureClass {
  // The first line decides; only where it says nothing particular do the others (NCCL's "Last error:").
  const first = firstMatch(PARTICULAR, text, true);
  if (first) return first;
  const whole = firstMatch(ALL, [text, ...more].join("\n"), true);
  if (whole) return whole;
  return {
    signature: "python-exception",
    role: "own",
    cause: "user-program",
    canBeAftermath: GENERIC_EXCEPTION.test(text),
  };
}

/** For a line that stands for itself; null for nearly all of them. */
export function classifyLine(text: string): FailureClass | null {
  return SCREEN.in(text) ? firstMatch(ALL, text, false) : null;
}

/** Whether a line deserves a closer look: every needle that counts alone, in one expression. */
export const LINE_NEEDLES: readonly string[] = [
  ...new Set(ALL.filter((s) => s.alone).flatMap((s) => s.needles)),
];

const SCREEN = new Needles(LINE_NEEDLES);
