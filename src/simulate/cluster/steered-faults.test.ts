/** Faults on command: the same as those of the spec, bit by bit, and gone without a trace. */
import { describe, expect, test } from "vitest";
import { simulate } from "./engine.ts";
import { parseFault } from "./fault-spec.ts";
import { completeSpec } from "./spec.ts";
import type { Steering } from "./steering.ts";
import { run } from "../../../test/support/simulate/jobs.ts";

const SMALL = {
  gpus: 32,
  tp: 2,
  pp: 2,
  iterations: 8,
  microBatches: 4,
  layersPerStage: 2,
} as const;

describe("faults given between two iterations", () => {
  test.each([
    "gpu-slow:rank=9:severity=2",
    "cpu-stall:rank=3:severity=2",
    "network-slow:rank=9:severity=8",
    "network-slow:link=0-16:severity=9",
    "dataloader:rank=2:severity=3",
    "garbage-collection:rank=2:severity=3:how=now-and-then",
  ])("%s acts as if the spec had it, and ends with it", (text) => {
    const fault = parseFault(`${text}:from=4:to=6`);
    const expected = run(completeSpec({ ...SMALL, faults: [fault] }));
    const open = { ...fault, to: Infinity };
    const given = run(completeSpec(SMALL), {}, (iteration): Steering | null => {
      if (iteration === 4) return { faults: [open] };
      return iteration === 7 ? { faults: [] } : null;
    });
    expect(given.kept).toEqual(expected.kept);
    const healthy = run(completeSpec(SMALL));
    expect(given.kept.slice(0, 3)).toEqual(healthy.kept.slice(0, 3));
    expect(given.kept[4]).not.toEqual(healthy.kept[4]);
  });

  test("take the place of the spec's own", () => {
    const faults = [parseFault("gpu-slow:rank=9:severity=2")];
    const healed = run(completeSpec({ ...SMALL, faults }), {}, () => ({ faults: [] }));
    expect(healed.kept).toEqual(run(completeSpec(SMALL)).kept);
  });

  test("a hang begins in the iteration that it names", () => {
    const fault = parseFault("gpu-hang:rank=5:from=6");
    const { kept } = run(completeSpec(SMALL), {}, (iteration) =>
      iteration === 5 ? { faults: [fault] } : null,
    );
    expect(kept.map(({ endNs }) => endNs === Infinity)).toEqual([...Array(5).fill(false), true]);
  });

  test.each([
    ["gpu-slow:rank=32", /out of range/],
    ["network-slow:link=0-7", /nothing runs between/],
    ["gpu-hang", /needs a rank/],
  ])("%s is refused as it is in a spec", (text, why) => {
    const steer = (): Steering => ({ faults: [parseFault(text)] });
    expect(() => run(completeSpec(SMALL), {}, steer)).toThrow(why);
  });
});

test("a job without an end takes no more memory than one iteration", () => {
  const spec = completeSpec({ ...SMALL, iterations: Number.MAX_SAFE_INTEGER });
  const iterations = simulate(spec).iterations((iteration) =>
    iteration === 2 ? { faults: [parseFault("gpu-slow:rank=1:from=900000")] } : null,
  );
  const first = [iterations.next(), iterations.next(), iterations.next()];
  expect(first.map(({ value }) => (value as { iteration: number }).iteration)).toEqual([1, 2, 3]);
});
