/**
 * Words with which programs tell of trouble, whoever wrote them. What the library does not know is found by these; they
 * make a line worth keeping, not a failure.
 */
import { WordScreen } from "./word-screen.ts";

/** Anywhere in a word: "RuntimeError", "failed", "unreachable". */
const PARTS: readonly string[] = [
  "error",
  "fail",
  "fatal",
  "abort",
  "exception",
  "traceback",
  "timeout",
  "time out",
  "timed out",
  "time limit",
  "killed",
  "killing",
  "terminat",
  "segfault",
  "segmentation",
  "core dumped",
  "coredump",
  "panic",
  "unreachable",
  "refused",
  "reset by peer",
  "closed by peer",
  "broken pipe",
  "no such",
  "cannot",
  "can't",
  "could not",
  "couldn't",
  "unable",
  "invalid",
  "illegal",
  "mismatch",
  "corrupt",
  "truncated",
  "overflow",
  "out of memory",
  "out of range",
  "out of bounds",
  "no space left",
  "denied",
  "not found",
  "not responding",
  "not ready",
  "unresponsive",
  "no longer",
  "warn",
  "lockup",
  "blocked for more than",
  "stuck",
  "stall",
  "hung",
  "deadlock",
  "desync",
  "straggler",
  "diverge",
  "uncorrect",
  "unrecover",
  "unhealthy",
  "unhandled",
  "unexpected",
  "unsupported",
  "not supported",
  "degraded",
  "throttl",
  "retry",
  "retries",
  "retrying",
  "missing",
  "lost",
  "disconnect",
  "interrupted",
  "cancelled",
  "canceled",
  "preempt",
  "evict",
  "expired",
  "exceeded",
  "exhausted",
  "leaked",
  "violation",
  "undefined symbol",
  "must be",
  "assert",
  "rejected",
  "crash",
  "link down",
  "fell off",
  "fallen off",
  "deprecated",
];
/** Only as words of their own: "room" and "tenant" are no trouble. */
const WHOLE: readonly string[] = [
  "nan",
  "nans",
  "oom",
  "xid",
  "sxid",
  "ecc",
  "mce",
  "bug",
  "oops",
  "signal",
  "sig[a-z]{3,5}",
  "down",
  "dead",
  "died",
  "exitcode",
  "exit code",
  "exited",
  "bus error",
  "skipped?",
  "slow",
  "eio",
  // One node with another version shows nowhere else.
  "version",
];
const WORDS = new RegExp(`${PARTS.join("|")}|\\b(?:${WHOLE.join("|")})\\b`, "i");
/** "lm loss: inf": a value that is none. */
const NOT_FINITE = /\b(?:loss|norm|scale|ppl)\b[^|]{0,24}\binf\b/i;
/** Counters that every iteration's report has, whatever their value. */
const ROUTINE =
  /number of (?:nan|skipped) iterations:?|,? ?skipped=(?=\d)|\bskipped iterations\b|\b(?:nan|inf)_to_num\b/gi;

/** What all of the above have one of; hardly any other text does. */
const SCREEN = new WordScreen([
  ...PARTS,
  ...WHOLE.map((word) => word.replace(/\[.*|.\?$/, "")),
  "inf",
]);

export function hasTellingWord(text: string): boolean {
  if (!SCREEN.has(text)) return false;
  const rest = text.includes("skipped") || text.includes("nan") ? text.replace(ROUTINE, " ") : text;
  return WORDS.test(rest) || NOT_FINITE.test(rest);
}
