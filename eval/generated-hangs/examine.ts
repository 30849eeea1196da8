/** Generated hangs (./cases), diagnosed and held against their truth. */
import { writeCase } from "./cases/hang-case.ts";
import { randomHangCase } from "./cases/random-case.ts";
import { diagnoseFiles } from "../../test/support/in-memory.ts";

export interface Tally {
  decidable: number;
  exact: number;
  causeRight: number;
  wrong: string[];
  sureAndWrong: string[];
}

/**
 * Cases in which the files themselves do not decide are counted apart: there we must only not be sure of something wrong.
 */
export async function examineHangs(
  firstSeed: number,
  cases: number,
  maxRanks: number,
): Promise<Tally> {
  const tally: Tally = { decidable: 0, exact: 0, causeRight: 0, wrong: [], sureAndWrong: [] };
  for (let seed = firstSeed; seed < firstSeed + cases; seed++) {
    const hang = randomHangCase(seed, { minRanks: 4, maxRanks });
    const { truth, options } = hang;
    const verdict = await diagnoseFiles(writeCase(hang));
    const blamed = verdict.suspects.flatMap((suspect) => suspect.ranks).sort((a, b) => a - b);
    const exact = blamed.join() === truth.ranks.join();
    const line = `seed ${seed}: ${options.tp}x${options.pp}x${options.dp} ${truth.note}; blamed ${blamed.join()}`;
    if (!truth.decidable) {
      if (!exact && verdict.confidence > 0.9) tally.sureAndWrong.push(line);
      continue;
    }
    tally.decidable++;
    if (!exact) {
      tally.wrong.push(line);
      continue;
    }
    tally.exact++;
    if (verdict.suspects.every(({ cause }) => truth.causes.includes(cause))) tally.causeRight++;
    else tally.wrong.push(`${line}: ${verdict.suspects[0]?.cause}`);
  }
  return tally;
}
