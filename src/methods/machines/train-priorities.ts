/**
 * What a site's own labels teach: Minder's order of metrics (§4.3) and its threshold of each, and how far machines stray
 * there without being faulty, for the default method. A threshold is where it lets most true accusations through, less
 * the false ones.
 */
import { getOrInsert } from "../../base/group-by.ts";
import type { Fleet } from "../../model/fleet.ts";
import type { SiteMetrics } from "../../model/machine-labels.ts";
import { CATALOG } from "../../model/metric-catalog.ts";
import { findMachines } from "./find-machines.ts";
import { standingLimit } from "./limits.ts";
import { traceOf, type Trace } from "./minder/candidates.ts";
import { metricEmbedder } from "./minder/embedding.ts";
import type { MinderModels } from "./minder/model-file.ts";
import { DEFAULT_OPTIONS } from "./minder/options.ts";
import { machinesIn } from "./minder/preprocess.ts";
import {
  addInstances,
  prioritise,
  type Instances,
  type LabelledSpan,
} from "./minder/prioritise.ts";

export interface LabelledTask {
  readonly fleet: Fleet;
  readonly spans: readonly LabelledSpan[];
}

/** Somebody would be accused up to this level; rightly or not. */
interface Accusation {
  readonly level: number;
  readonly isTrue: boolean;
  readonly task: number;
}

export function trainPriorities(
  tasks: readonly LabelledTask[],
  models: MinderModels,
  onProgress: (done: number) => void = () => {},
): SiteMetrics {
  const there = new Set(tasks.flatMap(({ fleet }) => fleet.grids.map(({ metric }) => metric)));
  const metrics = CATALOG.map(({ id }) => id).filter((id) => there.has(id));
  const instances: Instances = { metrics, rows: [], labels: [] };
  for (const { fleet, spans } of tasks) addInstances(instances, fleet, spans);
  const asked = prioritise(instances);
  const scores = new Map<string, Accusation[]>();
  const sigmas = new Map<string, Accusation[]>();
  tasks.forEach((task, number) => {
    onProgress(number);
    for (const metric of asked)
      add(scores, metric, minderAccusations(task, number, metric, models));
    for (const [metric, one] of peerAccusations(task, number)) add(sigmas, metric, [one]);
  });
  const limits = [...scores].flatMap(([metric, all]) => {
    const limit = bestLimit(all);
    if (limit === null || tasksOf(all.filter(({ level, isTrue }) => isTrue && level > limit)) < 2)
      return [];
    return [[metric, Math.max(limit, DEFAULT_OPTIONS.similarityThreshold)] as const];
  });
  const machines = Math.max(0, ...tasks.map(({ fleet }) => fleet.machines.length));
  const kept = [...sigmas].flatMap(([metric, all]) => {
    const limit = siteLimit(all, standingLimit(machines));
    return limit === null ? [] : [[metric, limit] as const];
  });
  const spans = tasks.flatMap((task) => task.spans);
  const faulty = spans.filter(({ isFaulty }) => isFaulty).length;
  return {
    schema: "faultline.machine-priorities/1",
    order: limits.map(([metric]) => metric),
    scores: Object.fromEntries(limits),
    sigmas: Object.fromEntries(kept),
    labels: { faulty, healthy: spans.length - faulty },
  };
}

function add<T>(to: Map<string, T[]>, key: string, values: readonly T[]): void {
  getOrInsert(to, key, () => []).push(...values);
}

/** Pairs of machines take too long in large fleets. */
function strideOf(machines: number): number {
  return machines <= 200 ? 1 : machines <= 600 ? 5 : 10;
}

