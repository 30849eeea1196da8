/** Digests of whole files, made by whichever thread read them, put together in the order of the files' names. */
import type { LogDigest } from "../../model/log-digest.ts";
import { mergeDigests } from "./merge-digests.ts";
import type { PartialDigest } from "./partial-digest.ts";

export interface FileDigest {
  /** Its path. */
  readonly file: string;
  /** Of this file alone, which is its number 0. */
  readonly digest: PartialDigest;
}

export function digestOf(files: readonly FileDigest[]): LogDigest {
  return mergeDigests(
    files.map(({ file }) => file),
    files.map(({ digest }, index) => numbered(digest, index)),
  );
}

function numbered(digest: PartialDigest, file: number): PartialDigest {
  const { parts, streams, shapes } = digest;
  return {
    ...digest,
    parts: parts.map((part) => ({ ...part, file })),
    streams: { ...streams, file: new Int32Array(streams.file.length).fill(file) },
    shapes: { ...shapes, file: new Int32Array(shapes.file.length).fill(file) },
  };
}
