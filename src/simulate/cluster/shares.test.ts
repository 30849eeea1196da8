import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UserError } from "../../base/errors.ts";
import { simulate } from "./engine.ts";
import { makePrograms } from "./program.ts";
import { stagePasses } from "./schedule.ts";
import { runOf } from "./shares.ts";
import { completeSpec, type ClusterSpec, type ScheduleName } from "./spec.ts";

interface Given {
  readonly schedule: ScheduleName;
  readonly pp: number;
  readonly taken: number;
  readonly left: number;
  readonly tp: number;
}

describe("a replica that leaves the first micro-batches out", () => {
  const cases: fc.Arbitrary<Given> = fc.record({
    schedule: fc.constantFrom<ScheduleName>("1f1b", "gpipe", "interleaved"),
    pp: fc.integer({ min: 2, max: 5 }),
    taken: fc.integer({ min: 1, max: 9 }),
    left: fc.integer({ min: 0, max: 9 }),
    tp: fc.constantFrom(1, 2),
  });
  const both = ({
    schedule,
    pp,
    taken,
    left,
    tp,
  }: Given): { few: ClusterSpec; most: number; left: number } => {
    const unit = schedule === "interleaved" ? pp : 1;
    const few = completeSpec({ tp, pp, dp: 1, schedule, microBatches: taken * unit });
    return { few, most: (taken + left) * unit, left: left * unit };
  };

  test("has exactly the schedule of so many", () => {
    fc.assert(
      fc.property(cases, (given) => {
        const { few, most, left } = both(given);
        for (let stage = 0; stage < few.pp; stage++) {
          const rest = stagePasses({ ...few, microBatches: most }, stage)
            .filter(({ microBatch }) => microBatch >= left)
            .map((pass) => ({ ...pass, microBatch: pass.microBatch - left }));
          expect(rest).toEqual(stagePasses(few, stage));
        }
      }),
      { seed: 9, numRuns: 300 },
    );
  });

  test("has the kernels of so many", () => {
    fc.assert(
      fc.property(cases, (given) => {
        const { few, most, left } = both(given);
        const large = makePrograms(few, most);
        makePrograms(few).forEach((program, stage) => {
          const other = large[stage]!;
          const { ops } = runOf(other, left);
          for (const column of ["computeNs", "attentionNs", "feedForwardNs", "normNs"] as const) {
            const rest = ops.reduce((sum, op) => sum + other[column][op]!, 0);
            expect(rest).toBeCloseTo(
              program[column].reduce((sum, ns) => sum + ns, 0),
              3,
            );
          }
        });
      }),
      { seed: 9, numRuns: 100 },
    );
  });
});

describe("shares", () => {
  const says = (
    given: Partial<ClusterSpec>,
    microBatches: readonly number[],
    mostMicroBatches = 12,
  ): string => {
    const spec = completeSpec({ tp: 1, pp: 2, dp: 2, microBatches: 8, iterations: 1, ...given });
    try {
      simulate(spec, { mostMicroBatches })
        .iterations(() => ({ microBatches }))
        .next();
    } catch (error) {
      expect(error).toBeInstanceOf(UserError);
      return `${(error as UserError).message} (${(error as UserError).hint})`;
    }
    return "accepted";
  };

  test("are refused where no job could have them", () => {
    expect(says({}, [4, 12])).toBe("accepted");
    expect(says({}, [4, 4, 8])).toMatch(/3 replicas .*2 replicas and 16 micro-batches/);
    expect(says({}, [4, 11])).toMatch(/15 micro-batches together .*16 micro-batches/);
    expect(says({}, [0, 16], 16)).toMatch(/replica 0 is to take 0 .*allowed: 1 to 16/);
    expect(says({}, [2.5, 13.5], 16)).toMatch(/replica 0 is to take 2.5/);
    expect(says({}, [3, 13])).toMatch(/replica 1 is to take 13 .*1 to 12; .*mostMicroBatches/);
    expect(says({}, [8, 8], 7)).toMatch(/7 micro-batches at most, but all of them take 8/);
  });

  test("of the interleaved schedule are multiples of the stages", () => {
    const job: Partial<ClusterSpec> = { schedule: "interleaved" };
    expect(says(job, [4, 12])).toBe("accepted");
    expect(says(job, [5, 11])).toMatch(/5 micro-batches of replica 0 .*multiples of pp, 2/);
    expect(says(job, [4, 12], 13)).toMatch(/13 micro-batches at most .*multiples of pp, 2/);
  });

  test("are even where replicas meet in every micro-batch", () => {
    const sharded: Partial<ClusterSpec> = { pp: 1, fullyShard: true };
    expect(says(sharded, [8, 8])).toBe("accepted");
    expect(says(sharded, [4, 12])).toMatch(/fully sharded .*same number/);
    expect(says({ ep: 2 }, [4, 12])).toMatch(/share experts .*ep 2/);
    expect(says({ ep: 2, dp: 4 }, [4, 4, 12, 12])).toBe("accepted");
    expect(says({ ep: 2, dp: 4 }, [4, 12, 4, 12])).toMatch(/share experts/);
    // Experts within a replica, over its context-parallel ranks.
    expect(says({ ep: 2, cp: 2 }, [4, 12])).toBe("accepted");
  });
});
