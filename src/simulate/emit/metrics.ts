/**
 * "metrics/metrics.prom": what Prometheus would have collected of the job's machines, as OpenMetrics text
 * with timestamps (promtool tsdb create-blocks-from openmetrics reads it). OpenMetrics wants each family in
 * one piece and each series in the order of time, so the text can be written only when the job is over;
 * until then just the lengths of the iterations are kept, and every value is computed as it is written.
 */
import type { IterationTimes, Simulation } from "../cluster/times.ts";
import { hash, STREAM } from "../cluster/noise.ts";
import type { Emitter, Output, Writer } from "./emitter.ts";
import { effectsOf, type Effects } from "./metrics/effects.ts";
import type { GpuFamily, MetricType } from "./metrics/families.ts";
import { GPU_FAMILIES } from "./metrics/gpu-families.ts";
import { Levels } from "./metrics/levels.ts";
import { NIC_FAMILIES } from "./metrics/nic-families.ts";
import { NODE_FAMILIES } from "./metrics/node-families.ts";
import { exporterOf, type Scene } from "./metrics/scene.ts";
import { SimulationScene } from "./metrics/simulation-scene.ts";
import { Timeline, type Regime } from "./metrics/timeline.ts";
import { SeriesWalk } from "./metrics/walk.ts";
import { workOf } from "./metrics/work.ts";
import { busOf } from "./pci.ts";

const FLUSH_CHARS = 1 << 16;

interface Series {
  readonly name: string;
  readonly type: MetricType;
  readonly decimals: number;
  /** Of the family and of its GPU or machine: where a counter stands at first. */
  readonly id: number;
  readonly owner: number;
  readonly machine: number;
  readonly labels: string;
}

export interface MetricOptions {
  /** Whole seconds between samples: 15, as most sites have it, of jobs that last for ten minutes; else 1, as Minder has. */
  readonly intervalS?: number;
  /** How long the machines are watched after the job stopped; its processes wait that long and longer. */
  readonly tailS?: number;
  /**
   * How many GPUs and NICs of a machine are written, those that a fault names first; all by default, as the
   * exporters do, which is 40 GB of text for 15 minutes of 1,000 machines.
   */
  readonly gpusPerMachine?: number;
  /** What else sensors see of a regime, beside what its faults do. */
  readonly effects?: (effects: Effects, regime: Regime) => Effects;
  /** What broken exporters make of a series, in place. */
  readonly distort?: Scene["distort"];
}

const SITE_INTERVAL_S = 15;
/** Shorter jobs would have too few such samples to be compared by. */
const LEAST_SITE_S = 600;

export function emitMetrics(
  simulation: Simulation,
  output: Output,
  options: MetricOptions = {},
): Emitter {
  const { tailS = 300 } = options;
  const timeline = new Timeline(simulation);
  return {
    iteration: (times: IterationTimes) => timeline.add(times, tailS * 1e9),
    end(): void {
      const usualS = timeline.endNs >= LEAST_SITE_S * 1e9 ? SITE_INTERVAL_S : 1;
      const intervalS = Math.max(1, Math.round(options.intervalS ?? usualS));
      const levels = new Levels(
        timeline.samples(intervalS * 1e9),
        timeline.regimes.map((regime) => {
          const own = effectsOf(simulation, regime);
          return options.effects?.(own, regime) ?? own;
        }),
        workOf(simulation),
      );
      const file = output.open("metrics/metrics.prom");
      const writer = new SampleWriter(simulation, file, intervalS);
      const ranks = writtenRanks(simulation, options.gpusPerMachine ?? Infinity);
      const scene = new SimulationScene(simulation, levels, intervalS, options.distort);
      new MetricsText(simulation, scene, writer).write(ranks);
      file.write("# EOF\n");
      file.end();
    },
  };
}

class MetricsText {
  readonly #simulation: Simulation;
  readonly #scene: Scene;
  readonly #walk: SeriesWalk;
  readonly #writer: SampleWriter;

  constructor(simulation: Simulation, scene: Scene, writer: SampleWriter) {
    this.#simulation = simulation;
    this.#scene = scene;
    this.#walk = new SeriesWalk(scene);
    this.#writer = writer;
  }

  write(ranks: readonly number[]): void {
    const { topology } = this.#simulation;
    for (const family of GPU_FAMILIES) {
      this.#writer.head(family);
      for (const rank of ranks) this.#gpuSeries(family, rank, gpuLabels(this.#simulation, rank));
    }
    for (const family of NIC_FAMILIES) {
      this.#writer.head(family);
      for (const rank of ranks) {
        const where = nodeLabels(topology.machineOf(rank));
        const gpu = topology.gpuOf(rank);
        const device =
          family.source === "ethtool" ? `device="ens${gpu}np0"` : `device="mlx5_${gpu}",port="1"`;
        this.#gpuSeries(family, rank, `${device},${where}`);
      }
    }
    for (const family of NODE_FAMILIES) {
      this.#writer.head(family);
      for (let machine = 0; machine < topology.machines; machine++) {
        const where = nodeLabels(machine);
        family.labels.forEach((label, l) => {
          const labels = label === "" ? where : `${label},${where}`;
          this.#writer.series(
            { ...family, owner: machine, machine, labels },
            this.#walk.node(family, machine, l),
            this.#scene.lost("node", machine),
          );
        });
      }
    }
    this.#unameInfo();
  }

  /** Who is behind an address: node_exporter says it in the labels of a series that is always 1. */
  #unameInfo(): void {
    const { topology } = this.#simulation;
    const info = { name: "node_uname_info", type: "gauge", decimals: 0, id: 0 } as const;
    this.#writer.head({ ...info, help: "Labeled system information as provided by uname." });
    for (let machine = 0; machine < topology.machines; machine++) {
      const nodename = topology.machineName(machine);
      const labels = `nodename="${nodename}",sysname="Linux",machine="x86_64",${nodeLabels(machine)}`;
      const seen = this.#walk.node(NODE_FAMILIES[0]!, machine, 0);
      this.#writer.series(
        { ...info, owner: machine, machine, labels },
        seen.map((value) => (Number.isNaN(value) ? NaN : 1)),
        this.#scene.lost("node", machine),
      );
    }
  }

  #gpuSeries(family: GpuFamily, rank: number, labels: string): void {
    const { topology } = this.#simulation;
    const machine = topology.machineOf(rank);
    this.#writer.series(
      { ...family, owner: rank, machine, labels },
      this.#walk.gpu(family, machine, topology.gpuOf(rank)),
      this.#scene.lost(exporterOf(family), machine),
    );
  }
}

