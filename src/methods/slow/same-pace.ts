/**
 * Ranks are compared iteration by iteration, so they must go through the same iterations. Not all of a job need to: engines that
 * generate for a trainer decode as many steps as their answers are long, and what repeats in their calls is no iteration of the
 * job. Their time outside communication is no work of their own then, and nobody waits for it.
 */
import { median } from "../../maths/robust.ts";
import type { RankOperators } from "../../model/rank-operators.ts";

/** An iteration that is half or twice as long as another rank's of the same number is none of the same. */
const APART = 2;
/** Single ones may be cut wrongly. */
const MOSTLY = 2 / 3;
/** Ranks that are taken for the measure of the others, in turn: of as many kinds as there may be in a job. */
const MEASURES = 16;

/** The largest part of the ranks that goes through the same iterations; all of them where none does. */
export function ofSamePace(ranks: readonly RankOperators[]): readonly RankOperators[] {
  let best: readonly RankOperators[] = [];
  const left = new Set(ranks);
  for (let turn = 0; turn < MEASURES && left.size > best.length; turn++) {
    const [measure] = left;
    const byNumber = durations(measure!);
    const alike = ranks.filter((one) => one === measure || isAlike(one, byNumber));
    for (const one of alike) left.delete(one);
    if (alike.length > best.length) best = alike;
  }
  return best.length > 1 ? best : ranks;
}

function durations({ iteration, durationMs }: RankOperators): ReadonlyMap<number, number> {
  return new Map([...iteration].map((number, i) => [number, durationMs[i]!]));
}

function isAlike(
  { iteration, durationMs }: RankOperators,
  byNumber: ReadonlyMap<number, number>,
): boolean {
  const ratios = [...iteration].flatMap((number, i) => {
    const other = byNumber.get(number);
    return other === undefined ? [] : [Math.max(durationMs[i]! / other, other / durationMs[i]!)];
  });
  // Rings of different size may have no iteration in common: then how long they usually take must do.
  if (ratios.length === 0) {
    const [own, other] = [median([...durationMs]), median([...byNumber.values()])];
    return Math.max(own / other, other / own) < APART;
  }
  return ratios.filter((ratio) => ratio < APART).length >= MOSTLY * ratios.length;
}
