import { describe, expect, it } from "vitest";
import { recognise } from "./formats.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
} from "../../test/support/ingest/reader-contract.ts";
import { validationReport } from "./validation-report.ts";

const REPORT = {
  schema: "faultline.validation/1",
  rank: 2,
  host: "h1",
  device: "NVIDIA H200",
  iteration: 120,
  timeMs: 1_767_225_600_000,
  group: [0, 1, 2, 3],
  gemm: [{ dtype: "bfloat16", m: 4096, n: 4096, k: 4096, ms: [1.1, 1.2, 1.1] }],
  transfers: [{ topology: "ring", pass: 0, from: 1, to: 2, bytes: 1 << 24, ms: [0.4, 0.5, 0.4] }],
};
const TEXT = JSON.stringify(REPORT);

describe("the reader of validation reports", () => {
  it("reads what the probe writes", () => {
    const [first, ...others] = readAtAllSizes(validationReport, "a.json", TEXT);
    const { schema: _, ...known } = REPORT;
    expect(first).toMatchObject({ rank: 2, records: 2, defects: [] });
    expect(first!.validations).toEqual([{ file: "a.json", ...known }]);
    for (const other of others) expect(other).toEqual(first);
    const bytes = Buffer.from(TEXT);
    const head = { name: "a.json", bytes, text: TEXT };
    expect(recognise(head)?.format).toBe("validation-report");
  });

  it("says what is wrong, and keeps the rest", () => {
    const whats = (change: object): string[] =>
      readBytes(validationReport, "a.json", JSON.stringify({ ...REPORT, ...change })).defects.map(
        ({ what }) => what,
      );
    expect(whats({ schema: "faultline.validation/9" })[0]).toMatch(
      /schema faultline.validation\/9/,
    );
    expect(whats({ rank: -1 })[0]).toMatch(/names no rank/);
    const odd = { gemm: [...REPORT.gemm, { dtype: "x", m: 1, n: 1, k: 1, ms: ["fast"] }] };
    expect(whats(odd)[0]).toMatch(/^1 of the validation report's measurements/);
    for (const reading of readCutEverywhere(validationReport, "a.json", TEXT).slice(0, -1))
      expect(reading.defects).toHaveLength(1);
  });
});
