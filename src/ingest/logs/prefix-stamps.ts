/** Times at the head of a line, in whatever way it is written. What log-time.ts can read gets its kind. */
import type { LinePrefix, StampKind } from "./line-prefix.ts";

interface StampForm {
  readonly kind: StampKind;
  /** Sticky; the first group, where there is one, is what a reader of that kind needs to see. */
  readonly form: RegExp;
  readonly isValid?: (m: RegExpExecArray) => boolean;
  /** Whether "[", "<" or "(" may stand before it and must then stand behind it. */
  readonly isBare?: boolean;
}

const FRACTION = String.raw`(?:[.,:]\d{1,9})?`;
const ZONE = String.raw`(?:Z\b| ?[+-]\d\d:?\d\d(?!\d)| UTC\b| GMT\b)?`;
const CLOCK = String.raw`\d\d:\d\d:\d\d`;
const MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)";
const DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";

/** In this order: what is longer comes first. */
const FORMS: readonly StampForm[] = [
  { kind: "iso", form: sticky(`\\d{4}[-/.]\\d\\d[-/.]\\d\\d[T _-]${CLOCK}${FRACTION}${ZONE}`) },
  // Nothing reads these, but for the time of day, but they are no message either.
  { kind: "", form: sticky(`\\d{4}-\\d\\d-\\d\\d-\\d\\d\\.\\d\\d\\.\\d\\d${FRACTION}`) },
  { kind: "clock", form: sticky(`\\d{4}-\\d\\d-\\d\\d-(${CLOCK})${FRACTION}${FRACTION}`) },
  { kind: "us", form: sticky(`\\d\\d/\\d\\d/\\d{4}[ ,] ?${CLOCK}${FRACTION}(?: [AP]M)?`) },
  { kind: "kernel", form: sticky(`${DAY} ${MONTH} {1,2}\\d{1,2} ${CLOCK} \\d{4}`) },
  { kind: "syslog", form: sticky(`${DAY} (${MONTH} {1,2}\\d{1,2} ${CLOCK}) [A-Z]{2,5} \\d{4}`) },
  { kind: "syslog", form: sticky(`(${MONTH} {1,2}\\d{1,2} ${CLOCK})${FRACTION}`) },
  { kind: "clock", form: sticky(`\\d\\d/${MONTH}/\\d{4}:(${CLOCK})(?: [+-]\\d{4})?`) },
  {
    kind: "clock",
    form: sticky(`(\\d\\d?)[-/.](\\d\\d?)(?:[-/.](?:\\d{4}|\\d\\d))? (${CLOCK})${FRACTION}`),
    isValid: (m) => Number(m[1]) > 0 && Number(m[2]) > 0 && Number(m[2]) <= 31,
  },
  { kind: "clock", form: sticky(`(?:19|20)\\d{6}[-T _](\\d\\d?:\\d\\d?:\\d\\d?)${FRACTION}`) },
  {
    kind: "",
    form: sticky(String.raw`(\d{2}|\d{4})(\d\d)(\d\d)[ T_-](\d\d)(\d\d)(\d\d)(?:[.,]\d{1,9}|Z)?`),
    isValid: (m) => isDate(m[2], m[3]) && Number(m[4]) < 24 && Number(m[5]) < 60,
  },
  { kind: "uptime", form: sticky(String.raw`\[( *\d{1,9}\.\d{6})\]`), isBare: true },
  {
    kind: "epoch",
    form: sticky(String.raw`[12]\d{9}(?:\.\d{1,9}|\d{3})?(?![\d:.\w])`),
    isValid: (m) => Number(m[0].slice(0, 10)) > 8e8,
  },
  { kind: "clock", form: sticky(`${CLOCK}${FRACTION}`) },
];
/** syslog's facility and severity, with RFC 5424's version. */
const PRIORITY = sticky(String.raw`<\d{1,3}>(?:1 )?(?=[A-Z2])`);
/** A day without a time: only where more of a header follows. */
const DATE = sticky(String.raw`(?:19|20)\d\d[-/.](\d\d)[-/.](\d\d)`);
const AFTER = /[\s\]|,:;)>-]/;
/** How much a time tells: that of a later field may be better than that of the first. */
const WORTH: Readonly<Record<StampKind, number>> = {
  "": 0,
  uptime: 1,
  clock: 2,
  syslog: 3,
  glog: 3,
  epoch: 4,
  us: 5,
  kernel: 5,
  iso: 5,
};

export function sticky(source: string): RegExp {
  return new RegExp(source, "y");
}

export function matchAt(form: RegExp, line: string, at: number): RegExpExecArray | null {
  form.lastIndex = at;
  return form.exec(line);
}

/** Where a time that stands at `at` ends, its brackets with it; -1 where there is none. */
export function stampAt(line: string, at: number, out: LinePrefix): number {
  const syslog = matchAt(PRIORITY, line, at);
  if (syslog) return stampAt(line, at + syslog[0].length, out);
  const open = line[at];
  const close = open === "[" ? "]" : open === "<" ? ">" : open === "(" ? ")" : "";
  const from = close === "" ? at : at + 1;
  for (const { kind, form, isValid, isBare } of FORMS) {
    const start = isBare === true ? at : from;
    const m = matchAt(form, line, start);
    if (!m || isValid?.(m) === false) continue;
    let end = start + m[0].length;
    if (isBare !== true && close !== "") {
      if (line[end] !== close) continue;
      end++;
    } else if (end < line.length && isBare !== true && !AFTER.test(line[end]!)) continue;
    note(out, kind, start + offset(m));
    return end;
  }
  const date = matchAt(DATE, line, at);
  if (date && isDate(date[1], date[2])) {
    const end = at + date[0].length;
    if (line[end] === " ") return end;
  }
  return -1;
}

export function note(out: LinePrefix, kind: StampKind, from: number): void {
  if (kind === "" || WORTH[kind] <= WORTH[out.stampKind]) return;
  out.stampKind = kind;
  out.stampFrom = from;
}

/** Where the last group begins, which is the part of the time that has its kind. */
function offset(m: RegExpExecArray): number {
  const last = m.at(-1);
  return m.length > 1 && last !== undefined ? m[0].lastIndexOf(last) : 0;
}

function isDate(month: string | undefined, day: string | undefined): boolean {
  const m = Number(month);
  const d = Number(day);
  return m >= 1 && m <= 12 && d >= 1 && d <= 31;
}
