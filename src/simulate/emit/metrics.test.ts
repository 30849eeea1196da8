import { describe, expect, it } from "vitest";
import { simulate } from "../cluster/engine.ts";
import { parseFault } from "../cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../cluster/spec.ts";
import { memoryOutput } from "../../../test/support/simulate/memory-output.ts";
import { emitMetrics, type MetricOptions } from "./metrics.ts";
import { FAULT_TYPES, shownGroups } from "./metrics/minder-table.ts";

/** Two machines of eight, iterations of about a second. */
const SMALL: Partial<ClusterSpec> = {
  gpus: 16,
  tp: 2,
  pp: 1,
  iterations: 20,
  microBatches: 16,
  layersPerStage: 8,
};

function metricsOf(
  faults: readonly string[],
  given: Partial<ClusterSpec> = {},
  options: MetricOptions = { tailS: 20 },
): string {
  const simulation = simulate(
    completeSpec({ ...SMALL, ...given, faults: faults.map((fault) => parseFault(fault)) }),
  );
  const output = memoryOutput();
  const emitter = emitMetrics(simulation, output, options);
  for (const times of simulation.iterations()) emitter.iteration(times);
  emitter.end();
  return output.files.get("metrics/metrics.prom")!;
}

/** Series by labels: values in the order of time. */
function seriesOf(text: string, name: string): Map<string, number[]> {
  const series = new Map<string, number[]>();
  for (const line of text.split("\n")) {
    if (!line.startsWith(`${name}{`)) continue;
    const [, labels, value] = /\{(.*)\} (\S+) \S+$/.exec(line)!;
    series.set(labels!, [...(series.get(labels!) ?? []), Number(value)]);
  }
  return series;
}

/** How exporters are reached: by address. */
function instanceOf(host: string): string {
  return `instance="10.40.0.${2 + Number(host.slice("node".length))}:`;
}

/** Last value of a gauge on one GPU of a machine. */
function lastOf(text: string, name: string, host: string, gpu: number): number {
  const found = [...seriesOf(text, name)].find(
    ([labels]) =>
      labels.includes(instanceOf(host)) &&
      (labels.includes(`gpu="${gpu}"`) ||
        labels.includes(`_${gpu}"`) ||
        labels.includes(`ens${gpu}np`)),
  );
  return found![1].at(-1)!;
}

/** What a machine's counters gain a sample, over the last eight: single ones scatter as real ones do. */
function lastGain(text: string, name: string, host: string, label = ""): number {
  let gain = 0;
  for (const [labels, values] of seriesOf(text, name)) {
    if (labels.includes(instanceOf(host)) && labels.includes(label))
      gain += (values.at(-1)! - values.at(-9)!) / 8;
  }
  return gain;
}

