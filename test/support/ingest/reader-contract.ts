/**
 * What every reader owes, whatever its format: the size of the chunks does not matter, a file cut anywhere is
 * read without an exception. Used by the readers' tests.
 */
import type { Reading } from "../../../src/model/reading.ts";
import type { Reader } from "../../../src/ingest/reader.ts";

export const CHUNK_SIZES = [1, 2, 3, 7, 64, Number.POSITIVE_INFINITY] as const;

export function readBytes(
  reader: Reader,
  file: string,
  content: string | Uint8Array,
  chunkSize = Number.POSITIVE_INFINITY,
): Reading {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  const sink = reader.open(file);
  const step = Math.min(chunkSize, Math.max(1, bytes.length));
  for (let at = 0; at < bytes.length; at += step) {
    // A copy that is wiped afterwards: readers may not keep a view of the caller's buffer.
    const chunk = Uint8Array.from(bytes.subarray(at, at + step));
    sink.push(chunk);
    chunk.fill(0);
  }
  return sink.end();
}

/** The readings at all chunk sizes; a test says that they are equal. */
export function readAtAllSizes(
  reader: Reader,
  file: string,
  content: string | Uint8Array,
): Reading[] {
  return CHUNK_SIZES.map((size) => readBytes(reader, file, content, size));
}

/**
 * Reads the file cut at every byte and hands out the readings, so that a test can look at them. Of a long file `npm test`
 * may cut at every so many bytes, and at the last: `every`.
 */
export function readCutEverywhere(
  reader: Reader,
  file: string,
  content: string,
  every = 1,
): Reading[] {
  const bytes = Buffer.from(content);
  const readings: Reading[] = [];
  for (let end = bytes.length; end >= 0; end -= every) {
    readings.unshift(readBytes(reader, file, bytes.subarray(0, end)));
  }
  return readings;
}

export function sniffs(reader: Reader, content: string | Uint8Array, name = "file.txt"): boolean {
  const bytes = typeof content === "string" ? Buffer.from(content) : Buffer.from(content);
  return reader.sniff({ name, bytes, text: bytes.toString("latin1") });
}
