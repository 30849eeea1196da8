/**
 * For logs that write something new in every line (samples of text, dumps): the first few words of a line, those with
 * digits and those that are too long to be words made one. Used only once there are too many forms.
 */
const MOST_WORDS = 6;
const LONGEST_WORD = 40;

export function coarseHash(buf: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5 | 0;
  let words = 0;
  let i = from;
  while (i < to && words < MOST_WORDS) {
    while (i < to && buf[i]! <= 32) i++;
    const before = hash;
    const start = i;
    let hasDigit = false;
    for (; i < to && buf[i]! > 32; i++) {
      const c = buf[i]!;
      if (c >= 48 && c <= 57) hasDigit = true;
      hash = Math.imul(hash ^ c, 0x01000193);
    }
    if (hasDigit || i - start > LONGEST_WORD) hash = Math.imul(before ^ 0x130, 0x01000193);
    hash = Math.imul(hash ^ 32, 0x01000193);
    words++;
  }
  return hash;
}
