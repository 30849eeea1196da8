/**
 * Planted failures (L4 §6 with a truth that is known): which events indicate the failure and which node is at fault, by
 * size, for Faultline and everybody else. Seeds from 1000 on; those below are for development.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { testShape } from "../../test/support/methods/log-digest.ts";
import { wilson } from "../../src/maths/wilson.ts";
import { unpacked } from "../unpacked.ts";
import { digestOfPlanted, writePlanted } from "./plant-layout.ts";
import { readMaterial, type Material } from "./plant-material.ts";
import { METHODS, poolOfDigests, type Answer } from "./plant-methods.ts";
import { plantJob, type PlantedJob } from "./plant.ts";

/** What is asked of Faultline itself. `baseline`: folders of healthy jobs, one each, which the others get, too. */
export type Analyse = (
  paths: readonly string[],
  baseline: readonly string[],
) => Promise<{
  readonly indicating: readonly { readonly file: string; readonly line: number }[];
  readonly nodes: readonly { readonly node: string; readonly score: number }[];
  readonly iterations?: readonly { readonly iteration: number }[];
  readonly stage?: string;
}>;

export interface PlantingOptions {
  /** Faultline on files; without it only the comparisons are asked. */
  readonly analyse?: Analyse;
  /** The first. */
  readonly seed?: number;
  /** Of all sizes together; half of them are small. */
  readonly jobs?: number;
  /** In nodes. */
  readonly sizes?: readonly number[];
  /** Leaves the largest out. */
  readonly quick?: boolean;
  readonly isVerbose?: boolean;
}

const SHARED = fileURLToPath(new URL("../../../shared/thirdparty/", import.meta.url));
const SIZES = [8, 32, 128, 512];
/** Of the jobs, by place in the sizes. */
const SHARES = [0.5, 0.3, 0.15, 0.05];
const GPUS_PER_NODE = 8;

const INTRODUCTION =
  "Events: precision, recall and F1 over all jobs of a size; an event that a thousand ranks write counts once. True are the root's lines as labelled and the line by which a peer first says that somebody is late or gone; frames, exits, teardown and errors that the job lives with are not. Intervals: 95 %, Wilson. \"Comparisons\" are the spatial and temporal comparisons on a perfect reader's digest; Faultline reads the files. L4 and the comparisons get two healthy jobs of the same make.";

interface Tally {
  right: number;
  wrong: number;
  missed: number;
  roots: number;
  rootsFound: number;
  located: number;
  top1: number;
  top5: number;
  /** Jobs that failed in training, if iterations are named at all, and those whose first is the right one or next to it. */
  trained: number;
  iterated: number;
  staged: number;
  stages: number;
  ms: number;
}

export async function runPlanting(options: PlantingOptions = {}): Promise<string> {
  const { jobs = 200, quick = false, sizes = quick ? SIZES.slice(0, -1) : SIZES } = options;
  const parts: string[] = ["## Planted failures", INTRODUCTION];
  await withMaterial(async (material) => {
    if (!material) parts.push("Without third-party logs: jobs and failures are all our own.");
    for (const [i, nodes] of sizes.entries()) {
      const count = Math.max(1, Math.round(jobs * (sizes.length === 1 ? 1 : SHARES[i]!)));
      parts.push(await ofSize(nodes, count, material, options));
    }
  });
  return parts.join("\n\n");
}

async function withMaterial(use: (material: Material | null) => Promise<void>): Promise<void> {
  const normal = join(SHARED, "logs-normal.tar.gz");
  const failures = join(SHARED, "logs-failures.tar.gz");
  if (!existsSync(normal) || !existsSync(failures)) return use(null);
  return unpacked(normal, (healthy) =>
    unpacked(failures, (broken) => use(readMaterial(healthy, broken))),
  );
}

async function ofSize(
  nodes: number,
  count: number,
  material: Material | null,
  { analyse, seed: first = 1000, isVerbose = false }: PlantingOptions,
): Promise<string> {
  const tallies = new Map<string, Tally>();
  const kinds = { real: 0, node: 0, ranks: nodes * GPUS_PER_NODE };
  for (let seed = first; seed < first + count; seed++) {
    const size = { nodes, gpusPerNode: GPUS_PER_NODE, material };
    const job = plantJob({ ...size, seed });
    // Two healthy jobs of the same make: what users have tried before (§4.2).
    const healthy = [1, 2].map((i) =>
      plantJob({
        ...size,
        nodes: Math.min(nodes, 8),
        seed: seed + i * 100_003,
        isHealthy: true,
        base: job.base,
      }),
    );
    const pool = poolOfDigests(healthy.map(({ lines }) => digestOfPlanted(lines)));
    const digest = digestOfPlanted(job.lines);
    if (/^\d/.test(job.failure)) kinds.real++;
    if (job.truth.nodes.size > 0) kinds.node++;
    for (const [name, method] of Object.entries(METHODS)) {
      const from = performance.now();
      const answer = method(digest, pool);
      score(tallyOf(tallies, name), job, answer, performance.now() - from);
      if (isVerbose) tell(name, job, answer);
    }
    if (analyse) {
      const from = performance.now();
      const answer = await asked(analyse, job, healthy);
      score(tallyOf(tallies, "Faultline"), job, answer, performance.now() - from);
      if (isVerbose) tell("Faultline", job, answer);
    }
  }
  const head = `**${nodes} nodes, ${kinds.ranks} ranks**: ${count} jobs, ${kinds.real} with real failure lines, ${kinds.node} with a node at fault`;
  return `${head}\n\n${tableOf(tallies)}`;
}

