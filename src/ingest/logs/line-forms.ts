/** A file's first lines, those that differ in numbers only as one: what its header is learnt from. */

/** Lines that differ in more than numbers. */
export interface LineForm {
  /** The first of them. */
  readonly line: string;
  readonly lines: number;
}

/** So many show what there is; more only cost time in jobs of many files. */
const MOST_FORMS = 200;
/** All of the first lines, and some of those behind them: what a program writes at its start is not all that it writes. */
const FIRST_LINES = 200;
const ONE_OF = 4;
const MOST_LINES = 800;
/** Of a line only its head is looked at, and less of it tells it from others. */
const MOST_HEAD = 600;
const FORM_CHARS = 160;

/** Lines of a text whose last one may be cut off. */
export function sampleOf(text: string): string[] {
  const lines: string[] = [];
  let from = 0;
  let count = 0;
  for (let to; (to = text.indexOf("\n", from)) >= 0 && lines.length < MOST_LINES; from = to + 1) {
    if (++count > FIRST_LINES && count % ONE_OF > 0) continue;
    let end = to;
    while (end > from && text.charCodeAt(end - 1) === 13) end--;
    lines.push(text.slice(from, Math.min(end, from + MOST_HEAD)));
  }
  return lines;
}

export function formsOf(lines: readonly string[]): LineForm[] {
  const forms = new Map<string, { line: string; lines: number }>();
  for (const line of lines) {
    const form = digitless(line.length > FORM_CHARS ? line.slice(0, FORM_CHARS) : line);
    const known = forms.get(form);
    if (known) known.lines++;
    else if (forms.size < MOST_FORMS) forms.set(form, { line, lines: 1 });
  }
  return [...forms.values()];
}

export function digitless(text: string): string {
  return text.replaceAll(/\d+/g, "0");
}
