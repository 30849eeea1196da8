/**
 * A task's series as a site's Prometheus has them: with the exporters' labels, at the times of their scrapes, with exporters
 * that restart. For whoever wants to test more than the comparison of grids: names, absence, coarse sampling.
 */
import { GPU_FAMILIES } from "../../../src/simulate/emit/metrics/gpu-families.ts";
import type { Family } from "../../../src/simulate/emit/metrics/families.ts";
import { NIC_FAMILIES } from "../../../src/simulate/emit/metrics/nic-families.ts";
import { NODE_FAMILIES } from "../../../src/simulate/emit/metrics/node-families.ts";
import { exporterOf, type Exporter } from "../../../src/simulate/emit/metrics/scene.ts";
import { SeriesWalk } from "../../../src/simulate/emit/metrics/walk.ts";
import { siteLabels, type Deployment, type Labels } from "./deployments.ts";
import { Draw } from "./draw.ts";
import type { TaskScene } from "./task-scene.ts";

export interface SiteOptions {
  readonly deployment: Deployment;
  readonly seed: number;
  readonly startS: number;
  /** Exporter's metrics that the site keeps; all by default. */
  readonly names?: ReadonlySet<string>;
  /** Expected restarts of GPU exporters in the whole task. */
  readonly restarts?: number;
  /** Share of the machines whose last scrape or two did not make it into the file. */
  readonly late?: number;
  /** Numbers of machines begin here: another tenant's are others. */
  readonly firstMachine?: number;
}

export interface SiteSeries {
  readonly name: string;
  readonly type: Family["type"];
  readonly labels: Labels;
  readonly timeS: Float64Array;
  readonly value: Float64Array;
}

/** An exporter that was restarted: gone from tick `from` until `until`; its profiling fields fill up until `warm`. */
interface Restart {
  readonly from: number;
  readonly until: number;
  readonly warm: number;
}

/** What counters read when the task begins: machines were up for days. */
const COUNTED_BEFORE_S = 200_000;

export function siteMachines(scene: TaskScene, options: SiteOptions): string[] {
  const { deployment, seed, firstMachine = 0 } = options;
  return Array.from(
    { length: scene.machines },
    (_, m) => siteLabels(deployment, firstMachine + m, 0, seed).machine,
  );
}