async function asked(
  analyse: Analyse,
  job: PlantedJob,
  healthy: readonly PlantedJob[],
): Promise<Answer> {
  const all = mkdtempSync(join(tmpdir(), "faultline-plant-"));
  try {
    const folder = join(all, "failed");
    const baseline = healthy.map(({ lines }, i) => {
      writePlanted(lines, join(all, `healthy-${i}`));
      return join(all, `healthy-${i}`);
    });
    const found = await analyse(writePlanted(job.lines, folder), baseline);
    const { indicating, nodes, stage, iterations } = found;
    const texts = new Map(job.lines.map(({ file, line, text }) => [`${file}:${line}`, text]));
    const events = indicating.flatMap(({ file, line }) => {
      const name = file.startsWith(folder) ? relative(folder, file) : file;
      const text = texts.get(`${name}:${line}`);
      return text === undefined ? [`${name}:${line}`] : [testShape(text)];
    });
    return {
      events: new Set(events),
      nodes: nodes.map(({ node }) => node),
      ...(stage === undefined ? {} : { stage }),
      ...(iterations ? { iterations: iterations.map(({ iteration }) => iteration) } : {}),
    };
  } finally {
    rmSync(all, { recursive: true });
  }
}

const NO_TIMES = { trained: 0, iterated: 0, staged: 0, stages: 0 };

function tallyOf(tallies: Map<string, Tally>, name: string): Tally {
  let tally = tallies.get(name);
  if (!tally) {
    const none = { right: 0, wrong: 0, missed: 0, roots: 0, rootsFound: 0 };
    tally = { ...none, located: 0, top1: 0, top5: 0, ms: 0, ...NO_TIMES };
    tallies.set(name, tally);
  }
  return tally;
}

/** Events, not lines, as in §6.2: one that a thousand ranks write counts once. */
function truthOf({ lines }: PlantedJob): {
  readonly all: Set<string>;
  readonly roots: Set<string>;
} {
  const all = new Set<string>();
  const roots = new Set<string>();
  for (const { kind, text } of lines) {
    if (kind !== "root" && kind !== "cascade") continue;
    all.add(testShape(text));
    if (kind === "root") roots.add(testShape(text));
  }
  return { all, roots };
}

function score(tally: Tally, job: PlantedJob, answer: Answer, ms: number): void {
  const { events, nodes, iterations, stage: said } = answer;
  const { all, roots } = truthOf(job);
  for (const event of events) {
    if (all.has(event)) tally.right++;
    else tally.wrong++;
  }
  for (const event of all) if (!events.has(event)) tally.missed++;
  for (const event of roots) {
    tally.roots++;
    if (events.has(event)) tally.rootsFound++;
  }
  tally.ms += ms;
  const { iteration, stage } = job.truth;
  if (iterations && iteration !== null) {
    tally.trained++;
    const [first] = iterations;
    if (first !== undefined && Math.abs(first - iteration) <= 1) tally.iterated++;
  }
  if (said !== undefined) {
    tally.stages++;
    // What comes before training is told apart by nobody here.
    if ((said === "train") === (stage === "train")) tally.staged++;
  }
  if (job.truth.nodes.size === 0) return;
  tally.located++;
  const place = nodes.findIndex((name) => job.truth.nodes.has(name));
  if (place === 0) tally.top1++;
  if (place >= 0 && place < 5) tally.top5++;
}

function tell(name: string, job: PlantedJob, { events, nodes }: Answer): void {
  const { all } = truthOf(job);
  const place = nodes.findIndex((node) => job.truth.nodes.has(node));
  const missed = [...all].filter((event) => !events.has(event));
  const wrong = [...events].filter((event) => !all.has(event));
  const { seed, failure, base, layout } = job;
  console.error(
    JSON.stringify({
      name,
      seed,
      failure,
      base,
      layout,
      place: job.truth.nodes.size === 0 ? null : place,
      first: nodes.slice(0, 3),
      missed: missed.slice(0, 4).map((text) => text.slice(0, 80)),
      wrong: wrong.slice(0, 6).map((text) => text.slice(0, 80)),
    }),
  );
}

function tableOf(tallies: ReadonlyMap<string, Tally>): string {
  const head =
    "| method | precision | recall | F1 | root events found | node top 1 | top 5 | iteration | stage | s in all |";
  const rows = [...tallies].map(([name, one]) => {
    const { right, wrong, missed } = one;
    const f1 = (2 * right) / Math.max(1, 2 * right + wrong + missed);
    return `| ${[
      name,
      rate(right, right + wrong),
      rate(right, right + missed),
      f1.toFixed(3),
      rate(one.rootsFound, one.roots),
      rate(one.top1, one.located),
      rate(one.top5, one.located),
      rate(one.iterated, one.trained),
      rate(one.staged, one.stages),
      (one.ms / 1000).toFixed(1),
    ].join(" | ")} |`;
  });
  return [head, "|---|---|---|---|---|---|---|---|---|---|", ...rows].join("\n");
}

function rate(hits: number, all: number): string {
  if (all === 0) return "–";
  const [low, high] = wilson(hits, all);
  return `${hits}/${all} = ${(hits / all).toFixed(3)} (${low.toFixed(2)}–${high.toFixed(2)})`;
}
