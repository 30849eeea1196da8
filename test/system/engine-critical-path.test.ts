/**
 * The iteration time is the critical path. Two slow oracles without noise, both of which know nothing of
 * stages, lanes or execution order: one works the job off rank by rank; the other takes the engine's
 * times apart and asks of each whether it is the latest of what it waits for plus its own duration.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  jobs,
  operators,
  partsOf,
  programOf,
  run,
  type Part,
  type Run,
} from "../support/simulate/jobs.ts";
import * as P from "../../src/simulate/cluster/program.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { simulate } from "../../src/simulate/cluster/engine.ts";
import type { Simulation } from "../../src/simulate/cluster/times.ts";
import { runs } from "../support/cases.ts";

const SEED = 4711;

/** What the engine says in constants, typed again. */
const ISSUE = 30_000;
const FETCH = 200_000;
const HOST_GAP = 1_000_000;

function wire(kind: number, bytes: number, size: number): number {
  switch (kind) {
    case P.ALL_REDUCE:
      return (2 * bytes * (size - 1)) / size;
    case P.ALL_TO_ALL:
      return (bytes * (size - 1)) / size;
    default:
      return bytes * (size - 1);
  }
}

/** Time of an operator once all are there and no NIC is busy. */
function transferNs(job: Simulation, parts: readonly Part[]): number {
  const { rank, op } = parts.at(-1)!;
  const { kind, bytes, role } = programOf(job, rank);
  if (role[op] === P.NO_GROUP) return 0;
  const size = parts.length;
  const carried = kind[op] === P.RECV ? bytes[op]! : wire(kind[op]!, bytes[op]!, size);
  if (role[op] === P.WORLD) return 40_000 * Math.ceil(Math.log2(job.spec.gpus + 1)) + carried / 46;
  const machines = new Set(parts.map((part) => Math.floor(part.rank / job.spec.gpusPerMachine)));
  return machines.size === 1 ? 8_000 + carried / 360 : 20_000 + carried / 46;
}

/** Rank by rank: whoever can go on goes on, until all are through. NVLink only, so that no NIC queues. */
function workOff(job: Simulation, gpuFactor: (rank: number) => number): number {
  const { spec } = job;
  const ranks = Array.from({ length: spec.gpus }, () => ({
    next: 0,
    arrived: false,
    cpu: 0,
    gpu: 0,
    gradients: 0,
  }));
  const starts = new Map<string, number>();
  const key = ({ rank, op }: Part): string => `${rank}/${op}`;
  let left = spec.gpus;
  while (left > 0) {
    let moved = false;
    ranks.forEach((state, rank) => {
      const program = programOf(job, rank);
      const op = state.next;
      if (op >= program.count) return;
      if (!state.arrived) {
        state.arrived = true;
        moved = true;
        state.cpu += ISSUE + (program.loads[op] ? FETCH : 0);
        state.gpu = Math.max(state.cpu, state.gpu) + program.computeNs[op]! * gpuFactor(rank);
        const role = program.role[op]!;
        const isBucket = program.async[op] === 1 && role === P.DP;
        const waits = isBucket || role === P.WORLD || role === P.EMBEDDING;
        starts.set(key({ rank, op }), waits ? Math.max(state.gpu, state.gradients) : state.gpu);
      }
      const parts = partsOf(job, { rank, op });
      const isSend = program.kind[op] === P.SEND;
      if (!isSend && !parts.every((part) => starts.has(key(part)))) return;
      if (!isSend) {
        const latest = Math.max(...parts.map((part) => starts.get(key(part))!));
        const end = latest + transferNs(job, parts);
        if (program.async[op] === 1) state.gradients = end;
        else state.gpu = end;
      }
      state.next++;
      state.arrived = false;
      moved = true;
      if (state.next === program.count) left--;
    });
    expect(moved).toBe(true);
  }
  return Math.max(...ranks.map((state) => state.gpu));
}

