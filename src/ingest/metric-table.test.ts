import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { MetricSet } from "../model/metrics.ts";
import type { Reading } from "../model/reading.ts";
import { recognise } from "./formats.ts";
import { metricTable } from "./metric-table.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
} from "../../test/support/ingest/reader-contract.ts";

/** "node000 gpu0 gpu-power-draw" → [time, value][]. */
function seriesOf(set: MetricSet): Record<string, [number, number][]> {
  const series: Record<string, [number, number][]> = {};
  for (const { name, machine, device, start, timeS, value } of set.samples) {
    for (let s = 0; s < device.length; s++) {
      const key = [set.machines[machine[s]!], device[s], name].filter(Boolean).join(" ");
      series[key] = [];
      for (let i = start[s]!; i < start[s + 1]!; i++) series[key].push([timeS[i]!, value[i]!]);
    }
  }
  return series;
}

function formatOf(text: string | Buffer, name: string): string | undefined {
  const bytes = Buffer.from(text);
  return recognise({ name, bytes, text: bytes.toString("latin1") })?.format;
}

function read(text: string, file = "metrics.csv"): Reading {
  expect(formatOf(text, file.slice(file.lastIndexOf("/") + 1))).toBe("metric-table");
  return readBytes(metricTable, file, text);
}

function series(text: string, file?: string): Record<string, [number, number][]> {
  const reading = read(text, file);
  expect(reading.defects).toEqual([]);
  return seriesOf(reading.metrics!);
}

const ROWS = `timestamp,machine,cpu_usage,gpu_duty_cycle,my own word
1794700801,node000,0.31,98,5
1794700801,node001,0.29,97,6
1794700802,node000,0.32,,7
1794700802,node001,0.30,96,NaN
`;

