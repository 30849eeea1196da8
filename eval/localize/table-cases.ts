/**
 * Cases of the tables: a few trainings a size (layouts as cases.ts draws them), because the paper's detector is
 * trained for each LLM job (§5.1); of each many runs with one fault. Windows are 100 iterations (§5.1), and the fault
 * begins late in them if it lasts, so that δ, which compares with the window's mean, has something to compare with.
 */
import { randomInt, seeded, type Random } from "../../src/base/random.ts";
import { median } from "../../src/maths/robust.ts";
import type { Device } from "./attribution/devices.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { makeTopology } from "../../src/simulate/cluster/topology.ts";
import type { Answer } from "./answer.ts";
import { drawCase, KINDS, type Kind } from "./cases.ts";
import { keepJob, type KeptJob } from "./kept-job.ts";
import { ours } from "./ours.ts";

export type Shape = "steady" | "spike" | "fluctuation";
export const SHAPES: readonly Shape[] = ["steady", "spike", "fluctuation"];

export const ITERATIONS = 100;
/** First slow iteration: thirty slow ones at the end, or seventy in which some are. */
const FROM: Readonly<Record<Shape, number>> = { steady: 71, spike: 31, fluctuation: 31 };
/** A fault must make slow iterations this much longer than the same job's without it, as in run.ts. */
const DECIDABLE = 0.03;
const PROBED = 4;
/** As δ = 1.1 has it. */
const IRREGULAR = 0.1;
/** What "ours" compares, as in run.ts. */
const COMPARED = 6;

export interface TableCase {
  readonly seed: number;
  readonly kind: Kind;
  readonly shape: Shape;
  readonly spec: ClusterSpec;
  readonly cause: "compute" | "network";
  /** As in cases.ts: ranks of the device, and its name. */
  readonly ranks: readonly number[];
  readonly name: string;
}

/** The layout of one of a size's trainings. */
export function training(gpus: number, number: number): ClusterSpec {
  return drawCase(gpus, "healthy", gpus * 104_729 + number).spec;
}

export interface Fault {
  readonly text: string;
  readonly ranks: readonly number[];
  readonly name: string;
}

/** Severities as in cases.ts. */
export function drawFault(spec: ClusterSpec, kind: Kind, random: Random): Fault {
  const { gpus, pp } = spec;
  const rank = randomInt(random, gpus);
  const between = (low: number, high: number): string =>
    `severity=${(low + (high - low) * random()).toFixed(2)}`;
  switch (kind) {
    case "gpu-slow":
      return {
        text: `gpu-slow:rank=${rank}:${between(1.5, 3)}`,
        ranks: [rank],
        name: `rank ${rank}`,
      };
    case "cpu-stall":
      return {
        text: `cpu-stall:rank=${rank}:${between(2, 8)}`,
        ranks: [rank],
        name: `rank ${rank}`,
      };
    case "nic":
      return {
        text: `network-slow:rank=${rank}:${between(2, 10)}`,
        ranks: [rank],
        name: `nic of rank ${rank}`,
      };
    case "link": {
      const lanes = gpus / pp;
      const a = randomInt(random, gpus - lanes);
      const ranks = [a, a + lanes];
      const text = `network-slow:link=${ranks.join("-")}:${between(5, 25)}`;
      return { text, ranks, name: `link ${ranks.join("–")}` };
    }
    case "leaf": {
      const topology = makeTopology(spec);
      const leaf = topology.leafOf(rank);
      const all = Array.from({ length: gpus }, (_, r) => r);
      const ranks = all.filter((r) => topology.leafOf(r) === leaf);
      return {
        text: `network-slow:switch=leaf${leaf}:${between(2, 6)}`,
        ranks,
        name: `leaf ${leaf}`,
      };
    }
  }
}

export function drawTableCase(
  layout: ClusterSpec,
  kind: Kind,
  shape: Shape,
  seed: number,
): TableCase {
  const { text, ranks, name } = drawFault(layout, kind, seeded(seed));
  const fault = parseFault(`${text}:from=${FROM[shape]}:shape=${shape}`);
  const spec = completeSpec({ ...layout, iterations: ITERATIONS, seed, faults: [fault] });
  const cause = kind === "gpu-slow" || kind === "cpu-stall" ? "compute" : "network";
  return { seed, kind, shape, spec, cause, ranks, name };
}

