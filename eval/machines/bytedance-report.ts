/** What each way of looking says of ByteDance's trace as it is, and with one worker made slow. */
import {
  DETECTORS,
  readDurations,
  slowed,
  withoutTrifles,
  type DurationTable,
  type Slowed,
} from "./bytedance.ts";

const LEAST_SHARE = 0.01;
/** As much as their own slowed job, and less than the stages differ by. */
const FACTORS = [2.5, 1.5];

export function bytedanceReport(file: string): string {
  const all = readDurations(file);
  const large = withoutTrifles(all, LEAST_SHARE);
  return [
    "## ByteDance, trace ST: stages of unequal length, nobody at fault\n",
    `${all.workers.length} workers (2 of each of 4 stages), ${all.steps} recorded steps; the metric is the mean duration`,
    "by worker and step. Each of the workers in turn is made to compute longer; cells count: exactly it is accused / it",
    "and others / only others / nobody. A stage of two cannot tell which of them was slow from the start, only which",
    "became slow. Of 8 workers no plain score exceeds 2.47, so that a threshold of 3 is blind.\n",
    section(
      `Operations that take 1 % of the time or more (${[...large.durations.keys()].join(", ")})`,
      large,
    ),
    section(`All ${all.durations.size} kinds of operations, down to 40 µs`, all),
  ].join("\n");
}

function section(title: string, table: DurationTable): string {
  const { workers, steps } = table;
  const made = FACTORS.flatMap((factor) =>
    [0, steps >> 1].map((fromStep) => workers.map((worker) => ({ worker, fromStep, factor }))),
  );
  const rows = Object.entries(DETECTORS).map(([name, detect]) => {
    const healthy = detect(table);
    const said = healthy.length === 0 ? "nobody" : healthy.join("; ");
    return `| ${name} | ${said} | ${made.map((cases) => counts(table, cases, detect)).join(" | ")} |`;
  });
  const heads = FACTORS.flatMap((factor) => [
    `×${factor} from the start`,
    `×${factor} from the middle`,
  ]);
  return [
    `### ${title}\n`,
    `| method | accused in the trace as it is | ${heads.join(" | ")} |`,
    `|---|---|${heads.map(() => "---|").join("")}`,
    ...rows,
    "",
  ].join("\n");
}

/** exactly it / it and others / only others / nobody. */
function counts(
  table: DurationTable,
  cases: readonly Slowed[],
  detect: (table: DurationTable) => readonly string[],
): string {
  let exact = 0;
  let more = 0;
  let others = 0;
  let nobody = 0;
  for (const one of cases) {
    const accused = detect(slowed(table, one));
    if (accused.length === 0) nobody++;
    else if (!accused.includes(one.worker)) others++;
    else if (accused.length === 1) exact++;
    else more++;
  }
  return `${exact} / ${more} / ${others} / ${nobody}`;
}
