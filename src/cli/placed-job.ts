/** A job and its faults from command-line options, or from a JSON file in the terms of model/mitigation.ts. */
import { fieldsOf, jsonOf } from "../base/json.ts";
import { UserError } from "../base/errors.ts";
import type { PlacedJob, Slot, SlowLink } from "../model/mitigation.ts";

export interface PlacedFlags {
  readonly file?: string;
  readonly dp?: number;
  readonly pp?: number;
  /** Of one replica. */
  readonly microBatches?: number;
  readonly stageMs?: readonly number[];
  readonly gradientMs?: number;
  readonly activationMs?: number;
  readonly slow?: readonly (readonly [string, number])[];
  readonly slowNic?: readonly (readonly [string, number])[];
  readonly congested?: readonly (readonly [string, string, number])[];
}

const HINT = "docs/guides/plan.md shows an example";
const MOST_PLACES = 1 << 17;

/** What says how a job is made, and what is wrong with it. */
const SHAPE = ["dp", "pp", "microBatches", "stageMs", "gradientMs", "activationMs"] as const;
const FAULTS = ["slow", "slowNic", "congested"] as const;

/** Options that would have no effect are a mistake. */
function refuseUnused(flags: PlacedFlags, beside: string, names: readonly string[]): void {
  const given = names.filter((name) => {
    const value = (flags as Readonly<Record<string, unknown>>)[name];
    return Array.isArray(value) ? value.length > 0 : value !== undefined;
  });
  if (given.length === 0) return;
  const word = `--${given[0]!.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  throw new UserError(`${word} has no effect with ${beside}`, `leave one of them out`, 2);
}

/** With a job's files everything but the micro-batches comes out of them. */
export function refuseWithFiles(flags: PlacedFlags): void {
  const names = [...SHAPE, ...FAULTS, "file"].filter((name) => name !== "microBatches");
  refuseUnused(flags, "a job's files", names);
}

export function placedJob(flags: PlacedFlags, file: string | null): PlacedJob {
  if (file !== null) refuseUnused(flags, "--file", SHAPE);
  const base = file === null ? fromFlags(flags) : fromFile(file, flags.file!);
  return withFaults(base, flags);
}

function fromFlags(flags: PlacedFlags): PlacedJob {
  const { dp, pp = 1, microBatches = 8, gradientMs = 0, activationMs = 0 } = flags;
  if (dp === undefined)
    throw new UserError(
      "the number of replicas is unknown",
      "give --dp and --pp, --file, or the job's files",
      2,
    );
  if (dp * pp > MOST_PLACES)
    throw new UserError(`${dp * pp} nodes are too many`, `give at most ${MOST_PLACES}`, 2);
  const given = flags.stageMs ?? [100];
  if (given.length !== 1 && given.length !== pp)
    throw new UserError(
      `--stage-ms has ${given.length} times for ${pp} stages`,
      "give one time for all stages, or one per stage",
      2,
    );
  const width = Math.max(3, String(dp * pp - 1).length);
  return {
    replicas: dp,
    stages: pp,
    microBatches: Array.from({ length: dp }, () => microBatches),
    stageMs: Array.from({ length: pp }, (_, s) => given[s] ?? given[0]!),
    gradientMs: Array.from({ length: pp }, () => gradientMs),
    activationMs,
    restMs: 0,
    slots: Array.from({ length: dp * pp }, (_, i): Slot => {
      const name = `node${String(i).padStart(width, "0")}`;
      return { name, machine: name, compute: 1, network: 1 };
    }),
    links: [],
  };
}

function withFaults(
  job: PlacedJob,
  { slow = [], slowNic = [], congested = [] }: PlacedFlags,
): PlacedJob {
  const indexOf = new Map(job.slots.map(({ name }, i) => [name, i]));
  const at = (name: string): number => {
    const index = indexOf.get(name);
    if (index !== undefined) return index;
    const names = job.slots.map((slot) => slot.name);
    throw new UserError(
      `there is no node "${name}"`,
      `the job's nodes are ${names[0]} to ${names.at(-1)}`,
      2,
    );
  };
  const compute = new Map(slow.map(([name, factor]) => [at(name), factor]));
  const network = new Map(slowNic.map(([name, factor]) => [at(name), factor]));
  const links = congested.map(([a, b, factor]): SlowLink => ({ a: at(a), b: at(b), factor }));
  return {
    ...job,
    slots: job.slots.map((slot, i) => ({
      ...slot,
      compute: compute.get(i) ?? slot.compute,
      network: network.get(i) ?? slot.network,
    })),
    links: [...job.links, ...links],
  };
}

