/** The LD_PRELOAD shim against libraries that speak like NCCL, CUDA's driver and cuBLAS. */
import { spawnSync } from "node:child_process";
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { DESTROYED, FLAG, HEADER, KIND } from "../../src/ingest/probe-ring/layout.ts";
import {
  build,
  buildStubs,
  canBuild,
  ringsIn,
  type Settings,
  start,
  whyNot,
} from "./probe-shim/build.ts";
import { readRing, type Ring } from "./probe-shim/ring.ts";
import { until } from "../support/until.ts";

const TIMED = FLAG.shim | FLAG.gpuStart | FLAG.gpuEnd;
const UNTIMED = FLAG.shim | FLAG.untimed;

let built = "";
beforeAll(() => {
  if (canBuild) built = build();
}, 600_000);

interface Ran {
  readonly status: number | null;
  readonly said: Readonly<Record<string, unknown>>;
  readonly complained: string;
  readonly rings: readonly Ring[];
}

async function run(words: readonly string[], settings: Settings = {}): Promise<Ran> {
  const job = start(built, [join(built, "program"), ...words], settings);
  const status = await job.ended;
  const said = job.said() === "" ? {} : (JSON.parse(job.said()) as Record<string, unknown>);
  return { status, said, complained: job.complained(), rings: ringsIn(job.rings).map(readRing) };
}

