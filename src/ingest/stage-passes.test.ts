import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { recognise } from "./formats.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";
import { stagePasses } from "./stage-passes.ts";

const pass = (rank: number, what: string, from: number, to: number): string =>
  `[RANK${rank}] ${what} @ ${from} (ms) to ${to} (ms), cudaEventElapsed = ${to - from - 0.125} (ms)\n`;

const LOG = [
  "[RANK2] Iteration 1\n",
  pass(2, "F", 0.5, 26),
  pass(2, "F", 26.25, 50),
  pass(2, "B", 80, 130.5),
  pass(2, "W", 131, 145),
  pass(2, "3W", 145, 190),
  pass(2, "W", 190, 204),
  "[RANK2] Iteration 2\n",
  pass(2, "F", 1.5, 27),
].join("");

describe("pipeline passes", () => {
  it("are columns: kind, iteration, and which micro-batch it was", () => {
    const reading = readBytes(stagePasses, "run/GPU2_rank2.log", LOG);
    expect(reading).toMatchObject({ format: "stage-passes", rank: 2, records: 7, defects: [] });
    const [table] = reading.stageOperations!;
    expect(table!.kinds).toEqual(["forward-compute", "backward-compute", "weight-compute"]);
    expect({
      rank: [...table!.rank],
      stage: [...table!.stage],
      step: [...table!.step],
      kind: [...table!.kind],
      microBatch: [...table!.microBatch],
      seq: [...table!.seq],
      startMs: [...table!.startMs],
      durationMs: [...table!.durationMs],
    }).toEqual({
      rank: [2, 2, 2, 2, 2, 2, 2],
      stage: [-1, -1, -1, -1, -1, -1, -1],
      step: [1, 1, 1, 1, 1, 1, 2],
      kind: [0, 0, 1, 2, 2, 2, 0],
      // "3W" is three micro-batches in one row.
      microBatch: [0, 1, 0, 0, 1, 4, 0],
      seq: [0, 1, 0, 0, 1, 2, 0],
      startMs: [0.5, 26.25, 80, 131, 145, 190, 1.5],
      durationMs: [25.5, 23.75, 50.5, 14, 45, 14, 25.5],
    });
  });

  it("that went through host memory are a format of their own, told by the file's name", () => {
    const reading = readBytes(stagePasses, "run/GPU2_rank2_CPU.log", LOG);
    expect(reading.format).toBe("stage-passes-cpu");
    expect(reading.stageOperations![0]!.format).toBe("stage-passes-cpu");
  });

  it("may be told in milliseconds since 1970, to the fraction", () => {
    const log = `[RANK0] Iteration 1\n${pass(0, "F", 1751967831391.25, 1751967831893.5)}`;
    const [table] = readBytes(stagePasses, "a.log", log).stageOperations!;
    expect(table!.startMs[0]).toBe(1751967831391.25);
    expect(table!.durationMs[0]).toBe(502.25);
  });

  it("of several ranks in one file are told apart, and count by themselves", () => {
    const log = `[RANK0] Iteration 5\n[RANK1] Iteration 6\n${pass(1, "F", 3, 4)}${pass(0, "F", 1, 2)}`;
    const { rank, stageOperations } = readBytes(stagePasses, "all.log", log);
    expect(rank).toBe(null);
    expect([...stageOperations![0]!.rank]).toEqual([1, 0]);
    expect([...stageOperations![0]!.step]).toEqual([6, 5]);
    expect([...stageOperations![0]!.microBatch]).toEqual([0, 0]);
  });

  it("are recognised by their first two lines, and nothing else is", () => {
    expect(sniffs(stagePasses, LOG)).toBe(true);
    expect(sniffs(stagePasses, LOG.replaceAll("\n", "\r\n"))).toBe(true);
    expect(sniffs(stagePasses, "[RANK0] Iteration 1\n")).toBe(true);
    expect(sniffs(stagePasses, "[RANK0] Iteration 1\nloss 0.3\n")).toBe(false);
    expect(sniffs(stagePasses, "[RANK0] Iteration 1 loss 0.3\n")).toBe(false);
    expect(sniffs(stagePasses, " iteration        1/      15 | consumed samples: 12 |\n")).toBe(
      false,
    );
    const bytes = Buffer.from(LOG);
    expect(recognise({ name: "x", bytes, text: LOG })).toBe(stagePasses);
  });

  it("say what is not a pass, once, and keep the rest", () => {
    const log = `${LOG}Killed\nsignal 9\n${pass(2, "B", 300, 350)}`;
    const reading = readBytes(stagePasses, "x.log", log);
    expect(reading.records).toBe(8);
    expect(reading.defects).toEqual([
      { file: "x.log", what: "2 lines are not passes, the first: Killed", line: 10 },
    ]);
  });

  it("are read the same in chunks of any size, cut anywhere, and never throw", () => {
    const [whole, ...others] = readAtAllSizes(stagePasses, "x.log", LOG).reverse();
    for (const other of others) expect(other).toEqual(whole);
    for (const cut of readCutEverywhere(stagePasses, "x.log", LOG)) {
      expect(cut.records).toBeLessThanOrEqual(7);
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(readBytes(stagePasses, "x.log", bytes).records).toBe(0);
      }),
      { seed: 1 },
    );
  });
});
