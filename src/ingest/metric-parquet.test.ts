import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Reading } from "../model/reading.ts";
import { recognise } from "./formats.ts";
import { metricParquet } from "./metric-parquet.ts";
import * as samples from "../../test/support/ingest/parquet.ts";
import { readAtAllSizes, readBytes } from "../../test/support/ingest/reader-contract.ts";
import { runs } from "../../test/support/cases.ts";

const read = (bytes: Buffer, file = "metrics.parquet"): Reading =>
  readBytes(metricParquet, file, bytes);

const T = 1794700801;
const ROWS = {
  machines: ["node000", "node001"],
  samples: [
    {
      name: "cpu-usage",
      start: Uint32Array.of(0, 2, 5),
      timeS: Float64Array.of(T, T + 1, T, T + 1, T + 2),
      value: Float64Array.from([31, 30, 32.5, 33, 31], (percent) => percent * 0.01),
    },
    { name: "gpu-duty-cycle", value: Float64Array.of(98, 96, 94, 97, 95, 93) },
  ],
};

describe("tables of samples as Parquet", () => {
  test("row groups, compressions, encodings and times", () => {
    for (const bytes of [samples.SNAPPY, samples.GZIP_NAIVE, samples.BROTLI_TEXT, samples.POLARS]) {
      const reading = read(bytes);
      expect(reading).toMatchObject({ format: "metric-parquet", records: 11, metrics: ROWS });
      const local = bytes === samples.GZIP_NAIVE;
      expect(reading.defects.map(({ what }) => what)).toEqual(
        local ? ["its times name no time zone; they are read as UTC"] : [],
      );
    }
  });

  test("a row for a sample", () => {
    const { metrics, defects } = read(samples.LONG);
    expect(defects).toEqual([]);
    const [temperature] = metrics!.samples;
    expect(temperature).toMatchObject({ name: "gpu-temperature", device: ["gpu0", "gpu1"] });
    expect([...temperature!.value]).toEqual([60.5, 61.5, 62.5, 63.5]);
    expect(temperature!.timeS[0]).toBeCloseTo(1794700801.1234567, 6);
  });

  test("columns of lists are passed over", () => {
    expect(read(samples.NESTED)).toMatchObject({ records: 2, defects: [] });
  });

  test("what cannot be read is named", () => {
    const what = (bytes: Buffer): string => read(bytes).defects[0]!.what;
    expect(what(samples.OTHER)).toBe(
      "its columns (dp_rank, stage, optype, start_ts, duration) are not those of a table of samples",
    );
    expect(what(samples.LZ4)).toMatch(/cannot be read: .*LZ4/);
    expect(what(samples.SNAPPY.subarray(0, -20))).toMatch(/^cannot be read: /);
    expect(read(samples.OTHER).metrics).toBeUndefined();
  });

  test("is recognised by its first bytes", () => {
    const bytes = samples.SNAPPY;
    const head = { name: "x.parquet", bytes, text: bytes.toString("latin1") };
    expect(recognise(head)?.format).toBe("metric-parquet");
  });

  test("reads the same at any chunk size, and never throws", () => {
    for (const other of readAtAllSizes(metricParquet, "m.parquet", samples.SNAPPY)) {
      expect(other).toEqual(read(samples.SNAPPY, "m.parquet"));
    }
    for (let end = 0; end < samples.POLARS.length; end += 7) read(samples.POLARS.subarray(0, end));
    for (const whole of [samples.SNAPPY, samples.GZIP_NAIVE, samples.POLARS]) {
      fc.assert(
        fc.property(fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255))), (changes) => {
          const bytes = Buffer.from(whole);
          for (const [at, byte] of changes) bytes[at] = byte;
          read(bytes);
        }),
        { numRuns: runs(100, 300) },
      );
    }
  });
});
