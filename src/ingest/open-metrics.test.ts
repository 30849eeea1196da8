import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Reading } from "../model/reading.ts";
import { simulate } from "../simulate/cluster/engine.ts";
import { completeSpec } from "../simulate/cluster/spec.ts";
import { memoryOutput } from "../../test/support/simulate/memory-output.ts";
import { alignFleet } from "../methods/machines/align.ts";
import { emitMetrics } from "../simulate/emit/metrics.ts";
import { recognise } from "./formats.ts";
import { openMetrics } from "./open-metrics.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";

const TEXT = `# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",device="nvidia0",modelName="NVIDIA H100",hostname="node000"} 98 1794700801.250
DCGM_FI_DEV_GPU_UTIL{gpu="0",device="nvidia0",modelName="NVIDIA H100",hostname="node000"} 9.7e1 1794700802.250
DCGM_FI_DEV_GPU_UTIL{gpu="1",device="nvidia1",modelName="NVIDIA H100",hostname="node000"} NaN 1794700802.250
# TYPE node_network_transmit_bytes counter
node_network_transmit_bytes_total{device="eth0",instance="node000:9100"} 1e+09 1794700801.5 # {trace_id="x"} 1 1
node_network_transmit_bytes_total{device="lo",instance="node000:9100"} 5 1794700801.5
go_goroutines{instance="node000:9100"} 12 1794700801.5
# EOF
`;

const read = (text: string, file = "metrics.prom"): Reading => readBytes(openMetrics, file, text);
const whats = (reading: Reading): string[] => reading.defects.map(({ what }) => what);

describe("OpenMetrics", () => {
  test("series by machine and device, with their types", () => {
    const { metrics, ...reading } = read(TEXT);
    expect(reading).toEqual({
      file: "metrics.prom",
      format: "open-metrics",
      rank: null,
      records: 3,
      defects: [],
    });
    expect(metrics!.machines).toEqual(["node000"]);
    expect(metrics!.hardware).toEqual(["NVIDIA H100"]);
    expect(metrics!.samples).toMatchObject([
      {
        name: "DCGM_FI_DEV_GPU_UTIL",
        type: "gauge",
        device: ["gpu0"],
        timeS: Float64Array.of(1794700801.25, 1794700802.25),
        value: Float64Array.of(98, 97),
      },
      { name: "node_network_transmit_bytes_total", type: "counter", device: ["eth0"] },
    ]);
  });

  test("Prometheus' older format has milliseconds, and counters with their full name", () => {
    const { metrics } = read(`# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle",instance="a:9100"} 12.5 1794700801250
node_cpu_seconds_total{cpu="0",mode="user",instance="a:9100"} 2 1794700801250
`);
    expect(metrics!.samples).toMatchObject([
      { type: "counter", device: ["cpu0"], timeS: Float64Array.of(1794700801.25) },
    ]);
  });

  test("a client may put _total behind DCGM's counters", () => {
    const { metrics } = read(`# TYPE DCGM_FI_PROF_PCIE_TX_BYTES counter
DCGM_FI_PROF_PCIE_TX_BYTES_total{gpu="0",Hostname="n1"} 5 1794700801
`);
    expect(metrics!.samples).toMatchObject([
      { name: "DCGM_FI_PROF_PCIE_TX_BYTES", type: "counter" },
    ]);
  });

  test("escapes, braces, blanks and commas in labels", () => {
    const { metrics, defects } = read(
      'DCGM_FI_DEV_GPU_TEMP{gpu="0", pod="a\\"} 1,\\\\b\\n",hostname="n 1" , }  61\t1794700801  \n',
    );
    expect(defects).toEqual([]);
    expect(metrics!.machines).toEqual(["n 1"]);
    expect(metrics!.samples[0]!.value).toEqual(Float64Array.of(61));
  });

  test("scrapes without times: the file's name tells, or nobody", () => {
    const scrape = 'DCGM_FI_DEV_GPU_TEMP{gpu="0",hostname="n1"} 61\n';
    const time = (file: string): number | undefined =>
      read(scrape, file).metrics?.samples[0]!.timeS[0];
    expect(time("scrape-1794700801.prom")).toBe(1794700801);
    expect(time("scrape.1794700801250.txt")).toBe(1794700801.25);
    expect(time("a/n1_2026-11-15T00:00:01Z.prom")).toBe(1794700801);
    expect(time("n1_20261115-000001.prom")).toBe(1794700801);
    expect(time("scrape.prom")).toBeUndefined();
    const several = read(scrape.repeat(3));
    expect(several.records).toBe(0);
    expect(whats(several)[0]).toMatch(/^3 samples left out: they have no time/);
    expect(whats(read(scrape.repeat(2), "s-1794700801.prom"))).toEqual([
      "1 sample left out: their series already has a sample of that time",
    ]);
  });

  test("machines that only the file's name or folder names", () => {
    const text = 'node_infiniband_state_id{device="mlx5_0",port="1"} 4 1794700801\n';
    const machine = (file: string): string | undefined => read(text, file).metrics?.machines[0];
    expect(machine("node003.prom")).toBe("node003");
    expect(machine("gpu-a100-7/node_exporter.prom")).toBe("gpu-a100-7");
    expect(machine("node003_2026-11-15T00:41:02Z.prom")).toBe("node003");
    expect(machine("metrics/metrics.prom")).toBeUndefined();
    expect(whats(read(text))[0]).toMatch(/^1 sample left out: no label names a machine/);
  });

  test("lines that cannot be read are named, an unended last one left out", () => {
    const text = `${TEXT}DCGM_FI_DEV_GPU_UTIL{gpu="0",hostname="n1"} high 1\nDCGM_FI_DEV_GPU_UTIL{gpu="0" 1 1\n`;
    expect(read(text).defects).toMatchObject([
      { line: 11, what: "2 lines cannot be read; the first is this one" },
    ]);
    const cut = read(TEXT.slice(0, TEXT.indexOf(" 9.7e1") + 4));
    expect(cut).toMatchObject({ records: 1, defects: [{ what: /middle/ }] });
  });

  test("only metrics that nobody compares by", () => {
    expect(whats(read('go_threads{instance="a"} 1 1\nup{instance="a"} 1 1\n'))).toEqual([
      "none of its 2 metrics is a metric that Faultline compares",
    ]);
  });

  test("is told from other texts", () => {
    expect(sniffs(openMetrics, TEXT)).toBe(true);
    expect(sniffs(openMetrics, 'up{instance="a"} 1')).toBe(true);
    const of = (text: string, name = "x.log"): string | undefined =>
      recognise({ name, bytes: Buffer.from(text), text })?.format;
    expect(of(TEXT)).toBe("open-metrics");
    for (const text of ["loss 0.5\nstep 3\n", "# TYPE of thing\nfoo bar\nbaz\n", "a{b} c\n"]) {
      expect(sniffs(openMetrics, text)).toBe(false);
    }
  });

  test("reads the same at any chunk size, cut anywhere, and never throws", () => {
    for (const other of readAtAllSizes(openMetrics, "m.prom", TEXT)) {
      expect(other).toEqual(read(TEXT, "m.prom"));
    }
    expect(readCutEverywhere(openMetrics, "m.prom", TEXT)).toHaveLength(TEXT.length + 1);
    fc.assert(
      fc.property(fc.nat(TEXT.length), fc.string(), (at, text) => {
        read(TEXT.slice(0, at) + text + TEXT.slice(at));
      }),
    );
    fc.assert(
      fc.property(fc.double({ min: -1e300, max: 1e300 }), fc.nat(2_000_000_000), (value, time) => {
        const text = `DCGM_FI_DEV_FB_USED{gpu="0",hostname="n"} ${value} ${time}\n`;
        const got = read(text).metrics?.samples[0];
        if (Number.isFinite(value) && value < 1e14) {
          expect([got!.value[0], got!.timeS[0]]).toEqual([value + 0, time]);
        } else expect(got).toBeUndefined();
      }),
    );
  });
});

