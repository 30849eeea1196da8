/**
 * "metrics/metrics.prom": what Prometheus would have collected of the job's machines, as OpenMetrics text
 * with timestamps (promtool tsdb create-blocks-from openmetrics reads it). OpenMetrics wants each family in
 * one piece and each series in the order of time, so the text can be written only when the job is over;
 * until then just the lengths of the iterations are kept, and every value is computed as it is written.
 */
import type { IterationTimes, Simulation } from "../cluster/times.ts";
import { hash, STREAM } from "../cluster/noise.ts";
import type { Emitter, Output } from "./emitter.ts";
import { effectsOf } from "./metrics/effects.ts";
import { GPU_FAMILIES, NIC_FAMILIES, NODE_FAMILIES, type MetricType } from "./metrics/families.ts";
import { Levels, type GpuLevel } from "./metrics/levels.ts";
import { SampleWriter } from "./metrics/sample-writer.ts";
import { Timeline } from "./metrics/timeline.ts";
import { workOf } from "./metrics/work.ts";
import { busOf } from "./pci.ts";

export interface MetricOptions {
  /** Whole seconds between samples. Minder has 1; dcgm-exporter's default is 30. */
  readonly intervalS?: number;
  /** How long the machines are watched after the job stopped; its processes wait that long and longer. */
  readonly tailS?: number;
  /**
   * How many GPUs and NICs of a machine are written, those that a fault names first; all by default, as the
   * exporters do, which is 40 GB of text for 15 minutes of 1,000 machines.
   */
  readonly gpusPerMachine?: number;
}

export function emitMetrics(
  simulation: Simulation,
  output: Output,
  options: MetricOptions = {},
): Emitter {
  const { tailS = 300 } = options;
  const intervalS = Math.max(1, Math.round(options.intervalS ?? 1));
  const timeline = new Timeline(simulation);
  return {
    iteration: (times: IterationTimes) => timeline.add(times, tailS * 1e9),
    end(): void {
      const levels = new Levels(
        timeline.samples(intervalS * 1e9),
        timeline.regimes.map((regime) => effectsOf(simulation, regime)),
        workOf(simulation),
      );
      const file = output.open("metrics/metrics.prom");
      const writer = new SampleWriter(simulation, file, intervalS);
      const ranks = writtenRanks(simulation, options.gpusPerMachine ?? Infinity);
      new MetricsText(simulation, levels, writer).write(ranks);
      file.write("# EOF\n");
      file.end();
    },
  };
}

class MetricsText {
  readonly #simulation: Simulation;
  readonly #levels: Levels;
  readonly #writer: SampleWriter;
  readonly #level = { effect: {} } as GpuLevel;

  constructor(simulation: Simulation, levels: Levels, writer: SampleWriter) {
    this.#simulation = simulation;
    this.#levels = levels;
    this.#writer = writer;
  }

  write(ranks: readonly number[]): void {
    const { topology } = this.#simulation;
    GPU_FAMILIES.forEach((family, f) => {
      this.#writer.head(family);
      for (const rank of ranks) this.#gpuSeries(family, f, rank, gpuLabels(this.#simulation, rank));
    });
    NIC_FAMILIES.forEach((family, f) => {
      this.#writer.head(family);
      for (const rank of ranks) {
        const host = topology.machineName(topology.machineOf(rank));
        const gpu = topology.gpuOf(rank);
        const device =
          family.source === "ethtool" ? `device="ens${gpu}np0"` : `device="mlx5_${gpu}",port="1"`;
        this.#gpuSeries(
          family,
          100 + f,
          rank,
          `${device},instance="${host}:9100",job="node"`,
          true,
        );
      }
    });
    NODE_FAMILIES.forEach((family, f) => {
      this.#writer.head(family);
      for (let machine = 0; machine < topology.machines; machine++) {
        const where = `instance="${topology.machineName(machine)}:9100",job="node"`;
        family.labels.forEach((label, l) => {
          const labels = label === "" ? where : `${label},${where}`;
          this.#writer.series(
            { ...family, id: 200 + f, owner: machine, machine, labels },
            this.#levels.samples.length,
            (sample, noise, bias, second) =>
              family.value(this.#levels.machine(machine, sample), noise, bias, l, second),
          );
        });
      }
    });
  }

  #gpuSeries(
    family: {
      readonly name: string;
      readonly type: MetricType;
      readonly decimals: number;
      value(level: GpuLevel, noise: number, bias: number): number;
    },
    id: number,
    rank: number,
    labels: string,
    isNic = false,
  ): void {
    const level = this.#level;
    this.#writer.series(
      { ...family, id, owner: rank, machine: this.#simulation.topology.machineOf(rank), labels },
      this.#levels.samples.length,
      (sample, noise, bias) => {
        this.#levels.gpu(rank, sample, level);
        // "When GPUs Fail Quietly": of a card that fell off the bus there are no samples any more.
        if (level.effect.gone && !isNic) return NaN;
        return family.value(level, noise, bias);
      },
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

function gpuLabels({ spec, topology }: Simulation, rank: number): string {
  const host = topology.machineName(topology.machineOf(rank));
  const gpu = topology.gpuOf(rank);
  const hex = (part: number): string =>
    hash(spec.seed ^ STREAM.metrics, rank, part, 0x1d)
      .toString(16)
      .padStart(8, "0");
  const id = `${hex(0)}${hex(1)}${hex(2)}${hex(3)}`;
  const uuid = `GPU-${id.slice(0, 8)}-${id.slice(8, 12)}-${id.slice(12, 16)}-${id.slice(16, 20)}-${id.slice(20)}`;
  return `gpu="${gpu}",UUID="${uuid}",pci_bus_id="00000000:${busOf(gpu).toUpperCase()}:00.0",device="nvidia${gpu}",modelName="NVIDIA H100 80GB HBM3",hostname="${host}",instance="${host}:9400",job="dcgm"`;
}