describe("shapes", () => {
  test("a row for a time and a machine, a column for a metric", () => {
    expect(series(ROWS)).toEqual({
      "node000 cpu-usage": [
        [1794700801, 0.31],
        [1794700802, 0.32],
      ],
      "node000 gpu-duty-cycle": [[1794700801, 98]],
      "node000 my own word": [
        [1794700801, 5],
        [1794700802, 7],
      ],
      "node001 cpu-usage": [
        [1794700801, 0.29],
        [1794700802, 0.3],
      ],
      "node001 gpu-duty-cycle": [
        [1794700801, 97],
        [1794700802, 96],
      ],
      "node001 my own word": [[1794700801, 6]],
    });
    expect(read(ROWS).records).toBe(10);
  });

  test("the same with a column for the device", () => {
    const table = `time,host,gpu,gpu_util,gpu_temp\n1,a1,0,98,60\n1,a1,1,97,61\n2,a1,0,99,60\n`;
    expect(Object.keys(series(table))).toEqual([
      "a1 gpu0 gpu-duty-cycle",
      "a1 gpu1 gpu-duty-cycle",
      "a1 gpu0 gpu-temperature",
      "a1 gpu1 gpu-temperature",
    ]);
    const nics = `time,host,nic,rdma_throughput\n1,a1,mlx5_0,2e10\n1,a1,mlx5_1,1e10\n`;
    expect(series(nics)["a1 mlx5_1 tcp-rdma-throughput"]).toEqual([[1, 1e10]]);
  });

  test('"gpu" is a metric beside bare "cpu" and "memory"', () => {
    const table = "time,host,cpu,memory,gpu\n1,a1,0.3,0.4,7\n2,a1,0.3,0.4,98\n";
    expect(series(table)["a1 gpu-duty-cycle"]).toHaveLength(2);
  });

  test("a row for a sample", () => {
    const table = `time\tinstance\tmetric\tvalue\tdevice
1794700801.25\tnode000:9400\tDCGM_FI_DEV_GPU_UTIL\t98\t0
1794700801.25\tnode000:9400\tDCGM_FI_DEV_GPU_UTIL\t97\t1
1794700801.25\tnode000:9400\tGPU Temperature\t61.5\t1
1794700801.25\tnode000:9400\tnode_network_transmit_bytes_total\t1e9\teth0
`;
    const reading = read(table, "long.tsv");
    expect(seriesOf(reading.metrics!)).toEqual({
      "node000 gpu0 DCGM_FI_DEV_GPU_UTIL": [[1794700801.25, 98]],
      "node000 gpu1 DCGM_FI_DEV_GPU_UTIL": [[1794700801.25, 97]],
      "node000 gpu1 gpu-temperature": [[1794700801.25, 61.5]],
      "node000 eth0 node_network_transmit_bytes_total": [[1794700801.25, 1e9]],
    });
    expect(reading.metrics!.samples.map(({ type }) => type)).toEqual([
      "unknown",
      "gauge",
      "counter",
    ]);
  });

  test("InfluxDB's annotated CSV is such a table", () => {
    const table = `#group,false,false,true,true
#datatype,string,long,string,string
,result,table,_time,_value,_field,host
,,0,2026-11-15T00:00:01Z,98,gpu_util,node7
`;
    expect(series(table)).toEqual({ "node7 gpu-duty-cycle": [[1794700801, 98]] });
  });

  test("a column for a machine, the metric in the file's name", () => {
    const table = `Time,node000,node001:9400,10.0.0.4-3
2026-11-15 00:00:01+00:00,98,97,50
2026-11-15 00:00:16+00:00,96,,51
`;
    expect(series(table, "util/GPU_UTIL.csv")).toEqual({
      "10.0.0.4 gpu3 gpu-duty-cycle": [
        [1794700801, 50],
        [1794700816, 51],
      ],
      "node000 gpu-duty-cycle": [
        [1794700801, 98],
        [1794700816, 96],
      ],
      "node001 gpu-duty-cycle": [[1794700801, 97]],
    });
    const grafana = "GPU Power-data-2026-11-15 00_41_02.csv";
    expect(Object.keys(series(table, grafana))).toContain("node000 gpu-power-draw");
    expect(Object.keys(series(table, "fan speed.csv"))).toContain("node000 fan speed");
  });

  test("a column for a machine's metric", () => {
    const table = `time,node000/gpu_util,node000/gpu1/gpu_util,node001:cpu usage
1,98,97,0.5
`;
    expect(series(table)).toEqual({
      "node000 gpu-duty-cycle": [[1, 98]],
      "node000 gpu1 gpu-duty-cycle": [[1, 97]],
      "node001 cpu-usage": [[1, 0.5]],
    });
  });

  test("Grafana's series", () => {
    const table = `"sep=,"
"Time","DCGM_FI_DEV_GPU_TEMP{gpu=""0"", instance=""node000:9400""}","DCGM_FI_DEV_GPU_TEMP{gpu=""1"", instance=""node000:9400""}"
"1794700801000","60","61.5"
`;
    expect(series(table, "Temperatures-data-2026-11-15 00_41_02.csv")).toEqual({
      "node000 gpu0 DCGM_FI_DEV_GPU_TEMP": [[1794700801, 60]],
      "node000 gpu1 DCGM_FI_DEV_GPU_TEMP": [[1794700801, 61.5]],
    });
  });

  test("Grafana's series are read as a scrape is: names of machines, wanted labels, unknown metrics", () => {
    const cpu = (mode: string): string =>
      `"node_cpu_seconds_total{cpu=""0"", instance=""10.0.0.4:9100"", mode=""${mode}""}"`;
    const cpus = `"Time",${["idle", "user", "system", "iowait"].map(cpu).join(",")}\n1,2,3,4,5\n`;
    expect(series(cpus)).toEqual({ "10.0.0.4 cpu0 node_cpu_seconds_total": [[1, 2]] });
    const uname = `"Time","node_uname_info{instance=""10.0.0.4:9100"", nodename=""node004""}"\n1,1\n`;
    expect(read(uname, "names.csv").metrics?.links).toEqual([
      { names: ["node004", "10.0.0.4"], pod: null, from: "node_uname_info" },
    ]);
    const disks = `"Time","node_disk_read_bytes_total{device=""sda"", instance=""10.0.0.4:9100""}"\n1,1\n`;
    expect(read(disks, "disks.csv").defects.map(({ what }) => what)).toEqual([
      "none of its metrics is one that Faultline compares",
    ]);
  });

  test("nvidia-smi's files are named after hosts that are called after GPUs", () => {
    const table = `timestamp, index, power.draw [W]
2026/11/15 00:00:01.250, 0, 650.12 W
2026/11/15 00:00:01.250, 1, 651.12 W
`;
    for (const host of ["gpu-node-015", "gpu12", "node003"])
      expect(read(table, `input/${host}.csv`).metrics!.machines).toEqual([host]);
  });

  test("nvidia-smi's words for states and memory clocks", () => {
    const table = `timestamp, index, clocks.mem [MHz], ecc.errors.uncorrected.volatile.total, clocks_event_reasons.hw_thermal_slowdown, clocks_event_reasons.active
2026/11/15 00:00:01.250, 0, 2619 MHz, 0, Not Active, 0x0000000000000004
2026/11/15 00:00:01.250, 1, 2619 MHz, 1, Active, 0x0000000000000040
`;
    expect(seriesOf(read(table, "node003.csv").metrics!)).toEqual({
      "node003 gpu0 gpu-memory-clock": [[1794700801.25, 2619]],
      "node003 gpu1 gpu-memory-clock": [[1794700801.25, 2619]],
      "node003 gpu0 nvidia_smi_ecc_errors_uncorrected_volatile_total": [[1794700801.25, 0]],
      "node003 gpu1 nvidia_smi_ecc_errors_uncorrected_volatile_total": [[1794700801.25, 1]],
      "node003 gpu0 nvidia_smi_clocks_event_reasons_hw_thermal_slowdown": [[1794700801.25, 0]],
      "node003 gpu1 nvidia_smi_clocks_event_reasons_hw_thermal_slowdown": [[1794700801.25, 1]],
      "node003 gpu0 nvidia_smi_clocks_event_reasons_active": [[1794700801.25, 4]],
      "node003 gpu1 nvidia_smi_clocks_event_reasons_active": [[1794700801.25, 64]],
    });
  });

  test("a file for a machine", () => {
    const table = "time,cpu_usage,gpu0_util,gpu1_util,gpu_power_1\n1,0.3,98,97,650\n";
    expect(series(table, "run/node003.csv")).toEqual({
      "node003 cpu-usage": [[1, 0.3]],
      "node003 gpu0 gpu-duty-cycle": [[1, 98]],
      "node003 gpu1 gpu-duty-cycle": [[1, 97]],
      "node003 gpu1 gpu-power-draw": [[1, 650]],
    });
    expect(Object.keys(series(table, "worker-12/metrics.csv"))[0]).toBe("worker-12 cpu-usage");
    const one = "time,value\n1,98\n";
    expect(series(one, "node003/gpu_util.csv")).toEqual({ "node003 gpu-duty-cycle": [[1, 98]] });
  });

  test("nvidia-smi's own CSV", () => {
    const table = `timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W], clocks.current.sm [MHz]
2026/11/15 00:00:01.250, 0, NVIDIA H100 80GB HBM3, 98 %, 71000 MiB, 650.12 W, 1980 MHz
2026/11/15 00:00:01.250, 1, NVIDIA H100 80GB HBM3, 0 %, 71001 MiB, [N/A], 1980 MHz
`;
    const { metrics, defects } = read(table, "node003.csv");
    expect(defects.map(({ what }) => what)).toEqual([
      "its times name no time zone; they are read as UTC",
    ]);
    expect(seriesOf(metrics!)).toEqual({
      "node003 gpu0 gpu-duty-cycle": [[1794700801.25, 98]],
      "node003 gpu1 gpu-duty-cycle": [[1794700801.25, 0]],
      "node003 gpu0 gpu-memory-used": [[1794700801.25, 71000]],
      "node003 gpu1 gpu-memory-used": [[1794700801.25, 71001]],
      "node003 gpu0 gpu-power-draw": [[1794700801.25, 650.12]],
      "node003 gpu0 gpu-clocks": [[1794700801.25, 1980]],
      "node003 gpu1 gpu-clocks": [[1794700801.25, 1980]],
    });
  });
});

