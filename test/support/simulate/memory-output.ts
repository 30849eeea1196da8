/** Keeps what emitters write in memory, for tests and for callers that want no disk. */
import type { Output } from "../../../src/simulate/emit/emitter.ts";

export interface MemoryOutput extends Output {
  /** The files as text. */
  readonly files: ReadonlyMap<string, string>;
  readonly bytes: ReadonlyMap<string, Buffer>;
}

export function memoryOutput(): MemoryOutput {
  const chunks = new Map<string, Buffer[]>();
  const collected = <T>(as: (bytes: Buffer) => T): Map<string, T> =>
    new Map([...chunks].map(([path, parts]) => [path, as(Buffer.concat(parts))]));
  return {
    get files() {
      return collected((bytes) => bytes.toString("utf8"));
    },
    get bytes() {
      return collected((bytes) => bytes);
    },
    open(path) {
      const parts: Buffer[] = [];
      chunks.set(path, parts);
      return {
        // A copy: the caller may reuse its buffer.
        write: (chunk) => parts.push(Buffer.from(chunk)),
        end: () => undefined,
      };
    },
  };
}
