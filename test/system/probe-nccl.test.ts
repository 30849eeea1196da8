/** The NCCL profiler plug-in, through the entry points that NCCL uses: probe/nccl/tests/driver.c plays NCCL. */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { longGroup } from "../support/cases.ts";
import { FLAG, HEADER, NONE, wireMs } from "../../src/ingest/probe-ring/layout.ts";
import { readRing } from "../../src/ingest/probe-ring/read-ring.ts";
import { build, hasCompiler, SANITIZERS } from "./probe-nccl/build.ts";
import { drive, freshFolder, ringOf, start } from "./probe-nccl/drive.ts";
import { Ring, ringsIn } from "./probe-nccl/ring.ts";
import { until } from "../support/until.ts";
import { unlessThere } from "../support/lacking.ts";

const VERSIONS = [1, 2, 3, 4, 5, 6] as const;
const why = unlessThere(hasCompiler, "C compiler", "gcc make");

describe.skipIf(!hasCompiler)(`the NCCL profiler plug-in${why}`, () => {
  const ALL_REDUCE = { kind: 1, func: 1, dtype: 9, a: 1024, c: 0, d: 1 | (3 << 8) };
  const BROADCAST = { kind: 1, func: 4, dtype: 7, a: 256, c: 3, d: 2 | (1 << 8) };
  const GATHER = { kind: 1, func: 2, dtype: 7, a: 512, c: 0, d: 4 | (2 << 8) };
  /** Before version 5 of the interface NCCL thinks of a gather in bytes. */
  const GATHERED_BYTES = { ...GATHER, dtype: 0, a: 2048 };
  const SEND = { kind: 2, func: 1, dtype: 6, a: 64, c: 5, d: 0 };
  const byGpu = FLAG.gpuStart | FLAG.gpuEnd;

  it.each(VERSIONS)("records all operators in version %i", (version) => {
    const ring = ringOf(["scene", version], {
      RANK: "3",
      WORLD_SIZE: "8",
      LOCAL_RANK: "1",
      FAULTLINE_JOB: "a job/1",
    });
    expect(ring.file).toMatch(/a_job_1\.r3\.\d+\.native\.ring$/);
    expect(ring.text(HEADER.source, 32)).toBe(`nccl-profiler-v${version}`);
    expect([ring.u32("rank"), ring.u32("worldSize"), ring.u32("localRank")]).toEqual([3, 8, 1]);

    // A channel counts twice: for its kernel and what the proxy receives or, where only the proxy tells, for what it sends.
    const per = 2;
    const flags = version < 4 ? 0 : byGpu;
    const whole = (call: object, b: number, channels: number, more = 0): object => ({
      ...call,
      b,
      flags: flags | more,
      channels: channels * per,
      channelsEnded: channels * per,
    });
    const pair = [whole(SEND, 1, 4), whole({ ...SEND, func: 2 }, 2, 3)];
    const expected =
      version < 5
        ? [
            whole(ALL_REDUCE, 1, 2),
            whole(GATHERED_BYTES, 2, 1),
            ...pair,
            whole(BROADCAST, 3, 1),
            whole(GATHERED_BYTES, 4, 1),
            whole(GATHERED_BYTES, 5, 1),
          ]
        : [
            whole(ALL_REDUCE, 1, 2),
            whole(GATHER, 2, 1),
            ...pair,
            { ...BROADCAST, d: 0, b: 3, flags: FLAG.untimed, channels: 0, channelsEnded: 0 },
            whole(BROADCAST, 4, 1),
            whole(GATHER, 5, 1, FLAG.captured),
            whole(GATHER, 6, 1, FLAG.captured),
          ];
    const { records } = ring;
    expect(records).toMatchObject(expected);
    for (const [i, record] of records.entries()) {
      expect(record.ticket).toBe(i);
      expect(record.e).toBeGreaterThan(0);
      if ((record.flags & FLAG.untimed) !== 0) {
        expect([record.startedNs, record.endedNs]).toEqual([0n, 0n]);
        continue;
      }
      expect(record.startedNs).toBeGreaterThanOrEqual(record.issuedNs);
      expect(record.endedNs).toBeGreaterThanOrEqual(record.startedNs);
      // The GPU's clock is 777,000 s ahead: what is on it is brought back to the host's.
      expect(record.endedNs).toBeLessThanOrEqual(ring.u64("endedNs"));
    }
    expect(ring.comms).toEqual([
      {
        id: 0xabcdef0123456789n,
        rank: 3,
        size: version < 4 ? -1 : 8,
        nodes: version < 4 ? -1 : 2,
        flags: 3,
        collectives: records.length - 2,
        p2ps: 2,
        name: "dp group",
      },
    ]);
    expect(ring.ended).toEqual({ how: 1, code: 0 });
  });

  it.each(VERSIONS)("counts the proxy's steps on each connection in version %i", (version) => {
    const { connections } = ringOf(["scene", version]);
    // Two channels to the next rank and four to the peer, in both directions; nothing for the other process.
    expect(connections).toHaveLength(12);
    const of = (peer: number, channel: number): typeof connections =>
      connections.filter((c) => c.peer === peer && c.channel === channel);
    const bytes = (steps: number): number => (version < 4 ? 0 : steps * 100);
    for (const isSend of [0, 1]) {
      const own = { comm: 0, isSend, states: Array<number>(16).fill(0) };
      expect(of(1, 0).find((c) => c.isSend === isSend)).toMatchObject({
        ...own,
        begun: 20,
        finished: 20,
        ops: [5, 5],
        bytes: bytes(20),
      });
      expect(of(1, 1).find((c) => c.isSend === isSend)).toMatchObject({
        ...own,
        begun: 4,
        finished: 4,
        ops: [1, 1],
      });
      expect(of(5, 3).find((c) => c.isSend === isSend)).toMatchObject({
        ...own,
        begun: 1,
        finished: 1,
        ops: [1, 1],
      });
    }
  });

  it("takes the proxy's word where the kernels are not asked", () => {
    const { records } = ringOf(["scene", 5], { FAULTLINE_NCCL_MASK: "coll,p2p,proxy,step" });
    expect(records[0]).toMatchObject({ ...ALL_REDUCE, flags: 0, channels: 4, channelsEnded: 4 });
    expect(records[0]!.endedNs).toBeGreaterThan(records[0]!.startedNs);
  });

  it("says that it cannot tell where neither is asked", () => {
    const { records, connections } = ringOf(["scene", 5], { FAULTLINE_NCCL_MASK: "coll" });
    expect(records.map(({ kind }) => kind)).not.toContain(2);
    for (const record of records) {
      expect(record.flags & FLAG.untimed).toBe(FLAG.untimed);
      expect(record.endedNs).toBe(0n);
    }
    expect(connections).toEqual([]);
  });

  it("leaves no ring behind where nothing is to be recorded", () => {
    const rings = freshFolder();
    expect(drive(rings, ["none", 5], { FAULTLINE_NCCL_MASK: "0" })).toMatchObject({
      status: 0,
      stdout: '{"mask":0}\n',
      stderr: "",
    });
    expect(existsSync(rings)).toBe(false);
  });

  it.each(VERSIONS)("is read while many threads write many laps, version %i", (version) => {
    const ring = ringOf(["play", version, 4, 8000]);
    expect(ring.comms.map(({ collectives, flags }) => [collectives, flags])).toEqual(
      Array.from({ length: 4 }, () => [8000, 3]),
    );
    expect(Number(ring.u64("head"))).toBe(32_000);
    for (const { begun, finished, ops } of ring.connections)
      expect([begun, finished, ops]).toEqual([32_000, 32_000, [8000, 8000]]);
  });

  it.each(VERSIONS)("counts a call once whose record is lost, version %i", (version) => {
    const ring = ringOf(["lost", version], { FAULTLINE_RECORDS: "64" });
    expect([ring.u64("head"), ring.u64("dropped")]).toEqual([66n, 1n]);
    expect(ring.comms[0]!.collectives).toBe(66);
    expect(ring.records.at(-1)).toMatchObject({ ticket: 65, b: 66 });
    expect(ring.records).toHaveLength(64);
  });

  it("loses nothing in a ring that is large enough", () => {
    const ring = ringOf(["play", 5, 3, 5000], { FAULTLINE_RECORDS: "16000" });
    expect(ring.u32("recordCount")).toBe(16_384);
    expect([ring.u64("dropped"), ring.u64("lateUpdates")]).toEqual([0n, 0n]);
    for (const [group] of ring.comms.entries()) {
      const own = ring.records.filter((record) => record.group === group);
      expect(own.map(({ b }) => b)).toEqual(Array.from({ length: 5000 }, (_, i) => i + 1));
      for (const record of own) {
        expect(record).toMatchObject({ channels: 4, channelsEnded: 4, flags: byGpu });
        expect(record.endedNs).toBeGreaterThan(0n);
      }
    }
  });

  it.each(VERSIONS)("is not over before its data has come, in version %i", (version) => {
    const { records } = ringOf(["late-data", version]);
    const [late, atOnce] = records.map(
      ({ startedNs, endedNs }) => Number(endedNs - startedNs) / 1e6,
    );
    expect(records).toHaveLength(2);
    expect(late).toBeGreaterThan(29);
    expect(atOnce).toBeLessThan(15);
    // Whoever knows the end says so.
    if (version > 3)
      expect(records.map(({ flags }) => flags & FLAG.gpuEnd)).toEqual([0, FLAG.gpuEnd]);
  });

  it.each(VERSIONS)("tells how long sends were on the wire, version %i", (version) => {
    const { records } = ringOf(["wire", version]);
    const [fast, slow] = records.map(({ wire }) => wireMs(wire));
    expect(fast).toBeGreaterThan(0);
    expect(slow).toBeGreaterThanOrEqual(30);
    // Two steps together count once, and the 30 ms in which one waits for its GPU are not on the wire.
    for (const { wire, issuedNs, endedNs } of records)
      expect(wireMs(wire)).toBeLessThan(Number(endedNs - issuedNs) / 1e6 - 29);
  });

  it("is read by diagnose as it lies there", () => {
    const ring = ringOf(["scene", 5], { RANK: "0", WORLD_SIZE: "8" });
    expect(readRing(ring.file, ring.bytes)).toMatchObject({ format: "probe-ring", records: 8 });
  });

  it("counts communicators that its table does not hold, and records their operators", () => {
    const ring = ringOf(["comms", 5]);
    expect([ring.comms.length, ring.u32("tablesFull")]).toEqual([256, 44]);
    const { records } = ring;
    expect(records).toHaveLength(300);
    expect(records[299]).toMatchObject({ ...ALL_REDUCE, group: NONE, b: 0 });
    expect(records[255]).toMatchObject({ ...ALL_REDUCE, group: 255, b: 1 });
  });

  it("leaves a readable ring when it is killed in the middle", async () => {
    const { child, rings } = await start(["hang", 5]);
    child.kill("SIGKILL");
    await once(child, "close");
    const ring = ringsIn(rings)[0]!;
    expect(ring.ended).toEqual({ how: 0, code: 0 });
    expect(ring.records).toHaveLength(11);
    expect(ring.records[10]).toMatchObject({
      ...ALL_REDUCE,
      b: 11,
      channels: 2,
      channelsEnded: 1,
      endedNs: 0n,
    });
    const stuck = ring.connections.filter(({ begun, finished }) => begun !== finished);
    expect(stuck).toMatchObject([
      { channel: 1, isSend: 1, peer: 1, begun: 41, finished: 40, ops: [11, 10] },
    ]);
    expect(stuck[0]!.states[40 % 16]).toBe(9);
  });

  it("shows a sign of life while the job stands", async () => {
    const { rings } = await start(["hang", 5]);
    const first = ringsIn(rings)[0]!;
    await until(() => new Ring(first.file).u64("heartbeatNs") > first.u64("heartbeatNs"));
    const later = new Ring(first.file);
    expect(later.u64("anchorMonotonicNs")).toBe(later.u64("heartbeatNs"));
    expect(later.u64("anchorRealtimeNs")).toBeGreaterThan(first.u64("startedRealtimeNs"));
  });
});

longGroup.each(SANITIZERS)("under $target", ({ target, isThere, needs }) => {
  it.skipIf(!isThere)(
    `is clean (skipped where it is not installed: apt install ${needs})`,
    () => {
      const sanitized = build(target);
      // Looking for leaks takes seconds each time, and in a fork's child it sees threads of the parent.
      let rings = "";
      const clean = (words: readonly (string | number)[], options = "detect_leaks=0"): void => {
        const run = drive(rings, words, { ASAN_OPTIONS: options }, sanitized);
        expect(run).toMatchObject({ status: 0, stderr: "" });
      };
      for (const version of VERSIONS) {
        rings = freshFolder();
        clean(["play", version, 3, 1500]);
        clean(["scene", version]);
      }
      clean(["comms", 5], "detect_leaks=1");
      // ThreadSanitizer does not follow a fork whose child starts threads.
      if (target !== "tsan") clean(["fork", 5]);
    },
    600_000,
  );
});