describe("units", () => {
  const one = (heading: string, ...values: string[]): number[] => {
    const rows = values.map((value, i) => `${i},n1,${value},5\n`).join("");
    const all = series(`time,machine,${heading},pcie_usage\n${rows}`);
    return Object.entries(all)
      .find(([key]) => !key.includes("pcie"))![1]
      .map(([, value]) => value);
  };

  test("shares given in percent, percentages given as shares", () => {
    expect(one("cpu_usage", "31", "1")).toEqual([0.31, 0.01]);
    expect(one("cpu_usage", "0.31", "1.2")).toEqual([0.31, 1.2]);
    expect(one("cpu_usage_percent", "1", "0.5")).toEqual([0.01, 0.005]);
    expect(one("gpu_duty_cycle", "0.98", "1")).toEqual([98, 100]);
    expect(one("gpu_duty_cycle", "0", "1")).toEqual([0, 1]);
    expect(one("gpu_duty_cycle (%)", "0.5", "1")).toEqual([0.5, 1]);
  });

  test("units in headings and fields", () => {
    expect(one("gpu_memory_used_gib", "2")).toEqual([2048]);
    expect(one("GPU memory used [MiB]", "2")).toEqual([2]);
    expect(one("gpu_memory_used", "85899345920")).toEqual([81920]);
    expect(one("RDMA throughput (Gb/s)", "8")).toEqual([1e9]);
    expect(one("RDMA throughput (GB/s)", "8")).toEqual([8e9]);
    expect(one("cpu usage", "31 %", "45%")).toEqual([0.31, 0.45]);
    expect(one("gpu_clock", "1.5 GHz", "1400 MHz")).toEqual([1500, 1400]);
  });
});

