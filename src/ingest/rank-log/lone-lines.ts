/** Failures that one line tells, outside tracebacks. */
import type { FailureClass } from "../failure-class.ts";
import type { NcclLine } from "../nccl-lines.ts";
import { classifyLine, classifyNcclWarning } from "./classify.ts";
import type { Found, Stream } from "./stream.ts";
import { exitLine } from "./torchrun.ts";

export type LoneFailure = Pick<Found, "class" | "text" | "about">;

/** What std::terminate() prints of an exception that nothing else explains. */
const UNCAUGHT: FailureClass = {
  signature: "cpp-exception",
  role: "own",
  cause: "user-program",
  canBeAftermath: true,
};

/** Whether `body` is the first of terminate()'s two lines; what() follows. */
export function beginsTerminate(body: string, no: number, stream: Stream): boolean {
  if (!body.startsWith("terminate called")) return false;
  stream.terminateLine = no;
  return true;
}

export function loneFailure(body: string, no: number, stream: Stream): LoneFailure | null {
  if (stream.terminateLine > 0) {
    const what = body.indexOf("what():");
    if (what >= 0 || no > stream.terminateLine + 2) stream.terminateLine = 0;
    if (what >= 0) {
      const text = body.slice(what + 7).trim();
      return { class: classifyLine(text) ?? UNCAUGHT, text, about: null };
    }
  }
  const exit = exitLine(body);
  if (exit) return { ...exit, text: body.trim() };
  const found = classifyLine(body);
  return found && { class: found, text: body.trim(), about: null };
}

export function ncclFailure(line: NcclLine): LoneFailure | null {
  const found = classifyNcclWarning(line.message);
  return found && { class: found, text: line.message, about: { host: line.host, pid: line.pid } };
}
