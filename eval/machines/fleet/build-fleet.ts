/** A scene as grids, the form in which machines are compared: what a collector would have made of its text, without the text. */
import type { Fleet, MetricGrid } from "../../../src/model/fleet.ts";
import {
  CATALOG,
  type CatalogMetric,
  type MetricSource,
} from "../../../src/model/metric-catalog.ts";
import type { GpuFamily, NodeFamily } from "../../../src/simulate/emit/metrics/families.ts";
import { GPU_FAMILIES } from "../../../src/simulate/emit/metrics/gpu-families.ts";
import { NIC_FAMILIES } from "../../../src/simulate/emit/metrics/nic-families.ts";
import { NODE_FAMILIES } from "../../../src/simulate/emit/metrics/node-families.ts";
import { exporterOf, type Exporter, type Scene } from "../../../src/simulate/emit/metrics/scene.ts";
import { SeriesWalk } from "../../../src/simulate/emit/metrics/walk.ts";

export interface FleetOptions {
  /** Ids of the catalog; all by default. */
  readonly metrics?: readonly string[];
  readonly startS?: number;
}

/** Both ways of a PCIe 5 x16 link: what "PCIe usage" is a share of. */
const PCIE_BYTES_PER_S = 2 * 63e9;

type Names = Pick<Fleet, "machines" | "role" | "roles">;

export function buildFleet(scene: Scene, names: Names, options: FleetOptions = {}): Fleet {
  const { metrics, startS = 0 } = options;
  const walk = new SeriesWalk(scene);
  const wanted = CATALOG.filter(({ id }) => metrics === undefined || metrics.includes(id));
  const grids: MetricGrid[] = [];
  for (const metric of wanted) {
    const grid = gridOf(scene, walk, metric, startS, grids);
    if (grid) grids.push(grid);
  }
  return { ...names, grids, missing: [] };
}

function gridOf(
  scene: Scene,
  walk: SeriesWalk,
  metric: CatalogMetric,
  startS: number,
  before: readonly MetricGrid[],
): MetricGrid | null {
  // No exporter has it: computed from the bytes and the link's speed.
  if (metric.id === "pcie-usage") {
    const known = before.find((grid) => grid.metric === "pcie-bandwidth");
    if (known) return shareOf(known, metric.id);
    const bytes = CATALOG.find(({ id }) => id === "pcie-bandwidth")!;
    return deviceGrid(scene, walk, metric, bytes.sources[0]!, startS, 1 / PCIE_BYTES_PER_S);
  }
  for (const source of metric.sources) {
    if (source.names.every((name) => DEVICE.has(name)))
      return deviceGrid(scene, walk, metric, source, startS, source.scale ?? 1);
    if (source.names.every((name) => NODE.has(name)))
      return nodeGrid(scene, walk, metric, source, startS);
  }
  return null;
}

const DEVICE = new Map<string, GpuFamily>(
  [...GPU_FAMILIES, ...NIC_FAMILIES].map((family) => [family.name, family]),
);
const NODE = new Map<string, NodeFamily>(NODE_FAMILIES.map((family) => [family.name, family]));