describe("the text", () => {
  it("gives a machine an address and, in other series, its name", () => {
    const text = metricsOf([]);
    expect([...seriesOf(text, "node_uname_info").keys()]).toEqual(
      ["node000", "node001"].map((host) => expect.stringContaining(instanceOf(host))),
    );
    expect([...seriesOf(text, "node_uname_info").keys()][1]).toContain('nodename="node001"');
    const clocks = [...seriesOf(text, "DCGM_FI_DEV_SM_CLOCK").keys()];
    expect(clocks.at(-1)).toMatch(/hostname="node001",instance="10\.40\.0\.3:9400"/);
  });

  it("has a sample every 15 s of a job that lasts for ten minutes, and every second of a shorter one", () => {
    const samples = (tailS: number): number[] =>
      seriesOf(metricsOf(["gpu-hang:rank=3:from=2"], {}, { tailS }), "node_uname_info")
        .values()
        .next().value!;
    expect(samples(630)).toHaveLength(42);
    expect(samples(60).length).toBeGreaterThan(60);
  });

  it("is OpenMetrics: families in one piece, counters named by their family, # EOF at the end", () => {
    const text = metricsOf([]);
    expect(text.endsWith("\n# EOF\n")).toBe(true);
    const seen = new Set<string>();
    let family = "";
    for (const line of text.split("\n")) {
      const type = /^# TYPE (\S+) (gauge|counter|unknown)$/.exec(line);
      if (type) {
        family = type[2] === "counter" ? `${type[1]}_total` : type[1]!;
        expect(seen.has(family)).toBe(false);
        seen.add(family);
      } else if (line !== "" && !line.startsWith("#")) {
        expect(line.slice(0, line.indexOf("{"))).toBe(family);
        expect(line).toMatch(/\} -?\d+(\.\d+)? \d{10}\.\d{3}$/);
      }
    }
    expect(seen.size).toBeGreaterThanOrEqual(21);
  });

  it("samples every second, or as often as asked", () => {
    const clock = (text: string): number[] =>
      [...seriesOf(text, "DCGM_FI_DEV_GPU_UTIL").values()].map((values) => values.length);
    const each = clock(metricsOf([], { noise: 0 }))[0]!;
    const third = clock(metricsOf([], { noise: 0 }, { intervalS: 3 }))[0]!;
    expect(each).toBeGreaterThan(6);
    expect(third).toBe(Math.floor(each / 3));
  });

  it("has counters that never fall, and the same bytes for the same seed", () => {
    const text = metricsOf([]);
    for (const name of ["node_cpu_seconds_total", "node_infiniband_np_cnp_packets_sent_total"]) {
      for (const values of seriesOf(text, name).values())
        values.forEach((value, i) => expect(value).toBeGreaterThanOrEqual(values[i - 1] ?? 0));
    }
    expect(metricsOf([])).toBe(text);
  });

  it("can do with one GPU a machine, the one that a fault names", () => {
    const text = metricsOf(["gpu-slow:rank=11:from=3"], {}, { gpusPerMachine: 1 });
    const labels = [...seriesOf(text, "DCGM_FI_DEV_SM_CLOCK").keys()];
    expect(labels.map((label) => /gpu="(\d)"/.exec(label)![1])).toEqual(["0", "3"]);
  });
});

