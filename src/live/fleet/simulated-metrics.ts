/**
 * What exporters would show of a rehearsed job's machines, at any moment since some time before it began. Levels and
 * noise are the simulator's (simulate/emit/metrics); what is new here is that faults come and go while one looks.
 */
import { getOrInsert } from "../../base/group-by.ts";
import { parseFault } from "../../simulate/cluster/fault-spec.ts";
import { isEnding } from "../../simulate/cluster/faults.ts";
import { STREAM } from "../../simulate/cluster/noise.ts";
import { effectsOf, type Effects } from "../../simulate/emit/metrics/effects.ts";
import type { Family, GpuFamily, NodeFamily } from "../../simulate/emit/metrics/families.ts";
import { GPU_FAMILIES } from "../../simulate/emit/metrics/gpu-families.ts";
import { Levels, type GpuLevel } from "../../simulate/emit/metrics/levels.ts";
import { NIC_FAMILIES } from "../../simulate/emit/metrics/nic-families.ts";
import { NODE_FAMILIES } from "../../simulate/emit/metrics/node-families.ts";
import { delay, type NodeRow, type Scene } from "../../simulate/emit/metrics/scene.ts";
import { noiseLevels } from "../../simulate/emit/metrics/spread.ts";
import type { Part } from "../../simulate/emit/metrics/timeline.ts";
import { SeriesWalk } from "../../simulate/emit/metrics/walk.ts";
import { workOf, type Work } from "../../simulate/emit/metrics/work.ts";
import { quietIterationNs } from "../../simulate/cluster/costs.ts";
import type { Simulation } from "../../simulate/cluster/times.ts";

export interface MetricSeries {
  readonly labels: Readonly<Record<string, string>>;
  /** Milliseconds since 1970 of the first value; the others follow by `stepMs`. */
  readonly firstMs: number;
  /** NaN where there is no sample. */
  readonly values: Float64Array;
}

/** All series of a name over some ticks. */
interface Rows {
  readonly labels: readonly Readonly<Record<string, string>>[];
  readonly values: readonly Float64Array[];
}

/** A stretch of time under the same faults. */
interface Stretch {
  readonly fromMs: number;
  readonly effects: Effects;
  /** Iterations in a second of the simulated clock; 0 where the job stands still. */
  readonly rate: number;
}

export interface SimulatedMetricsOptions {
  readonly simulation: Simulation;
  readonly startMs: number;
  /** How much of the past there is. */
  readonly pastMs: number;
  readonly stepMs: number;
}

/** Stretches beyond this many are nobody's business any more: a metric's range is minutes. */
const MOST_STRETCHES = 64;
/**
 * Noise wanders from a beginning on, so all ticks since then must be worked out for the last one. It begins again with
 * every period, that a demonstration of a day costs no more than one of a minute; of those before, one is kept.
 */
const PERIOD_MS = 20 * 60_000;

export class SimulatedMetrics {
  readonly stepMs: number;
  /** Of tick 0. */
  readonly startMs: number;
  readonly #simulation: Simulation;
  #stretches: Stretch[];
  readonly #work: Work;
  readonly #ticks: number;
  /** By name: periods that are over, the last two. */
  readonly #over = new Map<string, Map<number, Rows>>();

  constructor({ simulation, startMs, pastMs, stepMs }: SimulatedMetricsOptions) {
    this.#simulation = simulation;
    this.stepMs = stepMs;
    this.#ticks = PERIOD_MS / stepMs;
    this.startMs = Math.floor((startMs - pastMs) / stepMs) * stepMs;
    this.#work = workOf(simulation);
    this.#stretches = [this.#stretch(-Infinity, [], false)];
  }

  get names(): readonly { readonly name: string; readonly type: string }[] {
    return FAMILIES.map(({ name, type }) => ({ name, type }));
  }

  /** Other faults act from now on, in the words of --fault; or the job stands still by them. */
  change(faults: readonly string[], isStopped: boolean, nowMs: number): void {
    this.#stretches.push(this.#stretch(nowMs, faults, isStopped));
    this.#stretches = this.#stretches.slice(-MOST_STRETCHES);
  }

  /** All series of a name up to now, of 20 minutes at least; null for names that no exporter has here. */
  series(name: string, nowMs: number): readonly MetricSeries[] | null {
    const family = FAMILIES.find((one) => one.name === name);
    if (!family) return null;
    const count = Math.max(1, Math.floor((nowMs - this.startMs) / this.stepMs) + 1);
    const period = Math.floor((count - 1) / this.#ticks);
    const before = period > 0 ? this.#whole(family, period - 1) : null;
    const now = this.#rows(family, period, count - period * this.#ticks, before);
    const firstMs = this.startMs + Math.max(0, period - 1) * this.#ticks * this.stepMs;
    return now.values.map((values, i) => ({
      labels: now.labels[i]!,
      firstMs,
      values: before ? joined(before.values[i]!, values) : values,
    }));
  }

  #whole(family: GpuFamily | NodeFamily, period: number): Rows {
    const kept = getOrInsert(this.#over, family.name, () => new Map<number, Rows>());
    const known = kept.get(period);
    if (known) return known;
    const before = period > 0 && isCounter(family) ? this.#whole(family, period - 1) : null;
    const rows = this.#rows(family, period, this.#ticks, before);
    kept.set(period, rows);
    kept.delete(period - 2);
    return rows;
  }

  /** The first ticks of a period; counters go on where they stood in the one before. */
  #rows(family: GpuFamily | NodeFamily, period: number, ticks: number, before: Rows | null): Rows {
    const walk = new SeriesWalk(this.#scene(period * this.#ticks, ticks));
    const { labels, values } =
      "source" in family ? this.#ofGpus(family, walk) : this.#ofNodes(family, walk);
    if (isCounter(family))
      values.forEach((row, i) => sumUp(row, before?.values[i]?.at(-1) ?? 0, this.stepMs / 1000));
    return { labels, values };
  }

  #ofGpus(family: GpuFamily, walk: SeriesWalk): Rows {
    const { spec, topology } = this.#simulation;
    const ranks = Array.from({ length: spec.gpus }, (_, rank) => rank);
    return {
      labels: ranks.map((rank) => {
        const gpu = topology.gpuOf(rank);
        const host = topology.machineName(topology.machineOf(rank));
        const ofNode = { instance: `${host}:9100`, job: "node" };
        if (family.source === "ethtool") return { device: `ens${gpu}np0`, ...ofNode };
        if (family.source === "infiniband") return { device: `mlx5_${gpu}`, port: "1", ...ofNode };
        return {
          gpu: String(gpu),
          device: `nvidia${gpu}`,
          modelName: "NVIDIA H100 80GB HBM3",
          hostname: host,
          instance: `${host}:9400`,
          job: "dcgm",
        };
      }),
      // The walk's row is used again by its next one.
      values: ranks.map((rank) =>
        walk.gpu(family, topology.machineOf(rank), topology.gpuOf(rank)).slice(),
      ),
    };
  }

