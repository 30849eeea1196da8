/**
 * Jobs of 4 to 512 ranks that hang to order: `npm run eval -- generated-hangs [FIRST-SEED] [CASES]`. Exits with 1 when fewer
 * than 99 of 100 culprit sets are exact.
 */
import { examineHangs } from "./generated-hangs/examine.ts";

const [firstSeed, count] = process.argv.slice(2).map(Number);
const BATCHES: [number, number, number][] = [
  [firstSeed ?? 20_000, count ?? 480, 48],
  [(firstSeed ?? 20_000) + 10_000, Math.ceil((count ?? 480) / 8), 512],
];
console.log("## Generated hangs\n");
for (const [seed, cases, ranks] of BATCHES) {
  const tally = await examineHangs(seed, cases, ranks);
  console.log(
    `4 to ${ranks} ranks: ${cases} cases from seed ${seed}, ${tally.decidable} decidable, ${tally.exact} exact sets, ` +
      `${tally.causeRight} with the right cause, ${tally.sureAndWrong.length} sure and wrong among the others`,
  );
  for (const line of [...tally.wrong, ...tally.sureAndWrong]) console.log(`- ${line}`);
  if (tally.exact < 0.99 * tally.decidable) process.exitCode = 1;
}