function deviceGrid(
  scene: Scene,
  walk: SeriesWalk,
  metric: CatalogMetric,
  source: MetricSource,
  startS: number,
  scale: number,
): MetricGrid {
  const { machines, gpusPerMachine: gpus, ticks, stepS } = scene;
  const families = source.names.map((name) => DEVICE.get(name)!);
  const isDcgm = families[0]!.source === "dcgm";
  const size = machines * ticks;
  const mean = new Float32Array(size);
  const low = new Float32Array(size).fill(NaN);
  const high = new Float32Array(size).fill(NaN);
  const lowDevice = new Uint8Array(size);
  const highDevice = new Uint8Array(size);
  const reporting = new Uint8Array(size);
  const sum = new Float64Array(ticks);
  const added = new Float64Array(ticks);
  for (let machine = 0; machine < machines; machine++) {
    const lost = scene.lost(exporterOf(families[0]!), machine);
    const at = machine * ticks;
    sum.fill(0);
    for (let gpu = 0; gpu < gpus; gpu++) {
      let values = walk.gpu(families[0]!, machine, gpu);
      if (families.length > 1) {
        added.set(values);
        for (const family of families.slice(1)) {
          const more = walk.gpu(family, machine, gpu);
          for (let t = 0; t < ticks; t++) added[t]! += more[t]!;
        }
        values = added;
      }
      for (let t = 0; t < ticks; t++) {
        const read = values[t]!;
        const value = source.bits
          ? read !== read
            ? NaN
            : Number((read & source.bits) !== 0)
          : read * scale;
        if (value !== value || (lost !== null && lost[t] === 1)) continue;
        const cell = at + t;
        if (reporting[cell]!++ === 0) {
          low[cell] = high[cell] = value;
          lowDevice[cell] = highDevice[cell] = gpu;
        } else if (value < low[cell]!) {
          low[cell] = value;
          lowDevice[cell] = gpu;
        } else if (value > high[cell]!) {
          high[cell] = value;
          highDevice[cell] = gpu;
        }
        sum[t]! += value;
      }
    }
    for (let t = 0; t < ticks; t++) {
      const count = reporting[at + t]!;
      mean[at + t] =
        count === 0
          ? NaN
          : metric.over === "mean"
            ? sum[t]! / count
            : metric.over === "sum"
              ? sum[t]!
              : high[at + t]!;
    }
  }
  const shared = {
    metric: metric.id,
    source: source.names.join(" + "),
    stepS,
    startS,
    ticks,
    mean,
    coverage: coverageOf(reporting, gpus),
  };
  if (!metric.perDevice) {
    const none = { lowDevice: null, highDevice: null, reporting: null, devices: [] };
    return { ...shared, low: mean, high: mean, ...none };
  }
  const devices = Array.from({ length: gpus }, (_, gpu) => (isDcgm ? `gpu${gpu}` : `mlx5_${gpu}`));
  return { ...shared, low, high, lowDevice, highDevice, reporting, devices };
}

/** The bytes' grid as a share of what a link can carry; a machine's is the mean of its GPUs'. */
function shareOf(bytes: MetricGrid, metric: string): MetricGrid {
  const { low, high, reporting } = bytes;
  return {
    ...bytes,
    metric,
    mean: bytes.mean.map((sum, cell) => sum / reporting![cell]! / PCIE_BYTES_PER_S),
    low: low.map((value) => value / PCIE_BYTES_PER_S),
    high: high.map((value) => value / PCIE_BYTES_PER_S),
  };
}

function coverageOf(reporting: Uint8Array, gpus: number): number {
  let seen = 0;
  for (const count of reporting) seen += count;
  return reporting.length === 0 ? 0 : seen / (reporting.length * gpus);
}

/** Of a machine as a whole: idle time of its CPUs, shares of memory and disk, bytes. */
function nodeGrid(
  scene: Scene,
  walk: SeriesWalk,
  metric: CatalogMetric,
  source: MetricSource,
  startS: number,
): MetricGrid {
  const { machines, ticks, stepS } = scene;
  const families = source.names.map((name) => NODE.get(name)!);
  const mean = new Float32Array(machines * ticks);
  const exporter: Exporter = "node";
  const first = new Float64Array(ticks);
  let seen = 0;
  for (let machine = 0; machine < machines; machine++) {
    const lost = scene.lost(exporter, machine);
    // The idle mode is the first label; the CPUs of a machine are alike.
    first.set(walk.node(families[0]!, machine, 0));
    const whole = source.how === "used-share" ? walk.node(families[1]!, machine, 0) : null;
    for (let t = 0; t < ticks; t++) {
      const value =
        whole !== null
          ? 1 - first[t]! / whole[t]!
          : source.how === "idle-rate"
            ? 1 - first[t]!
            : first[t]!;
      const isThere = value === value && lost?.[t] !== 1;
      mean[machine * ticks + t] = isThere ? value : NaN;
      if (isThere) seen++;
    }
  }
  return {
    metric: metric.id,
    source: source.names.join(" + "),
    stepS,
    startS,
    ticks,
    mean,
    low: mean,
    high: mean,
    lowDevice: null,
    highDevice: null,
    reporting: null,
    devices: [],
    coverage: mean.length === 0 ? 0 : seen / mean.length,
  };
}
