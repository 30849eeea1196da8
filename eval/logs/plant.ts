/**
 * Plants a failure into a job of many nodes. The truth is known because we put it there: indicating are the root's lines
 * (those that the labels of a real case mark, or ours) and the direct cascade, that is the line by which a peer first says
 * that somebody is late or gone. Frames, advice, exits and teardown are not, nor are errors that the job lives with.
 * Seeds below 1000 are for development.
 */
import { pick, randomInt, seeded, type Random } from "../../src/base/random.ts";
import { sample } from "../../test/support/sample.ts";
import type { FailureScript, HealthyScript, Material } from "./plant-material.ts";
import { renderer, type LayoutKind, type PlantedLine } from "./plant-layout.ts";
import {
  BENIGN,
  CASCADES,
  DECOYS,
  OWN_FAILURES,
  OWN_HEALTHY,
  TEARDOWN,
  TEARDOWN_SCHEDULER,
  type FailureKind,
} from "./plant-scripts.ts";

export interface PlantOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly gpusPerNode: number;
  readonly material: Material | null;
  /** No failure: for the pool of normal events. */
  readonly isHealthy?: boolean;
  /** Name of the healthy script; one by the seed where not given. */
  readonly base?: string;
}

export interface PlantedJob {
  readonly seed: number;
  readonly layout: LayoutKind;
  readonly failure: string;
  readonly category: string;
  readonly base: string;
  /** In the order of files and of lines within them. */
  readonly lines: readonly PlantedLine[];
  readonly truth: {
    /** Any name by which the faulty node may be called; empty where no node is at fault. */
    readonly nodes: ReadonlySet<string>;
    /** In progress when it failed; null before training. */
    readonly iteration: number | null;
    readonly stage: "launch" | "train";
  };
}

const START_MS = Date.UTC(2026, 2, 1, 8);
const ITERATION_MS = 4000;
const SKEW_MS = 1500;
const FAR_SKEW_MS = 20_000;

/** A line before it is known how it will look. `node` -1 is the scheduler. */
export interface RawLine {
  readonly node: number;
  readonly local: number;
  readonly atMs: number;
  readonly text: string;
  readonly kind: PlantedLine["kind"];
  readonly log: "own" | "kernel" | "scheduler";
  readonly iteration?: number;
}

export function plantJob(options: PlantOptions): PlantedJob {
  const { seed, nodes, gpusPerNode, material } = options;
  const random = seeded(seed * 7919 + nodes);
  const scripts = [...OWN_HEALTHY, ...(material?.healthy ?? [])];
  const drawn = pick(random, scripts);
  const script = scripts.find(({ name }) => name === options.base) ?? drawn;
  const failure = chooseFailure(random, script, material);
  const hosts = hostNames(random, nodes);
  const iterations = 12 + randomInt(random, 28);
  const culprit = randomInt(random, nodes);
  const atLaunch = failure.atLaunch === true || random() < 0.2;
  const isHealthy = options.isHealthy === true;
  const trainMs = START_MS + 120_000;
  const failedAfter = isHealthy ? iterations : atLaunch ? 0 : 6 + randomInt(random, iterations - 6);
  const failMs =
    atLaunch && !isHealthy ? START_MS + 60_000 : trainMs + (failedAfter + 0.5) * ITERATION_MS;
  const job: Building = {
    random,
    nodes,
    gpusPerNode,
    hosts,
    culprit,
    raw: [],
    endMs: failMs,
  };
  writeHealthy(job, script, isHealthy ? null : failure, failMs, failedAfter, trainMs);
  writeBenign(job, failMs);
  writeDecoys(job, failMs);
  const isKernel = !isHealthy && failure.log === "kernel";
  writeKernel(job, script.name, material?.kernel ?? [], isKernel);
  if (!isHealthy) writeFailure(job, failure, failMs);
  const offsets = clockOffsets(random, nodes);
  const { layout, lines, namesOf } = renderer(random, hosts, gpusPerNode, offsets)(job.raw);
  const hasNode = !isHealthy && failure.where === "node";
  return {
    seed,
    layout,
    failure: failure.name,
    category: failure.category,
    base: script.name,
    lines,
    truth: {
      nodes: new Set(hasNode ? namesOf(culprit) : []),
      iteration: failedAfter > 0 ? failedAfter : null,
      stage: failedAfter > 0 ? "train" : "launch",
    },
  };
}

