/** The parts of a line `name{labels} value time`, found in its bytes. */
const [TAB, SPACE, QUOTE, BACKSLASH, OPEN, CLOSE] = [9, 32, 34, 92, 123, 125] as const;

/** Behind the name and the labels; -1 where they do not end. */
export function prefixEnd(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && bytes[at] !== OPEN && bytes[at] !== SPACE && bytes[at] !== TAB) at++;
  let brace = at;
  while (brace < end && (bytes[brace] === SPACE || bytes[brace] === TAB)) brace++;
  if (bytes[brace] !== OPEN || brace >= end) return at < end ? at : -1;
  let isQuoted = false;
  for (at = brace + 1; at < end; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) isQuoted = !isQuoted;
    else if (byte === BACKSLASH && isQuoted) at++;
    else if (byte === CLOSE && !isQuoted) return at + 1;
  }
  return -1;
}

export function skipBlanks(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && (bytes[at] === SPACE || bytes[at] === TAB)) at++;
  return at;
}

export function wordEnd(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && bytes[at] !== SPACE && bytes[at] !== TAB) at++;
  return at;
}
