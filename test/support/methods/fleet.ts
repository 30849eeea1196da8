/** Small fleets for tests: levels of an H100 node, noise that wanders, and whatever a test does to single machines. */
import { seeded, type Random } from "../../../src/base/random.ts";
import type { Fleet, MetricGrid } from "../../../src/model/fleet.ts";

const LEVELS: Readonly<Record<string, { level: number; noise: number; halt: number }>> = {
  "cpu-usage": { level: 0.17, noise: 0.01, halt: 0.16 },
  "memory-usage": { level: 0.32, noise: 0.002, halt: 0.32 },
  "disk-usage": { level: 0.4, noise: 0.0001, halt: 0.4 },
  "tcp-throughput": { level: 2.4e6, noise: 3e5, halt: 2e6 },
  "tcp-rdma-throughput": { level: 3e9, noise: 1e8, halt: 0 },
  "pfc-tx-packet-rate": { level: 20, noise: 8, halt: 0 },
  "gpu-duty-cycle": { level: 99, noise: 0.5, halt: 100 },
  "gpu-power-draw": { level: 520, noise: 12, halt: 165 },
  "gpu-temperature": { level: 60, noise: 0.5, halt: 45 },
  "gpu-tensor-core-activity": { level: 0.4, noise: 0.01, halt: 0 },
  "gpu-graphics-engine-activity": { level: 0.98, noise: 0.005, halt: 0.99 },
  "gpu-clocks": { level: 1755, noise: 8, halt: 1980 },
  "gpu-memory-used": { level: 62_000, noise: 10, halt: 62_000 },
};

export interface Change {
  readonly machine: number;
  readonly metric: string;
  readonly fromS: number;
  readonly toS?: number;
  /** One device of a machine's; all of them by default. */
  readonly device?: number;
  /** New value out of the old one; NaN for no sample. */
  readonly to: (value: number) => number;
}

export interface TestFleet {
  readonly machines?: number;
  readonly seconds?: number;
  readonly stepS?: number;
  readonly seed?: number;
  readonly gpus?: number;
  readonly metrics?: readonly string[];
  readonly changes?: readonly Change[];
  /** From then on everybody waits. */
  readonly haltS?: number;
  /** Times in which everybody waits. */
  readonly pauses?: readonly (readonly [fromS: number, toS: number])[];
  readonly stages?: number;
  /** Factor on power and tensor activity, by stage. */
  readonly stageFactor?: (stage: number) => number;
}

export const EPOCH_S = 1_794_700_800;

export function testFleet(given: TestFleet = {}): Fleet {
  const { machines = 16, seed = 1, stages = 1 } = given;
  const random = seeded(seed);
  const metrics = given.metrics ?? Object.keys(LEVELS);
  const role = Int32Array.from({ length: machines }, (_, m) => Math.floor((m * stages) / machines));
  return {
    machines: Array.from({ length: machines }, (_, m) => `node${String(m).padStart(3, "0")}`),
    role,
    roles: stages === 1 ? ["all machines"] : Array.from({ length: stages }, (_, s) => `stage ${s}`),
    grids: metrics.map((metric) => gridOf(metric, given, role, random)),
    missing: [],
  };
}

function gridOf(metric: string, given: TestFleet, role: Int32Array, random: Random): MetricGrid {
  const { seconds = 900, stepS = 1, gpus = 4, changes = [], haltS = Infinity, pauses = [] } = given;
  const ticks = Math.floor(seconds / stepS);
  const cells = role.length * ticks;
  const isByDevice = metric.startsWith("gpu-");
  const devices = isByDevice ? gpus : 1;
  const grid = {
    mean: new Float32Array(cells),
    low: new Float32Array(cells).fill(Infinity),
    high: new Float32Array(cells).fill(-Infinity),
    lowDevice: new Uint8Array(cells),
    highDevice: new Uint8Array(cells),
    reporting: new Uint8Array(cells),
  };
  const { level, noise, halt } = LEVELS[metric]!;
  const mine = changes.filter((change) => change.metric === metric);
  for (let m = 0; m < role.length; m++) {
    const factor = /power|tensor/.test(metric) ? (given.stageFactor?.(role[m]!) ?? 1) : 1;
    for (let device = 0; device < devices; device++) {
      const nature = noise * gauss(random);
      let wander = 0;
      for (let t = 0; t < ticks; t++) {
        const atS = t * stepS;
        wander = 0.9 * wander + 0.43 * gauss(random);
        const waits = atS >= haltS || pauses.some(([from, to]) => atS >= from && atS < to);
        let value = Math.max(0, (waits ? halt : level * factor) + nature + noise * wander);
        if (metric === "gpu-duty-cycle") value = Math.min(100, Math.round(value));
        for (const change of mine) {
          if (change.machine !== m || atS < change.fromS || atS >= (change.toS ?? Infinity))
            continue;
          if (change.device === undefined || change.device === device) value = change.to(value);
        }
        if (Number.isNaN(value)) continue;
        const at = m * ticks + t;
        grid.mean[at]! += value;
        grid.reporting[at]!++;
        if (value < grid.low[at]!) {
          grid.low[at] = value;
          grid.lowDevice[at] = device;
        }
        if (value > grid.high[at]!) {
          grid.high[at] = value;
          grid.highDevice[at] = device;
        }
      }
    }
  }
  let seen = 0;
  for (let at = 0; at < cells; at++) {
    const count = grid.reporting[at]!;
    if (count > 0) seen++;
    grid.mean[at] = count === 0 ? NaN : grid.mean[at]! / count;
    if (count === 0) grid.low[at] = grid.high[at] = NaN;
  }
  return {
    metric,
    source: isByDevice ? `DCGM_${metric}` : `node_${metric}`,
    stepS,
    startS: EPOCH_S,
    ticks,
    mean: grid.mean,
    low: isByDevice ? grid.low : grid.mean,
    high: isByDevice ? grid.high : grid.mean,
    lowDevice: isByDevice ? grid.lowDevice : null,
    highDevice: isByDevice ? grid.highDevice : null,
    reporting: isByDevice ? grid.reporting : null,
    devices: isByDevice ? Array.from({ length: gpus }, (_, gpu) => `gpu${gpu}`) : [],
    coverage: seen / cells,
  };
}

function gauss(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
