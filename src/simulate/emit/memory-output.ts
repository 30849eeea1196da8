/** Keeps what emitters write in memory, for tests and for callers that want no disk. */
import type { Output } from "./emitter.ts";

export interface MemoryOutput extends Output {
  readonly files: ReadonlyMap<string, string>;
}

export function memoryOutput(): MemoryOutput {
  const files = new Map<string, string>();
  return {
    files,
    open(path) {
      files.set(path, "");
      return {
        write(chunk) {
          const text = typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk);
          files.set(path, files.get(path)! + text);
        },
        end() {},
      };
    },
  };
}
