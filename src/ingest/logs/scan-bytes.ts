/**
 * The form of a line: its bytes with every number made one, as two 32-bit hashes. Numbers are runs of digits with points
 * and commas inside, exponents and a sign; hex words with digits in them count as numbers, too, so that addresses, ids
 * and registers do not make a form each. Blanks and repeated punctuation count once: padded columns and progress bars
 * differ in them. One pass, no string: this is where every byte of every log goes through.
 */

const DIGIT = 1;
const HEX = 2;
const LETTER = 4;
const WORD = DIGIT | HEX | LETTER;
const BLANK = 8;
const PUNCTUATION = 16;
const CONTROL = 32;
const HIGH = 64;

export const NEWLINE = 10;
export const RETURN = 13;
const SPACE = 32;
const COMMA = 44;
const MINUS = 45;
const PLUS = 43;
const POINT = 46;
const ZERO = 48;
/** First bytes of U+2580 to U+259F, of which progress bars are made. */
const BAR_1 = 0xe2;
const BAR_2 = 0x96;

const CLASS = new Uint8Array(256);
for (let c = 0; c < 256; c++) {
  if (c >= 48 && c <= 57) CLASS[c] = DIGIT;
  else if ((c | 32) >= 97 && (c | 32) <= 102) CLASS[c] = HEX;
  else if ((c | 32) >= 103 && (c | 32) <= 122) CLASS[c] = LETTER;
  else if (c === SPACE || c === 9) CLASS[c] = BLANK;
  else if (c < 32 || c === 127) CLASS[c] = CONTROL;
  else CLASS[c] = c < 128 ? PUNCTUATION : HIGH;
}

/** What a number adds to the hashes: no byte has this value. */
const NUMBER = 0x130;
const SEED_A = 0x811c9dc5 | 0;
const SEED_B = 0x2545f491 | 0;
/** Hex words without a digit are words up to here: "defaced". */
const SHORTEST_HEX = 8;
const SHORTEST_DIGITLESS = 10;
const SHORTEST_AFTER_HEX = 4;

/** Runs beyond these are hashed and not remembered. */
const MOST_RUNS = 32;

/** Of the last scan: the numbers' places, in the order of the line. Shared, because a log has a billion lines. */
export const runFrom = new Int32Array(MOST_RUNS);
export const runTo = new Int32Array(MOST_RUNS);

export const scanned = {
  a: 0,
  b: 0,
  runs: 0,
  /** After the last character that is no blank; the start where there is none. */
  end: 0,
  /** Colours or other control characters: to be cleaned and scanned again. */
  isDirty: false,
  hasHigh: false,
};

