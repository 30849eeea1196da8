/** What the kernel said since a job began: Xid, memory, PCI Express (dmesg), where this user may read it. */
import { closeSync, constants, openSync, readSync } from "node:fs";
import { openingError } from "../rings/ring-file.ts";

/** A record of /dev/kmsg: "priority,number,microseconds since boot,flags;message" (Documentation/ABI/testing/dev-kmsg). */
const RECORD = /^\d+,\d+,(\d+),[^;]*;(.*)$/;
/** Longer than any record; a read gives one. */
const READ_BYTES = 16_384;
const MOST_READS = 100_000;
const MOST_BYTES = 1 << 20;

export interface KernelLog {
  /** Lines as `dmesg -T` prints them; "" where the kernel said nothing. */
  readonly text: string;
  /** Why it cannot be read; null where it was. */
  readonly trouble: string | null;
}

/** `bootMs`: when the machine's monotonic clock was 0, milliseconds since 1970. */
export function kernelLog(sinceMs: number, bootMs: number, path = "/dev/kmsg"): KernelLog {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return { text: "", trouble: `kernel log: ${openingError(error)}` };
  }
  const lines: string[] = [];
  let bytes = 0;
  try {
    const buffer = Buffer.alloc(READ_BYTES);
    for (let reads = 0; reads < MOST_READS; reads++) {
      const got = readRecord(fd, buffer);
      if (got === 0) break;
      for (const line of buffer.toString("utf8", 0, Math.max(0, got)).split("\n")) {
        const [, microseconds, message] = RECORD.exec(line) ?? [];
        if (microseconds === undefined) continue;
        const atMs = bootMs + Number(microseconds) / 1000;
        if (atMs < sinceMs) continue;
        lines.push(`[${stampOf(atMs)}] ${message}`);
        bytes += line.length;
      }
    }
  } catch (error) {
    return { text: "", trouble: `kernel log: ${openingError(error)}` };
  } finally {
    closeSync(fd);
  }
  while (bytes > MOST_BYTES && lines.length > 0) bytes -= lines.shift()!.length;
  return { text: lines.length === 0 ? "" : `${lines.join("\n")}\n`, trouble: null };
}

/** 0 at the end; -1 where records were overwritten before they were read, and the next one follows. */
function readRecord(fd: number, buffer: Buffer): number {
  try {
    return readSync(fd, buffer, 0, buffer.length, null);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EAGAIN") return 0;
    if (code === "EPIPE") return -1;
    throw error;
  }
}

/** "Wed Nov 18 03:20:11 2026", in UTC. */
function stampOf(ms: number): string {
  const [week, day, month, year, time] = new Date(ms).toUTCString().replace(",", "").split(" ");
  return `${week} ${month} ${day} ${time} ${year}`;
}