describe("times", () => {
  const times = (heading: string, ...given: string[]): number[] => {
    const text = `${heading},machine,cpu_usage\n${given.map((time) => `${time},n1,0.5\n`).join("")}`;
    return Object.values(series(text))[0]!.map(([time]) => time);
  };

  test("numbers by their magnitude, or by the column's name", () => {
    expect(times("time", "1794700801.001", "1794700801.002")).toEqual([
      1794700801.001, 1794700801.002,
    ]);
    expect(times("ts", "1794700801001")).toEqual([1794700801.001]);
    expect(times("timestamp", "1794700801001002")).toEqual([1794700801.001002]);
    expect(times("timestamp_ns", "1794700801001002003")[0]).toBeCloseTo(1794700801.001002, 6);
    expect(times("time", "0", "0.001", "0.002")).toEqual([0, 0.001, 0.002]);
    expect(times("time_ms", "0", "1", "2")).toEqual([0, 0.001, 0.002]);
  });

  test("ISO 8601 and its cousins", () => {
    expect(times("Date Time", "2026-11-15T00:00:01Z")).toEqual([1794700801]);
    expect(times("time", "2026-11-15T01:00:01.001+01:00")).toEqual([1794700801.001]);
    expect(times("time", '"2026-11-15 00:00:01,5 UTC"')).toEqual([1794700801.5]);
    expect(times("timestamp (UTC)", "2026-11-15 00:00")).toEqual([1794700800]);
    const { defects, metrics } = read("time,host,cpu\n2026-11-15 00:00:01,n1,0.5\n");
    expect(metrics!.samples[0]!.timeS[0]).toBe(1794700801);
    expect(defects).toHaveLength(1);
  });
});