/** Numbers are checked by the planner; here only that the words are there. */
function fromFile(text: string, path: string): PlacedJob {
  const given = jsonOf(text);
  if (given === undefined) throw new UserError(`${path} is not JSON`, HINT, 3);
  const job = fieldsOf(given);
  if (!job) throw new UserError(`${path} is not a JSON object`, HINT, 3);
  const nodes = job["nodes"];
  if (!Array.isArray(nodes)) throw new UserError(`${path}: nodes must be a list`, HINT, 3);
  const slots = nodes.map((node: unknown, i): Slot => {
    if (typeof node === "string") return { name: node, machine: node, compute: 1, network: 1 };
    const { name, machine, compute = 1, network = 1 } = fieldsOf(node) ?? {};
    if (typeof name !== "string" || typeof compute !== "number" || typeof network !== "number")
      throw new UserError(
        `${path}: node ${i} needs a name (and factors that are numbers)`,
        HINT,
        3,
      );
    return { name, machine: typeof machine === "string" ? machine : name, compute, network };
  });
  const indexOf = new Map(slots.map(({ name }, i) => [name, i]));
  if (indexOf.has("")) throw new UserError(`${path}: a node has no name`, HINT, 3);
  if (indexOf.size < slots.length)
    throw new UserError(`${path}: two nodes have the same name`, "give each node its own name", 3);
  const links = list(job["links"] ?? [], path, "links").map((link, i): SlowLink => {
    const { between, factor } = fieldsOf(link) ?? {};
    const ends = Array.isArray(between) ? between.map((end) => indexOf.get(String(end))) : [];
    if (ends.length !== 2 || ends.includes(undefined) || typeof factor !== "number")
      throw new UserError(
        `${path}: link ${i} needs "between" (two of the nodes) and "factor"`,
        HINT,
        3,
      );
    return { a: ends[0]!, b: ends[1]!, factor };
  });
  const replicas = numberOf(job, "dp", path);
  const stages = numberOf(job, "pp", path, 1);
  for (const [name, value] of [
    ["dp", replicas],
    ["pp", stages],
  ] as const)
    if (!Number.isSafeInteger(value) || value < 1 || value > MOST_PLACES)
      throw new UserError(
        `${path}: ${name} is ${value}`,
        `give a whole number from 1 to ${MOST_PLACES}`,
        3,
      );
  return {
    replicas,
    stages,
    microBatches: numbers(job["microBatches"] ?? 8, replicas, path, "microBatches"),
    stageMs: numbers(job["stageMs"] ?? 100, stages, path, "stageMs"),
    gradientMs: numbers(job["gradientMs"] ?? 0, stages, path, "gradientMs"),
    activationMs: numberOf(job, "activationMs", path, 0),
    restMs: numberOf(job, "restMs", path, 0),
    slots,
    links,
  };
}

function numberOf(
  job: Readonly<Record<string, unknown>>,
  name: string,
  path: string,
  usual?: number,
): number {
  const value = job[name] ?? usual;
  if (typeof value !== "number") throw new UserError(`${path}: ${name} must be a number`, HINT, 3);
  return value;
}

/** One number stands for all. */
function numbers(value: unknown, length: number, path: string, name: string): number[] {
  if (typeof value === "number") return Array.from({ length }, () => value);
  const all = list(value, path, name);
  if (!all.every((one) => typeof one === "number"))
    throw new UserError(`${path}: ${name} must be a number or a list of numbers`, HINT, 3);
  return all;
}

function list(value: unknown, path: string, name: string): unknown[] {
  if (!Array.isArray(value)) throw new UserError(`${path}: ${name} must be a list`, HINT, 3);
  return value as unknown[];
}
