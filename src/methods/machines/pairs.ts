/**
 * Roles of two. Their own past says nothing of a fault that was there before the data begin; other pairs do: if two
 * that should be alike differ far more than the others' twos, one of them is wrong, the one farther from everybody.
 */
import { median } from "../../maths/robust.ts";
import type { Blocks } from "./blocks.ts";

const LEAST_PAIRS = 3;
/** So many times as far apart as pairs are. */
const FAR_APART = 10;
/** Where pairs do not differ at all, this share of what matters counts as their difference. */
const LEAST_APART = 0.05;

/** Machine → its standing difference from its twin, for those that are wrong. */
export function oddTwins(
  { count, value }: Blocks,
  pairs: readonly (readonly [number, number])[],
  distance: Float32Array,
  material: number,
): Map<number, number> {
  const odd = new Map<number, number>();
  if (pairs.length < LEAST_PAIRS) return odd;
  const over = (at: (block: number) => number): number => {
    const seen = Array.from({ length: count }, (_, block) => at(block)).filter(
      (one) => one === one,
    );
    return seen.length === 0 ? 0 : median(seen);
  };
  const apart = pairs.map(([a, b]) =>
    over((block) => value[a * count + block]! - value[b * count + block]!),
  );
  pairs.forEach(([a, b], i) => {
    const others = apart.filter((_, j) => j !== i).map(Math.abs);
    const usual = Math.max(median(others), LEAST_APART * material);
    if (Math.abs(apart[i]!) < Math.max(material, FAR_APART * usual)) return;
    const far = (m: number): number => Math.abs(over((block) => distance[m * count + block]!));
    const [wrong, difference] = far(a) >= far(b) ? [a, apart[i]!] : [b, -apart[i]!];
    odd.set(wrong, difference);
  });
  return odd;
}
