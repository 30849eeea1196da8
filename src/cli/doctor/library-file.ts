/** Whether a file can be NCCL's profiler plug-in: by its bytes, without loading it. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** e_machine of elf(5). */
const MACHINES: Readonly<Record<string, number>> = { x64: 62, arm64: 183 };
const MOST_BYTES = 64 << 20;
/** What NCCL looks up in it: ncclProfiler_v1 … (ext-profiler of NCCL). */
const SYMBOL = "ncclProfiler_v";

/** What is wrong with it; null where nothing is seen. */
export function libraryDefect(path: string, architecture: string = process.arch): string | null {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return "there is no such file";
    return code === "EACCES" ? "the file may not be read" : "the file cannot be opened";
  }
  try {
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, MOST_BYTES));
    const have = readSync(fd, bytes, 0, bytes.length, 0);
    if (have < 64 || bytes.toString("latin1", 0, 4) !== "\x7fELF") return "it is not a library";
    const wanted = MACHINES[architecture];
    if (wanted !== undefined && bytes.readUInt16LE(18) !== wanted)
      return "it is built for another processor";
    return bytes.includes(SYMBOL) ? null : "it is not a profiler plug-in of NCCL";
  } catch {
    return "the file cannot be read";
  } finally {
    closeSync(fd);
  }
}
