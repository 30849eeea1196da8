/** Walks over series: each scene's levels with the noise that real ones have. Feeds the text and the grids alike. */
import { hash } from "../../cluster/noise.ts";
import type { Family, GpuFamily, NodeFamily } from "./families.ts";
import type { Scene } from "./scene.ts";
import { bursts, disturb, NO_SPREAD, offsetOf, wander } from "./spread.ts";

export class SeriesWalk {
  readonly #scene: Scene;
  readonly #values: Float64Array;
  readonly #common = new Map<number, Float64Array>();
  readonly #machineSlow: Float64Array;
  readonly #amplitude: Float64Array;
  /** Whose the machine's parts are. */
  #machine = -1;
  #family = -1;

  constructor(scene: Scene) {
    this.#scene = scene;
    this.#values = new Float64Array(scene.ticks);
    this.#machineSlow = new Float64Array(scene.ticks);
    this.#amplitude = new Float64Array(scene.ticks);
  }

  /** What a GPU's or NIC's series shows, by tick: levels, and rates of counters. NaN: none. Reused by the next call. */
  gpu(family: GpuFamily, machine: number, gpu: number): Float64Array {
    const owner = machine * this.#scene.gpusPerMachine + gpu;
    this.#disturb(family, this.#scene.gpuRow(family, machine, gpu), machine, owner);
    this.#scene.distort(family, machine, gpu, this.#values);
    return this.#values;
  }

  /** The same of a machine's series, `label` of the family's. */
  node(family: NodeFamily, machine: number, label: number): Float64Array {
    const { level, extra } = this.#scene.nodeRow(family, machine);
    this.#disturb(family, level, machine, machine);
    const values = this.#values;
    for (let t = 0; t < values.length; t++) values[t] = family.show(values[t]!, extra[t]!, label);
    this.#scene.distort(family, machine, -1, values);
    return values;
  }

  #disturb(family: Family, clean: Float64Array, machine: number, owner: number): void {
    const { seed, noise, stepS } = this.#scene;
    const { id, spread } = family;
    if (spread === NO_SPREAD) {
      this.#values.set(clean);
      return;
    }
    if (this.#machine !== machine || this.#family !== id) {
      const slow = noise.slow * spread.slow * Math.SQRT1_2;
      wander(slow, stepS, seed, id, machine, this.#machineSlow);
      bursts(noise.bursts, stepS, seed, id, machine, this.#amplitude);
      this.#machine = machine;
      this.#family = id;
    }
    disturb(
      clean,
      this.#values,
      {
        spread,
        levels: noise,
        offset: offsetOf(spread, noise, seed, id, machine, owner),
        common: this.#commonOf(family),
        machineSlow: this.#machineSlow,
        amplitude: this.#amplitude,
      },
      family,
      stepS,
      hash(seed, owner, id, 0x5eed) | 0,
    );
  }

  #commonOf({ id, spread }: Family): Float64Array {
    let common = this.#common.get(id);
    if (common === undefined) {
      const { seed, noise, stepS, ticks } = this.#scene;
      common = new Float64Array(ticks);
      wander(noise.common * spread.common, stepS, seed, id, -1, common);
      this.#common.set(id, common);
    }
    return common;
  }
}
