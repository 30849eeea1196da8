import { describe, expect, it } from "vitest";
import type { MetricSet } from "../../model/metrics.ts";
import { ExportLineScanner, type ExportSummary } from "./export-lines.ts";
import { LabelledSeries } from "./labelled-series.ts";
import { MetricSetBuilder } from "./metric-set-builder.ts";

const NAME = "DCGM_FI_DEV_GPU_UTIL";

function scan(content: string, size = 1 << 20): { set: MetricSet; summary: ExportSummary } {
  const builder = new MetricSetBuilder();
  const scanner = new ExportLineScanner(new LabelledSeries(builder));
  const bytes = Buffer.from(content);
  for (let at = 0; at < bytes.length; at += size) {
    const chunk = Uint8Array.from(bytes.subarray(at, at + size));
    scanner.push(chunk);
    chunk.fill(0);
  }
  const summary = scanner.end();
  return { set: builder.finish(), summary };
}

function line(machine: string, values: string, times: string): string {
  return `{"metric":{"__name__":"${NAME}","job":"a}b","hostname":"${machine}","gpu":"2"},"values":[${values}],"timestamps":[${times}]}\n`;
}

describe("ExportLineScanner", () => {
  const content =
    line(
      "node1",
      '1,null,2.5e3,"Infinity"',
      "1794695133000,1794695134000,1794695135250,1794695136000",
    ) +
    line("node0", "7", "1794695133000") +
    line("node1", "3,4", "1794695140000,1794695141000");

  it("reads the same at every size of chunks, and lines of one series as one series", () => {
    const whole = scan(content);
    expect(whole.summary).toEqual({ badLines: 0, isWhole: true });
    expect(whole.set.machines).toEqual(["node0", "node1"]);
    expect(whole.set.samples[0]).toMatchObject({
      device: ["gpu2", "gpu2"],
      start: Uint32Array.of(0, 1, 5),
      timeS: Float64Array.of(1794695133, 1794695133, 1794695135.25, 1794695140, 1794695141),
      value: Float64Array.of(7, 1, 2500, 3, 4),
    });
    for (const size of [1, 2, 3, 7, 64]) expect(scan(content, size)).toEqual(whole);
  });

  it("reads a file cut anywhere", () => {
    for (let end = 0; end < content.length; end++) {
      const { summary } = scan(content.slice(0, end), 7);
      expect(summary.badLines).toBeLessThanOrEqual(1);
    }
  });

  it("passes over broken lines and goes on with the next", () => {
    const mixed = `${line("a", "1", "1000")}<html>\n{"metric":{"x"},"values":[1]}\n${line("a", "x[,2", "1,2")}${line("a", "2,3", "2000")}${line("a", "4", "4000")}`;
    for (const size of [1, 5, 1 << 20]) {
      const { set, summary } = scan(mixed, size);
      expect(summary).toMatchObject({ badLines: 4, isWhole: true });
      expect([...set.samples[0]!.timeS]).toEqual([1, 2, 4]);
    }
  });
});
