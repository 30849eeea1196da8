/** Which failure a text tells of: what the library's most telling record says of the process that writes it. */
import { Automaton } from "../../library/automaton.ts";
import { mostTelling } from "../../library/matcher.ts";
import { shippedMatchers, shippedRecords } from "../../library/shipped.ts";
import type { Cause } from "../../model/cause.ts";
import { causeOfRecord, type FaultRecord, type Tells } from "../../model/fault-record.ts";
import type { FailureRole } from "../../model/log.ts";
import { PYTHON_EXCEPTION, type FailureClass } from "../failure-class.ts";

const TOLD: Readonly<Record<Tells, readonly [role: FailureRole, cause?: Cause]>> = {
  end: ["own", "scheduler"],
  died: ["own"],
  failed: ["own"],
  told: ["echo", "scheduler"],
  gone: ["echo", "process-gone"],
  late: ["echo"],
  stall: ["stall"],
};
/** Exceptions that say "something failed below": after an echo they are most likely its aftermath. */
const GENERIC_EXCEPTION =
  /^(?:[\w.]+\.)?(?:RuntimeError|AcceleratorError|SystemError|InternalError)\b/;
/** A record no surer than this leaves it to the other lines of a message to say more (NCCL's "Last error:"). */
const VAGUE = 0.3;
/** Less sure than this, an error of the GPU may be no more than what a teardown does to running kernels. */
const SPECIFIC = 0.5;
/** What programs call an error was also caught, as often as not: it takes a traceback. */
const PROGRAM = /^(?:python|torch|framework)$/;
/** What these call an error ends processes, or holds them. */
const MACHINE = /^(?:cuda|driver|fabric|network)$/;
const DIGITS = /\d+/g;

/** `text`: the exception's line, `more`: the lines of its message that follow. */
export function classifyException(text: string, more: readonly string[]): FailureClass {
  let best = recordOf(text);
  for (const line of more) {
    if (best && best.role !== "confirmation" && (best.certainty > VAGUE || best.cause)) break;
    const other = recordOf(line);
    if (other && other.certainty > (best?.certainty ?? 0)) best = other;
  }
  const isVague = best?.layer === "python" && best.role === "root" && best.certainty <= VAGUE;
  if (best && !isVague) return classOf(best);
  const canBeAftermath = GENERIC_EXCEPTION.test(text);
  return { signature: PYTHON_EXCEPTION, role: "own", cause: "user-program", canBeAftermath };
}

/** For a line that stands for itself; null for nearly all of them. */
export function classifyLine(text: string): FailureClass | null {
  const record = recordOf(text);
  if (!record || !countsAlone(record)) return null;
  const found = classOf(record);
  // The kernel and its drivers tell of a network that no process has ended of yet.
  return found.role === "own" && record.layer === "network" ? { ...found, role: "stall" } : found;
}

/** `message`: what follows "NCCL WARN ". Null for warnings that do not tell of a failure. */
export function classifyNcclWarning(message: string): FailureClass | null {
  const record = recordOf(`NCCL WARN ${message}`);
  return record && classOf(record);
}

/** Whether a line may count by itself, by its form: with every run of digits made one 0. */
export function couldTell(form: string): boolean {
  return (screen ??= newScreen()).any(form);
}

/** Whether healthy jobs print it, too: a version, a deprecated setting, a dump that somebody asked for. */
export function isNotice(text: string): boolean {
  const { role } = mostTelling(shippedMatchers().match(text))?.record ?? {};
  return role === "benign" || role === "advice";
}

let screen: Automaton | null = null;

/** Made when the first line comes: many who are here read no logs. */
function newScreen(): Automaton {
  const alone = shippedRecords().filter(countsAlone);
  return new Automaton([...new Set(alone.map(({ match }) => match.all[0]!.replace(DIGITS, "0")))]);
}

function recordOf(text: string): FaultRecord | null {
  const matches = shippedMatchers().match(text);
  const { record } = (matches[0]?.record.tells ? matches[0] : mostTelling(matches)) ?? {};
  return record && (record.tells || /root|cascade/.test(record.role)) ? record : null;
}

function countsAlone({ role, tells, layer, severity }: FaultRecord): boolean {
  if (tells) return true;
  if (role === "cascade") return layer !== "python";
  if (role !== "root" || PROGRAM.test(layer)) return false;
  return severity === "fatal" || (severity === "error" && MACHINE.test(layer));
}

function classOf(record: FaultRecord): FailureClass {
  const { id: signature, tells, layer, component, certainty } = record;
  const [role, told] = TOLD[tells ?? (record.role === "root" ? "failed" : "late")];
  const isOfGpu = layer === "cuda" || (layer === "nccl" && component === "GPU");
  const isUnspecific = role === "own" && isOfGpu && certainty < SPECIFIC && !record.cause;
  const isEcho = role === "echo" || record.role === "cascade";
  const known = isEcho ? (record.cause ?? "unknown") : causeOfRecord(record);
  const cause = told ?? (isUnspecific ? "gpu-error" : known);
  return { signature, role, cause, canBeAftermath: isUnspecific || tells === "died" };
}
