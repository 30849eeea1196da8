import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Reading } from "../model/reading.ts";
import { splitCsv } from "./iteration-table/csv-columns.ts";
import { iterationTable } from "./iteration-table.ts";
import { rankLog } from "./rank-log.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";

const read = (text: string, file = "table.csv"): Reading => readBytes(iterationTable, file, text);

const WORKERS = `,worker,gpu,time,batch_time_norm
0,0,25,1,476
1,1,25,1,509
2,0,25,11,480
3,1,25,11,
4,1,25,21,511
`;

describe("a CSV of iterations", () => {
  it("is one series a worker", () => {
    const reading = read(WORKERS);
    expect(reading.series).toMatchObject([
      { source: "table.csv, rank 0", rank: 0, basis: "reported" },
      { source: "table.csv, rank 1", rank: 1, basis: "reported" },
    ]);
    expect(reading.series?.map((s) => [...s.iteration])).toEqual([
      [1, 11],
      [1, 21],
    ]);
    expect(reading.series?.map((s) => [...s.durationMs])).toEqual([
      [476, 480],
      [509, 511],
    ]);
    expect([...reading.series![1]!.line]).toEqual([3, 6]);
    expect(reading.defects).toEqual([
      { file: "table.csv", line: 5, what: "is not a row of the table: 3,1,25,11," },
    ]);
  });

  it("knows units by the name of the column", () => {
    const first = (text: string): number | undefined => read(text).series?.[0]?.durationMs[0];
    expect(first("step,step_time_s\n1,0.5\n")).toBe(500);
    expect(first("iter,iter_time_ms\n1,0.5\n")).toBe(0.5);
    expect(first("iteration,loss,Iteration time (seconds)\n1,9,2\n")).toBe(2000);
    expect(first("iteration,duration\n1,20\n")).toBe(20);
    expect(first('"step","batch_ms"\n"1","20"\n')).toBe(20);
  });

  it("takes an elapsed time that only grows for a clock", () => {
    const rows = Array.from({ length: 10 }, (_, i) => `${i + 1},${(i + 1) * 2}\n`).join("");
    const [series] = read(`step,elapsed_s\n${rows}`).series!;
    expect([...series!.durationMs].slice(0, 3)).toEqual([NaN, 2000, 2000]);
    const [durations] = read("step,elapsed_s\n1,2\n2,2.5\n3,2.4\n").series!;
    expect([...durations!.durationMs]).toEqual([2000, 2500, 2400]);
  });

  it("counts rows that do not parse", () => {
    const reading = read("step,step_time_ms,global_batch_size\n1,5,8\nx,6,8\n3\n4,7,8\n");
    expect([...reading.series![0]!.iteration]).toEqual([1, 4]);
    expect([...reading.series![0]!.batch]).toEqual([8, 8]);
    expect(reading.defects.map(({ what }) => what)).toEqual([
      "is not a row of the table: x,6,8",
      "2 lines are not rows of the table",
    ]);
  });

  it("may be TensorBoard's, whose values are seconds where the name says that they are times", () => {
    const text =
      "Wall time,Step,Value\n1700000000.5,1,6.5\n1700000002.5,2,0.5\n1700000008.5,4,0.4\n";
    const [times] = read(text, "run-a-tag-iteration-time.csv").series!;
    expect(times).toMatchObject({ basis: "reported" });
    expect([...times!.durationMs]).toEqual([6500, 500, 400]);
    expect(times!.endMs[0]).toBe(1700000000500);
    const [losses] = read(text, "run-a-tag-lm-loss.csv").series!;
    expect(losses).toMatchObject({ basis: "timestamps" });
    expect([...losses!.durationMs]).toEqual([NaN, 2000, 3000]);
  });

  it("is recognised by its header and its rows, and nothing else is", () => {
    expect(sniffs(iterationTable, WORKERS)).toBe(true);
    expect(sniffs(iterationTable, "step,step_ms\n1,5")).toBe(true);
    expect(sniffs(iterationTable, "Wall time,Step,Value\n1.7e9,1,2\n")).toBe(true);
    for (const other of [
      "",
      "step,step_time_ms\n",
      "timestamp,node,gpu_util\n1700000000,n1,98\n",
      "time,duration\n1700000000,5\n",
      "time,latency_ms\n1,5\n",
      "step,loss,lr_s\n1,2.5,0.1\n",
      "step,step_time_std\n1,2\n",
      "iteration,comment,duration\n1,hello\n",
      "name,duration\nfoo,5\n",
      "step,duration\nfoo,5\n",
      ",0,1,2\njob_00,0.05,0.04,0.03\n",
      "2026-11-15 00:00:00,123 step: 1  loss: 2\n",
      '{"traceEvents": []}',
    ]) {
      expect(sniffs(iterationTable, other)).toBe(false);
    }
    expect(sniffs(rankLog, WORKERS)).toBe(false);
  });

  it("may quote its fields", () => {
    expect(splitCsv('a,"b,c","d ""e""",,"f')).toEqual(["a", "b,c", 'd "e"', "", "f"]);
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 8 }), { minLength: 1, maxLength: 6 }),
        (fields) => {
          const line = fields.map((field) => `"${field.replaceAll('"', '""')}"`).join();
          expect(splitCsv(line)).toEqual(fields);
        },
      ),
    );
  });
});

const golden = (values: unknown, name = "iteration-time"): string =>
  JSON.stringify({
    "lm loss": { start_step: 1, end_step: 3, step_interval: 1, values: { "1": 10.5, "2": 10.4 } },
    [name]: { start_step: 1, end_step: 20, step_interval: 5, values },
  });

describe("Megatron's golden values", () => {
  it("are seconds a step; what was not logged is left out", () => {
    const reading = read(golden({ "1": "nan", "5": 7.5, "10": 0.25 }), "golden.json");
    expect(reading).toMatchObject({ rank: null, records: 2, defects: [] });
    expect(reading.series).toMatchObject([{ source: "golden.json", basis: "reported" }]);
    expect([...reading.series![0]!.iteration]).toEqual([5, 10]);
    expect([...reading.series![0]!.durationMs]).toEqual([7500, 250]);
  });

  it("were lists once", () => {
    const [series] = read(golden([7.5, 0.5, 0.25])).series!;
    expect([...series!.iteration]).toEqual([1, 6, 11]);
  });

  it("say so where they hold no times or are cut off", () => {
    expect(read(golden({}, "num-zeros")).defects).toMatchObject([
      { what: 'has no "iteration-time"' },
    ]);
    expect(read(golden({ "1": 2 }).slice(0, -5)).defects).toMatchObject([
      { what: "is damaged or cut off" },
    ]);
    expect(sniffs(iterationTable, golden({ "1": 2 }))).toBe(true);
    expect(sniffs(iterationTable, '{"a": {"values": {"1": 2}}}')).toBe(false);
  });
});

describe("the contract of tables", () => {
  it("reads the same at every chunk size, survives a cut at every byte and random bytes", () => {
    for (const text of [WORKERS, golden({ "1": 2, "2": 3 })]) {
      const [first, ...others] = readAtAllSizes(iterationTable, "t", text);
      for (const other of others) expect(other).toEqual(first);
      for (const reading of readCutEverywhere(iterationTable, "t", text)) {
        expect(reading.format).toBe("iteration-table");
      }
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(readBytes(iterationTable, "t", bytes).format).toBe("iteration-table");
      }),
    );
  });
});
