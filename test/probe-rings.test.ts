/** From rings to verdicts: small jobs of eight ranks, tensor groups of two and data groups of four, that stand still. */
import { describe, expect, it } from "vitest";
import { buildJob } from "../src/ingest/build-job.ts";
import { KIND } from "../src/ingest/probe-ring/layout.ts";
import { readRing } from "../src/ingest/probe-ring/read-ring.ts";
import { RingWriter } from "./support/ingest/ring-writer.ts";
import { profileRun } from "../src/methods/traces/profile-run.ts";
import { withIterations } from "../src/methods/methods.ts";
import type { Env, Job } from "../src/model/job.ts";
import type { Verdict } from "../src/model/verdict.ts";
import { ask } from "../src/pipeline/diagnose.ts";
import { fuse } from "../src/verdict/fuse.ts";

const ENV: Env = { signal: new AbortController().signal, progress: () => undefined };
const MS = 1e6;
const STEP_MS = 100;
const STEPS = 30;

interface Standstill {
  /** Rank whose CPU issues nothing in the last step. */
  readonly stalls?: number;
  readonly states?: Readonly<Record<number, string>>;
  readonly copiedAfterMs?: number;
  readonly without?: number;
  /** The last step ends everywhere. */
  readonly isHealthy?: boolean;
  readonly waitsIn?: string;
  /** Whether rings are copies that somebody dumped, with the state of the process. */
  readonly isLookedAt?: boolean;
}

async function verdictOf(how: Standstill): Promise<{ job: Job; verdict: Verdict }> {
  const rings = Array.from({ length: 8 }, (_, rank) => ring(rank, how)).filter(
    (_, rank) => rank !== how.without,
  );
  const job = withIterations(buildJob(rings, null));
  const { findings, didNotRun } = await ask(job, ENV);
  expect(didNotRun).toEqual([]);
  return { job, verdict: fuse(job, findings, didNotRun) };
}

function ring(rank: number, how: Standstill) {
  const made = new RingWriter({ rank, worldSize: 8, host: `h${rank}`, pid: 50 + rank, gpu: 0 });
  const issued = rank === how.stalls ? STEPS - 1 : STEPS;
  const tp = made.comm(BigInt(100 + (rank >> 1)), rank & 1, 2, "", issued);
  const dp = made.comm(BigInt(200 + (rank & 1)), rank >> 1, 4, "", issued);
  for (let step = 1; step <= STEPS; step++) {
    const at = step * STEP_MS * MS;
    const isLast = step === STEPS && how.isHealthy !== true;
    if (isLast && rank === how.stalls) break;
    const all = { kind: KIND.collective, func: 1, dtype: 9, b: step };
    // Who is not held up finishes its tensor group's part and waits in its data group.
    const culprit = how.stalls ?? -9;
    const tpHangs = isLast && rank >> 1 === culprit >> 1;
    made.record({
      ...all,
      group: tp,
      a: 4096,
      issuedNs: at,
      startedNs: at + 1 * MS,
      ...(tpHangs ? {} : { endedNs: at + 3 * MS }),
    });
    const started = tpHangs ? {} : { startedNs: at + 20 * MS };
    const ended = isLast ? {} : { endedNs: at + 40 * MS };
    made.record({ ...all, group: dp, a: 1 << 20, issuedNs: at + 2 * MS, ...started, ...ended });
  }
  const end = STEPS * STEP_MS * MS;
  const copied = end + (how.copiedAfterMs ?? 90_000) * MS;
  const state = how.states?.[rank] ?? "S";
  made.heartbeat(/[TXZ]/.test(state) ? end : copied);
  if (how.isLookedAt !== false) made.copied(copied, state, state === "D" ? how.waitsIn : "");
  return readRing(`job.r${rank}.${50 + rank}.native.ring`, made.bytes);
}

const suspectOf = ({ suspects }: Verdict) => suspects.map(({ ranks, cause }) => ({ ranks, cause }));

