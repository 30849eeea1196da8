/** A number in the middle of a line, without a regular expression and a string: some lines have ten of them. */
const SPACE = 32;
const COMMA = 44;
const MINUS = 45;
const POINT = 46;
const ZERO = 48;
const MAX_SPACES = 20;
/** More digits do not fit a double exactly. */
const MAX_DIGITS = 15;

/**
 * The number that begins at `at`, after blanks: "12", "1,234", "12.5", "1.5e-3". NaN where there is none. Whole
 * digits divided by a power of ten: both exact, so that the result is that of Number().
 */
export function numberAfter(text: string, at: number): number {
  let i = at;
  while (i < at + MAX_SPACES && text.charCodeAt(i) === SPACE) i++;
  const start = i;
  if (text.charCodeAt(i) === MINUS) i++;
  let digits = 0;
  let value = 0;
  let scale = 0;
  for (; ; i++) {
    const code = text.charCodeAt(i);
    if (isDigit(code)) {
      if (++digits > MAX_DIGITS) return byNumber(text, start);
      value = value * 10 + (code - ZERO);
      if (scale > 0) scale *= 10;
    } else if (code === POINT && scale === 0) scale = 1;
    else if (code !== COMMA || scale > 0 || digits === 0 || !isThousand(text, i + 1)) {
      // e or E
      if (digits > 0 && (code | 32) === 101) return byNumber(text, start);
      break;
    }
  }
  if (digits === 0) return NaN;
  if (scale > 1) value /= scale;
  return text.charCodeAt(start) === MINUS ? -value : value;
}

const NUMBER = /^-?\d{1,30}(?:\.\d{1,30})?(?:[eE][-+]?\d{1,3})?/;

function byNumber(text: string, start: number): number {
  const m = NUMBER.exec(text.slice(start, start + 70));
  return m ? Number(m[0]) : NaN;
}

/** Three digits and no fourth. */
function isThousand(text: string, at: number): boolean {
  for (let i = at; i < at + 3; i++) if (!isDigit(text.charCodeAt(i))) return false;
  return !isDigit(text.charCodeAt(at + 3));
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= ZERO + 9;
}