interface Building {
  readonly random: Random;
  readonly nodes: number;
  readonly gpusPerNode: number;
  readonly hosts: readonly string[];
  readonly culprit: number;
  readonly raw: RawLine[];
  endMs: number;
}

function hostNames(random: Random, nodes: number): string[] {
  const stem = pick(random, ["gpu-", "node", "r7i", "dgx-h"]);
  const from = randomInt(random, 400);
  return Array.from({ length: nodes }, (_, n) => `${stem}${String(from + n).padStart(3, "0")}`);
}

function clockOffsets(random: Random, nodes: number): Float64Array {
  const offsets = Float64Array.from({ length: nodes }, () => normal(random) * SKEW_MS);
  // Somebody's clock is often far off.
  if (random() < 0.5) offsets[randomInt(random, nodes)] = (random() - 0.5) * 2 * FAR_SKEW_MS;
  return offsets;
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Real failures as often as our own, if there are any. A version must stand in the start that it is to differ in. */
function chooseFailure(
  random: Random,
  script: HealthyScript,
  material: Material | null,
): FailureKind {
  const own = OWN_FAILURES.filter(
    ({ instead }) => !instead || script.everyNode.some((line) => line.startsWith(instead.of)),
  );
  const real = material?.failures ?? [];
  return real.length > 0 && random() < 0.5 ? asKind(random, pick(random, real)) : pick(random, own);
}

const FROM_PEER = /(?:from|remote) peer [a-z][\w-]*\d+/;

function asKind(random: Random, script: FailureScript): FailureKind {
  const isHardware = script.category.startsWith("hardware.");
  const where = isHardware ? "node" : random() < 0.5 ? "all" : "rank";
  const isKernel = script.lines.some(({ text }) => /NVRM|mlx5_core|Out of memory: Kill/.test(text));
  const isScheduler = script.lines.some(
    ({ text, isLabelled }) => isLabelled && /^(?:srun|slurmstepd):/.test(text),
  );
  const labelled = script.lines
    .filter(({ isLabelled }) => isLabelled)
    .map(({ text }) => text.replace(/\bon [a-z][\w-]*\d+/, "on {faulty}"));
  // Where peers speak of the culprit, too, they are not the culprit.
  const isAllByPeers = labelled.every((text) => FROM_PEER.test(text));
  const isByPeer = (text: string): boolean => !isAllByPeers && FROM_PEER.test(text);
  return {
    name: script.name,
    category: script.category,
    where,
    log: isScheduler ? "scheduler" : isKernel ? "kernel" : "own",
    root: labelled.filter((text) => !isByPeer(text)),
    byPeer: labelled.filter(isByPeer),
    beside: script.lines.filter(({ isLabelled }) => !isLabelled).map(({ text }) => text),
    cascade: where === "all" ? "none" : random() < 0.5 ? "closed" : "timeout",
    isGone: isScheduler,
  };
}

function put(job: Building, line: Omit<RawLine, "local"> & { readonly local?: number }): void {
  const text = fillIn(job, line.text);
  job.raw.push({ local: 0, ...line, text });
  if (line.atMs > job.endMs) job.endMs = line.atMs;
}

function fillIn({ random, hosts, culprit }: Building, text: string): string {
  return text
    .replaceAll("{n}", () => String(randomInt(random, 900) + 1))
    .replaceAll("{faulty}", hosts[culprit]!)
    .replaceAll("{host}", () => pick(random, hosts));
}

function writeHealthy(
  job: Building,
  script: HealthyScript,
  failure: FailureKind | null,
  failMs: number,
  failedAfter: number,
  trainMs: number,
): void {
  const { random, nodes, gpusPerNode, culprit } = job;
  const own = { kind: "healthy", log: "own" } as const;
  // A random tenth of the lines of the start are missing here and there, as real ones are.
  for (let node = 0; node < nodes; node++) {
    const slow = random() * 8000;
    script.everyNode.forEach((line, i) => {
      const instead = failure?.instead && node === culprit && line.startsWith(failure.instead.of);
      if (!instead && random() < 0.002) return;
      // NCCL is every rank's, launchers are the node's.
      const ranks = line.startsWith("NCCL ") ? gpusPerNode : 1;
      for (let local = 0; local < ranks; local++) {
        const atMs = START_MS + 2000 + slow + i * 400 + random() * 300;
        const text = instead ? failure.instead.by : line;
        put(job, { ...own, node, local, atMs, text, kind: instead ? "root" : "healthy" });
      }
    });
  }
  script.firstOnly.forEach((text, i) => {
    const atMs = START_MS + (i / script.firstOnly.length) * 110_000;
    if (atMs < failMs) put(job, { ...own, node: 0, atMs, text });
  });
  for (let i = 1; i <= failedAfter; i++) {
    const atMs = trainMs + i * ITERATION_MS + random() * 200;
    const writers = script.everyRankReports
      ? Array.from({ length: nodes }, (_, node) => node)
      : [nodes - 1];
    for (const node of writers) {
      script.iteration.forEach((line, place) => {
        const text = place === 0 ? reported(line, i) : line;
        const at = atMs + place + random() * 100;
        const local = script.everyRankReports ? 0 : gpusPerNode - 1;
        const mark = place === 0 ? { iteration: i } : {};
        put(job, { ...own, ...mark, node, local, atMs: at, text });
      });
    }
  }
  if (failure) return;
  for (const text of script.ending) put(job, { ...own, node: 0, atMs: failMs + 1000, text });
  // Half of the healthy jobs end with their time.
  if (random() < 0.5) return;
  for (let node = 0; node < nodes; node++)
    put(job, { ...own, node, atMs: failMs + 2000 + random() * 900, text: TEARDOWN[0]! });
}

function reported(line: string, iteration: number): string {
  return line.replace(/(iteration +|step:? )(?:\d+|\{n\})/, `$1${iteration}`);
}

/** Some at any time, some right before the end: they are as loud as the root. */
function writeBenign(job: Building, failMs: number): void {
  const { random, nodes } = job;
  const own = { kind: "benign", log: "own" } as const;
  const times = 3 + randomInt(random, 3 + Math.ceil(Math.log2(nodes)));
  for (let i = 0; i < times; i++) {
    const node = randomInt(random, nodes);
    const isLate = random() < 0.3;
    const atMs = isLate
      ? failMs - random() * 2 * ITERATION_MS
      : START_MS + 10_000 + random() * (failMs - START_MS - 10_000);
    pick(random, BENIGN).forEach((text, place) => {
      put(job, { ...own, node, atMs: atMs + place * 900, text });
    });
  }
}

/** On nodes that are not at fault; in a third of the cases within the last two iterations. */
function writeDecoys(job: Building, failMs: number): void {
  const { random, nodes, culprit } = job;
  const times = randomInt(random, 3);
  for (let i = 0; i < times; i++) {
    const node = (culprit + 1 + randomInt(random, nodes - 1)) % nodes;
    const { lines, log } = pick(random, DECOYS);
    const atMs =
      random() < 0.33
        ? failMs - random() * 2 * ITERATION_MS
        : START_MS + 20_000 + random() * (failMs - START_MS - 20_000);
    lines.forEach((text, place) => {
      put(job, { kind: "benign", log, node, atMs: atMs + place * 1500, text });
    });
  }
}

/** Some users add the kernels' logs of a few machines: the same everywhere, but for the culprit's. */
function writeKernel(
  job: Building,
  base: string,
  kernel: readonly string[],
  isCulprits: boolean,
): void {
  const { random, nodes, culprit } = job;
  if (kernel.length === 0 || (!isCulprits && random() < 0.5)) return;
  const from = (base.length * 397) % (kernel.length - 60);
  const chosen = new Set(sample(random, nodes, Math.min(nodes, 2 + randomInt(random, 5))));
  if (isCulprits) chosen.add(culprit);
  for (const node of chosen) {
    kernel.slice(from, from + 50).forEach((text, i) => {
      if (random() < 0.03) return;
      put(job, { kind: "healthy", log: "kernel", node, atMs: START_MS + i * 50, text });
    });
  }
}

function writeFailure(job: Building, failure: FailureKind, failMs: number): void {
  const { random, nodes, gpusPerNode, culprit } = job;
  const places = failure.where === "all" ? Array.from({ length: nodes }, (_, n) => n) : [culprit];
  for (const node of places) {
    const start = failMs + (failure.where === "all" ? random() * 800 : 0);
    const local = randomInt(random, gpusPerNode);
    const common = { node: failure.log === "scheduler" ? -1 : node, local, log: failure.log };
    const beside = failure.beside ?? [];
    beside.forEach((text, i) => {
      put(job, { ...common, atMs: start + i, text, kind: "noise" });
    });
    failure.root.forEach((text, i) => {
      put(job, { ...common, atMs: start + beside.length + i * 20, text, kind: "root" });
    });
  }
  const peer = (culprit + 1 + randomInt(random, nodes - 1)) % nodes;
  for (const text of failure.byPeer ?? []) {
    const named = text.replace(FROM_PEER, "from peer {faulty}");
    put(job, { node: peer, log: "own", atMs: failMs + 500, text: named, kind: "cascade" });
  }
  writeCascade(job, failure, failMs);
  const endMs = job.endMs + 2000;
  for (let node = 0; node < nodes; node++) {
    if (failure.isGone && node === culprit) continue;
    TEARDOWN.forEach((text, i) => {
      put(job, { node, log: "own", atMs: endMs + random() * 3000 + i * 10, text, kind: "noise" });
    });
  }
  for (let i = 0; i < Math.min(nodes, 6); i++) {
    const [text] = TEARDOWN_SCHEDULER as [string];
    put(job, { node: -1, log: "scheduler", atMs: endMs + 5000 + i, text, kind: "noise" });
  }
}

/**
 * Neighbours of the culprit name it; the others name a neighbour of theirs, as rings do. Bad completions are seen by the
 * neighbours alone, and the others run into their timeouts.
 */
function writeCascade(job: Building, failure: FailureKind, failMs: number): void {
  const { random, nodes, hosts, culprit } = job;
  // Half of the jobs have groups that never get to their timeout: the launcher is quicker.
  const silentShare = random() < 0.5 ? 0.03 : 0.4;
  for (let node = 0; node < nodes; node++) {
    if (node === culprit && (failure.isGone || failure.cascade === "closed")) continue;
    const distance = Math.min((node - culprit + nodes) % nodes, (culprit - node + nodes) % nodes);
    if (distance > 1 && random() < silentShare) continue;
    const isNear = distance === 1;
    const kind = failure.cascade === "completion" && !isNear ? "timeout" : failure.cascade;
    const { direct, after } = CASCADES[kind];
    const afterMs = kind === "timeout" ? 600_000 : 300;
    const jitter = kind === "timeout" ? random() * 3000 : distance * 20 + random() * 1500;
    const start = failMs + afterMs + jitter;
    const towards = (node - culprit + nodes) % nodes <= nodes / 2 ? node - 1 : node + 1;
    const peer = hosts[(towards + nodes) % nodes]!;
    const ranks = 1 + randomInt(random, job.gpusPerNode);
    for (let local = 0; local < ranks; local++) {
      direct.forEach((text, i) => {
        const named = text.replaceAll("{peer}", peer);
        put(job, { node, local, log: "own", atMs: start + i, text: named, kind: "cascade" });
      });
      after.forEach((text, i) => {
        put(job, { node, local, log: "own", atMs: start + 5 + i, text, kind: "noise" });
      });
    }
  }
}
