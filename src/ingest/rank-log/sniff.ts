/** Whether a text is a job's log. It is asked last, after every stricter format, so it must refuse all else. */
import { shippedMatchers } from "../../library/shipped.ts";
import { mayBeLog } from "../logs/files.ts";
import { hasFailureWord } from "../logs/failure-words.ts";
import { narrowed, wideEncoding, unmarkedWide } from "../logs/wide-text.ts";
import type { Head } from "../reader.ts";
import { iterationOf } from "./iterations.ts";
import { stripAnsi } from "./prefixes.ts";

/** What hardly any other text has at the beginning of a line. */
const MARKS: readonly RegExp[] = [
  /^(?:\d{1,6}: )?\[(?:rank|default)\d{1,6}\]:/,
  /^\[\d{1,6},\d{1,6}\]<std(?:out|err)>:/,
  /^.{0,80}\[rank:? ?\d{1,6}\] /,
  /^.{0,40}\[?[EWIF]\d{3,4} \d\d:\d\d:\d\d\.\d/,
  /\[[EWIF] (?:ProcessGroup|socket|TCPStore)/,
  /ProcessGroup(?:NCCL|Gloo)\.cpp:\d/,
  /^(?:\[?[^\s\]]{0,60}\]?:? {0,4})Traceback \(most recent call last\):$/,
  /^\S{0,60}\s{0,4}File "[^"]{1,400}", line \d{1,9}(?:, in |$)/,
  /^(?:\S{1,60} )?\S{1,60}:\d{1,10}:\d{1,10} \[\d{1,3}\] .{0,80}NCCL (?:INFO|WARN) /,
  /^(?:srun|slurmstepd): /,
  /NVRM: |oom-kill|Out of memory: Kill|blocked for more than \d+ seconds/,
  /\[\s{0,8}\d{1,9}\.\d{6}\] \S|mlx5_core/,
  /\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] \[[A-Z]{4,8}\]/,
  /\d{1,3}%\|.{0,400}\| \d{1,12}\/\d{1,12} \[\d\d:\d\d/,
  /^(?:WARNING|ERROR|INFO):torch\.distributed/,
  /torch\.distributed\.(?:elastic|DistBackendError|launcher)/,
  /(?:CUDA out of memory|CUDA error: |NCCL error)/,
  /terminate called after throwing an instance/,
  /Watchdog caught collective operation timeout/,
  /^\s{0,2}(?:time|host|rank|exitcode|error_file)\s{0,6}: /,
  /size mismatch for \S+ copying a param/,
  /^Setting OMP_NUM_THREADS environment variable for each process/,
  // Megatron's table of arguments, and its first words.
  /^ {2}[a-z]\w{2,60} \.{3,} ?\S/,
  /^(?:using world size: \d|> initializing )/,
  // MLPerf's own lines.
  /^.{0,20}:::ML(?:LOG|L|Pv)/,
];
/** What `set -x` of a job script prints; a patch has such lines too. */
const SHELL_TRACE = /^\+{1,8} ['\w./]/;
const PATCH = /^(?:diff |@@ |--- a\/|\+\+\+ b\/)/;
const TIMED =
  /^.{0,30}?(?:\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d|\d\d:\d\d:\d\d[.,]\d{3})|^\[\s{0,8}\d{1,9}\.\d{6}\]|^\[?\w{3} \w{3} {1,2}\d{1,2} \d\d:\d\d:\d\d/;
const LEVEL = /\b(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|FATAL)\b/;
/** Lines of programs and of configuration files. */
const SOURCE =
  /^\s*(?:import |from \S+ import|def |class |return\b|const |let |export |function |#include|if \(|for \(|@\w+$|"[\w-]+":\s)|[;{]$/;
const MARKED_SHARE = 0.05;
const TIMED_SHARE = 0.3;
const SOURCE_SHARE = 0.15;
const MAX_LINES = 400;
/** Names that nothing but logs have; how a log begins says little when libraries warn by the thousand first. */
const LOG_NAME = /\.(?:log|out|err|stdout|stderr)(?:\.\d{1,4}|\.txt)?$/i;

/** A brace or an angle bracket begins JSON or markup; a quote behind it is what Python prints of a dictionary. */
const DOCUMENT = /^\s*(?:\{(?!')|<)/;
/** Programs and what people write beside them: that they speak of errors tells nothing of a job. */
const SOURCE_NAME = /\.(?:py|pyx|ipynb|sh|ya?ml|toml|md|rst|html?|css|[ch]|cc|cpp|cu|js|ts)$/i;

/** A program may print its configuration first: lines behind it that only logs have make it a log. */
const LOG_LINE =
  /^(?:Traceback \(most recent call last\):|\[(?:rank|default)\d{1,6}\]:|\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)/m;

export function looksLikeLog({ bytes, text, name }: Head): boolean {
  if (SOURCE_NAME.test(name) || whyNoText(bytes) !== null) return false;
  // What a crash left where blocks were never written.
  const head = text.includes("\0") ? text.replaceAll("\0", "") : text;
  if (isDocument(head)) return false;
  if (LOG_NAME.test(name)) return isText(head);
  let lines = 0;
  let marked = 0;
  let timed = 0;
  let source = 0;
  let isPatch = false;
  let traced = 0;
  const commas = new Map<number, number>();
  for (const raw of head.split(/[\n\r]/, MAX_LINES * 4)) {
    const line = stripAnsi(raw.slice(0, 600)).trimEnd();
    if (line === "") continue;
    if (++lines > MAX_LINES) break;
    if (PATCH.test(line)) isPatch = true;
    if (SHELL_TRACE.test(line)) traced++;
    if (MARKS.some((mark) => mark.test(line)) || (iterationOf(line) >= 0 && /[|=]|loss/.test(line)))
      marked++;
    else if (TIMED.test(line) && (LEVEL.test(line) || /[a-z]{3}/.test(line))) timed++;
    else if (SOURCE.test(line)) source++;
    const n = line.split(/[,;\t]/).length;
    commas.set(n, (commas.get(n) ?? 0) + 1);
  }
  if (!isPatch && traced > 0 && traced >= TIMED_SHARE * lines) return true;
  if (lines === 0 || source >= SOURCE_SHARE * lines + 1) return false;
  if (marked > 0 && marked >= MARKED_SHARE * lines) return true;
  return timed > 0 && timed >= TIMED_SHARE * lines && !isTable(commas, lines);
}

/** An object a line, as collectors of logs write them. */
const OBJECT_LINES = /^\s*\{"[^\n]{0,8000}\}\r?\n\{"/;

function isDocument(head: string): boolean {
  return DOCUMENT.test(head) && !LOG_LINE.test(head) && !OBJECT_LINES.test(head);
}

/** Lines of JSON that a logger or a trainer wrote. */
const JSON_LINE =
  /^\s*\{[^\n]{0,4000}"(?:message|msg|log|line|textPayload|event|levelname|level|lvl|severity|loss|epoch|(?:current_|global_)?steps?)"\s*:/;
/** Seconds since 1970 before each line. */
const EPOCH = /^\[?1\d{9}(?:\.\d{1,9})?[\s\]]/;

/**
 * Whether it can be read as a log at all: text in some encoding, no document of another kind, and in its beginning a line
 * with a time or with a word of trouble. Prose has neither.
 */
export function isReadable({ bytes, text, name, isGiven = false }: Head): boolean {
  if (bytes.length === 0 || !(isGiven || mayBeLog(name))) return false;
  const encoding = wideEncoding(bytes);
  const head = encoding ? narrowed(bytes, encoding).toString("latin1") : text;
  if (!isText(head) || (isDocument(head) && !JSON_LINE.test(head))) return false;
  if (JSON_LINE.test(head)) return true;
  return head
    .split(/[\n\r]/, MAX_LINES * 4)
    .some(
      (line) =>
        [TIMED, LEVEL, EPOCH].some((sign) => sign.test(line)) ||
        tells(stripAnsi(line.slice(0, 600))),
    );
}

/** Whether it is text at all, and not by its name something that lies beside logs, unless it looks like one all the same. */
export function isAnyText(given: Head): boolean {
  const { bytes, name, isGiven = false } = given;
  if (looksLikeLog(given)) return true;
  const encoding = wideEncoding(bytes);
  const head = encoding ? narrowed(bytes, encoding) : bytes;
  return (isGiven || mayBeLog(name)) && whyNoText(head, encoding !== null) === null;
}

function tells(line: string): boolean {
  return hasFailureWord(line) || shippedMatchers().match(line).length > 0;
}

/** No zero byte, and hardly any of what no text has. */
export function isText(head: string): boolean {
  return (
    !head.includes("\0") &&
    // oxlint-disable-next-line no-control-regex
    (head.match(/[\x01-\x08\x0e-\x1a]/g)?.length ?? 0) < 0.01 * head.length + 1
  );
}

/** Columns: nearly all lines have the same number of fields, and more than prose has. */
function isTable(commas: ReadonlyMap<number, number>, lines: number): boolean {
  for (const [fields, count] of commas) if (fields >= 3 && count >= 0.9 * lines) return true;
  return false;
}

/**
 * Whether a file is text, by its first bytes.
 * Null for text. Blocks of NULs that a crash left between lines do not make a log binary.
 */
function whyNoText(bytes: Uint8Array, wasWide = false): string | null {
  let control = 0;
  let nuls = 0;
  for (const byte of bytes) {
    if (byte === 0) nuls++;
    else if (byte < 9 || (byte > 13 && byte < 27)) control++;
  }
  if (isNoise(bytes) || (wasWide && isForeign(bytes))) return "it is not text: skipped";
  const rest = bytes.length - nuls;
  const wide = control > rest / 10 ? null : unmarkedWide(bytes);
  if (wide)
    return `it seems to be UTF-16 text without a byte order mark: convert it with iconv -f ${wide} -t UTF-8`;
  const isHoles = nuls > 0 && control === 0 && rest > 200 && !isSpread(bytes, nuls);
  if ((nuls > bytes.length / 100 && !isHoles) || control > rest / 10)
    return "it is not text: skipped";
  return null;
}

/** Random or packed bytes: most that are not ASCII do not make UTF-8, and they are many. */
function isNoise(bytes: Uint8Array): boolean {
  let high = 0;
  for (const byte of bytes) if (byte >= 128) high++;
  if (high < bytes.length / 4) return false;
  const text = new TextDecoder().decode(bytes);
  let broken = 0;
  for (const character of text) if (character === "\ufffd") broken++;
  return broken > bytes.length / 10;
}

/** Any two bytes make a character of UTF-16, but logs have digits, blanks and names in ASCII. */
function isForeign(bytes: Uint8Array): boolean {
  let ascii = 0;
  for (const byte of bytes) if (byte < 128) ascii++;
  return ascii < bytes.length / 4;
}

/** NULs between the other bytes (UTF-16, numbers) instead of in blocks. */
function isSpread(bytes: Uint8Array, nuls: number): boolean {
  let blocks = 0;
  for (let i = 1; i < bytes.length; i++) if (bytes[i] === 0 && bytes[i - 1] !== 0) blocks++;
  return blocks > 2 + nuls / 64;
}
