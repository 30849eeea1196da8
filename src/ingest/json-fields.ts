/**
 * Single fields out of a line of JSON, without parsing the rest of it. A key with its quotes and colon cannot
 * stand inside a string: quotes are escaped there.
 */
const SPACE = 32;
const QUOTE = 34;
const NUMBER_CHARS = 30;

/** The number under the first of the keys that is there (written `"step":`); NaN where it is none. */
export function jsonNumber(text: string, key: string, otherKey?: string): number {
  const at = text.indexOf(key);
  if (at < 0) return otherKey === undefined ? NaN : jsonNumber(text, otherKey);
  const from = skipSpaces(text, at + key.length);
  let end = from;
  while (end < from + NUMBER_CHARS && isNumeric(text.charCodeAt(end))) end++;
  return end === from ? NaN : Number(text.slice(from, end));
}

/** The string under a key, escapes left as they are; "" where it is none. */
export function jsonText(text: string, key: string): string {
  const at = text.indexOf(key);
  if (at < 0) return "";
  const from = skipSpaces(text, at + key.length);
  if (text.charCodeAt(from) !== QUOTE) return "";
  const end = text.indexOf('"', from + 1);
  return end < 0 ? "" : text.slice(from + 1, end);
}

function skipSpaces(text: string, at: number): number {
  let from = at;
  while (text.charCodeAt(from) === SPACE) from++;
  return from;
}

/** 0-9 + - . e E */
function isNumeric(code: number): boolean {
  return (
    (code >= 48 && code <= 57) ||
    code === 43 ||
    code === 45 ||
    code === 46 ||
    code === 69 ||
    code === 101
  );
}
