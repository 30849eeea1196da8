import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { StorageIo } from "./storage-io.ts";

const proc = mkdtempSync(join(tmpdir(), "faultline-proc-"));
afterAll(() => rmSync(proc, { recursive: true, force: true }));

const MB = 1 << 20;
const S = 1e9;

function wrote(pid: number, bytes: number): void {
  mkdirSync(join(proc, String(pid)), { recursive: true });
  const lines = ["rchar: 1", "wchar: 1", "read_bytes: 4096", `write_bytes: ${bytes}`];
  writeFileSync(join(proc, String(pid), "io"), `${lines.join("\n")}\ncancelled_write_bytes: 0\n`);
}

describe("StorageIo", () => {
  it("tells a checkpoint from a log by bytes a second", () => {
    const io = new StorageIo(proc);
    wrote(1, 0);
    wrote(2, 0);
    expect([io.busy(1, 0), io.busy(2, 0)]).toEqual([null, null]);
    wrote(1, 200 * MB);
    wrote(2, MB);
    expect([io.busy(1, 2 * S), io.busy(2, 2 * S)]).toEqual([100 * MB, null]);
    expect(io.busy(1, 4 * S)).toBeNull();
  });

  it("says nothing of processes that cannot be looked at", () => {
    const io = new StorageIo(proc);
    expect([io.busy(3, 0), io.busy(3, 2 * S)]).toEqual([null, null]);
  });
});
