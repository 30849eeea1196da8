/**
 * The progressive search against known truth, on simulated jobs of 2,048 to 8,192 GPUs, beside Holmes as published
 * and two simple ways: `node --import tsx eval/localize/run.ts [--quick] [--gpus N] [--cases N]`.
 * Prints Markdown; wrong answers go to stderr as they come, and with --partial the tables so far.
 */
import { median } from "../../src/maths/robust.ts";
import { randomInt, sample, seeded } from "../../src/base/random.ts";
import type { Answer } from "./answer.ts";
import { drawCase, KINDS, NORMAL, SLOW, type Case, type Kind } from "./cases.ts";
import { keepJob, type KeptJob } from "./kept-job.ts";
import { ours } from "./ours.ts";
import { asPublished } from "./published.ts";
import { mostAbnormal, randomWalk } from "./simple.ts";
import { Tally } from "./tally.ts";

const quick = process.argv.includes("--quick");
const partial = process.argv.includes("--partial");
const given = (name: string): number | null => {
  const at = process.argv.indexOf(name);
  return at > 0 ? Number(process.argv[at + 1]) : null;
};
const gpusGiven = given("--gpus");
const SIZES = gpusGiven === null ? [2048, 3072, 4096, 8192] : [gpusGiven];
const CASES = given("--cases") ?? (quick ? 6 : 60);
/** A fault must make iterations this much longer than the same job's without it. */
const DECIDABLE = 0.03;
const MOST_EXCLUDED = 4;

const METHODS: readonly (readonly [string, (job: KeptJob, seed: number) => Answer])[] = [
  ["ours, 3 pivots", (job) => ours(job, NORMAL, SLOW)],
  [
    "Holmes as published, 3-sigma",
    (job, seed) => asPublished(job, randomInt(seeded(seed ^ 0x5eed), job.simulation.spec.gpus)),
  ],
  ["random walk", (job, seed) => randomWalk(job, seeded(seed ^ 0x3a1c))],
  ["3-sigma over all logs", mostAbnormal],
];

/** Named exactly; who names no devices may name any part of the device. */
function isRight(answer: Answer, { cause, ranks, name }: Case): boolean {
  if (answer.ranks.length === 0 || answer.cause !== cause) return false;
  if (answer.name !== undefined) return answer.name === name;
  return answer.ranks.every((rank) => ranks.includes(rank));
}

for (const gpus of SIZES) {
  console.log(`\n## ${gpus.toLocaleString("en")} GPUs\n`);
  const tallies = METHODS.map(([name]) => new Tally(name));
  const healthy: { growth: number; named: boolean; anyway: boolean }[] = [];
  const excluded = new Map<Kind, number>();
  const simulated: number[] = [];
  let counted = 0;
  const report = (): string => {
    const left = [...excluded].map(([kind, n]) => `${kind} ${n}`).join(", ") || "none";
    const named = healthy.filter((each) => each.named);
    const ended = healthy.filter((each) => each.anyway);
    return [
      `${counted} cases, seeds from ${gpus * 1000}; excluded because iterations are less than 3 % longer: ${left}.`,
      `Simulation of 12 iterations: ${(median(simulated) / 1000).toFixed(1)} s.\n`,
      Tally.table(tallies, KINDS),
      `\nHealthy: ${healthy.length} jobs (the same seeds, no fault), 6 of 12 iterations called slow at random:`,
      `an end in ${ended.length} (median growth ${grown(ended)} of an iteration), accused ${named.length} (${grown(named)}).`,
    ].join("\n");
  };
  for (
    let seed = gpus * 1000;
    counted < CASES && seed < gpus * 1000 + MOST_EXCLUDED * CASES;
    seed++
  ) {
    const kind = KINDS[seed % KINDS.length]!;
    const one = drawCase(gpus, kind, seed);
    const twin = keepJob({ ...one.spec, faults: [] });
    healthy.push(onHealthy(twin, seed));
    const before = performance.now();
    const job = keepJob(one.spec);
    simulated.push(performance.now() - before);
    const slowMs = ({ iterationMs }: KeptJob): number =>
      median(SLOW.map((n) => iterationMs[n - 1]!));
    if (slowMs(job) < (1 + DECIDABLE) * slowMs(twin)) {
      excluded.set(kind, (excluded.get(kind) ?? 0) + 1);
      continue;
    }
    counted++;
    for (const [i, [, method]] of METHODS.entries()) {
      const started = performance.now();
      const answer = method(job, seed);
      const tookMs = performance.now() - started;
      const right = isRight(answer, one);
      tallies[i]!.add(kind, right, answer.share, tookMs);
      if (i === 0 && !right)
        console.error(
          gpus,
          seed,
          kind,
          "truth",
          one.name,
          "said",
          answer.cause,
          answer.name,
          answer.ranks.length,
        );
    }
    if (partial) console.error(`${report()}\n`);
  }
  console.log(report());
}

function grown(all: readonly { readonly growth: number }[]): string {
  return all.length === 0 ? "–" : `${(100 * median(all.map(({ growth }) => growth))).toFixed(1)} %`;
}

function onHealthy(
  job: KeptJob,
  seed: number,
): { growth: number; named: boolean; anyway: boolean } {
  const all = [...NORMAL, ...SLOW];
  const chosen = new Set(sample(seeded(seed ^ 0x4ea1), all.length, SLOW.length));
  const answer = ours(
    job,
    all.filter((_, i) => !chosen.has(i)),
    all.filter((_, i) => chosen.has(i)),
  );
  return {
    growth: answer.growth,
    named: answer.ranks.length > 0,
    anyway: answer.anyway.length > 0,
  };
}