function writtenRanks({ spec, topology }: Simulation, most: number): number[] {
  const all = Array.from({ length: spec.gpus }, (_, rank) => rank);
  if (most >= spec.gpusPerMachine) return all;
  const named = new Set(spec.faults.flatMap((fault) => fault.ranks));
  const written = new Int32Array(topology.machines);
  return [...named, ...all.filter((rank) => !named.has(rank))]
    .filter((rank) => written[topology.machineOf(rank)]!++ < most)
    .sort((a, b) => a - b);
}

/** Scraped by address, as most sites do: node_exporter and dcgm-exporter then call a machine by two names. */
function nodeLabels(machine: number): string {
  return `instance="${addressOf(machine)}:9100",job="node"`;
}

function addressOf(machine: number): string {
  return `10.40.${machine >> 7}.${2 + (machine & 127)}`;
}

function gpuLabels({ spec, topology }: Simulation, rank: number): string {
  const machine = topology.machineOf(rank);
  const host = topology.machineName(machine);
  const gpu = topology.gpuOf(rank);
  const hex = (part: number): string =>
    hash(spec.seed ^ STREAM.metrics, rank, part, 0x1d)
      .toString(16)
      .padStart(8, "0");
  const id = `${hex(0)}${hex(1)}${hex(2)}${hex(3)}`;
  const uuid = `GPU-${id.slice(0, 8)}-${id.slice(8, 12)}-${id.slice(12, 16)}-${id.slice(16, 20)}-${id.slice(20)}`;
  return `gpu="${gpu}",UUID="${uuid}",pci_bus_id="00000000:${busOf(gpu).toUpperCase()}:00.0",device="nvidia${gpu}",modelName="NVIDIA H100 80GB HBM3",hostname="${host}",instance="${addressOf(machine)}:9400",job="dcgm"`;
}

/** Writes series as OpenMetrics text, in pieces. */
class SampleWriter {
  readonly #writer: Writer;
  readonly #seed: number;
  readonly #intervalS: number;
  readonly #epochS: number;
  /** "1794700801" by sample, shared by all series. */
  readonly #seconds: string[] = [];
  #text = "";

  constructor({ spec }: Simulation, writer: Writer, intervalS: number) {
    this.#writer = writer;
    this.#seed = spec.seed ^ STREAM.metrics;
    this.#intervalS = intervalS;
    this.#epochS = Number(spec.epochNs / 1_000_000_000n);
  }

  /** A counter's family is named without _total (OpenMetrics 1.0). */
  head({ name, type, help }: { name: string; type: MetricType; help: string }): void {
    const family = type === "counter" ? name.replace(/_total$/, "") : name;
    this.#text += `# HELP ${family} ${help}\n# TYPE ${family} ${type}\n`;
  }

  /** `values` are levels, or what a counter gains in a second; NaN where there is no sample. */
  series(
    { name, type, decimals, id, owner, machine, labels }: Series,
    values: Float64Array,
    lost: Uint8Array | null,
  ): void {
    const head = `${name}{${labels}} `;
    // Every target is scraped at an instant of its own within the interval.
    const phase = hash(this.#seed, machine, 0, 0x9a) % Math.min(1000, this.#intervalS * 1000);
    const tail = `.${String(phase).padStart(3, "0")}\n`;
    // Counters began when the machine did.
    let sum = type === "gauge" ? 0 : 1000 * (hash(this.#seed, owner, id, 0xc0) % 100_000);
    for (let sample = 0; sample < values.length; sample++) {
      const level = values[sample]!;
      if (Number.isNaN(level)) continue;
      // A counter goes on while nobody reads it.
      if (type !== "gauge") sum += level * this.#intervalS;
      if (lost?.[sample] === 1) continue;
      const shown = type === "gauge" ? level : sum;
      this.#text += head + format(shown, decimals) + " " + this.#second(sample) + tail;
      if (this.#text.length > FLUSH_CHARS) this.flush();
    }
    this.flush();
  }

  flush(): void {
    this.#writer.write(this.#text);
    this.#text = "";
  }

  #second(sample: number): string {
    return (this.#seconds[sample] ??= String(
      this.#epochS + Math.floor((sample + 1) * this.#intervalS),
    ));
  }
}

/** toFixed is slow, and most values are whole. */
function format(value: number, decimals: number): string {
  if (decimals === 0) return String(Math.round(value));
  const scale = 10 ** decimals;
  return String(Math.round(value * scale) / scale);
}