describe("what the simulator writes", () => {
  const simulation = simulate(
    completeSpec({ gpus: 16, tp: 2, pp: 1, iterations: 10, microBatches: 16, layersPerStage: 8 }),
  );
  const output = memoryOutput();
  const emitter = emitMetrics(simulation, output, { tailS: 10 });
  for (const times of simulation.iterations()) emitter.iteration(times);
  emitter.end();
  const texts = [...output.files].filter(([, text]) => sniffs(openMetrics, text));

  test("is read back completely", () => {
    expect(texts.length).toBeGreaterThan(0);
    for (const [file, text] of texts) {
      const { metrics, records, defects } = read(text, file);
      expect(defects).toEqual([]);
      // What the catalog wants of each name, counted another way.
      const lines = new Map<string, number>();
      const types = new Map<string, string>();
      for (const line of text.split("\n")) {
        const [, family, type] = /^# TYPE (\S+) (\S+)/.exec(line) ?? [];
        if (family) types.set(type === "counter" ? `${family}_total` : family, type!);
        const name = /^\w+/.exec(line)?.[0];
        if (name && !/mode="(?!idle)/.test(line)) lines.set(name, (lines.get(name) ?? 0) + 1);
      }
      expect(metrics!.machines).toEqual(["10.40.0.2", "10.40.0.3", "node000", "node001"]);
      expect(alignFleet([metrics!]).machines).toEqual(["node000", "node001"]);
      let sum = 0;
      for (const { name, type, start, timeS, device } of metrics!.samples) {
        sum += timeS.length;
        expect(timeS.length).toBe(lines.get(name));
        expect(type).toBe(types.get(name));
        expect(start.length).toBe(device.length + 1);
        if (name.startsWith("DCGM_")) expect(device.slice(0, 3)).toEqual(["gpu0", "gpu1", "gpu2"]);
      }
      expect(records).toBe(sum);
      expect(metrics!.samples.length).toBeGreaterThanOrEqual(20);
    }
  });
});
