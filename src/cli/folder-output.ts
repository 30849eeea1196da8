/** Files below a folder, written through a buffer; the simulator's Output. */
import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { UserError } from "../base/errors.ts";
import type { Output, Writer } from "../simulate/emit/emitter.ts";

const BUFFER_BYTES = 1 << 18;

export function folderOutput(folder: string): Output {
  return {
    open(path: string): Writer {
      const file = join(folder, path);
      try {
        mkdirSync(dirname(file), { recursive: true });
        return bufferedWriter(openSync(file, "w"));
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        throw new UserError(
          `${file}: cannot be written: ${why}`,
          "give --out a folder that can be written",
        );
      }
    },
  };
}

function bufferedWriter(fd: number): Writer {
  const buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  let used = 0;
  const flush = (): void => {
    for (let at = 0; at < used;) at += writeSync(fd, buffer, at, used - at);
    used = 0;
  };
  return {
    write(chunk) {
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
      if (used + bytes.length > BUFFER_BYTES) flush();
      if (bytes.length > BUFFER_BYTES)
        for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
      else {
        buffer.set(bytes, used);
        used += bytes.length;
      }
    },
    end() {
      flush();
      closeSync(fd);
    },
  };
}
