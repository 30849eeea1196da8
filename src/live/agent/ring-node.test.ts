import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HEADER, KIND, wireMs } from "../../ingest/probe-ring/layout.ts";
import { readRing } from "../../ingest/probe-ring/read-ring.ts";
import type {
  AgentReply,
  AgentRequest,
  EventReport,
  JobReport,
  PointsReport,
  Report,
} from "../wire/messages.ts";
import type { Node } from "./node.ts";
import { ringNode, type RingNodeOptions } from "./ring-node.ts";
import { inspectRing } from "./rings/ring-file.ts";
import { end, IdleProcesses } from "../../../test/support/live/process.ts";
import { nowNs, olderMachine, TestRing } from "../../../test/support/live/ring.ts";
import { until } from "../../../test/support/until.ts";
import { SlowStorage } from "./evidence/slow-storage.ts";

const MS = 1_000_000n;
const ALL_REDUCE = 1;
const SEND = 1;
const RECEIVE = 2;
/** The record's number of the algorithm. */
const RING = 1;
let folder: string;
let troubles: string[];
const nodes: Node[] = [];
const idle = new IdleProcesses();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-node-"));
  troubles = [];
});
afterEach(() => {
  for (const node of nodes.splice(0)) node.close();
  idle.killAll();
  rmSync(folder, { recursive: true, force: true });
});

function start(options: Partial<RingNodeOptions> = {}): Node {
  const node = ringNode({
    storage: new SlowStorage(),
    folders: () => [folder],
    logs: [],
    job: null,
    machineName: "node7",
    nics: ["mlx5_0", "mlx5_1"],
    keepNs: 6e11,
    memoryBytes: 64 << 20,
    machine: olderMachine,
    onTrouble: (line) => troubles.push(line),
    stacksMs: 50,
    ...options,
  });
  nodes.push(node);
  return node;
}

/** As probe/nccl/proxy.c writes it. */
function wireCode(ms: number): number {
  let us = Math.floor(ms * 1000) + 1;
  let twos = 0;
  for (; us > 0xfff; us = Math.floor(us / 2)) twos++;
  return twos > 0xf ? 0xffff : (twos << 12) | us;
}

interface Operator {
  readonly kind?: "send" | "receive";
  /** Milliseconds since the iteration began. */
  readonly issued: number;
  readonly started?: number;
  readonly ended?: number;
  readonly peer?: number;
  readonly group?: number;
  readonly flags?: number;
  /** Milliseconds that its sends were on the wire, of a ring. */
  readonly wire?: number;
}

/** Both rings of a rank, written as a training step would. */
class Rank {
  readonly native: TestRing;
  readonly python: TestRing;
  nowNs = nowNs() - 3_600_000n * MS;
  #calls = 0;

  constructor(about: { rank?: number; pid?: number; records?: number; id?: bigint } = {}) {
    const { rank = 0, pid = process.pid, records = 64, id = 0xabcn } = about;
    const common = { folder, rank, pid, worldSize: 2, job: "llama" };
    this.native = new TestRing({ on: olderMachine, ...common, records });
    this.python = new TestRing({ on: olderMachine, ...common, writer: "python", records: 1024 });
    this.native.communicator(0, "world", 2, { id });
    this.native.communicator(1, "tp", 1, { id: 5n, rank: 0 });
    this.native.communicator(2, "pp", 4, { id: 6n, rank: 1 });
  }

