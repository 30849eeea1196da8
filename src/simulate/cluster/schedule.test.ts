import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { executionOrder } from "./order.ts";
import { makePrograms } from "./program.ts";
import { stagePasses } from "./schedule.ts";
import { completeSpec, type ClusterSpec } from "./spec.ts";
import { jobs } from "../../../test/support/simulate/jobs.ts";

const specOf = (job: Partial<ClusterSpec>): ClusterSpec => completeSpec({ tp: 1, dp: 1, ...job });

/** "F0 B0": forward and backward passes by micro-batch; chunks as "F0.1". */
function words(spec: ClusterSpec, stage: number): string {
  const chunk = (n: number): string => (spec.schedule === "interleaved" ? `.${n}` : "");
  return stagePasses(spec, stage)
    .map((pass) => `${pass.backward ? "B" : "F"}${pass.microBatch}${chunk(pass.chunk)}`)
    .join(" ");
}

describe("a pipeline schedule, by hand", () => {
  test("GPipe: all forward, then all backward", () => {
    const spec = specOf({ pp: 3, schedule: "gpipe", microBatches: 3 });
    for (const stage of [0, 1, 2]) expect(words(spec, stage)).toBe("F0 F1 F2 B0 B1 B2");
  });

  test("1F1B over two stages", () => {
    const spec = specOf({ pp: 2, microBatches: 3 });
    expect(words(spec, 0)).toBe("F0 F1 B0 F2 B1 B2");
    expect(words(spec, 1)).toBe("F0 B0 F1 B1 F2 B2");
  });

  test("1F1B over four stages", () => {
    const spec = specOf({ pp: 4, microBatches: 4 });
    expect(words(spec, 0)).toBe("F0 F1 F2 F3 B0 B1 B2 B3");
    expect(words(spec, 1)).toBe("F0 F1 F2 B0 F3 B1 B2 B3");
    expect(words(spec, 2)).toBe("F0 F1 B0 F2 B1 F3 B2 B3");
    expect(words(spec, 3)).toBe("F0 B0 F1 B1 F2 B2 F3 B3");
  });

  test("1F1B with fewer micro-batches than stages", () => {
    const spec = specOf({ pp: 4, microBatches: 2 });
    expect(words(spec, 0)).toBe("F0 F1 B0 B1");
    expect(words(spec, 3)).toBe("F0 B0 F1 B1");
  });

  // Narayanan et al., SC '21, figure 4 below: micro-batches in rounds of pp, chunk by chunk.
  test("interleaved over two stages with two chunks", () => {
    const spec = specOf({ pp: 2, schedule: "interleaved", microBatches: 4, chunks: 2 });
    expect(words(spec, 0)).toBe(
      "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0",
    );
    expect(words(spec, 1)).toBe(
      "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0",
    );
  });
});

describe("any schedule", () => {
  test("runs each micro-batch and chunk forward and backward once, forward first", () => {
    fc.assert(
      fc.property(jobs, (spec) => {
        const chunks = spec.schedule === "interleaved" ? spec.chunks : 1;
        for (let stage = 0; stage < spec.pp; stage++) {
          const seen = new Set<string>();
          for (const pass of stagePasses(spec, stage)) {
            const at = `${pass.microBatch}.${pass.chunk}`;
            expect(seen.has(`${pass.backward ? "B" : "F"}${at}`)).toBe(false);
            if (pass.backward) expect(seen.has(`F${at}`)).toBe(true);
            seen.add(`${pass.backward ? "B" : "F"}${at}`);
          }
          expect(seen.size).toBe(2 * spec.microBatches * chunks);
        }
      }),
      { seed: 5, numRuns: 100 },
    );
  });

  test("never deadlocks, and every operator is worked off once", () => {
    fc.assert(
      fc.property(jobs, (spec) => {
        const programs = makePrograms(spec);
        const { stage, op, meetings } = executionOrder(programs);
        const seen = programs.map((program) => new Uint8Array(program.count));
        stage.forEach((s, step) => {
          if (s >= 0) seen[s]![op[step]!]!++;
          else {
            const { stages, ops } = meetings.get(step)!;
            stages.forEach((member, i) => seen[member]![ops[i]!]!++);
          }
        });
        for (const counts of seen) expect(counts.every((count) => count === 1)).toBe(true);
      }),
      { seed: 6, numRuns: 100 },
    );
  });

  test("fetches a batch for every micro-batch on the first stage, and on no other", () => {
    fc.assert(
      fc.property(jobs, (spec) => {
        const fetched = makePrograms(spec).map(({ loads }) => loads.reduce((a, b) => a + b, 0));
        expect(fetched).toEqual(fetched.map((_, stage) => (stage === 0 ? spec.microBatches : 0)));
      }),
      { seed: 7, numRuns: 100 },
    );
    // Pure data parallelism has no operator between two micro-batches.
    const [only] = makePrograms(completeSpec({ tp: 1, pp: 1, dp: 4, microBatches: 8 }));
    expect(only!.loads.reduce((a, b) => a + b, 0)).toBe(8);
  });
});
