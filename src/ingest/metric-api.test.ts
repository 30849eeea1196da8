import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { recognise } from "./formats.ts";
import { metricApi } from "./metric-api.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";

const SERIES =
  '{"metric":{"__name__":"DCGM_FI_DEV_GPU_UTIL","gpu":"0","hostname":"node000"},"values":[[1794700801,"98"],[1794700802.25,"97"]]}';
const ANSWER = `{"status":"success","data":{"resultType":"matrix","result":[${SERIES}]}}`;
const EXPORT = `{"metric":{"__name__":"node_network_transmit_bytes_total","device":"eth0","instance":"n1:9100"},"values":[1,2.5],"timestamps":[1794700801000,1794700802250]}
{"metric":{"__name__":"DCGM_FI_DEV_GPU_TEMP","gpu":"0","hostname":"n1"},"values":[61],"timestamps":[1794700801000]}
`;
const read = (text: string) => readBytes(metricApi, "answer.json", text);

describe("saved answers", () => {
  test("of Prometheus' query API", () => {
    const { metrics, ...rest } = read(ANSWER);
    expect(rest).toMatchObject({ format: "metric-api", records: 2, defects: [] });
    expect(metrics!.samples).toMatchObject([
      {
        name: "DCGM_FI_DEV_GPU_UTIL",
        device: ["gpu0"],
        timeS: Float64Array.of(1794700801, 1794700802.25),
        value: Float64Array.of(98, 97),
      },
    ]);
    const vector = ANSWER.replace(/"values":\[(\[.*?\]),.*?\]\]/, '"value":$1').replace(
      "matrix",
      "vector",
    );
    expect(read(vector)).toMatchObject({ records: 1, defects: [] });
    expect(read(`[${SERIES}]`)).toMatchObject({ records: 2, defects: [] });
  });

  test("of VictoriaMetrics' export", () => {
    const { metrics, records, defects } = read(EXPORT);
    expect(defects).toEqual([]);
    expect(records).toBe(3);
    expect(metrics!.samples.map(({ name, type }) => [name, type])).toEqual([
      ["node_network_transmit_bytes_total", "counter"],
      ["DCGM_FI_DEV_GPU_TEMP", "unknown"],
    ]);
  });

  test("of nothing but machines' names", () => {
    const names = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"node_uname_info","instance":"10.0.0.4:9100","nodename":"node004"},"value":[1794700801,"1"]}]}}`;
    const { metrics, defects } = read(names);
    expect(defects).toEqual([]);
    expect(metrics?.links?.[0]?.names).toEqual(["node004", "10.0.0.4"]);
  });

  test("errors, expressions, other metrics and cuts are named", () => {
    const what = (text: string): string[] => read(text).defects.map((defect) => defect.what);
    const error = '{"status":"error","errorType":"bad_data","error":"too many"}';
    expect(what(error)).toEqual(["the server answered with an error: too many"]);
    expect(what(ANSWER.replace('"__name__":"DCGM_FI_DEV_GPU_UTIL",', ""))[0]).toMatch(
      /have no name/,
    );
    expect(what(ANSWER.replace("DCGM_FI_DEV_GPU_UTIL", "up"))[0]).toMatch(/^none of its series/);
    expect(what(ANSWER.slice(0, -20))).toEqual(["ends in the middle of an answer"]);
    expect(what(EXPORT.slice(0, -20))[0]).toBe("1 line cannot be read");
  });

  test("are told from other JSON", () => {
    for (const text of [ANSWER, EXPORT, `[${SERIES}]`]) {
      const bytes = Buffer.from(text);
      expect(recognise({ name: "x.json", bytes, text })?.format).toBe("metric-api");
    }
    for (const text of [
      '{"status":"success","data":["a","b"]}',
      '{"status":"success","data":{"activeTargets":[]}}',
      '{"metric":{"loss":1},"step":1}\n',
      '{"metric":"loss","values":[1]}',
    ]) {
      expect(sniffs(metricApi, text)).toBe(false);
    }
  });

  test("read the same at any chunk size, cut anywhere, and never throw", () => {
    for (const text of [ANSWER, EXPORT]) {
      for (const other of readAtAllSizes(metricApi, "answer.json", text)) {
        expect(other).toEqual(read(text));
      }
      expect(readCutEverywhere(metricApi, "answer.json", text)).toHaveLength(text.length + 1);
      fc.assert(
        fc.property(fc.nat(text.length), fc.string(), (at, more) => {
          read(text.slice(0, at) + more + text.slice(at));
        }),
      );
    }
  });
});
