/**
 * Our detector on sites as they are, by sampling interval and label set:
 *
 *   node --import tsx eval/machines/sites.ts [--faults N] [--healthy H] [--seed S] [--workers N] [--steps 15,30] [--most M]
 *
 * N faulty and H (or N) healthy tasks for each interval, label sets in turn. Prints Markdown; wrong answers, and machines
 * that are named beside the right one, go to stderr.
 */
import { parseArgs } from "node:util";
import { DEPLOYMENTS } from "./fleet/deployments.ts";
import { Pool } from "./pool.ts";
import { percent, shareWords, table } from "./scores.ts";
import type { SiteOutcome } from "./site-work.ts";

const { values: given } = parseArgs({
  options: {
    faults: { type: "string", default: "60" },
    healthy: { type: "string" },
    seed: { type: "string", default: "1200000" },
    workers: { type: "string", default: "1" },
    steps: { type: "string", default: "1,5,15,30,60" },
    most: { type: "string", default: "64" },
    untold: { type: "boolean", default: false },
  },
});
const FAULTS = Number(given.faults);
const HEALTHY = Number(given.healthy ?? given.faults);
const SEED = Number(given.seed);
const STEPS = given.steps.split(",").map(Number);
const most = Number(given.most);
/** Finer samples, smaller fleets: a task has about as many samples at 1 s as at 15 s. */
const mostAt = (stepS: number): number =>
  Math.max(Math.min(8, most), Math.min(most, Math.round((most * stepS) / 15)));

const pool = new Pool(Number(given.workers));
const inputs = STEPS.flatMap((stepS, s) =>
  [true, false].flatMap((isFaulty, half) =>
    Array.from({ length: isFaulty ? FAULTS : HEALTHY }, (_, n) => ({
      seed: SEED + 10_000 * s + 5000 * half + n,
      isFaulty,
      choice: {
        stepS,
        most: mostAt(stepS),
        untold: given.untold,
        deployment: DEPLOYMENTS[n % DEPLOYMENTS.length]!,
      },
    })),
  ),
);
const outcomes = await pool.run("site", inputs);
pool.close();

function row(name: string, all: readonly SiteOutcome[]): string[] {
  const faulty = all.filter(({ isFaulty }) => isFaulty);
  const healthy = all.filter(({ isFaulty }) => !isFaulty);
  const count = (of: readonly SiteOutcome[], first: string): number =>
    of.filter(({ answer }) => answer.first === first).length;
  const right = count(faulty, "right");
  const wrong = count(faulty, "wrong");
  const beside = faulty.filter(({ answer }) => answer.first === "right" && answer.extra > 0);
  const alarms = healthy.length - count(healthy, "nobody");
  const precision = right / Math.max(1, right + wrong + alarms);
  const recall = right / Math.max(1, faulty.length);
  const f1 = (2 * precision * recall) / Math.max(1e-9, precision + recall);
  return [
    name,
    String(all.length),
    `${right}, ${wrong} + ${count(faulty, "nobody")}, ${alarms}`,
    `${percent(precision)} / ${percent(recall)} / ${f1.toFixed(3)}`,
    shareWords(right, faulty.length),
    `${beside.length} of ${right}`,
    shareWords(alarms, healthy.length),
  ];
}

const by = (title: string, of: (one: SiteOutcome) => string, keys: readonly string[]): string =>
  table(
    [
      title,
      "tasks",
      "right, wrong + nobody, alarms",
      "strict precision / recall / F1",
      "recall, 95 %",
      "others named beside the right one",
      "healthy accused, 95 %",
    ],
    [
      ...keys.map((key) =>
        row(
          key,
          outcomes.filter((one) => of(one) === key),
        ),
      ),
      row("all", outcomes),
    ],
  );
console.log(
  `## Sites as they are: ${FAULTS} faulty and ${HEALTHY} healthy tasks for each interval\n`,
);
console.log(
  `Seeds from ${SEED}, 4 machines or more of 8 GPUs, at most ${STEPS.map((stepS) => `${stepS} s: ${mostAt(stepS)}`).join(", ")}, 20 to 30 minutes (45 at 60 s). Precision depends on the number of healthy tasks. Half of the faults slow the job by 1.15 to 1.8 for 5 to 8 minutes and then halt it, half are Minder's. A wrong machine during a fault counts against precision and recall.\n`,
);
console.log(
  `${by(
    "interval",
    ({ stepS }) => `${stepS} s`,
    STEPS.map((stepS) => `${stepS} s`),
  )}\n`,
);
console.log(`${by("label set", ({ deployment }) => deployment, DEPLOYMENTS)}\n`);
const types = [...new Set(outcomes.flatMap(({ type }) => type ?? []))].sort();
console.log(`${by("fault", ({ type }) => type ?? "", types)}\n`);
for (const {
  seed,
  isFaulty,
  answer,
  machines,
  stepS,
  deployment,
  type,
  said,
  isVisible,
} of outcomes)
  if (answer.first !== (isFaulty ? "right" : "nobody") || (isFaulty && answer.extra > 0))
    console.error(
      `${isFaulty ? "faulty" : "healthy"} ${seed} ${stepS} s ${deployment}: ${answer.first}, ${machines} machines, ${type ?? ""}${isVisible ? "" : " (invisible)"}, ${said}`,
    );
