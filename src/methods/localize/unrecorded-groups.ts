/**
 * Members of a group wait for each other inside kernels that nobody records, where communication goes through symmetric memory
 * (asynchronous tensor parallel). To the records such a wait is time of the member's own GPU: whoever waits looks slow.
 */
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import type { SlowFinding } from "./slow-findings.ts";

/** Of slow GPUs among which the records cannot choose. */
const UNTOLD = 0.5;

/**
 * Of accused members of one group without records: beside a member whose CPU is late, a slow GPU only waits for it; slow GPUs
 * alone are all said, less surely.
 */
export function besideUnrecorded(
  findings: readonly SlowFinding[],
  groups: readonly Group[],
  worldSize: number,
  cut: readonly RankOperators[],
): SlowFinding[] {
  let told = [...findings];
  for (const members of unrecorded(groups, worldSize, cut)) {
    const together = told.filter((one) => rankOf(one) !== null && members.has(rankOf(one)!));
    const waits = together.filter(({ accuses }) => accuses[0]!.cause === "gpu-slow");
    if (together.length < 2 || waits.length === 0) continue;
    if (waits.length === together.length) {
      told = told.map((one) => (waits.includes(one) ? lessSure(one) : one));
      continue;
    }
    const cleared = waits.map((one) => rankOf(one)!);
    told = told
      .filter((one) => !waits.includes(one))
      .map((one) =>
        together.includes(one) ? { ...one, clears: [...one.clears, ...cleared] } : one,
      );
  }
  return told;
}

function unrecorded(
  groups: readonly Group[],
  worldSize: number,
  cut: readonly RankOperators[],
): Set<Rank>[] {
  const used = new Set<number>();
  for (const { ops, groupIds } of cut)
    for (const group of new Set(ops.group)) used.add(groupIds[group] ?? -1);
  return groups
    .filter(({ id, ranks }) => ranks.length > 1 && ranks.length < worldSize && !used.has(id))
    .map(({ ranks }) => new Set(ranks));
}

/** null where it accuses no single rank. */
function rankOf({ accuses: [first] }: SlowFinding): Rank | null {
  return first?.type === "rank" && first.ranks.length === 1 ? first.ranks[0]! : null;
}

function lessSure(finding: SlowFinding): SlowFinding {
  const accuses = finding.accuses.map((one) => ({ ...one, weight: UNTOLD * one.weight }));
  return { ...finding, weight: UNTOLD * finding.weight, accuses };
}
