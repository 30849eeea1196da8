/**
 * A task as a scene. Machines of a stage that nothing happens to share their levels, so that a row is computed once for
 * thousands of GPUs; whoever is touched gets rows of its own, for the metrics that are touched.
 */
import { hash, STREAM, uniform } from "../../../src/simulate/cluster/noise.ts";
import type { GpuEffect, MachineEffect } from "../../../src/simulate/emit/metrics/effects.ts";
import type { Family, GpuFamily, NodeFamily } from "../../../src/simulate/emit/metrics/families.ts";
import type { GpuLevel } from "../../../src/simulate/emit/metrics/levels.ts";
import {
  delay,
  exporterOf,
  type Exporter,
  type NodeRow,
  type Scene,
} from "../../../src/simulate/emit/metrics/scene.ts";
import type { NoiseLevels } from "../../../src/simulate/emit/metrics/spread.ts";
import { applyToGpu, applyToNode, touchesGpu, touchesNode, weightAt, type Act } from "./acts.ts";
import { Draw } from "./draw.ts";
import type { JobClock } from "./job-clock.ts";
import type { Nuisances } from "./nuisances.ts";
import { gpuLevelAt, nodeLevelAt, type StageWork } from "./stage-levels.ts";
import { breakSeries, type TelemetryFault } from "./telemetry.ts";

/** Machines are scraped at one of so many instants of an interval: each would cost a row, and few suffice. */
const PHASES = 4;
const MAX_GAP = 3;

export interface TaskParts {
  readonly machines: number;
  readonly gpusPerMachine: number;
  readonly seconds: number;
  readonly stepS: number;
  readonly seed: number;
  readonly nuisances: Nuisances;
  readonly clock: JobClock;
  readonly stages: readonly StageWork[];
  /** By machine. */
  readonly stageOf: Int32Array;
  readonly acts: readonly Act[];
  readonly telemetry: readonly TelemetryFault[];
}

export class TaskScene implements Scene {
  readonly seed: number;
  readonly noise: NoiseLevels;
  readonly machines: number;
  readonly gpusPerMachine: number;
  readonly ticks: number;
  readonly stepS: number;
  readonly #parts: TaskParts;
  readonly #acts: readonly (readonly Act[])[];
  readonly #telemetry: readonly (readonly TelemetryFault[])[];
  readonly #level = {} as GpuLevel;
  readonly #effect = {} as MachineEffect;
  readonly #levels = new Map<number, readonly Readonly<GpuLevel>[]>();
  readonly #fine = new Map<number, Float64Array>();
  #last: { machine: number; family: number; acts: readonly Act[]; row: Float64Array } | null = null;
  readonly #rows = new Map<number, Float64Array>();
  readonly #nodeRows = new Map<number, NodeRow>();
  readonly #lost = new Map<number, Uint8Array>();

  constructor(parts: TaskParts) {
    this.#parts = parts;
    this.seed = parts.seed ^ STREAM.metrics;
    this.noise = parts.nuisances.noise;
    this.machines = parts.machines;
    this.gpusPerMachine = parts.gpusPerMachine;
    this.stepS = parts.stepS;
    this.ticks = Math.floor(parts.seconds / parts.stepS);
    this.#acts = byMachine(parts.machines, parts.acts);
    this.#telemetry = byMachine(parts.machines, parts.telemetry);
  }

  gpuRow(family: GpuFamily, machine: number, gpu: number): Float64Array {
    const acts = this.#acts[machine]!.filter((act) => touchesGpu(act, family.sees, gpu));
    const stage = this.#parts.stageOf[machine]!;
    const phase = this.#phaseOf(machine);
    if (acts.length > 0) return this.#touchedRow(family, machine, stage, phase, acts);
    const key = (family.id * 1024 + stage) * PHASES + phase;
    let row = this.#rows.get(key);
    if (row === undefined) this.#rows.set(key, (row = this.#gpuRow(family, stage, phase, [])));
    return row;
  }

