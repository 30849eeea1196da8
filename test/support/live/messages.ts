/** Messages for tests: some fixed, some drawn by fast-check. */
import fc from "fast-check";
import type {
  AgentHello,
  AgentReply,
  AgentRequest,
  BeatReport,
  EventReport,
  JobReport,
  PointsReport,
  Report,
  SharesReport,
} from "../../../src/live/wire/messages.ts";

const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,10}$/);
const text = fc.string({ unit: "binary", maxLength: 20 });
const rank = fc.integer({ min: 0, max: 9999 });
const few = { maxLength: 4 };
const counts = fc.array(fc.nat(), few);
const timeMs = fc.integer({ min: 0, max: 2e12 });

export const anyHello: fc.Arbitrary<AgentHello> = fc.record({
  protocol: fc.integer({ min: 0, max: 9 }),
  agent: name,
  machine: text,
  boot: name,
  version: text,
});

const anyJob: fc.Arbitrary<JobReport> = fc.record({
  kind: fc.constant("job"),
  job: name,
  run: name,
  startedMs: timeMs,
  worldSize: rank,
  ranks: fc.array(
    fc.record({
      rank,
      gpu: fc.option(fc.nat(7)),
      pid: fc.option(fc.nat()),
      nic: fc.option(text),
      leaf: fc.option(text),
      stage: fc.option(fc.nat(7)),
      groups: fc.array(
        fc.record({
          key: text,
          name: text,
          desc: text,
          groupRank: rank,
          size: rank,
          ranks: fc.option(fc.array(rank, few)),
        }),
        few,
      ),
    }),
    few,
  ),
});

const anyBeat: fc.Arbitrary<BeatReport> = fc.record({
  kind: fc.constant("beat"),
  nowMs: timeMs,
  jobs: fc.array(
    fc.record({
      job: name,
      run: name,
      alive: fc.nat(100),
      stopped: fc.array(rank, few),
      gone: fc.array(rank, few),
      silentMs: fc.nat(),
      openOperators: fc.nat(),
      lastIteration: fc.integer({ min: -1, max: 1e9 }),
    }),
    few,
  ),
  dropped: fc.record({ reports: fc.nat(), points: fc.nat() }),
});

const anyEvent: fc.Arbitrary<EventReport> = fc.record({
  kind: fc.constant("event"),
  job: name,
  run: name,
  what: fc.constantFrom("gone" as const, "stopped" as const, "trouble" as const),
  ranks: fc.array(rank, few),
  atMs: timeMs,
  says: text,
});

/** Points of one rank, iterations counting from `first`. */
export function pointsOf(rows: number, job = "job", first = 0): PointsReport {
  const column = (value: (i: number) => number): number[] =>
    Array.from({ length: rows }, (_, i) => value(i));
  return {
    kind: "points",
    job,
    run: "run",
    rank: Uint32Array.from(column((i) => i % 8)),
    iteration: Float64Array.from(column((i) => first + i)),
    endMs: Float64Array.from(column((i) => 1.7e12 + i)),
    durationMs: Float32Array.from(column((i) => 1000 + i)),
    collectiveMs: Float32Array.from(column((i) => i)),
    sendMs: Float32Array.from(column(() => Number.NaN)),
    recvMs: Float32Array.from(column(() => 0)),
    issueMs: Float32Array.from(column((i) => i / 2)),
  };
}

/** Shares of ranks 0 to 7 and of one wire, slots counting from `first`. */
export function sharesOf(slots: number, job = "job", first = 3.4e9): SharesReport {
  const column = (value: number): Uint16Array => new Uint16Array(slots * 8).fill(value);
  return {
    kind: "shares",
    job,
    run: "run",
    ranks: [0, 1, 2, 3, 4, 5, 6, 7],
    firstSlot: first,
    wires: ["a1"],
    inside: column(32_767),
    late: column(6553),
    gpu: column(26_214),
    onWire: column(3276),
    issued: column(100),
    ended: column(100),
    wireMs: new Float32Array(slots).fill(2.5),
    wireCount: new Uint16Array(slots).fill(50),
  };
}

export function beatOf(job: string, nowMs: number): BeatReport {
  const standing = { job, run: "run", alive: 8, stopped: [], gone: [], silentMs: 0 };
  return {
    kind: "beat",
    nowMs,
    jobs: [{ ...standing, openOperators: 0, lastIteration: -1 }],
    dropped: { reports: 0, points: 0 },
  };
}

