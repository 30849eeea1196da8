/**
 * A logger that writes JSON puts a whole traceback into one value ("exception", "exc_info", "stack_trace"): its lines are
 * read as lines, behind the rest of the object.
 */
const BEGINS = "Traceback (most recent call last)";
const ESCAPED = /\\(?:u([0-9a-fA-F]{4})|(.))/g;
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\n", t: "\t", b: "", f: "" };

/** The object without that value, then the value's lines; none where no value holds a traceback. */
export function unfolded(line: string): string[] {
  const at = opening(line, line.indexOf(BEGINS));
  if (at < 0) return [];
  const end = closing(line, at + 1);
  const text = line
    .slice(at + 1, end)
    .replace(ESCAPED, (_, code: string | undefined, one: string) =>
      code === undefined ? (ESCAPES[one] ?? one) : String.fromCharCode(Number.parseInt(code, 16)),
    );
  const lines = text.split(/\n+/).filter((one) => one.trim() !== "");
  return [`${line.slice(0, at)}""${line.slice(end + 1)}`, ...lines];
}

/** Where the string begins in which this place is. */
function opening(line: string, within: number): number {
  let at = within - 1;
  while (at >= 0 && !(line[at] === '"' && line[at - 1] !== "\\")) at--;
  return at;
}

/** Where the string ends that begins before `from`; a line that was cut ends it, too. */
function closing(line: string, from: number): number {
  let at = from;
  while (at < line.length && line[at] !== '"') at += line[at] === "\\" ? 2 : 1;
  return Math.min(at, line.length);
}
