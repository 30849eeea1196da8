/**
 * Which device is slow, on simulated jobs of 2,048 to 8,192 GPUs, against known truth and beside simple ways:
 * `npm run eval -- localize [--quick] [--gpus N] [--cases N] [--first N] [--partial]`. End to end: the iteration tracker must see
 * the slow-down in the iteration times, the search must name the device. Cases count where the fault lengthens
 * iterations by a tenth (the paper's irregularity, δ = 1.1); fainter ones, down to 3 %, are in a table of their own,
 * with the slow iterations given. Prints Markdown; wrong answers go to stderr as they come.
 */
import { LevelTracker } from "../../src/maths/level-tracker.ts";
import { median } from "../../src/maths/robust.ts";
import { randomInt, seeded } from "../../src/base/random.ts";
import type { Answer } from "./answer.ts";
import { drawCase, ITERATIONS, KINDS, NORMAL, SLOW, type Case, type Kind } from "./cases.ts";
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
const SIZES = gpusGiven !== null ? [gpusGiven] : quick ? [2048] : [2048, 3072, 4096, 8192];
/** Added to a size's seeds: which cases are drawn. */
const FIRST = given("--first") ?? 400;
const CASES = given("--cases") ?? (quick ? 6 : 60);
/** In order: since when it is slow, ours is not told. */
const COMPARED = [...NORMAL, ...SLOW];
/** How much longer a fault must make iterations than the same job's without it are: to count, and to be looked at. */
const IRREGULAR = 0.1;
const FAINT = 0.03;
const MOST_DRAWN = 6;

const METHODS: readonly (readonly [string, (job: KeptJob, seed: number) => Answer])[] = [
  ["ours", (job) => ours(job, COMPARED)],
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
  const endToEnd = new Tally("ours, end to end");
  const fainter = new Tally("ours");
  const healthy: { isNamed: boolean; isAlarmed: boolean; probability: number }[] = [];
  const excluded = new Map<Kind, number>();
  const simulated: number[] = [];
  let counted = 0;
  const report = (): string => {
    const left = [...excluded].map(([kind, n]) => `${kind} ${n}`).join(", ") || "none";
    const probable = healthy.map(({ probability }) => probability);
    return [
      `${counted} cases, seeds from ${gpus * 1000 + FIRST}; left out because iterations are less than 3 % longer: ${left}.`,
      `Simulation of ${ITERATIONS} iterations: ${(median(simulated) / 1000).toFixed(1)} s.\n`,
      Tally.table([endToEnd, ...tallies], KINDS),
      "\n“Operators read” by ours: those of the named rank's or device's groups. What agents send of each rank all the time, 24 bytes a second, is not counted.",
      "\nFaults that lengthen iterations by 3 to 10 %:\n",
      Tally.table([fainter], KINDS),
      `\nHealthy: ${healthy.length} jobs (the same seeds, no fault): the tracker sees a slow-down in ${healthy.filter(({ isAlarmed }) => isAlarmed).length};`,
      `ours accuses ${healthy.filter(({ isNamed }) => isNamed).length}. That nobody is slow is probable with ${median(probable).toFixed(2)} in the median, ${Math.min(...probable).toFixed(2)} at least.`,
    ].join("\n");
  };
  for (
    let seed = gpus * 1000 + FIRST;
    counted < CASES && seed < gpus * 1000 + FIRST + MOST_DRAWN * CASES;
    seed++
  ) {
    const kind = KINDS[seed % KINDS.length]!;
    const one = drawCase(gpus, kind, seed);
    const twin = keepJob({ ...one.spec, faults: [] });
    const calm = ours(twin, COMPARED);
    healthy.push({
      isNamed: calm.ranks.length > 0,
      isAlarmed: seenSince(twin.iterationMs) !== null,
      probability: calm.healthy,
    });
    if (calm.ranks.length > 0) console.error(gpus, seed, "healthy", calm.cause, calm.name);
    const before = performance.now();
    const job = keepJob(one.spec);
    simulated.push(performance.now() - before);
    const slowMs = ({ iterationMs }: KeptJob): number =>
      median(SLOW.map((n) => iterationMs[n - 1]!));
    const growth = slowMs(job) / slowMs(twin) - 1;
    const wrong = (answer: Answer): void =>
      console.error(
        gpus,
        seed,
        kind,
        `+${(100 * growth).toFixed(1)} %`,
        "truth",
        one.name,
        "said",
        answer.cause,
        answer.name,
        answer.ranks.length,
      );
    if (growth < FAINT) {
      excluded.set(kind, (excluded.get(kind) ?? 0) + 1);
      continue;
    }
    if (growth < IRREGULAR) {
      const answer = ours(job, COMPARED);
      fainter.add(kind, isRight(answer, one), answer.share, 0);
      if (!isRight(answer, one)) wrong(answer);
      continue;
    }
    counted++;
    const isSeen = seenSince(job.iterationMs) === SLOW[0];
    for (const [i, [, method]] of METHODS.entries()) {
      const started = performance.now();
      const answer = method(job, seed);
      const tookMs = performance.now() - started;
      const right = isRight(answer, one);
      tallies[i]!.add(kind, right, answer.share, tookMs);
      if (i > 0) continue;
      endToEnd.add(kind, right && isSeen, answer.share, tookMs);
      if (!right) wrong(answer);
      if (!isSeen)
        console.error(
          gpus,
          seed,
          kind,
          "not seen by the tracker",
          `+${(100 * growth).toFixed(1)} %`,
        );
    }
    if (partial) console.error(`${report()}\n`);
  }
  console.log(report());
}

/** First slow iteration as the tracker sees it, within one; null where it sees none. */
function seenSince(iterationMs: readonly number[]): number | null {
  const tracker = new LevelTracker();
  for (const [i, ms] of iterationMs.entries()) {
    const shift = tracker.push(i, ms);
    if (shift && shift.after > shift.before)
      return Math.abs(shift.start + 1 - SLOW[0]!) <= 1 ? SLOW[0]! : shift.start + 1;
  }
  return null;
}
