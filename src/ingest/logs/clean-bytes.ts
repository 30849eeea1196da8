/** Takes out of a line what a terminal would not show: colours, cursor movements, other control characters. */
const ESCAPE = 27;
const BELL = 7;
const TAB = 9;

/** Writes the rest to `out`, which is long enough, and returns its length. */
export function cleanBytes(buf: Uint8Array, from: number, to: number, out: Uint8Array): number {
  let length = 0;
  for (let i = from; i < to;) {
    const c = buf[i]!;
    if (c === ESCAPE) i = escapeEnd(buf, i + 1, to);
    else {
      if ((c >= 32 && c !== 127) || c === TAB) out[length++] = c;
      i++;
    }
  }
  return length;
}

/** ECMA-48: "ESC [ parameters final", "ESC ] … BEL", or one more character. */
function escapeEnd(buf: Uint8Array, at: number, to: number): number {
  if (at >= to) return to;
  let i = at + 1;
  if (buf[at] === 91) {
    while (i < to && buf[i]! >= 32 && buf[i]! < 64) i++;
    return i < to && buf[i]! < 127 ? i + 1 : i;
  }
  if (buf[at] === 93) {
    while (i < to && buf[i] !== BELL && buf[i] !== ESCAPE) i++;
    if (i >= to) return to;
    return buf[i] === BELL ? i + 1 : Math.min(to, i + 2);
  }
  return buf[at]! >= 32 && buf[at]! < 127 ? i : at;
}
