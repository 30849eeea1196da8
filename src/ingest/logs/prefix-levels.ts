/** Levels at the head of a line, in any style of brackets. */
import type { LogLevel } from "../../model/log-digest.ts";
import { matchAt, sticky } from "./prefix-stamps.ts";

const WORDS: Readonly<Record<LogLevel, string>> = {
  fatal: "FATAL CRITICAL CRIT ALERT EMERG EMERGENCY PANIC",
  error: "ERROR ERR SEVERE FAILURE",
  warning: "WARNING WARN",
  info: "INFO NOTICE INFORMATION",
  debug: "DEBUG TRACE VERBOSE FINE FINER FINEST",
};
const LEVELS = new Map<string, LogLevel>();
for (const [level, words] of Object.entries(WORDS)) {
  for (const word of words.split(" ")) LEVELS.set(word, level as LogLevel);
}
const ANY = [...LEVELS.keys()].toSorted((a, b) => b.length - a.length).join("|");
const LOWER = ANY.toLowerCase();
const TITLE = [...LEVELS.keys()].map((word) => word[0]! + word.slice(1).toLowerCase()).join("|");

/** "[INFO]", "[INFO ]", "<err>", "(warn)": brackets say that it is a level, whatever the letters. */
const BRACKETED = sticky(`[[(<] ?(${ANY}|${LOWER}|${TITLE}) {0,5}[\\])>]:?`);
/** "[INFO|trainer.py:912]": Hugging Face. */
const WITH_PLACE = sticky(`\\[(${ANY})[|:][\\w./-]{1,80}(?::\\d{1,6})?(?::\\w{1,80})?\\]`);
/** "INFO:", "INFO -", "INFO |", "INFO  text". */
const PLAIN = sticky(`(${ANY})(?=[\\s:|,\\]]|$)`);
/** "ERROR:module:" is Python's basicConfig. */
const MODULE = sticky(`(${ANY}):([A-Za-z_][\\w.-]{0,80}):(?=\\S)`);
const LOWER_COLON = sticky(`(${LOWER}):(?= )`);
/** Where a level stands alone further in; what is before it may be fields of a header. */
const AHEAD = new RegExp(`(?:^|[\\s|\\[<(])(${ANY})(?=[\\s|\\]>):]|$)`);

interface LevelField {
  level: LogLevel;
  end: number;
  /** Whether its form alone shows that it is a field and no word of a sentence. */
  isField: boolean;
}

export function levelOf(word: string): LogLevel | null {
  return LEVELS.get(word.toUpperCase()) ?? null;
}

/** The level that stands at `at`. */
export function levelAt(line: string, at: number): LevelField | null {
  const enclosed = matchAt(BRACKETED, line, at) ?? matchAt(WITH_PLACE, line, at);
  if (enclosed) return field(enclosed, at, enclosed[0].length, true);
  const module = matchAt(MODULE, line, at);
  if (module) return field(module, at, module[0].length, true);
  const plain = matchAt(PLAIN, line, at);
  if (!plain) return null;
  const end = at + plain[0].length;
  const isField = line[end] === ":" || /^\s*[-|]\s/.test(line.slice(end, end + 12));
  return field(plain, at, plain[0].length + (line[end] === ":" ? 1 : 0), isField);
}

/** "error: " behind a program's name. */
export function lowerLevelAt(line: string, at: number): LevelField | null {
  const m = matchAt(LOWER_COLON, line, at);
  return m ? field(m, at, m[0].length, true) : null;
}

/** Where a level in capitals stands within the next characters, -1 for nowhere. */
export function levelAhead(line: string, at: number, within: number): number {
  const m = AHEAD.exec(line.slice(at, at + within));
  return m ? at + m.index + m[0].length - m[1]!.length : -1;
}

function field(m: RegExpExecArray, at: number, length: number, isField: boolean): LevelField {
  return { level: levelOf(m[1]!)!, end: at + length, isField };
}
