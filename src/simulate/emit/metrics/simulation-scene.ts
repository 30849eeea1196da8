/** A simulated job's machines as a scene: levels follow from its iterations and from what its faults do. */
import type { Simulation } from "../../cluster/times.ts";
import { STREAM, uniform } from "../../cluster/noise.ts";
import type { GpuFamily, NodeFamily } from "./families.ts";
import type { GpuLevel, Levels } from "./levels.ts";
import { delay, exporterOf, type Exporter, type NodeRow, type Scene } from "./scene.ts";
import { noiseLevels, type NoiseLevels } from "./spread.ts";

/** Prometheus loses a scrape now and then (assumed). */
const LOST_SHARE = 0.0005;

export class SimulationScene implements Scene {
  readonly seed: number;
  readonly noise: NoiseLevels;
  readonly machines: number;
  readonly gpusPerMachine: number;
  readonly ticks: number;
  readonly stepS: number;
  readonly #level = { effect: {} } as GpuLevel;
  readonly #levels: Levels;
  readonly #noise: number;
  readonly #row: Float64Array;
  readonly #extra: Float64Array;
  readonly #lost: Uint8Array;
  /** Its exporters are sound, unless somebody breaks them. */
  readonly distort: Scene["distort"];

  constructor(
    { spec, topology }: Simulation,
    levels: Levels,
    stepS: number,
    distort: Scene["distort"] = () => undefined,
  ) {
    this.distort = distort;
    this.seed = spec.seed ^ STREAM.metrics;
    this.noise = noiseLevels(spec.noise);
    this.machines = topology.machines;
    this.gpusPerMachine = spec.gpusPerMachine;
    this.ticks = levels.samples.length;
    this.stepS = stepS;
    this.#levels = levels;
    this.#noise = spec.noise;
    this.#row = new Float64Array(this.ticks);
    this.#extra = new Float64Array(this.ticks);
    this.#lost = new Uint8Array(this.ticks);
  }

  gpuRow(family: GpuFamily, machine: number, gpu: number): Float64Array {
    const level = this.#level;
    const isDcgm = exporterOf(family) === "dcgm";
    for (let tick = 0; tick < this.ticks; tick++) {
      this.#levels.gpu(machine * this.gpusPerMachine + gpu, tick, level);
      // "When GPUs Fail Quietly": of a card that fell off the bus there are no samples any more.
      this.#row[tick] = level.effect.gone && isDcgm ? NaN : family.level(level);
    }
    delay(this.#row, family.lagS, this.stepS);
    return this.#row;
  }

  nodeRow(family: NodeFamily, machine: number): NodeRow {
    for (let tick = 0; tick < this.ticks; tick++) {
      const effect = this.#levels.machine(machine, tick);
      this.#row[tick] = family.level(effect);
      this.#extra[tick] = family.extra(effect, tick * this.stepS);
    }
    return { level: this.#row, extra: this.#extra };
  }

  lost(exporter: Exporter, machine: number): Uint8Array | null {
    if (this.#noise === 0) return null;
    const which = exporter === "dcgm" ? 0x105 : 0x106;
    for (let tick = 0; tick < this.ticks; tick++) {
      const isLost = uniform(this.seed, machine, tick, which) < LOST_SHARE * this.#noise;
      this.#lost[tick] = isLost ? 1 : 0;
    }
    return this.#lost;
  }
}