describe("odd tables", () => {
  test("quotes, CRLF, BOM, semicolons, blanks, a delimiter at the end", () => {
    const table = `\uFEFF"Time";"machine";"cpu usage"\r\n1; "n,1" ;0,5\r\n\r\n2;"n ""x""";0,25;\r\n3;n3;null\r\n4;n3;-`;
    expect(series(table)).toEqual({
      "n,1 cpu-usage": [[1, 0.5]],
      'n "x" cpu-usage': [[2, 0.25]],
    });
  });

  test("ragged rows, bad times, no machine, no numbers are named", () => {
    const table = `time,host,cpu,disk\n1,n1,0.5,0.5\n2,n1,0.5\nlater,n1,0.5,0.5\n3,,0.5,0.5\n4,n1,busy,0.6\n`;
    const { defects, records } = read(table);
    expect(records).toBe(3);
    expect(defects).toMatchObject([
      { line: 3, what: "has 3 fields, not 4: 2,n1,0.5" },
      { what: "4 rows cannot be read, or only in part" },
    ]);
  });

  test("a name that comes twice, a time that comes twice", () => {
    const { defects, records, metrics } = read(
      "time,host,cpu,cpu\n1,n1,0.5,0.6\n1,n1,0.7,0.8\n2,n1,0.5,0.6\n",
    );
    expect(records).toBe(3);
    expect(defects.map(({ what }) => what)).toEqual([
      'has several columns "cpu"; the first is taken',
      "1 sample left out: their series already has a sample of that time",
    ]);
    expect(Object.values(seriesOf(metrics!))).toHaveLength(1);
  });

  test("what is no table of samples is left to others, or to nobody", () => {
    const others: Record<string, string> = {
      "iterations.csv": "iteration,iteration_time_ms,rank\n1,100,0\n2,101,0\n",
      "wall.csv": "wall_time,step,value\n1794700801.1,1,0.5\n1794700802.1,2,0.5\n",
    };
    for (const [name, text] of Object.entries(others))
      expect(formatOf(text, name)).toBe("iteration-table");
    const nobody: Record<string, string> = {
      "numbers.csv": "1794700801,1,2,3\n1794700802,4,5,6\n",
      "labels.csv": "machine,start,end,label\nnode3,1,2,gpu\n",
      "faults.csv": "time,machine,fault\n1,node3,2\n2,node3,4\n",
      "weather.csv": "time,temperature,humidity\n1,20,50\n2,21,51\n",
      "training.csv": "step,time,loss,throughput,memory\n1,1,2.5,100,0.5\n2,2,2.4,100,0.5\n",
      "nab.csv": "timestamp,value\n2014-02-14 14:27:00,51.846\n2014-02-14 14:32:00,44.508\n",
      "list.csv": "name,time\nA,1\nB,2\n",
    };
    for (const [name, text] of Object.entries(nobody)) expect(formatOf(text, name)).toBeUndefined();
    expect(readBytes(metricTable, "n.csv", "1,2,3\n4,5,6\n").defects).toMatchObject([{ line: 1 }]);
  });

  test("a header longer than what a sniffer sees", () => {
    const names = Array.from({ length: 6000 }, (_, i) => `node${i}/gpu_util`);
    const table = `time,${names.join()}\n1,${names.map((_, i) => i % 100).join()}\n`;
    const head = Buffer.from(table).subarray(0, 65536);
    expect(formatOf(head, "m.csv")).toBe("metric-table");
    expect(readBytes(metricTable, "m.csv", table)).toMatchObject({ records: 6000, defects: [] });
  });

  test("reads the same at any chunk size, cut anywhere, and never throws", () => {
    const table = `${ROWS}1,"broken\n${ROWS}`;
    const whole = readBytes(metricTable, "metrics.csv", table);
    for (const other of readAtAllSizes(metricTable, "metrics.csv", table))
      expect(other).toEqual(whole);
    expect(readCutEverywhere(metricTable, "metrics.csv", ROWS)).toHaveLength(ROWS.length + 1);
    fc.assert(
      fc.property(fc.nat(ROWS.length), fc.string(), (at, text) => {
        readBytes(metricTable, "metrics.csv", ROWS.slice(0, at) + text + ROWS.slice(at));
      }),
    );
    fc.assert(
      fc.property(
        fc.array(
          fc.constantFrom("time", ",", "\n", '"', "node1", "gpu", "0.5", "/", "{", "}", "="),
        ),
        (parts) => {
          const bytes = Buffer.from(parts.join(""));
          recognise({ name: "x.csv", bytes, text: bytes.toString("latin1") });
          readBytes(metricTable, "x.csv", bytes);
        },
      ),
    );
  });
});
