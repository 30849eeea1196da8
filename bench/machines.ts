/**
 * What it costs to ask which machine is going bad: `npm run bench:machines`. First a whole call against a real
 * Prometheus, the seven metrics that Minder uses of 1,000 machines at 1 s over 15 minutes (its own call takes 3.6 s;
 * our target is 4 s), and the same with one of them by GPU unless --small. Then how the work grows with the number of
 * machines (--scaling: only that). Best of three runs. Needs Debian's package `prometheus` for the first part.
 * BENCH_PROMETHEUS_DATA names a folder to keep the data between runs, since writing them takes longer than the rest.
 */
import { loadavg } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { type Random, seeded } from "../src/base/random.ts";
import { connect, pull } from "../src/ingest/prometheus/prometheus.ts";
import { fleetFromServer } from "../src/pipeline/machines.ts";
import { alignFleet } from "../src/methods/machines/align.ts";
import { findMachines } from "../src/methods/machines/find-machines.ts";
import { runMinder } from "../src/methods/machines/minder/minder.ts";
import { shippedModels } from "../src/methods/machines/minder/models.ts";
import type { Fleet } from "../src/model/fleet.ts";
import type { MachineReport } from "../src/model/machine-report.ts";
import type { MetricSamples, MetricSet } from "../src/model/metrics.ts";
import { startPrometheus, whyNoPrometheus } from "../test/support/prometheus-server.ts";

const RUNS = 3;
const T0 = 1_750_000_000;
const LENGTH_S = 900;
const MACHINES = 1000;
/** One machine goes bad a third into the data. */
const FAULTY = 0.437;

interface Made {
  readonly name: string;
  readonly labels: string;
  readonly isCounter: boolean;
  readonly level: number;
  readonly noise: number;
  readonly digits: number;
  /** Factor of the machine that goes bad. */
  readonly fault: number;
}

const gauge = (
  name: string,
  level: number,
  noise: number,
  digits: number,
  fault: number,
): Made => ({
  name,
  labels: 'gpu="0",',
  isCounter: false,
  level,
  noise,
  digits,
  fault,
});
const counter = (name: string, labels: string, level: number, noise: number): Made => ({
  name,
  labels,
  isCounter: true,
  level,
  noise,
  digits: 2,
  fault: 1,
});