/** Values of a series are the caller's. */
export function* siteSeries(scene: TaskScene, options: SiteOptions): Iterable<SiteSeries> {
  const { deployment, seed, names, firstMachine = 0 } = options;
  const walk = new SeriesWalk(scene);
  const restarts = drawRestarts(scene, options);
  const late = drawLate(scene, options);
  const isKept = (name: string): boolean => names === undefined || names.has(name);
  const labelsOf = (m: number, run: number) => siteLabels(deployment, firstMachine + m, run, seed);
  for (let m = 0; m < scene.machines; m++) {
    const { info } = labelsOf(m, 0);
    const again = restarts[m] ? labelsOf(m, 1).info : [];
    for (const { name, labels } of [...info, ...again])
      yield {
        name,
        type: "gauge",
        labels,
        timeS: Float64Array.of(options.startS),
        value: Float64Array.of(1),
      };
  }
  const series = function* (
    family: Family,
    exporter: Exporter,
    m: number,
    labels: Labels,
    values: Float64Array,
  ): Iterable<SiteSeries> {
    const restart = exporter === "dcgm" ? restarts[m]! : null;
    const lost = scene.lost(exporter, m);
    const profiling = family.name.startsWith("DCGM_FI_PROF_");
    const runs: [number, number][] = restart
      ? [
          [0, restart.from],
          [restart.until, scene.ticks],
        ]
      : [[0, scene.ticks]];
    let sum = family.type === "gauge" ? 0 : COUNTED_BEFORE_S * Math.max(0, values[0]! || 0);
    let summed = 0;
    for (const [run, [from, to]] of runs.entries()) {
      const own = exporter === "dcgm" ? labelsOf(m, run).gpu : labelsOf(m, 0).host;
      const timeS: number[] = [];
      const value: number[] = [];
      for (let t = from; t < to; t++) {
        for (; summed <= t; summed++)
          if (family.type !== "gauge" && !Number.isNaN(values[summed]!))
            sum += values[summed]! * scene.stepS;
        if (lost?.[t] === 1 || t >= scene.ticks - late[m]! || Number.isNaN(values[t]!)) continue;
        timeS.push(scrapeS(scene, options, exporter, m, t));
        // The first samples of a watch that has just begun are of a part of its interval.
        const warm = restart && run === 1 && t < restart.warm && profiling ? 0.3 : 1;
        value.push(family.type === "gauge" ? warm * values[t]! : Math.round(sum * 100) / 100);
      }
      if (timeS.length > 0)
        yield {
          name: family.name,
          type: family.type,
          labels: { ...labels, ...own },
          timeS: Float64Array.from(timeS),
          value: Float64Array.from(value),
        };
    }
  };
  for (const family of [...GPU_FAMILIES, ...NIC_FAMILIES]) {
    if (!isKept(family.name)) continue;
    for (let m = 0; m < scene.machines; m++)
      for (let gpu = 0; gpu < scene.gpusPerMachine; gpu++) {
        const device =
          family.source === "dcgm"
            ? gpuLabels(seed, firstMachine + m, gpu)
            : family.source === "ethtool"
              ? { device: `ens${gpu}np0` }
              : { device: `mlx5_${gpu}`, port: "1" };
        yield* series(family, exporterOf(family), m, device, walk.gpu(family, m, gpu));
      }
  }
  for (const family of NODE_FAMILIES) {
    if (!isKept(family.name)) continue;
    for (let m = 0; m < scene.machines; m++)
      for (const [l, label] of family.labels.entries())
        yield* series(family, "node", m, parsed(label), walk.node(family, m, l));
  }
}

function gpuLabels(seed: number, machine: number, gpu: number): Labels {
  return {
    gpu: String(gpu),
    UUID: `GPU-${seed}-${machine}-${gpu}`,
    device: `nvidia${gpu}`,
    modelName: "NVIDIA H100 80GB HBM3",
  };
}

/** `device="eth0",mode="idle"` */
function parsed(label: string): Labels {
  return Object.fromEntries(
    [...label.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key!, value!]),
  );
}

/** Prometheus scrapes each target at an offset of its own, a few milliseconds early or late. */
function scrapeS(
  scene: TaskScene,
  { startS, seed }: SiteOptions,
  exporter: Exporter,
  m: number,
  t: number,
): number {
  const draw = new Draw(seed, exporter, m);
  const ms = Math.round(1000 * (t + draw.unit(0)) * scene.stepS + draw.within(10 + t, -4, 4));
  return startS + ms / 1000;
}

function drawRestarts(scene: TaskScene, { seed, restarts = 0 }: SiteOptions): (Restart | null)[] {
  const found = Array.from<Restart | null>({ length: scene.machines }).fill(null);
  const draw = new Draw(seed, "restarts");
  const count = draw.poisson(0, restarts);
  for (let n = 0; n < count; n++) {
    const from = Math.round(draw.within(10 * n + 2, 0.1, 0.9) * scene.ticks);
    const until = from + 1 + Math.ceil(draw.within(10 * n + 3, 5, 45) / scene.stepS);
    const warm = until + Math.ceil(draw.within(10 * n + 4, 10, 90) / scene.stepS);
    found[draw.whole(10 * n + 1, scene.machines)] = { from, until, warm };
  }
  return found;
}

/** By machine: how many of the last scrapes are not there yet. */
function drawLate(scene: TaskScene, { seed, late = 0 }: SiteOptions): number[] {
  return Array.from({ length: scene.machines }, (_, m) => {
    const draw = new Draw(seed, "late", m);
    return draw.chance(0, late) ? 1 + draw.whole(1, 2) : 0;
  });
}