  nodeRow(family: NodeFamily, machine: number): NodeRow {
    const acts = this.#acts[machine]!.filter((act) => touchesNode(act, family));
    const stage = this.#parts.stageOf[machine]!;
    const phase = this.#phaseOf(machine);
    if (acts.length > 0) return this.#nodeRow(family, stage, phase, acts);
    const key = (family.id * 1024 + stage) * PHASES + phase;
    let row = this.#nodeRows.get(key);
    if (row === undefined) this.#nodeRows.set(key, (row = this.#nodeRow(family, stage, phase, [])));
    return row;
  }

  lost(exporter: Exporter, machine: number): Uint8Array | null {
    const { lostShare, gaps } = this.#parts.nuisances;
    if (lostShare === 0 && gaps === 0) return null;
    const which = exporter === "dcgm" ? 0 : 1;
    const known = this.#lost.get(2 * machine + which);
    if (known) return known;
    const lost = new Uint8Array(this.ticks);
    for (let t = 0; t < lost.length; t++)
      if (uniform(this.seed, machine, t, 0x105 + which) < lostShare) lost[t] = 1;
    const draw = new Draw(this.seed, "gap", 2 * machine + which);
    const count = draw.poisson(0, (gaps * this.#parts.seconds) / 900);
    for (let n = 0; n < count; n++) {
      const from = draw.whole(2 * n + 1, this.ticks);
      lost.fill(1, from, from + 1 + draw.whole(2 * n + 2, MAX_GAP));
    }
    this.#lost.set(2 * machine + which, lost);
    return lost;
  }

  distort(family: Family, machine: number, gpu: number, values: Float64Array): void {
    const held = Math.round(this.#parts.nuisances.dcgmEveryS / this.stepS);
    if (held > 1 && family.name.startsWith("DCGM_")) {
      const first = hash(this.seed, machine, 0, 0x4e1d) % held;
      for (let t = 1; t < values.length; t++) if (t % held !== first) values[t] = values[t - 1]!;
    }
    for (const fault of this.#telemetry[machine]!)
      breakSeries(fault, family, gpu, this.stepS, values);
  }

  #phaseOf(machine: number): number {
    return this.#parts.nuisances.swing === 0 ? 0 : hash(this.seed, machine, 0, 0x9a) % PHASES;
  }

  /** The GPUs of a machine mostly share what happens to them. */
  #touchedRow(
    family: GpuFamily,
    machine: number,
    stage: number,
    phase: number,
    acts: readonly Act[],
  ): Float64Array {
    const last = this.#last;
    const isSame =
      last !== null &&
      last.machine === machine &&
      last.family === family.id &&
      last.acts.length === acts.length &&
      last.acts.every((one, n) => one === acts[n]);
    if (isSame) return last.row;
    const row = this.#gpuRow(family, stage, phase, acts);
    this.#last = { machine, family: family.id, acts, row };
    return row;
  }

  #gpuRow(family: GpuFamily, stage: number, phase: number, acts: readonly Act[]): Float64Array {
    const levels = this.#healthy(stage, phase);
    const shiftS = (phase / PHASES) * this.stepS;
    const isDcgm = exporterOf(family) === "dcgm";
    const fine = this.#fineRow(family, stage, phase);
    if (acts.length > 0) {
      const level = this.#level;
      const effect = {} as GpuEffect;
      const fromS = Math.min(...acts.map((one) => one.fromS));
      const untilS = Math.max(...acts.map((one) => one.untilS));
      const first = Math.max(0, Math.floor(fromS - shiftS));
      for (let s = first; s < fine.length && s < untilS; s++) {
        const healthy = levels[s]!;
        let isTouched = false;
        let isThere = true;
        for (const one of acts) {
          const weight = weightAt(one, s + shiftS);
          if (weight === 0) continue;
          if (!isTouched) {
            copyLevel(healthy, level, effect);
            isTouched = true;
          }
          if (one.isDead) isThere = false;
          if (one.gpu !== null) applyToGpu(one.gpu, weight, level);
        }
        if (!isTouched) continue;
        if (isDcgm && effect.gone) isThere = false;
        fine[s] = isThere ? family.level(level) : NaN;
      }
    }
    delay(fine, family.lagS, 1);
    // DCGM adds its profiling fields up over the interval at which they are watched.
    const isMean = family.type !== "gauge" || family.name.startsWith("DCGM_FI_PROF_");
    return this.#sampled(fine, isMean);
  }

  /** Second by second, without lag, for the caller to change. */
  #fineRow(family: GpuFamily, stage: number, phase: number): Float64Array {
    const key = (family.id * 1024 + stage) * PHASES + phase;
    let fine = this.#fine.get(key);
    if (fine === undefined) {
      fine = Float64Array.from(this.#healthy(stage, phase), (level) => family.level(level));
      this.#fine.set(key, fine);
    }
    return fine.slice();
  }

  #healthy(stage: number, phase: number): readonly Readonly<GpuLevel>[] {
    const key = stage * PHASES + phase;
    let levels = this.#levels.get(key);
    if (levels === undefined) {
      const { seconds, clock, stages, nuisances } = this.#parts;
      const shiftS = (phase / PHASES) * this.stepS;
      levels = Array.from({ length: seconds }, (_, s) => {
        const level = {} as GpuLevel;
        gpuLevelAt(stages[stage]!, clock, nuisances.swing, s, shiftS, level);
        return level;
      });
      this.#levels.set(key, levels);
    }
    return levels;
  }