  /** Issues the operators and ends the iteration; their tickets. */
  step(iteration: number, lastedMs: number, operators: readonly Operator[]): number[] {
    const began = this.nowNs;
    const tickets = operators.map((one) => this.native.append(this.#record(one, began)));
    this.nowNs += BigInt(lastedMs) * MS;
    this.python.append({ kind: KIND.pythonCall, issuedNs: began, endedNs: began + 1n });
    this.python.append({
      kind: KIND.iteration,
      a: iteration,
      issuedNs: began,
      endedNs: this.nowNs,
    });
    return tickets;
  }

  /** The record of an operator of an iteration that began then. */
  #record(one: Operator, began: bigint) {
    const at = (ms: number | undefined): bigint =>
      ms === undefined ? 0n : began + BigInt(Math.round(ms * 1e6));
    return {
      kind: one.kind === undefined ? KIND.collective : KIND.p2p,
      func: one.kind === "send" ? SEND : one.kind === "receive" ? RECEIVE : ALL_REDUCE,
      group: one.group ?? 0,
      flags: one.flags ?? 0,
      a: 1000,
      b: ++this.#calls,
      c: one.peer ?? 0,
      d: one.wire === undefined ? 0 : RING | (wireCode(one.wire) << 16),
      issuedNs: at(one.issued),
      startedNs: at(one.started),
      endedNs: at(one.ended),
    };
  }

  finish(ticket: number, one: Operator, iterationsAgoMs: number): void {
    this.native.update(ticket, this.#record(one, this.nowNs - BigInt(iterationsAgoMs) * MS));
  }
}

const points = (reports: readonly Report[]): Record<string, number>[] =>
  reports
    .filter((report): report is PointsReport => report.kind === "points")
    .flatMap((report) =>
      [...report.rank].map((rank, i) => ({
        rank,
        iteration: report.iteration[i]!,
        ms: report.durationMs[i]!,
        collective: report.collectiveMs[i]!,
        send: report.sendMs[i]!,
        recv: report.recvMs[i]!,
        issue: report.issueMs[i]!,
      })),
    );
const events = (reports: readonly Report[]): EventReport[] =>
  reports.filter((report): report is EventReport => report.kind === "event");
const jobs = (reports: readonly Report[]): JobReport[] =>
  reports.filter((report): report is JobReport => report.kind === "job");

const STEP: readonly Operator[] = [
  { issued: 1, started: 2, ended: 12 },
  { kind: "send", issued: 3, started: 13, ended: 16, peer: 2, group: 2 },
  { kind: "receive", issued: 4, started: 16, ended: 23, peer: 0, group: 2 },
  { issued: 40, started: 41, ended: 46 },
];

describe("rows of iterations", () => {
  it("are the sums of the operators that were issued in them", () => {
    const rank = new Rank({ rank: 1 });
    rank.step(10, 100, STEP);
    rank.step(11, 120, [{ issued: 5, started: 6, ended: 7 }]);
    const reports = start().tick(Date.now());
    expect(points(reports)).toEqual([
      { rank: 1, iteration: 10, ms: 100, collective: 15, send: 3, recv: 7, issue: 39 },
      { rank: 1, iteration: 11, ms: 120, collective: 1, send: 0, recv: 0, issue: 0 },
    ]);
    expect(jobs(reports)[0]).toMatchObject({
      job: "llama",
      run: "c-0000000000000abc",
      worldSize: 2,
      ranks: [
        {
          rank: 1,
          gpu: 1,
          nic: "node7/mlx5_1",
          groups: [
            { key: "0000000000000abc", name: "world", groupRank: 1, size: 2 },
            { key: "0000000000000005" },
            { key: "0000000000000006", name: "pp", groupRank: 1, size: 4, ranks: null },
          ],
        },
      ],
    });
  });

  it("carry the time of day when the iteration ended", () => {
    const rank = new Rank();
    rank.nowNs = nowNs() - 100n * MS;
    rank.step(1, 100, STEP);
    const [report] = start()
      .tick(Date.now())
      .filter((one): one is PointsReport => one.kind === "points");
    expect(Math.abs(report!.endMs[0]! - Date.now())).toBeLessThan(60_000);
  });

  it("wait for operators to end, two iterations at most", () => {
    const rank = new Rank();
    const open = { issued: 50, started: 51 };
    const [, late] = rank.step(1, 100, [STEP[0]!, open]);
    const node = start();
    expect(points(node.tick(Date.now()))).toEqual([]);
    rank.finish(late!, { ...open, ended: 110 }, 100);
    expect(points(node.tick(Date.now()))).toMatchObject([{ iteration: 1, collective: 69 }]);
    rank.step(2, 100, [open]);
    rank.step(3, 100, STEP);
    expect(points(node.tick(Date.now()))).toEqual([]);
    rank.step(4, 100, STEP);
    const rows = points(node.tick(Date.now()));
    expect(rows.map(({ iteration }) => iteration)).toEqual([2, 3, 4]);
    expect(rows[0]).toMatchObject({ collective: NaN, send: 0, issue: 0 });
    expect(rows[1]).toMatchObject({ collective: 15 });
  });

  it("do not sum what nobody times, and need no times of a communicator of one", () => {
    const rank = new Rank();
    rank.step(1, 100, [STEP[0]!, { issued: 2, flags: 32 }, STEP[1]!]);
    rank.step(2, 100, [STEP[0]!, { issued: 2, group: 1 }]);
    // Recorded by the shim as well: the plug-in's count.
    rank.step(3, 100, [STEP[0]!, { ...STEP[0]!, flags: 16 }]);
    expect(points(start().tick(Date.now()))).toMatchObject([
      { collective: NaN, send: 3 },
      { collective: 10 },
      { collective: 10 },
    ]);
  });

  it("leave out what an all-to-all has for the rank itself: it is copied, and nobody times that", () => {
    const rank = new Rank({ rank: 1 });
    const copy = { issued: 2, flags: 32, peer: 1 } as const;
    rank.step(1, 100, [
      STEP[0]!,
      { kind: "send", ...copy },
      { kind: "receive", ...copy },
      { kind: "send", issued: 3, started: 4, ended: 9, peer: 0 },
    ]);
    expect(points(start().tick(Date.now()))).toMatchObject([{ collective: 10, send: 5, recv: 0 }]);
  });

  it("are cut at the right operators while the ring wraps", () => {
    const rank = new Rank({ records: 64 });
    const node = start();
    const rows: Record<string, number>[] = [];
    for (let i = 1; i <= 200; i++) {
      rank.step(i, 100, [...STEP, { issued: 60, started: 60, ended: 60 + i / 8 }]);
      if (i % 7 === 0) rows.push(...points(node.tick(Date.now())));
    }
    rows.push(...points(node.tick(Date.now())));
    expect(rows.map(({ iteration }) => iteration)).toEqual(
      Array.from({ length: 200 }, (_, i) => i + 1),
    );
    for (const row of rows)
      expect(row).toMatchObject({ ms: 100, collective: 15 + row["iteration"]! / 8, issue: 59 });
  });

  it("say nothing of communication where records were overwritten unread", () => {
    const rank = new Rank({ records: 64 });
    const node = start();
    rank.step(1, 100, STEP);
    node.tick(Date.now());
    for (let i = 2; i <= 40; i++) rank.step(i, 100, STEP);
    const rows = points(node.tick(Date.now()));
    expect(rows.map(({ iteration }) => iteration)).toEqual(
      Array.from({ length: 39 }, (_, i) => i + 2),
    );
    // 156 operators came, the ring holds 64: 16 iterations, of which the first's border is not certain.
    for (const row of rows) {
      const isKnown = row["iteration"]! > 25;
      expect([row["ms"], row["collective"]]).toEqual([100, isKnown ? 15 : NaN]);
    }
  });

  it("have no times inside communication where there is no native ring", () => {
    const python = new TestRing({
      on: olderMachine,
      folder,
      rank: 3,
      writer: "python",
      job: "llama",
      worldSize: 1,
    });
    const now = nowNs();
    python.append({ kind: KIND.iteration, a: 8, issuedNs: now - 50n * MS, endedNs: now });
    expect(points(start().tick(Date.now()))).toEqual([
      { rank: 3, iteration: 8, ms: 50, collective: NaN, send: NaN, recv: NaN, issue: NaN },
    ]);
  });

  it("come from the log where no iteration is marked, and it is said once where there is neither", async () => {
    const native = new TestRing({ on: olderMachine, folder, rank: 0, job: "llama" });
    native.communicator(0, "world", 2);
    const log = join(folder, "rank0.log");
    writeFileSync(log, "iteration 1/ 9 | elapsed time per iteration (ms): 500.0 |\n");
    const storage = new CountingStorage();
    const node = start({ logs: [join(folder, "rank*.log")], storage });
    expect(points(node.tick(1000))).toEqual([]);
    // The pattern, the file, its end.
    await until(() => storage.done === 3);
    writeFileSync(log, " iteration 2/ 9 | elapsed time per iteration (ms): 512.5 |\n", {
      flag: "a",
    });
    expect(points(node.tick(2000))).toEqual([]);
    await until(() => storage.done === 4);
    expect(points(node.tick(3000))).toMatchObject([
      { rank: 0, iteration: 2, ms: 512.5, collective: NaN },
    ]);
    const silent = start();
    silent.tick(1000);
    const said = [...silent.tick(200_000), ...silent.tick(400_000)];
    expect(events(said).map(({ what, says }) => `${what} ${says}`)).toEqual([
      "trouble llama: no iteration of rank 0 so far: the Python probe marks none, its calls do not repeat, and no log is followed (--log)",
    ]);
  });
});

describe("requests", () => {
  const about = { job: "llama", run: "c-0000000000000abc" };
  const asked = async (node: Node, request: object): Promise<AgentReply> =>
    node.answer({ ...about, ...request } as AgentRequest);

  it("for operators get them in their order, with groups and peers, of ranks of this machine alone", async () => {
    const rank = new Rank({ rank: 1 });
    rank.step(1, 100, STEP);
    rank.step(2, 100, [STEP[0]!, { kind: "send", issued: 2, started: 3, ended: 4, peer: 0 }]);
    const node = start();
    node.tick(Date.now());
    const stretch = { ask: "operators", rank: 1, fromIteration: 1, toIteration: 2 };
    expect(await asked(node, stretch)).toMatchObject({
      kind: "operators",
      op: Uint8Array.of(0, 1, 2, 0, 0, 1),
      group: Int32Array.of(0, 2, 2, 0, 0, 0),
      // The pipeline's other members are elsewhere: only their places are known here. In the group of all, a place is a rank.
      peer: Int32Array.of(-1, -4, -2, -1, -1, 0),
      iteration: Float64Array.of(1, 2),
    });
    expect(await asked(node, { ...stretch, rank: 9 })).toMatchObject({ kind: "refused" });
    expect(await asked(node, { ...stretch, run: "other" })).toMatchObject({ kind: "refused" });
  });

  it("for what was on the wire get it by whom it went to, of rings with one next member", async () => {
    const rank = new Rank({ rank: 1 });
    const step = (ms: number): Operator[] => [
      { issued: 1, started: 2, ended: 12, wire: ms },
      { issued: 2, started: 3, ended: 12, wire: 2 * ms },
      { issued: 3, started: 3, ended: 12 },
      { kind: "send", issued: 4, started: 13, ended: 16, peer: 3, group: 2, wire: 3 * ms },
      { kind: "receive", issued: 5, started: 13, ended: 16, peer: 0, group: 2, wire: 9 },
      { issued: 6, started: 13, ended: 16, group: 2, wire: 9 },
    ];
    rank.step(1, 100, step(5));
    rank.step(2, 100, step(7));
    // A tree's share of the group of all is small; in the other group two members get as much.
    rank.native.sends(0, 0, 0, 9_900_000);
    rank.native.sends(1, 0, 1, 100_000);
    rank.native.sends(2, 2, 0, 5000);
    rank.native.sends(3, 2, 3, 5000);
    const node = start();
    node.tick(Date.now());
    const reply = await asked(node, { ask: "wire", ranks: [1, 5], iterations: [1, 2, 3] });
    const read = (ms: number): number => wireMs(wireCode(ms));
    expect(reply).toEqual({
      kind: "wire",
      rank: Int32Array.of(1, 1),
      group: Int32Array.of(0, 2),
      peer: Int32Array.of(0, -5),
      ms: Float32Array.of(
        ...[5, 7].map((ms) => read(ms) + read(2 * ms)),
        NaN,
        ...[15, 21].map(read),
        NaN,
      ),
    });
  });

  it("for operators get a stretch of iterations, times since one moment", async () => {
    const rank = new Rank({ rank: 1 });
    for (let i = 1; i <= 4; i++) rank.step(i, 100, STEP);
    const node = start();
    node.tick(Date.now());
    const reply = await asked(node, {
      ask: "operators",
      rank: 1,
      fromIteration: 2,
      toIteration: 3,
    });
    if (reply.kind !== "operators") throw new Error(reply.kind);
    expect([...reply.iteration, ...reply.from, ...reply.to]).toEqual([2, 3, 0, 4, 4, 8]);
    expect([...reply.durationMs]).toEqual([100, 100]);
    expect(reply.startMs[1]! - reply.startMs[0]!).toBeCloseTo(100, 2);
    expect([...reply.seq]).toEqual([5, 6, 7, 8, 9, 10, 11, 12]);
    const lasted = [...reply.completedNs].map((ended, i) => (ended - reply.startedNs[i]!) / 1e6);
    expect(lasted).toEqual([10, 3, 7, 5, 10, 3, 7, 5]);
    expect(reply.epochMs + reply.createdNs[0]! / 1e6).toBeCloseTo(reply.startMs[0]! + 1, 2);
    expect(reply.bytes[0]).toBe(NaN);
  });

  it("are answered by other iterations, or refused, where records were overwritten", async () => {
    const rank = new Rank({ rank: 1, records: 64 });
    rank.step(1, 100, STEP);
    const node = start({ memoryBytes: 1 << 20, keepNs: 0 });
    node.tick(Date.now());
    for (let i = 2; i <= 30; i++) rank.step(i, 100, STEP);
    node.tick(Date.now());
    const all = { ask: "operators", rank: 1, fromIteration: 1, toIteration: 30 };
    const reply = await asked(node, all);
    if (reply.kind !== "operators") throw new Error(reply.kind);
    expect([...reply.iteration]).toEqual(Array.from({ length: 15 }, (_, i) => i + 16));
    expect(await asked(node, { ...all, toIteration: 9 })).toMatchObject({ kind: "refused" });
  });

  it("for evidence get rings that can be read, ends of logs, and what failed", async () => {
    const rank = new Rank({ rank: 1, records: 1024 });
    for (let i = 1; i <= 200; i++) rank.step(i, 100, STEP);
    rank.step(201, 100, [{ issued: 1, started: 2 }]);
    mkdirSync(join(folder, "logs"));
    writeFileSync(join(folder, "logs", "rank1.log"), `${"old line\n".repeat(500)}the end\n`);
    const storage = new CountingStorage();
    const node = start({ logs: [join(folder, "logs", "*.log")], storage });
    node.tick(Date.now());
    await until(() => storage.done === 3);
    const request = { ask: "evidence", ranks: [1], records: 100, stacks: true, logBytes: 20 };
    const reply = await asked(node, request);
    if (reply.kind !== "evidence") throw new Error(reply.kind);
    const names = reply.files.map(({ name }) => name);
    expect(names).toEqual([
      `rings/llama.r1.${process.pid}.native.ring`,
      `rings/llama.r1.${process.pid}.python.ring`,
      "logs/rank1.log",
    ]);
    expect(Buffer.from(reply.files[2]!.bytes).toString()).toBe("old line\nthe end\n");
    expect(reply.troubles.join()).toContain("did not write its stacks");
    const path = join(folder, "logs", "copy.ring");
    writeFileSync(path, reply.files[0]!.bytes);
    expect(inspectRing(path)).toMatchObject({ header: { rank: 1, recordCount: 128 } });
    const read = readRing("copy.ring", reply.files[0]!.bytes);
    expect(read.defects).toEqual([]);
    expect(read.records).toBe(128);
    const ops = read.dumps![0]!.ops;
    expect([ops.count, ops.seq[ops.count - 1], ops.state[ops.count - 1]]).toEqual([128, 801, 1]);
    expect(read.dumps![0]!.groups.map(({ desc }) => desc)).toEqual(["world", "tp", "pp"]);
    const python = readRing("python.ring", reply.files[1]!.bytes);
    expect(python.series![0]!.iteration.at(-1)).toBe(201);
  });
});

describe("a profile", () => {
  const request: AgentRequest = {
    ask: "profile",
    job: "llama",
    run: "c-0000000000000abc",
    ranks: [1],
    steps: 3,
    waitMs: 20_000,
  };

  it("is asked for in the ring of the process, and the trace that the process leaves is the answer", async () => {
    const rank = new Rank({ rank: 1 });
    rank.step(1, 100, STEP);
    const { path } = rank.python;
    writeFileSync(`${path}.kineto.json.gz`, "of an earlier request");
    const node = start();
    node.tick(Date.now());
    const reply = node.answer(request);
    expect(await node.answer(request)).toEqual({
      kind: "refused",
      why: "tests or a profile are under way already",
    });
    // What the probe does: it sees the number, profiles so many steps, leaves the trace, and answers.
    const header = readFileSync(path);
    expect(header.readUInt32LE(HEADER.profileSteps)).toBe(3);
    writeFileSync(`${path}.kineto.json.gz`, "the trace");
    rank.python.word(HEADER.profileAnswered, header.readUInt32LE(HEADER.profileWanted));
    expect(await reply).toEqual({
      kind: "evidence",
      files: [{ name: `${basename(path)}.kineto.json.gz`, bytes: Buffer.from("the trace") }],
      troubles: [],
    });
  });

  it("has no trace of a process that does not answer, and says so", async () => {
    new Rank({ rank: 1 }).step(1, 100, STEP);
    const node = start();
    node.tick(Date.now());
    const reply = await node.answer({ ...request, waitMs: 50 });
    expect(reply).toMatchObject({ kind: "evidence", files: [] });
    expect(reply.kind === "evidence" && reply.troubles.join()).toContain("did not answer within");
  });
});

it("reports and gives its rings out while the storage of logs does not answer", async () => {
  const rank = new Rank({ rank: 1, records: 1024 });
  rank.step(1, 100, STEP);
  const storage = new HungStorage(1);
  const node = start({ logs: [join(folder, "*.log")], storage });
  expect(points(node.tick(1000))).toHaveLength(1);
  rank.step(2, 100, STEP);
  const reports = node.tick(2000);
  expect(points(reports)).toHaveLength(1);
  expect(reports.filter(({ kind }) => kind === "beat")).toHaveLength(1);
  const about = { job: "llama", run: "c-0000000000000abc", ranks: [1] };
  const reply = await node.answer({
    ask: "evidence",
    ...about,
    records: 64,
    stacks: true,
    logBytes: 100,
  });
  if (reply.kind !== "evidence") throw new Error(reply.kind);
  expect(reply.files.map(({ name }) => name)).toHaveLength(2);
  await until(() => {
    node.tick(3000);
    return troubles.some((line) => line.includes("*.log: its storage does not answer"));
  });
});

class HungStorage extends SlowStorage {
  override read(key: string): Promise<never> {
    return super.read(key, () => new Promise<never>(() => {}));
  }
}

class CountingStorage extends SlowStorage {
  done = 0;

  override async read<T>(key: string, work: () => Promise<T>): Promise<T> {
    try {
      return await super.read(key, work);
    } finally {
      this.done++;
    }
  }
}

describe("runs", () => {
  it("that begin again under the same name are others", async () => {
    const first = await idle.start();
    const before = new Rank({ pid: first.pid, id: 1n });
    before.step(7, 100, STEP);
    const node = start();
    expect(points(node.tick(1000))).toHaveLength(1);
    await end(first);
    before.native.beat(1n);
    before.python.beat(1n);
    const told = events(node.tick(2000));
    expect(told.map(({ what }) => what)).toEqual(["gone", "ended"]);
    expect(told[0]).toMatchObject({ run: "c-0000000000000001", ranks: [0] });
    const second = await idle.start();
    const after = new Rank({ pid: second.pid, id: 2n });
    after.step(3, 100, STEP);
    const reports = Array.from({ length: 5 }, (_, i) => node.tick(3000 + i * 1000)).flat();
    expect(jobs(reports).map(({ run }) => run)).toEqual(["c-0000000000000002"]);
    expect(points(reports)).toMatchObject([{ iteration: 3, collective: 15 }]);
    // What was is over, and its rings are still there for whoever asks.
    const last = Array.from({ length: 20 }, (_, i) => node.tick(9000 + i * 1000)).at(-1)!;
    expect(last).toMatchObject([{ kind: "beat", jobs: [{ run: "c-0000000000000002", alive: 1 }] }]);
    const evidence = await node.answer({
      ask: "evidence",
      job: "llama",
      run: "c-0000000000000001",
      ranks: null,
      records: 64,
      stacks: false,
      logBytes: 0,
    });
    expect(evidence).toMatchObject({ kind: "evidence", files: { length: 2 }, troubles: [] });
  });

  it("tell of processes that are stopped and go on", async () => {
    const child = await idle.start();
    const rank = new Rank({ pid: child.pid });
    rank.step(1, 100, STEP);
    const node = start();
    node.tick(0);
    child.kill("SIGSTOP");
    const seen: EventReport[] = [];
    await expect
      .poll(() => seen.push(...events(node.tick(0))) && seen.map(({ what }) => what))
      .toEqual(["stopped"]);
    expect(node.tick(0).at(-1)).toMatchObject({ jobs: [{ stopped: [0], alive: 1 }] });
    child.kill("SIGCONT");
    await expect
      .poll(() => seen.push(...events(node.tick(0))) && seen.map(({ what }) => what))
      .toEqual(["stopped", "continued"]);
  });

  it("wait for a name that all machines will give them", () => {
    const native = new TestRing({ on: olderMachine, folder, rank: 0, job: "llama", worldSize: 16 });
    const node = start();
    expect(node.tick(1000)).toMatchObject([{ kind: "beat", jobs: [] }]);
    native.communicator(0, "tp", 2);
    expect(node.tick(2000)).toHaveLength(1);
    native.communicator(1, "world", 16, { id: 0xfeedn });
    expect(jobs(node.tick(3000))).toMatchObject([{ run: "c-000000000000feed" }]);
    expect(node.introduce()).toMatchObject([{ kind: "job", ranks: [{ groups: { length: 2 } }] }]);
  });

  it("of thousands of rings are followed as far as the memory goes, and it is said", () => {
    for (let rank = 0; rank < 300; rank++)
      new TestRing({
        on: olderMachine,
        folder,
        rank,
        writer: "python",
        worldSize: 300,
        records: 64,
      }).close();
    const node = start({ memoryBytes: 1 << 20 });
    node.tick(Date.now());
    node.tick(Date.now() + 20_000);
    expect(troubles).toEqual([
      "more rings than fit into the memory: those found last are not followed (--memory)",
    ]);
    const { ranks } = node.introduce()[0] as JobReport;
    // Half of 1 MiB in rings of 64 records, each read twice.
    expect(ranks).toHaveLength(42);
  });

  it("without a folder are none", () => {
    const node = start({ folders: () => [join(folder, "no")] });
    expect([...node.tick(1), ...node.tick(2)]).toMatchObject([{ kind: "beat" }, { kind: "beat" }]);
    expect(troubles).toHaveLength(1);
  });
});
