/**
 * Calls that are all alike repeat much faster than iterations: equal buckets of gradients, the all-reduces of
 * tensor parallelism alone, a first stage that only sends and receives. What the sequence cannot tell the clock
 * does: where every k-th repetition takes many times as long as the others, that is the iteration.
 */
import { median } from "../../maths/robust.ts";
import type { CallSequence } from "./call-classes.ts";
import type { Ending } from "./call-segments.ts";

/** Times the usual repetition. */
const LONG = 5;
const FEWEST = 3;
/** Share of the pauses that must come after the same number of repetitions. */
const REGULAR = 0.8;

interface Iterations {
  readonly endings: readonly Ending[];
  /** Repetitions of the pattern in an iteration. */
  readonly repetitions: number;
}

export function mergeByPauses({ timesNs }: CallSequence, endings: readonly Ending[]): Iterations {
  const asTheyAre = { endings, repetitions: 1 };
  const took: number[] = [];
  for (let i = 0; i + 1 < endings.length; i++)
    took.push(timesNs[endings[i + 1]!.call + 1]! - timesNs[endings[i]!.call + 1]!);
  const usual = median(took);
  const pauses = [...took.keys()].filter((i) => took[i]! > LONG * usual);
  if (pauses.length < FEWEST || pauses.length > took.length / 2) return asTheyAre;
  const distances = pauses.slice(1).map((at, k) => at - pauses[k]!);
  const distance = median(distances);
  const regular = distances.filter((each) => each === distance).length;
  if (distance < 2 || regular < REGULAR * distances.length) return asTheyAre;
  return { endings: pauses.map((i) => endings[i]!), repetitions: distance };
}
