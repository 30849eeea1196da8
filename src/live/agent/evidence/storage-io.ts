/** How fast processes read and write storage (proc(5), io): a rank that saves a checkpoint stands still and writes. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Bytes a second: logs and metrics are far less, checkpoints far more. */
const BUSY = 8 << 20;
/** Two looks that are closer say nothing. */
const LEAST_NS = 5e8;

interface Look {
  readonly atNs: number;
  readonly bytes: number;
}

export class StorageIo {
  readonly #proc: string;
  readonly #looks = new Map<number, Look>();

  constructor(proc: string) {
    this.#proc = proc;
  }

  /** Bytes a second since the last look, where they are a checkpoint's or a dataset's; null for less, or unknown. */
  busy(pid: number, nowNs: number): number | null {
    const before = this.#looks.get(pid);
    if (before && nowNs - before.atNs < LEAST_NS) return null;
    const bytes = storageBytes(pid, this.#proc);
    if (bytes === null) {
      this.#looks.delete(pid);
      return null;
    }
    this.#looks.set(pid, { atNs: nowNs, bytes });
    if (!before) return null;
    const rate = (bytes - before.bytes) / ((nowNs - before.atNs) / 1e9);
    return rate >= BUSY ? rate : null;
  }

  /** Processes that are no longer asked about. */
  keep(pids: ReadonlySet<number>): void {
    for (const pid of this.#looks.keys()) if (!pids.has(pid)) this.#looks.delete(pid);
  }
}

/** null where the process is gone, or may not be looked at. */
function storageBytes(pid: number, proc: string): number | null {
  try {
    const text = readFileSync(join(proc, String(pid), "io"), "latin1");
    const of = (field: string): number =>
      Number(new RegExp(`^${field}: (\\d+)$`, "m").exec(text)?.[1] ?? NaN);
    const bytes = of("read_bytes") + of("write_bytes");
    return Number.isNaN(bytes) ? null : bytes;
  } catch {
    return null;
  }
}