/** Scans from `from` up to a line's end, a carriage return or `to`, and returns where it stopped. */
export function scanForm(buf: Uint8Array, from: number, to: number): number {
  const cls = CLASS;
  let a = SEED_A;
  let b = SEED_B;
  let runs = 0;
  let i = from;
  let end = from;
  let isBlank = false;
  let hasHigh = false;
  let isDirty = false;
  let hexEnd = -2;
  let last = SPACE;
  while (i < to) {
    let c = buf[i]!;
    let k = cls[c]!;
    if ((k & BLANK) !== 0) {
      isBlank = true;
      last = SPACE;
      i++;
      continue;
    }
    if ((k & CONTROL) !== 0) {
      if (c === NEWLINE || c === RETURN) break;
      isDirty = true;
      i++;
      continue;
    }
    if (isBlank) {
      isBlank = false;
      a = Math.imul(a ^ SPACE, 0x01000193);
      b = Math.imul(((b << 5) | (b >>> 27)) ^ SPACE, 0x9e3779b1);
    }
    if ((k & WORD) !== 0) {
      const start = i;
      const a0 = a;
      const b0 = b;
      const runs0 = runs;
      let bits = 0;
      do {
        bits |= k;
        if ((k & DIGIT) !== 0) {
          const first = i;
          c = 0;
          while (++i < to && (c = buf[i]!) >= 48 && c <= 57);
          if (i >= to) c = 0;
          if (c === POINT || c === COMMA) {
            while (i + 1 < to) {
              const d = buf[i + 1]!;
              if (d < 48 || d > 57) break;
              i++;
              while (++i < to && (c = buf[i]!) >= 48 && c <= 57);
              bits |= LETTER;
              if (i >= to) c = 0;
              if (c !== POINT && c !== COMMA) break;
            }
          }
          if (c > 64) {
            if ((c | 32) === 101) {
              const after = exponentEnd(buf, i, to);
              if (after > 0) {
                i = after;
                bits |= LETTER;
              }
            } else if ((c | 32) === 120 && i === first + 1 && buf[first] === ZERO) {
              // 0x7f2c…
              if (i + 1 < to && (cls[buf[i + 1]!]! & (DIGIT | HEX)) !== 0) {
                i++;
                while (i < to && (cls[buf[i]!]! & (DIGIT | HEX)) !== 0) i++;
                bits |= LETTER;
              }
            }
          }
          if (runs < MOST_RUNS) {
            runFrom[runs] = first;
            runTo[runs++] = i;
          }
          a = Math.imul(a ^ NUMBER, 0x01000193);
          b = Math.imul(((b << 5) | (b >>> 27)) ^ NUMBER, 0x9e3779b1);
          if (i >= to) break;
          c = buf[i]!;
          k = cls[c]!;
        } else {
          // Letters two at a time: half the multiplications.
          for (;;) {
            bits |= k;
            if (++i >= to) {
              a = Math.imul(a ^ c, 0x01000193);
              b = Math.imul(((b << 5) | (b >>> 27)) ^ c, 0x9e3779b1);
              break;
            }
            const next = buf[i]!;
            k = cls[next]!;
            if ((k & (HEX | LETTER)) === 0) {
              a = Math.imul(a ^ c, 0x01000193);
              b = Math.imul(((b << 5) | (b >>> 27)) ^ c, 0x9e3779b1);
              c = next;
              break;
            }
            bits |= k;
            c = (c << 8) | next;
            a = Math.imul(a ^ c, 0x01000193);
            b = Math.imul(((b << 5) | (b >>> 27)) ^ c, 0x9e3779b1);
            if (++i >= to) break;
            c = buf[i]!;
            k = cls[c]!;
            if ((k & (HEX | LETTER)) === 0) break;
          }
          if (i >= to) break;
        }
      } while ((k & WORD) !== 0);
      const length = i - start;
      if (
        (bits & (LETTER | HEX)) === HEX &&
        (length >= SHORTEST_HEX
          ? (bits & DIGIT) !== 0 || length >= SHORTEST_DIGITLESS
          : length >= SHORTEST_AFTER_HEX && hexEnd === start - 1)
      ) {
        runs = runs0;
        if (runs < MOST_RUNS) {
          runFrom[runs] = start;
          runTo[runs++] = i;
        }
        a = Math.imul(a0 ^ NUMBER, 0x01000193);
        b = Math.imul(((b0 << 5) | (b0 >>> 27)) ^ NUMBER, 0x9e3779b1);
        if (i < to && buf[i] === MINUS) hexEnd = i;
      } else if (hexEnd === start - 1 && bits === DIGIT && i < to && buf[i] === MINUS) {
        // The all-digit group of a UUID.
        hexEnd = i;
      }
      last = 48;
      end = i;
      continue;
    }
    if ((k & HIGH) !== 0) {
      hasHigh = true;
      if (c === BAR_1 && i + 2 < to && buf[i + 1] === BAR_2) {
        isBlank = true;
        i += 3;
        end = i;
        last = SPACE;
        continue;
      }
    } else if (c === last) {
      i++;
      end = i;
      continue;
    } else if (c === MINUS && last !== 48 && i + 1 < to && (cls[buf[i + 1]!]! & DIGIT) !== 0) {
      // A sign, unless a word or a number stands right before it.
      i++;
      continue;
    }
    a = Math.imul(a ^ c, 0x01000193);
    b = Math.imul(((b << 5) | (b >>> 27)) ^ c, 0x9e3779b1);
    last = c;
    i++;
    end = i;
  }
  scanned.a = a;
  scanned.b = b;
  scanned.runs = runs;
  scanned.end = end;
  scanned.isDirty = isDirty;
  scanned.hasHigh = hasHigh;
  return i;
}

/** After "e-05" or "E+00" at `at`, 0 where it is none: a hex word may go on with an e. */
function exponentEnd(buf: Uint8Array, at: number, to: number): number {
  const cls = CLASS;
  let i = at + 1;
  if (i < to && (buf[i] === MINUS || buf[i] === PLUS)) i++;
  const first = i;
  while (i < to && (cls[buf[i]!]! & DIGIT) !== 0) i++;
  if (i === first || i - first > 3) return 0;
  return i < to && (cls[buf[i]!]! & WORD) !== 0 ? 0 : i;
}