/** Minder's seven, in its order. */
const SEVEN: readonly Made[] = [
  counter("node_ethtool_transmitted_prio3_pause", 'device="eth0",', 20, 8),
  counter("node_cpu_seconds_total", 'cpu="0",mode="idle",', 0.83, 0.01),
  gauge("DCGM_FI_DEV_GPU_UTIL", 98, 1, 0, 0.7),
  gauge("DCGM_FI_DEV_POWER_USAGE", 520, 12, 1, 0.4),
  gauge("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.97, 0.005, 4, 0.7),
  gauge("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.4, 0.01, 4, 0.3),
  gauge("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 2e5, 5e3, 0, 0.5),
];

/** A series' values, one a second. */
function series(made: Made, isFaulty: boolean, length: number, random: Random): Float64Array {
  const { level, noise, fault, isCounter } = made;
  let total = 0;
  let wander = 0;
  return Float64Array.from({ length }, (_, i) => {
    wander = 0.8 * wander + 1.2 * (random() - 0.5);
    const value = Math.max(0, level + noise * wander) * (isFaulty && i > length / 3 ? fault : 1);
    return isCounter ? (total += value) : value;
  });
}

const nameOf = (m: number): string => `node${String(m).padStart(5, "0")}`;

/** As OpenMetrics text; `byGpu` has eight series of that metric for each machine. */
function* history(byGpu: string | null): Iterable<string> {
  const random = seeded(1);
  for (const made of SEVEN) {
    yield `# TYPE ${made.name} ${made.isCounter ? "unknown" : "gauge"}`;
    for (let m = 0; m < MACHINES; m++) {
      const isFaulty = m === Math.floor(FAULTY * MACHINES);
      for (let g = 0; g < (made.name === byGpu ? 8 : 1); g++) {
        const labels = `${made.labels.replace('gpu="0"', `gpu="${g}"`)}hostname="${nameOf(m)}"`;
        const values = series(made, isFaulty, LENGTH_S, random);
        for (let i = 0; i < LENGTH_S; i++)
          yield `${made.name}{${labels}} ${values[i]!.toFixed(made.digits)} ${T0 + i}`;
      }
    }
  }
}

/** The same without a server. */
function metricSet(machines: number, length: number): MetricSet {
  const random = seeded(2);
  const samples = SEVEN.map((made): MetricSamples => {
    const value = new Float64Array(machines * length);
    for (let m = 0; m < machines; m++) {
      const isFaulty = m === Math.floor(FAULTY * machines);
      value.set(series(made, isFaulty, length, random), m * length);
    }
    return {
      name: made.name,
      type: made.isCounter ? "counter" : "gauge",
      machine: Int32Array.from({ length: machines }, (_, m) => m),
      device: Array.from({ length: machines }, () => "0"),
      start: Uint32Array.from({ length: machines + 1 }, (_, m) => m * length),
      timeS: Float64Array.from(value, (_, i) => T0 + (i % length)),
      value,
    };
  });
  const names = Array.from({ length: machines }, (_, m) => nameOf(m));
  return { machines: names, hardware: names.map(() => null), samples };
}

/** The least of three runs, and what the last one gave. */
async function best<T>(work: () => T | Promise<T>): Promise<{ ms: number; result: T }> {
  let ms = Infinity;
  let result: T | undefined;
  for (let run = 0; run < RUNS; run++) {
    const started = performance.now();
    result = await work();
    ms = Math.min(ms, performance.now() - started);
  }
  return { ms, result: result! };
}

/** The faulty machine does as its neighbour does: Minder then has to look at all seven. */
function healed(fleet: Fleet): Fleet {
  const bad = fleet.machines.indexOf(nameOf(Math.floor(FAULTY * MACHINES)));
  const grids = fleet.grids.map((grid) => {
    const { ticks } = grid;
    const mean = grid.mean.slice();
    mean.copyWithin(bad * ticks, (bad + 1) * ticks, (bad + 2) * ticks);
    return { ...grid, mean };
  });
  return { ...fleet, grids };
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
const accused = ({ faulty }: MachineReport): string =>
  faulty.map(({ machine, metric }) => `${machine} (${metric})`).join(", ") || "nobody";

async function wholeCall(title: string, byGpu: string | null): Promise<void> {
  const kept = process.env["BENCH_PROMETHEUS_DATA"];
  const folder = `machines-${MACHINES}${byGpu === null ? "" : "-by-gpu"}`;
  const running = await startPrometheus(
    history(byGpu),
    kept === undefined ? {} : { dataFolder: join(kept, folder) },
  );
  try {
    const { signal } = new AbortController();
    const server = await connect({ url: running.url, signal });
    const span = { match: "", startS: T0, endS: T0 + LENGTH_S - 1 };
    const names = SEVEN.map(({ name }) => name);
    const env = { progress: () => undefined, signal };
    const call = await best(async () => {
      const fleet = await fleetFromServer(server, { ...span, job: null }, env);
      return findMachines(fleet);
    });
    const pulled = await best(() => pull(server, { ...span, names }));
    const { set, bytes, via } = pulled.result;
    const aligned = await best(() => alignFleet([set]));
    const fleet = aligned.result;
    const found = await best(() => findMachines(fleet));
    const models = shippedModels();
    const minder = await best(() => runMinder(fleet, models));
    const healthy = healed(fleet);
    const minderHealthy = await best(() => runMinder(healthy, models));
    const samples = set.samples.reduce((sum, { value }) => sum + value.length, 0);
    const rows: [string, number, string][] = [
      ["whole call (pull, align, detect)", call.ms, accused(call.result)],
      ["pull", pulled.ms, `${via}, ${(bytes / 1e6).toFixed(1)} MB, ${samples} samples`],
      ["align", aligned.ms, `${fleet.grids.length} metrics`],
      ["detect", found.ms, accused(found.result)],
      ["Minder in detect's place", minder.ms, accused(minder.result)],
      ["Minder where nobody is at fault", minderHealthy.ms, accused(minderHealthy.result)],
    ];
    console.log(`\n## ${title}\n\n| step | best of ${RUNS} | |\n|---|---|---|`);
    for (const [what, ms, said] of rows) console.log(`| ${what} | ${seconds(ms)} | ${said} |`);
  } finally {
    await running.stop();
  }
}

async function scaling(): Promise<void> {
  const length = 300;
  console.log(`\n## By number of machines: 7 metrics, ${length} samples each\n`);
  console.log(
    "| machines | align | detect | both, ms for 1,000 machines | accused |\n|---|---|---|---|---|",
  );
  // Once for the compiler, so that the first row is no dearer than the rest.
  for (let run = 0; run < 5; run++) findMachines(alignFleet([metricSet(300, length)]));
  for (const machines of [100, 300, 1000, 3000, 10_000]) {
    const set = metricSet(machines, length);
    const aligned = await best(() => alignFleet([set]));
    const found = await best(() => findMachines(aligned.result));
    const each = ((aligned.ms + found.ms) * 1000) / machines;
    const cells = [
      machines,
      `${aligned.ms.toFixed(0)} ms`,
      `${found.ms.toFixed(0)} ms`,
      each.toFixed(0),
      accused(found.result),
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
}

const load = (): string =>
  loadavg()
    .map((one) => one.toFixed(2))
    .join(" ");
console.log(`# Which machine is going bad?\n\nLoad before: ${load()}`);
const lacking = whyNoPrometheus;
if (lacking !== "") console.log(`\nWithout the whole call: ${lacking}`);
else if (!process.argv.includes("--scaling")) {
  await wholeCall(`${MACHINES} machines, ${SEVEN.length} series each`, null);
  if (!process.argv.includes("--small")) {
    await wholeCall(`${MACHINES} machines, GPU power by GPU`, "DCGM_FI_DEV_POWER_USAGE");
  }
}
await scaling();
console.log(`\nLoad after: ${load()}`);