describe("verdicts from rings alone", () => {
  it("a CPU that issues nothing more", async () => {
    const { verdict } = await verdictOf({ stalls: 5 });
    expect(verdict.kind).toBe("hang");
    expect(suspectOf(verdict)).toEqual([{ ranks: [5], cause: "cpu-stall" }]);
    expect(verdict.suspects[0]!.machine).toBe("h5");
    expect(verdict.victims).toEqual([0, 1, 2, 3, 4, 6, 7]);
  });

  it("a process that is stopped", async () => {
    const { verdict } = await verdictOf({ stalls: 5, states: { 5: "T" } });
    expect(verdict.kind).toBe("hang");
    expect(suspectOf(verdict)).toEqual([{ ranks: [5], cause: "process-stopped" }]);
  });

  it("a process that is gone, whose ring is left", async () => {
    const { verdict } = await verdictOf({ stalls: 2, states: { 2: "X" } });
    expect(suspectOf(verdict)).toEqual([{ ranks: [2], cause: "process-gone" }]);
  });

  it("a process that the kernel holds for a file system", async () => {
    const { verdict } = await verdictOf({
      stalls: 2,
      states: { 2: "D" },
      waitsIn: "nfs_wait_bit_killable",
    });
    expect(suspectOf(verdict)).toEqual([{ ranks: [2], cause: "storage" }]);
  });

  it("a process whose probe has no heartbeat, where nobody looked", async () => {
    const { verdict } = await verdictOf({ stalls: 5, isLookedAt: false, states: { 5: "T" } });
    expect(suspectOf(verdict)).toEqual([{ ranks: [5], cause: "process-stopped" }]);
  });

  it("a process that left no ring", async () => {
    const { verdict } = await verdictOf({ stalls: 5, without: 5 });
    expect(verdict.kind).toBe("hang");
    expect(verdict.suspects.map(({ ranks }) => ranks)).toEqual([[5]]);
    expect(verdict.missing).toContain("rank 5 left no ring");
  });

  it("nobody, in a job that runs", async () => {
    const { verdict } = await verdictOf({ isHealthy: true, copiedAfterMs: 50 });
    expect(verdict.kind).toBe("healthy");
    expect(verdict.suspects).toEqual([]);
  });

  it("nobody, where a healthy job's process sleeps in the kernel for a moment", async () => {
    const { verdict } = await verdictOf({
      isHealthy: true,
      copiedAfterMs: 50,
      states: { 3: "D" },
      waitsIn: "io_schedule",
    });
    expect(verdict.suspects).toEqual([]);
  });
});

describe("kernels out of rings", () => {
  /** Ten steps of four products of 1 ms: another kernel runs 0.5 ms before each, launched long ahead. */
  function computing(rank: number) {
    const made = new RingWriter({ rank, worldSize: 4, host: `h${rank}`, pid: rank, records: 128 });
    const python = new RingWriter({
      rank,
      worldSize: 4,
      host: `h${rank}`,
      pid: rank,
      writer: "python",
    });
    const api = made.name("cublasLtMatmul");
    for (let step = 0; step < 10; step++) {
      const at = 10 * step * MS;
      python.record({ kind: KIND.iteration, a: step + 1, issuedNs: at, endedNs: at + 10 * MS });
      python.record({ kind: KIND.collection, func: 0, issuedNs: at + MS, endedNs: at + 2 * MS });
      for (let k = 0; k < 4; k++) {
        const from = at + 2 * MS + 1.5 * k * MS;
        made.record({
          kind: KIND.matrix,
          group: api,
          dtype: 9,
          a: 8192 + 8192 * 2 ** 32,
          b: 8192,
          c: 1,
          issuedNs: at + 0.1 * MS,
          startedNs: from,
          endedNs: from + 1 * MS,
        });
      }
    }
    return [
      readRing(`job.r${rank}.${rank}.native.ring`, made.bytes),
      readRing(`job.r${rank}.${rank}.python.ring`, python.bytes),
    ];
  }

  it("give FLOPS and issue latencies, estimate other kernels and accuse nobody", async () => {
    const readings = [0, 1, 2, 3].flatMap(computing);
    const job = withIterations(buildJob(readings, null));
    const run = profileRun(job.kernels ?? [], "")!;
    const [first] = run.ranks;
    expect(first!.stepsFrom).toBe("profiler");
    expect(first!.flops[0]!.tflops).toBeCloseTo((2 * 8192 ** 3) / 1e-3 / 1e12, 3);
    expect(first!.latencyMs[0]).toBeCloseTo(1.9, 6);
    // Three gaps of 0.5 ms in which a launched kernel had not begun; the first comes after the step's own idle time.
    expect(first!.vMinority[5]).toBeGreaterThan(0.14);
    expect(first!.intraStalls["garbage-collection"].every((share) => share === 0)).toBe(true);
    expect(run.lacks![0]).toMatch(/record communication, and matrix products/);
    const { findings, didNotRun } = await ask(job, ENV);
    expect(didNotRun).toEqual([]);
    expect(fuse(job, findings, didNotRun).suspects).toEqual([]);
  });
});