  #ofNodes(family: NodeFamily, walk: SeriesWalk): Rows {
    const { topology } = this.#simulation;
    const all = Array.from({ length: topology.machines }, (_, machine) =>
      family.labels.map((text, label) => ({ machine, text, label })),
    ).flat();
    return {
      labels: all.map(({ machine, text }) => ({
        ...labelsOf(text),
        instance: `${topology.machineName(machine)}:9100`,
        job: "node",
      })),
      values: all.map(({ machine, label }) => walk.node(family, machine, label).slice()),
    };
  }

  #scene(firstTick: number, ticks: number): Scene {
    const stretches = this.#stretches;
    const samples = Array.from({ length: ticks }, (_, tick) => this.#parts(firstTick + tick));
    const levels = new Levels(
      samples,
      stretches.map(({ effects }) => effects),
      this.#work,
    );
    const { spec, topology } = this.#simulation;
    const stepS = this.stepMs / 1000;
    const row = new Float64Array(ticks);
    const extra = new Float64Array(ticks);
    const level = { effect: {} } as GpuLevel;
    return {
      seed: spec.seed ^ STREAM.metrics,
      noise: noiseLevels(spec.noise),
      machines: topology.machines,
      gpusPerMachine: spec.gpusPerMachine,
      ticks,
      stepS,
      gpuRow(family: GpuFamily, machine: number, gpu: number): Float64Array {
        for (let tick = 0; tick < ticks; tick++) {
          levels.gpu(machine * spec.gpusPerMachine + gpu, tick, level);
          row[tick] = level.effect.gone && family.source === "dcgm" ? NaN : family.level(level);
        }
        delay(row, family.lagS, stepS);
        return row;
      },
      nodeRow(family: NodeFamily, machine: number): NodeRow {
        for (let tick = 0; tick < ticks; tick++) {
          const effect = levels.machine(machine, tick);
          row[tick] = family.level(effect);
          extra[tick] = family.extra(effect, (firstTick + tick) * stepS);
        }
        return { level: row, extra };
      },
      lost: () => null,
      distort: () => undefined,
    };
  }

  /** What a sample covers: the time since the one before. */
  #parts(tick: number): Part[] {
    const untilMs = this.startMs + tick * this.stepMs;
    const fromMs = untilMs - this.stepMs;
    return this.#stretches.flatMap(({ fromMs: begins, rate }, regime) => {
      const ends = this.#stretches[regime + 1]?.fromMs ?? Infinity;
      const first = regime === 0 ? -Infinity : begins;
      const share = (Math.min(untilMs, ends) - Math.max(fromMs, first)) / this.stepMs;
      return share > 0 ? [{ regime, share, rate: share * rate }] : [];
    });
  }

  #stretch(fromMs: number, words: readonly string[], isStopped: boolean): Stretch {
    const { spec } = this.#simulation;
    const faults = words.map((one) => ({ ...parseFault(one), from: 1, to: Infinity }));
    const severities = faults.map((fault) =>
      isEnding(fault, 1) ? (isStopped ? Infinity : 1) : fault.severity,
    );
    const effects = effectsOf(
      { ...this.#simulation, spec: { ...spec, faults } },
      { severities, iteration: 1, stopped: isStopped },
    );
    const slowing = faults.filter((_, i) => severities[i]! > 1);
    const rate = isStopped ? 0 : 1e9 / quietIterationNs(spec, slowing);
    return { fromMs, effects, rate };
  }
}

const FAMILIES: readonly (GpuFamily | NodeFamily)[] = [
  ...GPU_FAMILIES,
  ...NIC_FAMILIES,
  ...NODE_FAMILIES,
];

function isCounter({ type }: Family): boolean {
  return type !== "gauge";
}

/** Rates of a counter become what it shows, in place. */
function sumUp(row: Float64Array, from: number, stepS: number): void {
  let sum = from;
  for (let t = 0; t < row.length; t++) if (!Number.isNaN(row[t]!)) row[t] = sum += row[t]! * stepS;
}

function joined(a: Float64Array, b: Float64Array): Float64Array {
  const both = new Float64Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** 'cpu="0",mode="idle"' → { cpu: "0", mode: "idle" } */
function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name!, value!]),
  );
}
