import { describe, expect, it } from "vitest";
import type { MetricSet } from "../../model/metrics.ts";
import { type AnswerSummary, ApiAnswerScanner } from "./api-answer.ts";
import { LabelledSeries } from "./labelled-series.ts";
import { MetricSetBuilder } from "./metric-set-builder.ts";

const NAME = "DCGM_FI_DEV_GPU_UTIL";
const SIZES = [1, 2, 3, 7, 64, 1 << 20];

function scan(content: string, size = 1 << 20): { set: MetricSet; summary: AnswerSummary } {
  const builder = new MetricSetBuilder();
  const scanner = new ApiAnswerScanner(new LabelledSeries(builder, () => "gauge"));
  const bytes = Buffer.from(content);
  for (let at = 0; at < bytes.length; at += size) {
    // Wiped afterwards: a scanner may not keep a view of the caller's buffer.
    const chunk = Uint8Array.from(bytes.subarray(at, at + size));
    scanner.push(chunk);
    chunk.fill(0);
  }
  const summary = scanner.end();
  return { set: builder.finish(), summary };
}

function series(machine: string, values: string, more = ""): string {
  return `{"metric":{"__name__":"${NAME}","gpu":"0","hostname":"${machine}"},"values":[${values}]${more}}`;
}

function answer(...results: string[]): string {
  return `{"status":"success","data":{"resultType":"matrix","result":[${results.join(",")}]}}`;
}

describe("ApiAnswerScanner", () => {
  const content = answer(
    series(
      "nöde1",
      '[1794695133,"1"],[1794695134.25,"1e+06"],[1794695135,"NaN"],[1794695136,"-0.5"]',
    ),
    series("node0", '[1794695133,"98"],[1794695134,"+Inf"]', ',"histograms":[[1,{"a":"]}"}]]'),
  );

  it("reads the same at every size of chunks", () => {
    const whole = scan(content);
    expect(whole.summary).toEqual({
      isWhole: true,
      error: null,
      warnings: [],
      isPartial: false,
      defect: null,
    });
    expect(whole.set.machines).toEqual(["node0", "nöde1"]);
    expect(whole.set.samples[0]).toMatchObject({
      name: NAME,
      type: "gauge",
      device: ["gpu0", "gpu0"],
      start: Uint32Array.of(0, 1, 4),
      timeS: Float64Array.of(1794695133, 1794695133, 1794695134.25, 1794695136),
      value: Float64Array.of(98, 1, 1e6, -0.5),
    });
    for (const size of SIZES) expect(scan(content, size)).toEqual(whole);
  });

  it("keeps what came before a cut, wherever it is", () => {
    const bytes = Buffer.from(content);
    for (let end = 0; end < bytes.length; end++) {
      const { summary } = scan(bytes.subarray(0, end).toString("latin1"), 7);
      expect(summary.isWhole).toBe(false);
    }
    const cut = scan(content.slice(0, content.indexOf('[1794695136,"-0.5"')));
    expect([...cut.set.samples[0]!.value]).toEqual([1, 1e6]);
  });

  it("reads white space, any order of keys, and a vector", () => {
    const { set } = scan(
      `{ "data" : { "result" : [ { "values" : [ [ 1 , "2" ] , [ 3 , "4" ] ] ,\n "metric" : { "__name__" : "${NAME}" , "instance" : "a:9400" , "gpu" : "1" } } ] } , "status" : "success" }`,
    );
    expect([...set.samples[0]!.value]).toEqual([2, 4]);
    const vector = answer(`{"metric":{"__name__":"${NAME}","node":"b"},"value":[7,"8"]}`);
    expect([...scan(vector, 1).set.samples[0]!.timeS]).toEqual([7]);
  });

  it("reads the list of series alone, and several answers of one series as one", () => {
    expect([...scan(`[${series("a", '[1,"2"]')}]\n`).set.samples[0]!.value]).toEqual([2]);
    const several = scan(`${answer(series("a", '[1,"2"]'))}\n${answer(series("a", '[2,"3"]'))}`);
    expect(several.summary.isWhole).toBe(true);
    expect([...several.set.samples[0]!.start]).toEqual([0, 2]);
  });

  it("gives the server's own words", () => {
    const failed = `{"status":"error","errorType":"bad_data","error":"1:5: parse error: \\"x\\""}`;
    expect(scan(failed, 3).summary).toMatchObject({
      error: '1:5: parse error: "x"',
      isWhole: true,
    });
    const partial = `{"status":"success","isPartial":true,"data":{"resultType":"matrix","result":[]},"warnings":["store b: gone"]}`;
    expect(scan(partial, 3).summary).toMatchObject({
      warnings: ["store b: gone"],
      isPartial: true,
      isWhole: true,
    });
  });

  it("says where it stops being an answer", () => {
    expect(scan("<html>no</html>").summary.defect).toMatch(/from byte 0 on/);
    expect(scan(answer(series("a", '[1,"2"],x'))).summary.defect).toMatch(/query API from byte/);
    const scalar = `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`;
    expect(scan(scalar).summary).toMatchObject({ isWhole: false });
  });
});
