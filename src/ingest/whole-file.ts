import type { Reading } from "../model/reading.ts";
import type { Sink } from "./reader.ts";

/** A file that is read when all of it is there; `read` gets null where it is longer than `mostBytes`. */
export function wholeFile(
  mostBytes: number,
  read: (bytes: Buffer<ArrayBuffer> | null) => Reading,
): Sink {
  let chunks: Buffer<ArrayBuffer>[] = [];
  let length = 0;
  return {
    push(chunk) {
      length += chunk.length;
      // A copy: the caller may reuse its chunk.
      if (length <= mostBytes) chunks.push(Buffer.from(chunk));
      else chunks = [];
    },
    end() {
      const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
      chunks = [];
      return read(length > mostBytes ? null : bytes);
    },
  };
}