export interface RunCase {
  readonly one: TableCase;
  readonly job: KeptJob;
  /** How much longer the fault makes iterations, as a share. */
  readonly slowdown: number;
}

/** Runs of a training, kinds in turn (pairs of stages only where there are stages), until enough are decidable. */
export function* runCases(
  layout: ClusterSpec,
  count: number,
  firstSeed: number,
  shapes: readonly Shape[] = ["steady"],
  /** Cases that other trainings had, so that kinds and shapes take turns over all. */
  before = 0,
): Generator<RunCase> {
  const kinds = KINDS.filter((kind) => kind !== "link" || layout.pp > 1);
  let made = 0;
  for (let n = 0; made < count && n < 8 * count; n++) {
    // Kinds have their turn of the cases counted, so that those with many too small faults are not rare.
    const kind = kinds[(before + made) % kinds.length]!;
    const shape = shapes[Math.floor((before + made) / kinds.length) % shapes.length]!;
    const one = drawTableCase(layout, kind, shape, firstSeed + n);
    const slowdown = slowdownOf(one);
    if (slowdown < DECIDABLE) continue;
    made++;
    yield { one, job: keepJob(one.spec, { starts: true }), slowdown };
  }
}

/** By a few iterations with the fault and without: the same noise in both. */
function slowdownOf({ spec }: TableCase): number {
  const few = { ...spec, iterations: PROBED };
  const faults = spec.faults.map((fault) => ({ ...fault, from: 1, shape: "steady" as const }));
  const [faulty, twin] = [keepJob({ ...few, faults }), keepJob({ ...few, faults: [] })];
  return median(faulty.iterationMs) / median(twin.iterationMs) - 1;
}

/** The device itself; or what always goes with it: a NIC's cable, one end of a pair, a rank's CPU. */
export function isDevice({ kind, ranks, cause, spec }: TableCase, device: Device): boolean {
  const isWithin = device.ranks.every((rank) => ranks.includes(rank));
  if (cause === "compute")
    return device.kind === "cpu"
      ? device.ranks.includes(ranks[0]!)
      : device.kind === "gpu" && isWithin;
  if (kind === "leaf")
    return device.name === makeTopology(spec).leafName(makeTopology(spec).leafOf(ranks[0]!));
  return (device.kind === "nic" || device.kind === "link") && isWithin;
}

/** Ours is told when a lasting fault began, which is the iteration tracker's answer, and never δ. */
export function isOursRight({ one, job }: RunCase): boolean {
  const answer = oursOn(one, job);
  return answer.ranks.length > 0 && answer.cause === one.cause && answer.name === one.name;
}

function oursOn({ shape }: TableCase, job: KeptJob): Answer {
  const from = FROM[shape];
  const { iterationMs } = job;
  const numbers = iterationMs.map((_, i) => i + 1);
  const usualMs = median(iterationMs.slice(0, from - 1));
  const longer = (by: number): number[] =>
    numbers.filter((n) => n >= from && iterationMs[n - 1]! > (1 + by) * usualMs);
  const calm = numbers.filter((n) => n < from && iterationMs[n - 1]! <= (1 + DECIDABLE) * usualMs);
  const normal = calm.slice(-COMPARED);
  if (shape === "steady")
    return ours(job, [...normal, ...numbers.slice(from - 1, from - 1 + COMPARED)]);
  // Of single slow iterations those most like each other: among the longest are hiccups, among the shortest noise.
  const slow = longer(IRREGULAR).length > 0 ? longer(IRREGULAR) : longer(DECIDABLE);
  const levelMs = median(slow.map((n) => iterationMs[n - 1]!));
  const offMs = (n: number): number => Math.abs(iterationMs[n - 1]! - levelMs);
  const alike = slow.sort((a, b) => offMs(a) - offMs(b)).slice(0, COMPARED);
  return ours(job, [...normal, ...alike.sort((a, b) => a - b)]);
}