function minderAccusations(
  { fleet, spans }: LabelledTask,
  task: number,
  metric: string,
  models: MinderModels,
): Accusation[] {
  const grid = fleet.grids.find((one) => one.metric === metric && one.coverage > 0);
  if (!grid) return [];
  const machines = machinesIn(fleet, [grid]);
  const { startS, stepS, ticks } = grid;
  const stride = strideOf(machines.length);
  const { continuityS } = DEFAULT_OPTIONS;
  const embedder = metricEmbedder(grid, machines, models);
  const trace = traceOf(embedder, machines.length, ticks, stride);
  const needed = Math.max(1, Math.ceil(continuityS / (stride * stepS) - 1e-9));
  return spans.flatMap(({ fromS, toS, isFaulty, machine }) => {
    const first = Math.max(0, Math.ceil((fromS - startS) / stepS / stride));
    const last = Math.floor(((toS - startS) / stepS - embedder.window) / stride);
    const levels = lastingLevels(trace, needed, first, last);
    const [who, level] = greatest(levels);
    if (level === 0) return [];
    const named = machines[who]!;
    // Of one machine that was healthy, others say nothing.
    if (!isFaulty && machine !== null && named !== machine) return [];
    return [{ level, isTrue: isFaulty && named === machine, task }];
  });
}

/** By machine: the highest threshold at which it would be the candidate for as many windows as are needed. */
function lastingLevels(
  { who, scores }: Trace,
  needed: number,
  first: number,
  last: number,
): ReadonlyMap<number, number> {
  const levels = new Map<number, number>();
  let from = first;
  for (let w = first; w <= Math.min(last, who.length - 1); w++) {
    if (who[w] !== who[from]) from = w;
    if (w - from + 1 < needed) continue;
    const level = scores.subarray(w - needed + 1, w + 1).reduce((a, b) => Math.min(a, b), Infinity);
    levels.set(who[w]!, Math.max(level, levels.get(who[w]!) ?? 0));
  }
  return levels;
}

function greatest(levels: ReadonlyMap<number, number>): readonly [number, number] {
  let best: readonly [number, number] = [0, 0];
  for (const entry of levels) if (entry[1] > best[1]) best = entry;
  return best;
}

/** Whom the default method accuses, by metric; what nobody has labelled is left out. */
function peerAccusations(
  { fleet, spans }: LabelledTask,
  task: number,
): (readonly [string, Accusation])[] {
  return findMachines(fleet).faulty.flatMap(({ machine: name, sinceS, untilS, deviations }) => {
    const machine = fleet.machines.indexOf(name);
    const during = spans.filter(({ fromS, toS }) => sinceS <= toS && (untilS ?? Infinity) >= fromS);
    const isTrue = during.some((span) => span.isFaulty && span.machine === machine);
    const isFalse = during.some(
      (span) => span.isFaulty || span.machine === null || span.machine === machine,
    );
    if (!isTrue && !isFalse) return [];
    return deviations
      .filter(({ sigmas }) => Number.isFinite(sigmas))
      .map(({ metric, sigmas }) => [metric, { level: sigmas, isTrue, task }] as const);
  });
}

/** Between the accusations that are let through and the next lower one; null where nothing is worth letting through. */
function bestLimit(all: readonly Accusation[]): number | null {
  const sorted = all.toSorted((a, b) => b.level - a.level);
  let [best, at, sum] = [0, 0, 0];
  sorted.forEach(({ isTrue }, i) => {
    sum += isTrue ? 1 : -1;
    if (sum > best) [best, at] = [sum, i + 1];
  });
  if (at === 0) return null;
  const next = sorted[at]?.level ?? 0;
  return rounded((sorted[at - 1]!.level + next) / 2);
}

/** One file proves nothing. */
function tasksOf(all: readonly Accusation[]): number {
  return new Set(all.map(({ task }) => task)).size;
}

/** So many more accusations must come right. */
const LEAST_GAIN = 2;

/** Never above `most`: healthy machines do not stray farther, and labels that say so are not believed. */
function siteLimit(all: readonly Accusation[], most: number): number | null {
  const found = bestLimit(all) ?? rounded(1.1 * Math.max(...all.map(({ level }) => level)));
  const limit = Math.min(found, rounded(most));
  const left = all.filter(({ level }) => level < limit);
  const wrong = left.filter(({ isTrue }) => !isTrue);
  const gain = wrong.length - (left.length - wrong.length);
  return gain >= LEAST_GAIN && tasksOf(wrong) >= 2 ? limit : null;
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
