/** Files below a folder, written through a buffer; the simulator's Output. */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { UserError, errorText } from "../base/errors.ts";
import type { Output, Writer } from "../simulate/emit/emitter.ts";

const BUFFER_BYTES = 1 << 18;

/** What a simulation writes; a folder with anything else in it is not ours to write into. */
const OWN = ["flight-recorder", "logs", "metrics", "kineto", "operators", "truth.json", "job.json"];

export function folderOutput(folder: string): Output {
  prepare(folder);
  return {
    open(path: string): Writer {
      const file = join(folder, path);
      try {
        mkdirSync(dirname(file), { recursive: true });
        return bufferedWriter(openSync(file, "w"));
      } catch (error) {
        throw new UserError(
          `cannot write ${file}: ${errorText(error)}`,
          "give --out a writable folder",
        );
      }
    },
  };
}

/** A folder that is new, empty, or holds an earlier simulation, which makes room. */
function prepare(folder: string): void {
  refuseKernelFolder(folder);
  if (!existsSync(folder)) return;
  if (!statSync(folder).isDirectory()) {
    throw new UserError(`${folder} is a file`, "give --out a folder", 2);
  }
  const entries = readdirSync(folder);
  if (entries.length === 0) return;
  if (!entries.includes("truth.json") || entries.some((name) => !OWN.includes(name))) {
    throw new UserError(
      `${folder} is not empty and holds more than a simulation`,
      "give --out a new folder",
      2,
    );
  }
  for (const name of entries) rmSync(join(folder, name), { recursive: true });
}

/** mkdir with recursive never comes back from the kernel's own folders. */
export function refuseKernelFolder(folder: string): void {
  if (!/^\/(proc|sys|dev)(\/|$)/.test(resolve(folder))) return;
  throw new UserError(`${folder} is a kernel folder`, "give --out a writable folder");
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
