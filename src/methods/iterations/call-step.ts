/**
 * The calls of an iteration that belong to its optimizer step rather than to its passes: gradients, norm,
 * parameters. Passes fill the iteration, so their calls are spread over it; those of the step lie together.
 * Inner levels do not tell: the buckets of the gradients repeat, too.
 */
import { isSmall, P2P, type CallClass } from "./call-classes.ts";

/** Of an iteration. Gradients that are reduced under the last backward pass stay below. */
const MOST_SPAN = 0.5;

/** Classes of the step; empty where nothing tells them from the passes. */
export function stepClasses(classes: readonly CallClass[], pattern: Int32Array): Set<number> {
  const isCollective = (symbol: number): boolean => classes[symbol]!.kind !== P2P;
  const isLarge = (symbol: number): boolean => isCollective(symbol) && !isSmall(classes[symbol]!);
  const isNorm = (symbol: number): boolean => isCollective(symbol) && isSmall(classes[symbol]!);
  const groupOf = (symbol: number): number => classes[symbol]!.group;
  // By group first: forward and backward passes have classes of their own, but not groups. Small ones by
  // class: the loss of every micro-batch is averaged in the group of the gradients.
  const large = together(pattern, isLarge, groupOf);
  const small = together(pattern, isNorm, (symbol) => symbol);
  if (large.size > 0) return new Set([...large, ...small]);
  return new Set([...together(pattern, isLarge, (symbol) => symbol), ...small]);
}

/** Symbols whose key occurs in one part of the cyclic pattern only. */
function together(
  pattern: Int32Array,
  counts: (symbol: number) => boolean,
  keyOf: (symbol: number) => number,
): Set<number> {
  const places = new Map<number, number[]>();
  pattern.forEach((symbol, i) => {
    if (!counts(symbol)) return;
    const known = places.get(keyOf(symbol));
    if (known) known.push(i);
    else places.set(keyOf(symbol), [i]);
  });
  const { length } = pattern;
  const isTogether = (at: readonly number[]): boolean =>
    at.some((place, i) => {
      const next = at[i + 1] ?? at[0]! + length;
      return length - (next - place) + 1 <= MOST_SPAN * length;
    });
  const keys = new Set([...places].flatMap(([key, at]) => (isTogether(at) ? [key] : [])));
  return new Set(pattern.filter((symbol) => counts(symbol) && keys.has(keyOf(symbol))));
}
