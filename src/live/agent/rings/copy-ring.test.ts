import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HEADER, KIND, RECORD, RECORD_BYTES } from "../../../ingest/probe-ring/layout.ts";
import { copyRing } from "./copy-ring.ts";
import { discover, type FoundRing } from "./discover.ts";
import { thisMachine } from "../process-state.ts";
import type { RingFile } from "./ring-file.ts";
import { ringsOf } from "../select-run.ts";
import { IdleProcesses } from "../../../../test/support/live/process.ts";
import { TestRing } from "../../../../test/support/live/ring.ts";

let folder: string;
const idle = new IdleProcesses();
const machine = thisMachine();
const nowNs = (): bigint => process.hrtime.bigint();
const found = (): FoundRing[] => ringsOf(discover(folder, machine).runs);
const only = (): FoundRing => found()[0]!;

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "faultline-agent-"))));
afterEach(() => {
  idle.killAll();
  rmSync(folder, { recursive: true, force: true });
});

describe("a copy", () => {
  it("has every record, marks itself, and leaves out what is half written", async () => {
    const child = await idle.start();
    const ring = new TestRing({ folder, pid: child.pid });
    for (let i = 0; i < 100; i++) ring.append({ kind: KIND.collective, b: i + 1, endedNs: 7n });
    ring.tear();
    child.kill("SIGSTOP");
    await expect.poll(() => only().process.state).toBe("T");
    const before = nowNs();
    const { bytes, unsettled, state } = copyRing(only(), machine);
    expect([unsettled, state]).toEqual([0, "T"]);
    expect(String.fromCharCode(bytes[HEADER.processState]!)).toBe("T");
    const copied = bytes.readBigUInt64LE(HEADER.copiedMonotonicNs);
    expect(copied).toBeGreaterThanOrEqual(before);
    expect(copied).toBeLessThanOrEqual(nowNs());
    const offset = Number(bytes.readBigUInt64LE(HEADER.recordsOffset));
    expect(bytes.subarray(offset)).toEqual(ring.bytes.subarray(offset));
  });

  it("never holds a record that was read in the middle of a change", () => {
    // A read that changes the file under the reader, as a writer does: the second reading sees another record.
    const ring = new TestRing({ folder, records: 64 });
    for (let i = 0; i < 64; i++) ring.append({ kind: KIND.collective, b: i + 1 });
    const path = only().path;
    let reads = 0;
    const file: RingFile = {
      ...only(),
      get path() {
        return path;
      },
      get header() {
        // Asked between the first reading of the records and the second.
        if (reads++ === 0) ring.update(5, { kind: KIND.collective, b: 6, endedNs: 99n });
        return only().header;
      },
    };
    const { bytes, unsettled } = copyRing(file, machine);
    const at = Number(bytes.readBigUInt64LE(HEADER.recordsOffset)) + 5 * RECORD_BYTES;
    expect(unsettled).toBe(0);
    expect(bytes.readBigUInt64LE(at + RECORD.endedNs)).toBe(99n);
  });
});
