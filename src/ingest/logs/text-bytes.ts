/** Whether a file is text, by its first bytes. */
import { unmarkedWide } from "./wide-text.ts";

/** Null for text. Blocks of NULs that a crash left between lines do not make a log binary. */
export function whyNoText(bytes: Uint8Array, wasWide = false): string | null {
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