describe("the iteration time", () => {
  test("is that of a job worked off rank by rank", () => {
    const cases = fc.record({
      spec: jobs,
      slow: fc.nat(1000),
      severity: fc.constantFrom(1.5, 2, 5),
    });
    fc.assert(
      fc.property(cases, ({ spec: any, slow, severity }) => {
        const rank = slow % any.gpus;
        const faults = [parseFault(`gpu-slow:rank=${rank}:severity=${severity}`)];
        const spec = { ...any, gpusPerMachine: 128, noise: 0, iterations: 1, faults };
        const expected = workOff(simulate(spec), (of) => (of === rank ? severity : 1));
        const [only] = run(spec).kept;
        expect(only!.endNs / expected).toBeCloseTo(1, 12);
      }),
      { seed: SEED, numRuns: runs(10, 25) },
    );
  });

  test("has no unexplained gap: every time is the latest it waits for, plus its own duration", () => {
    fc.assert(
      fc.property(jobs, (any) => {
        const job = run({ ...any, noise: 0, iterations: 2 });
        for (let rank = 0; rank < job.spec.gpus; rank++) explainRank(job, rank);
      }),
      { seed: SEED, numRuns: runs(15, 40) },
    );
  });

  test("waits for a NIC only while something holds it", () => {
    fc.assert(
      fc.property(jobs, (any) => explainTransfers(run({ ...any, noise: 0, iterations: 1 }))),
      { seed: SEED, numRuns: runs(15, 40) },
    );
  });
});

function explainRank(job: Run, rank: number): void {
  const program = programOf(job, rank);
  let cpu = -HOST_GAP;
  let gpu = 0;
  let gradients = 0;
  for (const { issue, start, end, iteration } of job.kept) {
    cpu += HOST_GAP;
    for (let op = 0; op < program.count; op++) {
      const at = `iteration ${iteration}, rank ${rank}, op ${op}`;
      cpu += ISSUE + (program.loads[op] ? FETCH : 0);
      near(issue[rank]![op]!, cpu, at);
      gpu = Math.max(issue[rank]![op]!, gpu) + program.computeNs[op]!;
      const role = program.role[op]!;
      const isBucket = program.async[op] === 1 && role === P.DP;
      const waits = isBucket || role === P.WORLD || role === P.EMBEDDING;
      near(start[rank]![op]!, waits ? Math.max(gpu, gradients) : gpu, at);
      if (isBucket) gradients = end[rank]![op]!;
      else if (program.async[op] === 0) gpu = end[rank]![op]!;
    }
    cpu = gpu;
  }
}

/** By NIC, the transfers that pass it; one that waits must find its NIC taken the whole time. */
function explainTransfers(job: Run): void {
  const { start, end } = job.kept[0]!;
  const busy = new Map<number, { begin: number; end: number }[]>();
  const waiting: { parts: Part[]; ready: number; begin: number }[] = [];
  for (const parts of operators(job)) {
    const { rank, op } = parts.at(-1)!;
    const ready = Math.max(...parts.map((part) => start[part.rank]![part.op]!));
    const done = end[rank]![op]!;
    const begin = done - transferNs(job, parts);
    const machines = new Set(parts.map((part) => Math.floor(part.rank / job.spec.gpusPerMachine)));
    const passesNic = machines.size > 1 && programOf(job, rank).role[op] !== P.WORLD;
    if (!passesNic) near(begin, ready, `rank ${rank}, op ${op}`);
    else {
      for (const part of parts) {
        const intervals = busy.get(part.rank) ?? [];
        intervals.push({ begin, end: done });
        busy.set(part.rank, intervals);
      }
      if (begin > ready + 1) waiting.push({ parts, ready, begin });
    }
  }
  for (const { parts, ready, begin } of waiting) {
    const isTaken = parts.some(({ rank }) => {
      let until = ready;
      for (const one of busy.get(rank)!.sort((a, b) => a.begin - b.begin))
        if (one.begin <= until + 1 && one.begin < begin - 1) until = Math.max(until, one.end);
      return until >= begin - 1;
    });
    if (!isTaken) expect.fail(`op ${parts[0]!.op} waits for ${begin - ready} ns for a free NIC`);
  }
}

function near(value: number, expected: number, at: string): void {
  if (Math.abs(value - expected) > 1) expect.fail(`${at}: ${value} instead of ${expected}`);
}
