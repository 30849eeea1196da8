/**
 * Words with which any program reports a problem. They find what the library does not know; they
 * make a line worth keeping, not a failure.
 */

/** The letters, blank, apostrophe, and all else. */
const CLASSES = 32;
const BLANK = 26;
const APOSTROPHE = 27;
const OTHER = 28;

const CLASS = new Uint8Array(256).fill(OTHER);

for (let i = 0; i < 26; i++) CLASS[65 + i] = CLASS[97 + i] = i;

CLASS[32] = BLANK;

CLASS[39] = APOSTROPHE;

/**
 * Whether a text has one of many words, in one pass: a table of states (Aho and Corasick's), a step a character. Far
 * faster than an expression of as many alternatives, which tries each at every place. Small and capital letters are one.
 */
export class WordScreen {
  /** Where to go from a state with a character; the last state, which is never left, says yes. */
  readonly #next: Uint16Array;
  readonly #yes: number;

  /** `words`: of letters, blanks and apostrophes. */
  constructor(words: readonly string[]) {
    const most = words.reduce((sum, word) => sum + word.length, 1);
    const next = new Int32Array(most * CLASSES).fill(-1);
    const isEnd = new Uint8Array(most);
    let states = 1;
    for (const word of words) {
      let state = 0;
      for (let i = 0; i < word.length; i++) {
        const slot = state * CLASSES + CLASS[word.charCodeAt(i)]!;
        if (next[slot]! < 0) next[slot] = states++;
        state = next[slot]!;
      }
      isEnd[state] = 1;
    }
    // In the order of their depth: where a word breaks off, its longest end that begins another goes on.
    const back = new Int32Array(states);
    const queue = [0];
    for (const state of queue) {
      if (isEnd[back[state]!] === 1) isEnd[state] = 1;
      for (let c = 0; c < CLASSES; c++) {
        const slot = state * CLASSES + c;
        const other = state === 0 ? 0 : next[back[state]! * CLASSES + c]!;
        if (next[slot]! < 0) next[slot] = other;
        else {
          back[next[slot]!] = other;
          queue.push(next[slot]!);
        }
      }
    }
    this.#yes = states;
    this.#next = Uint16Array.from(next.subarray(0, states * CLASSES), (to) =>
      isEnd[to] === 1 ? states : to,
    );
  }

  has(text: string): boolean {
    const next = this.#next;
    const yes = this.#yes;
    let state = 0;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      state = next[state * CLASSES + (code < 256 ? CLASS[code]! : OTHER)]!;
      if (state === yes) return true;
    }
    return false;
  }
}

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

export function hasFailureWord(text: string): boolean {
  if (!SCREEN.has(text)) return false;
  const rest = text.includes("skipped") || text.includes("nan") ? text.replace(ROUTINE, " ") : text;
  return WORDS.test(rest) || NOT_FINITE.test(rest);
}
