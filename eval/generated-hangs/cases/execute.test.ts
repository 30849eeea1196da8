import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Execution } from "./execute.ts";
import { execute, noFaults } from "./execute.ts";
import type { SimJob } from "./job.ts";
import { buildJob, DEFAULT_PROGRAM } from "./job.ts";
import type { SimGroup } from "../../../src/simulate/flight/rank-records.ts";
import type { Layout } from "./layout.ts";
import type { Op } from "../../../src/simulate/flight/op.ts";
import { isP2p } from "../../../src/simulate/flight/op.ts";
import type { ProgramOptions } from "./program.ts";
import { notCome, openWaits } from "./waits.ts";

const layouts = fc.record({
  tp: fc.constantFrom(1, 2, 4),
  pp: fc.constantFrom(1, 2, 3, 4),
  dp: fc.integer({ min: 1, max: 4 }),
});
const programs: fc.Arbitrary<ProgramOptions> = fc.record({
  iterations: fc.constant(3),
  microBatches: fc.integer({ min: 1, max: 6 }),
  layers: fc.integer({ min: 1, max: 3 }),
  schedule: fc.constantFrom("gpipe", "1f1b"),
  tensor: fc.constantFrom("all_reduce", "gather-scatter"),
  data: fc.constantFrom("all_reduce", "overlapped", "sharded"),
  embedding: fc.boolean(),
  experts: fc.boolean(),
  expertSync: fc.boolean(),
  world: fc.constantFrom("none", "barrier", "all_reduce"),
  loadSync: fc.boolean(),
  pipelineWarmUp: fc.boolean(),
  sequence: fc.constant(512),
  hidden: fc.constant(1024),
});

function healthy(
  layout: Layout,
  options: ProgramOptions,
  eagerSends: boolean,
): [SimJob, Execution] {
  const job = buildJob(layout, options, 1);
  const faults = noFaults(job.programs.length);
  return [job, execute(job.programs, job.groups, faults, { eagerSends, seed: 1 })];
}

describe("a healthy job", () => {
  test("completes every operator, whatever its layout, schedule and groups", () => {
    fc.assert(
      fc.property(layouts, programs, fc.boolean(), (layout, options, eager) => {
        const [, { runs, open }] = healthy(layout, options, eager);
        for (const run of runs) {
          expect(run.issued).toBe(run.ops.length);
          expect(run.endNs.some(Number.isNaN)).toBe(false);
        }
        if (!eager) expect(open.every((meetings) => meetings.size === 0)).toBe(true);
      }),
      { numRuns: 150 },
    );
  });

  test("ends a collective on no member before the last one has started it", () => {
    fc.assert(
      fc.property(layouts, programs, (layout, options) => {
        const [job, { runs }] = healthy(layout, options, false);
        const latest = new Map<string, number>();
        const each = (visit: (key: string, startNs: number, endNs: number) => void): void => {
          for (const run of runs)
            run.ops.forEach((op, i) => {
              if (!isP2p(op))
                visit(`${op.group}/${run.slot[i]}`, run.startNs[i] ?? 0, run.endNs[i] ?? 0);
            });
        };
        each((key, startNs) => latest.set(key, Math.max(latest.get(key) ?? 0, startNs)));
        each((key, _, endNs) => expect(endNs).toBeGreaterThan(latest.get(key) ?? 0));
        expect(job.groups[0]?.role).toBe("default");
      }),
      { numRuns: 30 },
    );
  });

  test("starts an operator after its CPU has issued it, and the next synchronous one after its end", () => {
    const options = { ...DEFAULT_PROGRAM, iterations: 3, schedule: "1f1b" as const };
    const [, { runs }] = healthy({ tp: 2, pp: 4, dp: 2 }, options, false);
    for (const run of runs) {
      let endNs = 0;
      run.ops.forEach((op, i) => {
        expect(run.startNs[i]).toBeGreaterThan(run.createdNs[i] ?? 0);
        if (op.async) return;
        expect(run.startNs[i]).toBeGreaterThan(endNs);
        endNs = run.endNs[i] ?? 0;
      });
    }
  });

  test("sends all tokens that experts receive", () => {
    const options = { ...DEFAULT_PROGRAM, iterations: 1, experts: true };
    const job = buildJob({ tp: 1, pp: 1, dp: 5 }, options, 3);
    const group = job.groups.find((g) => g.role === "expert") as SimGroup;
    const calls = job.programs.map((ops) => ops.filter((op) => op.group === group.index));
    for (let call = 0; call < (calls[0]?.length ?? 0); call++) {
      const rows = (side: "input" | "output"): number =>
        calls.reduce((sum, own) => sum + (own[call]?.shape[side][0] ?? 0), 0);
      expect(rows("input")).toBe(rows("output"));
    }
  });
});

describe("a broken job", () => {
  const options = { ...DEFAULT_PROGRAM, iterations: 3 };
  const job = buildJob({ tp: 2, pp: 2, dp: 2 }, options, 5);
  const engine = { eagerSends: false, seed: 5 };

  test("leaves what the stalled CPU did not issue to wait for it", () => {
    const faults = noFaults(8);
    faults.stallAt[3] = 60;
    const execution = execute(job.programs, job.groups, faults, engine);
    const run = execution.runs[3];
    expect(run?.issued).toBe(60);
    expect(run?.endNs.slice(0, 60).some(Number.isNaN)).toBe(false);
    const waits = openWaits(execution);
    expect(waits[3]).toEqual([]);
    expect(waits[2]?.flatMap((wait) => notCome(wait.meeting))).toEqual([3]);
  });

  test("lets the CPU of a hung GPU go on to its next wait", () => {
    const faults = noFaults(8);
    faults.hangAt[3] = 60;
    const { runs } = execute(job.programs, job.groups, faults, engine);
    const run = runs[3];
    expect(run?.issued).toBeGreaterThan(60);
    expect(run?.ops[run.issued]?.hostWait).not.toBe(0);
    expect(run?.startNs.slice(60).every(Number.isNaN)).toBe(true);
  });

  test("starts a lost collective everywhere and ends it nowhere", () => {
    const group = job.groups.find((g) => g.role === "dp") as SimGroup;
    const faults = { ...noFaults(8), lost: { group: group.index, seq: 6 } };
    const execution = execute(job.programs, job.groups, faults, engine);
    const [meeting] = [...(execution.open[group.index]?.values() ?? [])];
    expect(meeting?.dead).toBe(true);
    expect(meeting?.came.toSorted()).toEqual(group.ranks);
  });

  test("pairs calls by their order in the group, not by what they mean", () => {
    // Rank 0 calls with another size: everybody comes and nobody leaves.
    const index = job.programs[0]?.findIndex((op) => op.site === "gradients") ?? 0;
    const ops = [...(job.programs[0] ?? [])];
    ops[index] = { ...(ops[index] as Op), dtype: "Float" };
    const edited = [ops, ...job.programs.slice(1)];
    const execution = execute(edited, job.groups, noFaults(8), engine);
    const [wait] = openWaits(execution)[0] ?? [];
    expect(wait?.index).toBe(index);
    expect(wait?.meeting.dead).toBe(true);
  });

  test("keeps the times of everything that the fault does not reach", () => {
    const before = execute(job.programs, job.groups, noFaults(8), engine);
    const faults = noFaults(8);
    faults.hangAt[3] = 60;
    const after = execute(job.programs, job.groups, faults, engine);
    after.runs.forEach((run, rank) => {
      run.endNs.forEach((endNs, i) => {
        if (!Number.isNaN(endNs)) expect(endNs).toBe(before.runs[rank]?.endNs[i]);
      });
    });
  });
});