export function eventOf(job: string, says: string): EventReport {
  return { kind: "event", job, run: "run", what: "trouble", ranks: [], atMs: 1, says };
}

export function jobOf(job: string, ranks: readonly number[]): JobReport {
  const where = { gpu: null, pid: null, nic: null, leaf: null, stage: null, groups: [] };
  const all = ranks.map((rank) => ({ rank, ...where }));
  return { kind: "job", job, run: "run", startedMs: 1, worldSize: 0, ranks: all };
}

export const anyReport: fc.Arbitrary<Report> = fc.oneof(
  anyJob,
  anyBeat,
  anyEvent,
  fc.tuple(fc.nat(20), name).map(([rows, job]) => pointsOf(rows, job)),
  fc.tuple(fc.nat(20), name).map(([slots, job]) => sharesOf(slots, job)),
);

const ofRun = { job: name, run: name };
export const anyRequest: fc.Arbitrary<AgentRequest> = fc.oneof(
  fc.record({
    ask: fc.constant("wire"),
    ...ofRun,
    ranks: fc.uniqueArray(rank),
    iterations: counts,
  }),
  fc.record({
    ask: fc.constant("operators"),
    ...ofRun,
    rank,
    fromIteration: fc.nat(),
    toIteration: fc.nat(),
  }),
  fc.record({
    ask: fc.constant("evidence"),
    ...ofRun,
    ranks: fc.option(fc.array(rank, few)),
    records: fc.nat(),
    stacks: fc.boolean(),
    logBytes: fc.nat(1e6),
  }),
  fc.record({
    ask: fc.constant("read-tests"),
    ...ofRun,
    group: fc.array(rank, few),
    atIteration: fc.nat(),
    rounds: fc.integer({ min: 1, max: 64 }),
    waitMs: fc.integer({ min: 1, max: 600_000 }),
  }),
  fc.record({ ask: fc.constant("prepare-tests"), ...ofRun, group: fc.array(rank, few) }),
  fc.record({
    ask: fc.constant("validate"),
    ...ofRun,
    group: fc.array(rank, few),
    atIteration: fc.nat(),
    rounds: fc.integer({ min: 1, max: 64 }),
    gemm: fc.boolean(),
    ring: fc.boolean(),
    tree: fc.boolean(),
    stride: fc.integer({ min: 1, max: 16 }),
    repeats: fc.integer({ min: 1, max: 100 }),
    mb: fc.integer({ min: 1, max: 64 }),
    limitMs: fc.integer({ min: 1, max: 60_000 }),
    waitMs: fc.integer({ min: 1, max: 60_000 }),
  }),
  fc.record({
    ask: fc.constant("profile"),
    ...ofRun,
    ranks: fc.array(rank, few),
    steps: fc.integer({ min: 1, max: 1000 }),
    waitMs: fc.integer({ min: 1, max: 60_000 }),
  }),
);

const ofLength = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i - 1);
const anyFile = fc.record({ name: name.map((at) => `r/${at}`), bytes: fc.uint8Array() });

export const anyReply: fc.Arbitrary<AgentReply> = fc.oneof(
  fc.tuple(fc.nat(3), fc.nat(9)).map(([n, m]): AgentReply => ({
    kind: "wire",
    rank: Int32Array.from(ofLength(n)),
    group: Int32Array.from(ofLength(n)),
    peer: Int32Array.from(ofLength(n)),
    ms: Float32Array.from(ofLength(m)),
  })),
  fc.tuple(fc.nat(3), fc.nat(9)).map(([n, m]): AgentReply => ({
    kind: "operators",
    iteration: Float64Array.from(ofLength(n)),
    from: new Int32Array(n),
    to: new Int32Array(n).fill(m),
    startMs: Float64Array.from(ofLength(n)),
    durationMs: Float64Array.from(ofLength(n)),
    epochMs: n,
    op: Uint8Array.from(ofLength(m)),
    group: Int32Array.from(ofLength(m)),
    peer: Int32Array.from(ofLength(m)),
    seq: Int32Array.from(ofLength(m)),
    bytes: Float64Array.from(ofLength(m)),
    createdNs: Float64Array.from(ofLength(m)),
    startedNs: Float64Array.from(ofLength(m)),
    completedNs: Float64Array.from(ofLength(m)),
  })),
  fc.record({
    kind: fc.constant("evidence" as const),
    files: fc.uniqueArray(anyFile, { maxLength: 3, selector: (file) => file.name }),
    troubles: fc.array(text, few),
  }),
  fc.record({ kind: fc.constant("refused" as const), why: text }),
);
