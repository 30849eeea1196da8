import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HEADER, KIND, RECORD, RECORD_BYTES } from "../../../ingest/probe-ring/layout.ts";
import { copyRing } from "./copy-ring.ts";
import { discover, type FoundRing } from "./discover.ts";
import { RingFollower } from "./follow-ring.ts";
import { thisMachine } from "../process-state.ts";
import { inspectRing } from "./ring-file.ts";
import { ringsOf } from "../select-run.ts";
import { TestRing } from "../../../../test/support/live/ring.ts";

let folder: string;
const machine = thisMachine();
const nowNs = (): bigint => process.hrtime.bigint();
const found = (): FoundRing[] => ringsOf(discover(folder, machine).runs);
const only = (): FoundRing => found()[0]!;

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "faultline-agent-"))));
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe("following a ring", () => {
  const follow = (keepNs = 1e15, mostRecords = 1 << 12): RingFollower =>
    new RingFollower(only(), { keepNs, mostRecords });
  const poll = (follower: RingFollower): boolean => follower.poll(Number(nowNs()));

  it("sees ends that come later, and counts what is open", () => {
    const ring = new TestRing({ folder });
    const tickets = Array.from({ length: 3 }, (_, i) => ring.append({ kind: KIND.p2p, b: i + 1 }));
    ring.append({ kind: KIND.collective, flags: 32 });
    ring.append({ kind: KIND.memory });
    const follower = follow();
    poll(follower);
    expect([follower.openOperators, follower.records]).toEqual([3, 5]);
    ring.update(tickets[1]!, { kind: KIND.p2p, b: 2, endedNs: nowNs() });
    poll(follower);
    expect(follower.openOperators).toBe(2);
    follower.close();
  });

  it("keeps more than the ring holds, as a ring that is longer", () => {
    const ring = new TestRing({ folder, records: 64 });
    const follower = follow();
    let open = -1;
    for (let i = 0; i < 1000; i++) {
      const ticket = ring.append({
        kind: KIND.collective,
        b: i + 1,
        ...(i === 10 ? {} : { endedNs: nowNs() }),
      });
      if (i === 10) open = ticket;
      if (i % 50 === 49) poll(follower);
    }
    const bytes = follower.extend(copyRing(only(), machine).bytes);
    const file = join(folder, "long.ring");
    writeFileSync(file, bytes);
    expect(inspectRing(file)).toMatchObject({ header: { recordCount: 1024 } });
    const offset = Number(bytes.readBigUInt64LE(HEADER.recordsOffset));
    for (let ticket = 0; ticket < 1000; ticket++) {
      const at = offset + ticket * RECORD_BYTES;
      expect(bytes.readBigUInt64LE(at)).toBe(BigInt(ticket + 1) * 2n);
      expect(bytes.readUInt32LE(at + RECORD.b)).toBe(ticket + 1);
    }
    // Nobody will ever know whether it ended: it must not look like a hang.
    expect(bytes[offset + open * RECORD_BYTES + RECORD.flags]! & 32).toBe(32);
    expect(follower.lost).toBe(0);
    follower.close();
  });

  it("keeps to its bounds, and says what it lost", () => {
    const ring = new TestRing({ folder, records: 64 });
    const follower = follow(1e15, 128);
    for (let i = 0; i < 300; i++) ring.append({ kind: KIND.collective, b: i, endedNs: 1n });
    poll(follower);
    expect([follower.records, follower.lost]).toEqual([64, 0]);
    for (let i = 0; i < 100; i++) ring.append({ kind: KIND.collective, b: i, endedNs: 1n });
    poll(follower);
    expect([follower.records, follower.lost]).toEqual([128, 36]);
    for (let i = 0; i < 300; i++) {
      ring.append({ kind: KIND.collective, b: i, endedNs: 1n });
      if (i % 30 === 0) poll(follower);
    }
    poll(follower);
    expect(follower.lost).toBe(36);
    const bytes = follower.extend(copyRing(only(), machine).bytes);
    expect(bytes.readUInt32LE(HEADER.recordCount)).toBe(128);
    follower.close();
  });

  it("gives up a ring whose head is damaged while it is followed", () => {
    const ring = new TestRing({ folder, records: 64 });
    const follower = follow();
    ring.append({ kind: KIND.iteration, a: 1 });
    expect(poll(follower)).toBe(true);
    ring.long(HEADER.head, 2n ** 63n);
    expect(poll(follower)).toBe(false);
    follower.close();
  });

  it("forgets what is older than asked", () => {
    const ring = new TestRing({ folder, records: 64 });
    const follower = follow(0);
    for (let i = 0; i < 200; i++) {
      ring.append({ kind: KIND.collective, b: i, endedNs: 1n, issuedNs: 1n });
      if (i % 20 === 0) poll(follower);
    }
    expect(follower.extend(ring.bytes)).toBe(ring.bytes);
    follower.close();
  });

  it("waits for a record that is half written", () => {
    const ring = new TestRing({ folder });
    const ticket = ring.tear();
    const follower = follow();
    poll(follower);
    expect(follower.openOperators).toBe(0);
    ring.update(ticket, { kind: KIND.collective, b: 1 });
    poll(follower);
    expect(follower.openOperators).toBe(1);
    follower.close();
  });
});