describe("what faults show", () => {
  it("a slow GPU is hot and slow while its peers wait at full utilisation with less power", () => {
    const healthy = metricsOf([]);
    const text = metricsOf(["gpu-slow:rank=11:from=3"]);
    expect(lastOf(text, "DCGM_FI_DEV_SM_CLOCK", "node001", 3)).toBeLessThan(1100);
    expect(lastOf(text, "DCGM_FI_DEV_GPU_TEMP", "node001", 3)).toBeGreaterThan(80);
    expect(lastOf(text, "DCGM_FI_DEV_GPU_UTIL", "node000", 3)).toBeGreaterThan(95);
    expect(lastOf(text, "DCGM_FI_DEV_POWER_USAGE", "node000", 3)).toBeLessThan(
      0.85 * lastOf(healthy, "DCGM_FI_DEV_POWER_USAGE", "node000", 3),
    );
  });

  it("a busy CPU shows in the CPU's idle time", () => {
    const text = metricsOf(["cpu-stall:rank=11:from=3:severity=8"]);
    const idle = (host: string): number =>
      lastGain(text, "node_cpu_seconds_total", host, '"idle"') / 2;
    expect(idle("node000")).toBeGreaterThan(0.75);
    expect(idle("node001")).toBeLessThan(0.4);
  });

  it("a slow NIC carries less and sends pauses, marks and notifications", () => {
    const text = metricsOf(["network-slow:rank=11:from=3:severity=4"]);
    for (const name of [
      "node_ethtool_transmitted_prio3_pause",
      "node_infiniband_np_ecn_marked_roce_packets_received_total",
      "node_infiniband_np_cnp_packets_sent_total",
    ]) {
      expect(lastGain(text, name, "node001")).toBeGreaterThan(3 * lastGain(text, name, "node000"));
    }
    const sent = "node_ethtool_transmitted_bytes_phy";
    expect(lastGain(text, sent, "node001", "ens3")).toBeLessThan(
      0.7 * lastGain(text, sent, "node001", "ens2"),
    );
  });

  it("PCIe downgrading: pauses surge and the link falls back", () => {
    const text = metricsOf(["gpu-slow:rank=11:from=3:signature=pcie"]);
    expect(lastOf(text, "DCGM_FI_DEV_PCIE_LINK_GEN", "node001", 3)).toBe(1);
    const pauses = "node_ethtool_transmitted_prio3_pause";
    expect(lastGain(text, pauses, "node001")).toBeGreaterThan(
      100 * lastGain(text, pauses, "node000"),
    );
  });

  it("NIC dropout: nothing sent, CPU and memory fall, the others wait", () => {
    const text = metricsOf(["gpu-error:rank=11:from=5:signature=nic-drop"]);
    expect(lastGain(text, "node_ethtool_transmitted_bytes_phy", "node001", "ens3")).toBe(0);
    expect(lastGain(text, "node_cpu_seconds_total", "node001", '"idle"') / 2).toBeGreaterThan(0.95);
    expect(lastGain(text, "node_cpu_seconds_total", "node000", '"idle"') / 2).toBeLessThan(0.9);
    expect(lastOf(text, "DCGM_FI_DEV_GPU_UTIL", "node001", 3)).toBe(0);
    expect(lastOf(text, "DCGM_FI_DEV_GPU_UTIL", "node000", 3)).toBeGreaterThan(95);
  });

  it("a GPU that hangs is alone in that: the processes beside it live and wait", () => {
    const duty = "DCGM_FI_DEV_GPU_UTIL";
    const sm = "DCGM_FI_PROF_SM_ACTIVE";
    const kinds = [1, 2, 3].map((seed) => {
      const text = metricsOf(["gpu-hang:rank=11:from=5"], { seed, iterations: 6 });
      for (const name of [duty, sm])
        expect(lastOf(text, name, "node001", 2) / lastOf(text, name, "node000", 2)).toBeCloseTo(
          1,
          0,
        );
      expect(lastGain(text, "node_cpu_seconds_total", "node001", '"idle"') / 2).toBeLessThan(0.9);
      const isIdle = lastOf(text, duty, "node001", 3) === 0;
      // Else a kernel that never ends holds any share of the SMs, and calculates nothing.
      const pipe = lastOf(text, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "node001", 3);
      expect(pipe).toBeLessThan(0.01);
      return isIdle;
    });
    expect(new Set(kinds)).toEqual(new Set([true, false]));
  });

  it("a card that fell off the bus has no samples any more", () => {
    const text = metricsOf(["gpu-error:rank=11:from=5:signature=card-drop"]);
    const counts = [...seriesOf(text, "DCGM_FI_DEV_GPU_TEMP")].map(([labels, values]) => ({
      culprit: labels.includes('hostname="node001"') && labels.includes('gpu="3"'),
      samples: values.length,
    }));
    const peers = counts.find(({ culprit }) => !culprit)!.samples;
    expect(counts.find(({ culprit }) => culprit)!.samples).toBeLessThan(peers - 15);
  });

  it("groups of metrics show a fault as often as in Minder's Table 1", () => {
    const fault = parseFault("gpu-error:rank=0:signature=ecc");
    const times = { cpu: 0, gpu: 0, pfc: 0, throughput: 0, disk: 0, memory: 0 };
    for (let seed = 0; seed < 2000; seed++)
      for (const group of shownGroups(fault, 0, seed)) times[group]++;
    for (const [group, share] of Object.entries(FAULT_TYPES["ecc"]!))
      expect(Math.abs(times[group as keyof typeof times] / 2000 - share)).toBeLessThan(0.04);
  });
});
