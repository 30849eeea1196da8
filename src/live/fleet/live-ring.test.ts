/** Rings that grow while somebody reads them. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import { KIND, wireCode, wireMs } from "../../ingest/probe-ring/layout.ts";
import { readRing } from "../../ingest/probe-ring/read-ring.ts";
import { RingFollower } from "../agent/rings/follow-ring.ts";
import { inspectRing } from "../agent/rings/ring-file.ts";
import { LiveRing } from "./live-ring.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-ring-"));
const rings: LiveRing[] = [];
afterEach(() => {
  for (const ring of rings.splice(0)) ring.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const BASE = 5_000_000_000_000;
const SLOTS = 64;

function ring(): LiveRing {
  const path = join(mkdtempSync(join(folder, "ring-")), "job.r3.77.native.ring");
  const one = new LiveRing({
    path,
    rank: 3,
    worldSize: 8,
    pid: 77,
    startTicks: 12_345,
    gpu: 3,
    host: "node000",
    job: "job",
    records: SLOTS,
    monotonicNs: BigInt(BASE),
    madeAtNs: 1_794_700_800_000_000_000n,
    communicators: [{ id: 9n, rank: 3, size: 8, name: "WORLD", next: null }],
  });
  rings.push(one);
  return one;
}

function operator(n: number, endedNs = 0) {
  return {
    kind: KIND.collective,
    func: 1,
    dtype: 9,
    flags: 3,
    group: 0,
    a: 100,
    b: n,
    c: 0,
    issuedNs: BASE + n * 1000,
    startedNs: BASE + n * 1000 + 10,
    endedNs,
    sentMs: 0,
  };
}

test("a code says for how long sends were on the wire, to a part in four thousand", () => {
  for (const ms of [0.001, 0.5, 4.095, 4.1, 77.7, 5000, 120_000])
    expect(Math.abs(wireMs(wireCode(ms)) / ms - 1)).toBeLessThan(1 / 4000);
  expect(wireMs(wireCode(0))).toBeNaN();
  expect(wireMs(wireCode(1e9))).toBe(wireMs(0xffff));
});

test("a follower that polls meanwhile meets every record once, whole and in its newest state", () => {
  const writer = ring();
  const found = inspectRing(writer.path);
  if (typeof found === "string") throw new Error(found);
  expect(found.header).toMatchObject({ rank: 3, startTicks: 12_345, localRank: 3, gpu: 3 });
  const follower = new RingFollower(found, { keepNs: 1e12, mostRecords: 4096 });
  const open: number[] = [];
  // Bursts of other sizes than the ring's, so that laps begin everywhere in them.
  for (let n = 0, round = 1; n < 1000; round++) {
    for (const ticket of open.splice(0)) writer.ended(ticket, BASE + ticket * 1000 + 500);
    for (let i = 0; i < 1 + ((round * 7) % 23); i++) open.push(writer.append(operator(n++)));
    for (let i = open.length; i > 0; i--) writer.issued(0, true);
    writer.flush();
    expect(follower.poll(BASE + n * 1000)).toBe(true);
    expect(follower.openOperators).toBe(open.length);
  }
  expect(follower.lost).toBe(0);
  expect(follower.records).toBe(writer.head);
  follower.close();
});

test("what was overwritten is not changed any more, and the rest is read as it was written", () => {
  const writer = ring();
  const first = writer.append(operator(0));
  for (let n = 1; n <= SLOTS; n++) writer.append(operator(n, BASE + n * 1000 + 400));
  writer.ended(first, BASE + 99);
  writer.flush();
  writer.end("exception", 1, BASE + 1e6, "RuntimeError: gone\n");
  const reading = readRing(writer.path, readFileSync(writer.path));
  expect(reading.defects).toEqual([]);
  const { ops } = reading.dumps![0]!;
  expect([...ops.seq]).toEqual(Array.from({ length: SLOTS }, (_, i) => i + 1));
  expect(reading.probes![0]!.ended).toMatchObject({ how: "exception", code: 1 });
  expect(reading.probes![0]!.words).toContain("gone");
});