describe.skipIf(!canBuild)(`the shim${whyNot}`, () => {
  it("never calls into a library that the job has closed", async () => {
    const { status, said } = await run(["closes"]);
    expect({ status, said }).toEqual({ status: 0, said: { first: 0, second: 0 } });
  });

  it("records every call with what it was asked for, and when the GPU ran it", async () => {
    const { status, said, complained, rings } = await run(["operators"]);
    expect({ status, said, complained }).toEqual({
      status: 0,
      // The stub's Bcast calls its Broadcast: that is one call of the job's.
      said: { results: 0, calls: 11 },
      complained: "",
    });
    const [ring] = rings;
    expect(ring!.records.map(({ kind, func, a, b, c }) => [kind, func, Number(a), b, c])).toEqual([
      [KIND.collective, 1, 101_000, 1, 0],
      [KIND.collective, 2, 102_000, 2, 0],
      [KIND.collective, 3, 103_000, 3, 0],
      [KIND.collective, 4, 104_000, 4, 3],
      [KIND.collective, 4, 105_000, 5, 1],
      [KIND.collective, 5, 106_000, 6, 2],
      [KIND.collective, 6, 107_000, 7, 0],
      [KIND.collective, 7, 108_000, 8, 1],
      [KIND.collective, 8, 109_000, 9, 3],
      [KIND.p2p, 1, 110_000, 1, 3],
      [KIND.p2p, 2, 111_000, 2, 1],
    ]);
    expect(ring!.records.map(({ dtype }) => dtype)).toEqual([7, 9, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
    for (const { a, flags, issuedNs, startedNs, endedNs, e } of ring!.records) {
      expect(flags).toBe(TIMED);
      expect(startedNs).toBeGreaterThanOrEqual(issuedNs);
      // An element is a nanosecond on the stub's GPU. A float of milliseconds tells some.
      expect(endedNs - startedNs).toBeGreaterThanOrEqual(Number(a) - 100);
      expect(e).toBeGreaterThan(0);
      expect(endedNs).toBeLessThan(Number(process.hrtime.bigint()));
    }
    expect(ring).toMatchObject({ gpu: 3, library: "NCCL 2.28.9", source: "nccl-shim" });
    const { rank, size, flags, collectives, p2ps } = ring!.communicators[0]!;
    expect({ rank, size, collectives, p2ps }).toEqual({
      rank: 2,
      size: 4,
      collectives: 9,
      p2ps: 2,
    });
    expect(flags & DESTROYED).toBe(DESTROYED);
  });

  it("finds NCCL where it is part of the framework itself", async () => {
    const { said, rings } = await run(["operators"], { STUB_FRAMEWORK: "libframework-static.so" });
    expect(said).toEqual({ results: 0, calls: 11 });
    expect(rings[0]!.records.map(({ flags }) => flags)).toEqual(Array(11).fill(TIMED));
    expect(rings[0]!.communicators[0]).toMatchObject({ rank: 2, size: 4 });
    expect(rings[0]!.library).toBe("NCCL 2.28.9");
  });

  it("times a group at its outermost end, one pair of events for each stream", async () => {
    const { said, rings } = await run(["groups"]);
    expect(said).toEqual({ inner: 0, before: 0, events: 4, unpaired: 5 });
    const records = rings[0]!.records;
    expect(records.length).toBe(305);
    const [send, receive, reduce, after] = records;
    expect(send!.startedNs).toBe(reduce!.startedNs);
    expect(send!.endedNs).toBe(reduce!.endedNs);
    expect(send!.endedNs - send!.startedNs).toBeGreaterThanOrEqual(249_900);
    expect(receive!.endedNs - receive!.startedNs).toBeGreaterThanOrEqual(99_900);
    expect(after!.startedNs).toBeGreaterThanOrEqual(after!.issuedNs);
    expect(records.slice(0, 304).every(({ flags }) => flags === TIMED)).toBe(true);
    expect(new Set(records.slice(4, 304).map(({ startedNs }) => startedNs)).size).toBe(1);
    expect(records[304]).toMatchObject({ a: 77n, flags: UNTIMED, startedNs: 0, endedNs: 0 });
  });

  it("tells communicators apart, however they are made", async () => {
    const { said, rings } = await run(["communicators"]);
    expect(said["none"]).toBe(1);
    const { communicators, records } = rings[0]!;
    const shapes = communicators.map(({ rank, size }) => [rank, size]);
    // parent, two splits alike, a shrink, a scalable one, two in one process, three made in a group
    expect(shapes.slice(0, 10)).toEqual([
      [5, 8],
      [2, 4],
      [2, 4],
      [5, 6],
      [7, 16],
      [0, 2],
      [1, 2],
      [0, 2],
      [2, 4],
      [1, 2],
    ]);
    const ids = communicators.map(({ id }) => id);
    expect(ids[5]).toBe(ids[6]);
    expect(new Set(ids.slice(0, 10)).size).toBe(9);
    expect(records.slice(0, 10).map(({ group }) => group)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    // Another one at the address of the one that was aborted.
    expect(communicators[1]!.flags & DESTROYED).toBe(DESTROYED);
    const last = records.at(-1)!;
    expect(last.group).toBeGreaterThan(9);
    expect(communicators[last.group]).toMatchObject({ rank: 5, size: 8, id: ids[0] });
    expect(communicators[1]!.collectives).toBe(1);
  });

  it("comes to the same numbers in every process", async () => {
    const [one, other] = await Promise.all([run(["communicators"]), run(["communicators"])]);
    const shared = ({ rings }: Ran): bigint[] =>
      [0, 1, 2, 3, 4, 7, 8, 9].map((index) => rings[0]!.communicators[index]!.id);
    expect(shared(one)).toEqual(shared(other));
    // Those of one process only are not shared.
    expect(one.rings[0]!.communicators[5]!.id).not.toBe(other.rings[0]!.communicators[5]!.id);
  });

  it("hands results on, and does not time what failed or has not launched", async () => {
    const { said, rings } = await run(["results"]);
    expect(said).toEqual({ results: [7, 7, 7, 5, 6] });
    const { records, communicators } = rings[0]!;
    expect(records.map(({ a, flags }) => [Number(a), flags])).toEqual([
      [10, UNTIMED],
      [20, TIMED],
      [30, UNTIMED | FLAG.failed],
      [40, UNTIMED | FLAG.failed],
    ]);
    // The child was asked for its rank when it was ready, not before.
    expect(communicators.map(({ rank, size }) => [rank, size])).toEqual([
      [1, 4],
      [0, 2],
    ]);
  });

  it("leaves a stream alone that is captured into a graph", async () => {
    const { said, rings } = await run(["capture"]);
    expect(said).toEqual({ during: 0, broken: 0 });
    const flags = rings[0]!.records.map((record) => record.flags);
    expect(flags[1]).toBe(UNTIMED | FLAG.captured);
    expect(flags.filter((each) => each === TIMED).length).toBe(201);
  });

  it.each(["idle", "between"])(
    "stops timing for good where the driver fails (%s)",
    async (when) => {
      const { status, said, rings } = await run(["driver-fails", when]);
      expect(status).toBe(0);
      expect(said).toEqual({ results: 0, later: 0 });
      const flags = rings[0]!.records.map((record) => record.flags);
      expect(flags.slice(3)).toEqual(Array(flags.length - 3).fill(UNTIMED));
      // None looks as if it went on for ever.
      expect(flags.slice(0, 3).every((each) => each === TIMED || each === UNTIMED)).toBe(true);
    },
  );

  it("leaves records untimed where more are on their way than it keeps events for", async () => {
    const { said, rings } = await run(["overflow"]);
    expect(said).toEqual({ calls: 5000 });
    const flags = rings[0]!.records.map((record) => record.flags);
    expect(flags.slice(0, 4096).every((each) => each === TIMED)).toBe(true);
    expect(flags.slice(4096)).toEqual(Array(904).fill(UNTIMED));
  });

  it("records without times where there is no driver it knows, or none is wanted", async () => {
    const without = buildStubs("SONAME=libgpu.so.1");
    for (const settings of [
      { LD_LIBRARY_PATH: without },
      { FAULTLINE_EVENTS: "0" },
    ] as Settings[]) {
      const { said, rings } = await run(["operators"], settings);
      expect(said).toEqual({ results: 0, calls: 11 });
      expect(rings[0]!.records.map(({ flags }) => flags)).toEqual(Array(11).fill(UNTIMED));
    }
  });

  it("answers with an error where there is no library to call", async () => {
    const { status, said, rings } = await run(["no-library"]);
    expect({ status, said, rings }).toEqual({
      status: 0,
      said: { reduce: 3, product: 1 },
      rings: [],
    });
  });

  it("is switched off by the environment", async () => {
    for (const settings of [{ FAULTLINE_SHIM: "0" }, { FAULTLINE: "0" }] as Settings[]) {
      const { said, rings } = await run(["operators"], settings);
      expect(said).toEqual({ results: 0, calls: 11 });
      expect(rings).toEqual([]);
      const products = await run(["products"], { ...settings, FAULTLINE_KERNELS: "1" });
      expect(products.said["differ"]).toBe(0);
      expect(products.rings).toEqual([]);
    }
  });

  it("leaves operators to the profiler plug-in where that is at work", async () => {
    const alone = await run(["beside-plugin"]);
    expect(alone.said).toEqual({ result: 0 });
    expect(alone.rings.map(({ records, communicators }) => [...records, ...communicators])).toEqual(
      [[]],
    );
    const always = await run(["beside-plugin"], { FAULTLINE_SHIM: "always" });
    expect(always.rings[0]!.records.map(({ flags }) => flags)).toEqual([TIMED, TIMED]);
    expect(always.rings[0]!.communicators).toHaveLength(1);
  });

  it("goes on without a ring where none can be made", async () => {
    const { status, said, complained, rings } = await run(["operators"], {
      FAULTLINE_DIR: "/proc/no/such/folder",
    });
    expect({ status, said, rings }).toEqual({
      status: 0,
      said: { results: 0, calls: 11 },
      rings: [],
    });
    expect(complained.split("\n").filter((line) => line !== "")).toHaveLength(1);
  });

  it("shows which operator hangs while others go on, and after a kill -9", async () => {
    const job = start(built, [join(built, "program"), "hang"]);
    const file = await until(() => job.said().includes("ready") && ringsIn(job.rings)[0]);
    const seen = await until(() => {
      const { records } = readRing(file);
      const others = records.slice(4);
      return (
        (records[2]!.flags & FLAG.gpuStart) !== 0 &&
        others.every(({ flags }) => flags === TIMED) &&
        records
      );
    });
    job.child.kill("SIGKILL");
    await job.ended;
    const { records, endedHow } = readRing(file);
    expect(records).toEqual(seen);
    expect(endedHow).toBe(0);
    const [, before, hung, behind] = records;
    expect(before!.flags).toBe(TIMED);
    expect(hung).toMatchObject({ flags: FLAG.shim | FLAG.gpuStart, endedNs: 0 });
    expect(hung!.startedNs).toBeGreaterThanOrEqual(hung!.issuedNs);
    expect(behind).toMatchObject({ flags: FLAG.shim, startedNs: 0, endedNs: 0 });
    expect(records.slice(4)).toHaveLength(5);
  });

  it("gives a fork's child a ring of its own, without times", async () => {
    const { said, rings } = await run(["forks"]);
    expect(said["status"]).toBe(0);
    const child = rings.find(({ pid }) => pid === said["child"])!;
    const parent = rings.find(({ pid }) => pid !== said["child"])!;
    expect(parent.records.map(({ a, flags }) => [Number(a), flags])).toEqual([
      [1000, TIMED],
      [2000, TIMED],
    ]);
    expect(child.records.map(({ a, flags }) => [Number(a), flags])).toEqual([
      [5000, UNTIMED],
      [6000, UNTIMED],
    ]);
    expect(child.communicators.map(({ rank, collectives }) => [rank, collectives])).toEqual([
      [1, 1],
      [0, 1],
    ]);
  });

  it.each([["alone"], ["in a group", "grouped"]])(
    "holds calls in the trap until they are released, %s",
    async (_, ...grouped) => {
      const job = start(built, [join(built, "program"), "trap", ...grouped]);
      await until(() => job.said().includes("ready"));
      const file = await until(() => ringsIn(job.rings)[0]);
      const calls = (): number => job.said().split("called").length - 1;
      const set = (untilNs: bigint): void => {
        const word = Buffer.alloc(8);
        word.writeBigUInt64LE(untilNs);
        const ring = openSync(file, "r+");
        writeSync(ring, word, 0, 8, HEADER.trapUntilNs);
        closeSync(ring);
      };
      job.child.stdin!.write("go\n");
      await until(() => calls() === 1);

      set(process.hrtime.bigint() + 600_000_000_000n);
      job.child.stdin!.write("go\n");
      await until(() => readRing(file).trappedNow === 1);
      // Held before its record, and before the library: neither is there.
      expect(readRing(file).records).toHaveLength(1);
      expect(calls()).toBe(1);
      set(0n);
      await until(() => calls() === 2);

      job.child.stdin!.end();
      expect(await job.ended).toBe(0);
      const { records, trappedNow } = readRing(file);
      expect(records.map(({ flags }) => flags & FLAG.held)).toEqual([0, FLAG.held]);
      expect(trappedNow).toBe(0);
    },
  );

  it("releases itself where nobody comes back to do it", async () => {
    const job = start(built, [join(built, "program"), "trap"], { FAULTLINE_TRAP_MAX_MS: "50" });
    await until(() => job.said().includes("ready"));
    const ring = openSync(await until(() => ringsIn(job.rings)[0]), "r+");
    const word = Buffer.alloc(8);
    word.writeBigUInt64LE(process.hrtime.bigint() + 600_000_000_000n);
    writeSync(ring, word, 0, 8, HEADER.trapUntilNs);
    closeSync(ring);
    job.child.stdin!.end("go\n");
    expect(await job.ended).toBe(0);
    expect(readRing(ringsIn(job.rings)[0]!).records.map(({ flags }) => flags)).toEqual([
      TIMED | FLAG.held,
    ]);
  });

  it("keeps count in many threads", async () => {
    const { said, rings } = await run(["threads"], { FAULTLINE_RECORDS: "32768" });
    expect(said).toEqual({ calls: 17_600 });
    const { records, communicators } = rings[0]!;
    expect(records).toHaveLength(17_600);
    expect(communicators.map(({ collectives, p2ps }) => [collectives, p2ps])).toEqual(
      Array.from({ length: 8 }, () => [2000, 200]),
    );
    const numbers = communicators.map((_, index) =>
      records.filter(({ group, kind }) => group === index && kind === KIND.collective),
    );
    for (const each of numbers)
      expect(each.map(({ b }) => b)).toEqual(Array.from({ length: 2000 }, (_, i) => i + 1));
    // More than there are events for are left untimed; none is left open.
    expect(records.every(({ flags }) => flags === TIMED || flags === UNTIMED)).toBe(true);
  });

  it("makes events in the context of the stream, and leaves the thread its own", async () => {
    const { said, rings } = await run(["contexts"]);
    expect(said).toEqual({ kept: 1 });
    const flags = rings[0]!.records.map((record) => record.flags);
    // The fifth came from a thread that had none, which breaks nothing.
    expect(flags).toEqual([TIMED, TIMED, TIMED, TIMED, UNTIMED, TIMED]);
  });
});

describe.skipIf(!canBuild)(`matrix products${whyNot}`, () => {
  it("are passed on whole and recorded with their shapes", async () => {
    const { said, rings } = await run(["products"], { FAULTLINE_KERNELS: "1" });
    expect(said).toEqual({ differ: 0, results: 0, failed: 13, calls: 5 });
    const { records, names, source } = rings[0]!;
    expect(source).toBe("kernels");
    const rows = records.map((record) => [
      names[record.group],
      Number(record.a & 0xffff_ffffn),
      Number(record.a >> 32n),
      record.b,
      record.c,
      record.func & 3,
      (record.func >> 2) + 64,
      record.dtype,
      record.d,
      record.flags,
    ]);
    // m, n, k, batch; bits of what is transposed; compute type; NCCL's type of A; 1 where rows are not of 16 bytes
    expect(rows).toEqual([
      ["cublasSgemm_v2", 100, 200, 300, 1, 1, 68, 7, 0, TIMED],
      // It calls cublasLtMatmul itself: that is not the job's call.
      ["cublasGemmEx", 64, 128, 256, 1, 2, 68, 9, 0, TIMED],
      ["cublasSgemmStridedBatched", 10, 20, 30, 7, 0, 68, 7, 1, TIMED],
      ["cublasGemmStridedBatchedEx", 11, 22, 33, 9, 3, 64, 6, 0, TIMED],
      ["cublasLtMatmul", 1024, 2048, 512, 3, 1, 77, 10, 0, TIMED],
      ["cublasSgemm_v2", 1, 1, 1, 1, 0, 68, 7, 0, UNTIMED | FLAG.failed],
    ]);
    expect(records[0]!.e).toBe(records[1]!.e);
    expect(records[0]!.e).not.toBe(records[4]!.e);
  });

  it("are passed on and nothing else where nobody wants them", async () => {
    const { said, rings } = await run(["products"], { FAULTLINE_KERNELS: "0" });
    expect(said).toEqual({ differ: 0, results: 0, failed: 13, calls: 5 });
    expect(rings).toEqual([]);
  });

  it("are recorded about one in N, and of every shape", async () => {
    const { said, rings } = await run(["many-products"], { FAULTLINE_KERNELS: "8" });
    expect(said).toEqual({ calls: 4000 });
    const { records } = rings[0]!;
    expect(records.length).toBeGreaterThan(400);
    expect(records.length).toBeLessThan(600);
    // Shapes come in turns of 8: every eighth call would be the same one for ever.
    expect(new Set(records.map(({ a }) => a)).size).toBe(8);
  });
});

describe.skipIf(!canBuild)(`a program that has nothing to do with NCCL${whyNot}`, () => {
  it.each([
    ["ls", "/"],
    ["sh", "-c", "echo out; exit 3"],
    ["python3", "-c", "print(6 * 7)"],
  ])("behaves as before and leaves no ring: %s", async (...words) => {
    const bare = spawnSync(words[0], words.slice(1), { encoding: "utf8" });
    const job = start(built, words);
    const status = await job.ended;
    const [said, complained] = [job.said(), job.complained()];
    expect({ status, said, complained }).toEqual({
      status: bare.status,
      said: bare.stdout,
      complained: bare.stderr,
    });
    expect(ringsIn(job.rings)).toEqual([]);
  });
});
