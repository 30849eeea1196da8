/** Copying and following a ring that another process writes as fast as it can. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HEADER, RECORD, RECORD_BYTES } from "../../src/ingest/probe-ring/layout.ts";
import { copyRing } from "../../src/live/agent/rings/copy-ring.ts";
import { RingFollower } from "../../src/live/agent/rings/follow-ring.ts";
import { thisMachine } from "../../src/live/agent/process-state.ts";
import { inspectRing, type RingFile } from "../../src/live/agent/rings/ring-file.ts";
import { whole } from "../../src/live/agent/rings/ring-header.ts";
import { TestRing } from "../support/live/ring.ts";
import { programPath, unlessThere } from "../support/lacking.ts";

const source = fileURLToPath(new URL("./ring-writer.c", import.meta.url));
const compiler = programPath("cc", "gcc", "clang");
const why = unlessThere(compiler !== null, "C compiler", "gcc libc6-dev");
/** Few, so that reader and writer are in the same record as often as can be. */
const RECORDS = 64;
const ROUNDS = 5000;

/** Tickets of whole records; throws where one is a mixture of two states. */
function checked(bytes: Buffer): number {
  const from = Number(bytes.readBigUInt64LE(HEADER.recordsOffset));
  const records = bytes.readUInt32LE(HEADER.recordCount);
  const head = whole(bytes, HEADER.head);
  let seen = 0;
  for (let slot = 0; slot < records; slot++) {
    const at = from + slot * RECORD_BYTES;
    const stamp = whole(bytes, at);
    if (stamp === 0 || stamp % 2 === 1) continue;
    const ticket = stamp / 2 - 1;
    if (ticket % records !== slot || ticket >= head)
      throw new Error(`ticket ${ticket} in slot ${slot}`);
    const number = whole(bytes, at + RECORD.a);
    const parts = [RECORD.issuedNs, RECORD.startedNs, RECORD.endedNs].map((field) =>
      whole(bytes, at + field),
    );
    const low = [RECORD.b, RECORD.d].map((field) => bytes.readUInt32LE(at + field));
    if (parts.some((part) => part !== number) || low.some((part) => part !== number % 2 ** 32))
      throw new Error(
        `ticket ${ticket} is a mixture: ${number} ${parts.join(" ")} ${low.join(" ")}`,
      );
    seen++;
  }
  return seen;
}

describe.skipIf(compiler === null)(`a ring that is written meanwhile${why}`, () => {
  let folder: string;
  let writer: ChildProcess;
  let ring: RingFile;
  let realtime = thisMachine().realtimeNs();
  // A clock that never stands still: a copy waits for the next millisecond otherwise.
  const machine = { ...thisMachine(), realtimeNs: () => (realtime += 1000n) };

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "faultline-written-"));
    const program = join(folder, "writer");
    execFileSync(compiler!, [
      "-std=c11",
      "-D_GNU_SOURCE",
      "-O2",
      "-Wall",
      "-Werror",
      "-o",
      program,
      source,
    ]);
    const made = new TestRing({ folder, records: RECORDS });
    made.close();
    ring = inspectRing(made.path) as RingFile;
    const { recordsOffset } = ring.header;
    writer = spawn(program, [ring.path, String(recordsOffset), String(RECORDS)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(writer.stdout!, "data");
  });
  afterAll(() => {
    writer.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });

  it("is copied without a record that is half of one state and half of another", () => {
    let seen = 0;
    for (let round = 0; round < ROUNDS; round++) seen += checked(copyRing(ring, machine).bytes);
    expect(seen).toBeGreaterThan(0);
  });

  it("is followed without one, and what was kept is a ring", async () => {
    const follower = new RingFollower(ring, { keepNs: 1e18, mostRecords: 4 * RECORDS });
    for (let round = 0; round < 200; round++) {
      expect(follower.poll(Number(machine.monotonicNs()))).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const bytes = follower.extend(copyRing(ring, machine).bytes);
    const file = join(folder, "kept");
    writeFileSync(file, bytes);
    expect(inspectRing(file)).toMatchObject({
      header: { recordCount: expect.any(Number) as number },
    });
    // How many it caught depends on who got the processor.
    expect(() => checked(bytes)).not.toThrow();
    follower.close();
  });

  it("is readable after its writer was killed in the middle of it", async () => {
    writer.kill("SIGKILL");
    await once(writer, "exit");
    const { bytes, unsettled } = copyRing(ring, machine);
    expect(unsettled).toBe(0);
    expect(checked(bytes)).toBeGreaterThanOrEqual(RECORDS - 1);
  });
});