  #nodeRow(family: NodeFamily, stage: number, phase: number, acts: readonly Act[]): NodeRow {
    const { seconds, clock, stages } = this.#parts;
    const shiftS = (phase / PHASES) * this.stepS;
    const level = new Float64Array(seconds);
    const extra = new Float64Array(seconds);
    for (let s = 0; s < seconds; s++) {
      nodeLevelAt(stages[stage]!, clock, s, shiftS, this.#effect);
      let isThere = true;
      for (const act of acts) {
        const weight = weightAt(act, s + shiftS);
        if (weight === 0) continue;
        if (act.isDead) isThere = false;
        if (act.node !== null) applyToNode(act.node, weight, this.#effect);
      }
      level[s] = isThere ? family.level(this.#effect) : NaN;
      extra[s] = family.extra(this.#effect, s);
    }
    const isRate = family.type !== "gauge";
    return { level: this.#sampled(level, isRate), extra: this.#sampled(extra, isRate) };
  }

  /** A gauge is what it is when it is read; a counter's rate is the mean since it was read last. */
  #sampled(fine: Float64Array, isMean: boolean): Float64Array {
    if (this.stepS === 1) return fine;
    const row = new Float64Array(this.ticks);
    for (let t = 0; t < this.ticks; t++) {
      const until = (t + 1) * this.stepS;
      let sum = 0;
      for (let s = t * this.stepS; s < until; s++) sum += fine[s]!;
      row[t] = isMean ? sum / this.stepS : fine[until - 1]!;
    }
    return row;
  }
}

/** Field by field: it is done for every second of whoever is touched. */
function copyLevel(from: Readonly<GpuLevel>, to: GpuLevel, effect: GpuEffect): void {
  to.compute = from.compute;
  to.communicate = from.communicate;
  to.idle = from.idle;
  to.useful = from.useful;
  to.nvlinkPerS = from.nvlinkPerS;
  to.nicPerS = from.nicPerS;
  to.offeredPerS = from.offeredPerS;
  to.pciePerS = from.pciePerS;
  to.memoryMib = from.memoryMib;
  const healthy = from.effect;
  effect.slow = healthy.slow;
  effect.throttled = healthy.throttled;
  effect.late = healthy.late;
  effect.idle = healthy.idle;
  effect.memory = healthy.memory;
  effect.gone = healthy.gone;
  effect.xid = healthy.xid;
  effect.slowClock = healthy.slowClock;
  effect.linkGen = healthy.linkGen;
  effect.linkWidth = healthy.linkWidth;
  effect.stuck = healthy.stuck;
  effect.traffic = healthy.traffic;
  effect.pfc = healthy.pfc;
  effect.congestion = healthy.congestion;
  effect.linkDown = healthy.linkDown;
  to.effect = effect;
}

function byMachine<T extends { readonly machine: number }>(
  machines: number,
  all: readonly T[],
): T[][] {
  const lists: T[][] = Array.from({ length: machines }, () => []);
  for (const one of all) lists[one.machine]!.push(one);
  return lists;
}
