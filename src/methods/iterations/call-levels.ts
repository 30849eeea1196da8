/**
 * Which of the patterns that repeat inside each other is the iteration. Layers repeat in a pass, passes in a
 * micro-batch, micro-batches in an iteration, iterations between two evaluations. An outer level is more
 * than a repetition of an inner one when it
 * - reduces in a group in which the inner one does not (gradients), or sends or receives where it does not
 *   (backward passes); or adds any large call to an inner one that reduces nothing (a sharded model that
 *   accumulates gradients). Large gathers and broadcasts beside an inner level that reduces are a checkpoint;
 * - repeats the inner one's large calls a whole number of times, but in another order: a pipeline that fills
 *   and drains. An evaluation adds forward passes only, and so is no whole number of repetitions;
 * - adds any call to an inner level of a few calls of one size: those are a layer's activations.
 * Small calls alone make no iteration: a loss is logged every ten, a norm taken every one. A sharded model
 * that reduces in every micro-batch and marks its iterations only by the norm cannot be told from one that
 * logs; the inner level is taken.
 */
import { isSmall, OTHER, REDUCES, type CallClass } from "./call-classes.ts";

const MOST_LAYER_CALLS = 4;

export function isMoreThanRepetition(
  classes: readonly CallClass[],
  inner: Int32Array,
  outer: Int32Array,
): boolean {
  const known = new Set(inner);
  const added = [...new Set(outer)].filter((symbol) => !known.has(symbol));
  if (added.length > 0 && isLayer(classes, inner)) return true;
  const large = (symbol: number): boolean => !isSmall(classes[symbol]!);
  const roles = new Set([...known].filter(large).map((symbol) => classes[symbol]!.role));
  const reduces = [...known].some((s) => large(s) && classes[s]!.kind === REDUCES);
  for (const symbol of added) {
    const call = classes[symbol]!;
    if (!large(symbol)) continue;
    if (call.kind === OTHER ? !reduces : !roles.has(call.role)) return true;
  }
  return isReordered(
    inner.filter(large),
    outer.filter((s) => large(s) && known.has(s)),
  );
}

function isLayer(classes: readonly CallClass[], pattern: Int32Array): boolean {
  const first = classes[pattern[0]!]!;
  return (
    pattern.length <= MOST_LAYER_CALLS &&
    pattern.every((s) => !isSmall(classes[s]!) && classes[s]!.elements === first.elements)
  );
}

/** Whether `outer` has the calls of a whole number of `inner`, but is not just that. */
function isReordered(inner: Int32Array, outer: Int32Array): boolean {
  const times = outer.length / inner.length;
  if (inner.length === 0 || times < 2 || !Number.isInteger(times)) return false;
  const left = new Map<number, number>();
  for (const symbol of inner) left.set(symbol, (left.get(symbol) ?? 0) + times);
  for (const symbol of outer) left.set(symbol, (left.get(symbol) ?? 0) - 1);
  for (const count of left.values()) if (count !== 0) return false;
  return outer.some((symbol, i) => symbol !== outer[(i + inner.length) % outer.length]);
}
