/**
 * What mitigation brings, in simulation, beside the paper's figures: `npm run eval -- mitigate [--quick] [--seed S]`.
 * Every number comes out of the closed loop: faults are detected, localized, planned for and measured, never given.
 * Prints Markdown; what the loop does goes to stderr.
 */
import { parseArgs } from "node:util";
import { figure20, PAPER, SMALL } from "./at-scale.ts";
import { costModelTable } from "./cost-model.ts";
import { figure14, figure15Left, figure15Right, figure16 } from "./figures.ts";
import { faultStreams } from "./streams.ts";

const { values: given } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    seed: { type: "string", default: "1" },
    only: { type: "string" },
    jobs: { type: "string" },
  },
});
const first = Number(given.seed);
const seeds = (count: number): number[] => Array.from({ length: count }, (_, i) => first + i);
const wants = (part: string): boolean => given.only === undefined || given.only === part;

console.log("## Mitigation in the simulator\n");
console.log(
  "A congested way slows only what passes it, and costs nothing where nothing does: that is kinder than a congested switch. In figures 14 to 16 overheads are 0.1 s (S2), 2 s (S3) and 5 s (tests of links), so that the settled state is seen.\n",
);
console.log(
  'Times are multiples of the healthy job\'s iteration, medians over seeds, settled iterations. "Without" and "with": the same job, seed and faults.\n',
);
if (wants("figures")) {
  const few = seeds(given.quick ? 1 : 5);
  for (const figure of [figure14, figure15Left, figure15Right, figure16])
    console.log(await figure(few));
}
if (wants("model")) console.log(costModelTable(100 * first, given.quick ? 20 : 100));
if (wants("scale"))
  console.log(
    await figure20(given.quick ? SMALL : PAPER, seeds(given.quick ? 1 : 3), (line) =>
      console.error(line),
    ),
  );
if (wants("streams"))
  console.log(
    `\n${await faultStreams(1000 * first, Number(given.jobs ?? (given.quick ? 12 : 100)))}`,
  );
