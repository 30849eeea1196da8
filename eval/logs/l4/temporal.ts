/** L4's temporal comparison as published (§5.3.2): every iteration against the ten before, then the three-sigma rule. */
import { dtwDistance } from "../../maths/dtw.ts";
import type { LogDigest } from "../../../src/model/log-digest.ts";
import type { LogTemplates } from "../../../src/methods/logs/spatial-matrix.ts";
import { progressOf } from "../../../src/methods/logs/temporal-progress.ts";

export interface L4Iteration {
  readonly iteration: number;
  readonly place: number;
  /** Mean similarity to the iterations of the window, 1 for equal ones. */
  readonly similarity: number;
  readonly templates: readonly number[];
}

const WINDOW = 10;
const SIGMAS = 3;
/** What is left of a long sequence, and of long runs: the product of the two bounds the cost. */
const LONGEST = 256;
const MOST_ITERATIONS = 2000;

/** Iterations that are out of line, the least similar first. `isLeftOut`: events that the cross-job filter took. */
export function l4Temporal(
  digest: LogDigest,
  templates: LogTemplates,
  isLeftOut: Uint8Array,
): L4Iteration[] {
  const { reporter } = progressOf(digest);
  if (!reporter) return [];
  const { iteration, sequence } = reporter;
  const events = digest.sequences.map((shapes) => {
    const list: number[] = [];
    for (const shape of shapes) {
      const template = templates.of[shape]!;
      if (isLeftOut[template] === 0 && list.at(-1) !== template) list.push(template);
    }
    return list;
  });
  const similar = similarity(events);
  const start = Math.max(1, iteration.length - MOST_ITERATIONS);
  const scores: L4Iteration[] = [];
  for (let place = start; place < iteration.length; place++) {
    let sum = 0;
    let n = 0;
    for (let before = Math.max(0, place - WINDOW); before < place; before++, n++)
      sum += similar(sequence[place]!, sequence[before]!);
    scores.push({
      iteration: iteration[place]!,
      place,
      similarity: sum / n,
      templates: [...new Set(events[sequence[place]!])],
    });
  }
  return outOfLine(scores);
}

function similarity(events: readonly (readonly number[])[]): (a: number, b: number) => number {
  const known = new Map<number, number>();
  return (a, b) => {
    if (a === b) return 1;
    const key = Math.min(a, b) * events.length + Math.max(a, b);
    let value = known.get(key);
    if (value === undefined) {
      value =
        1 - dtwDistance((events[a] ?? []).slice(0, LONGEST), (events[b] ?? []).slice(0, LONGEST));
      known.set(key, value);
    }
    return value;
  };
}

function outOfLine(scores: readonly L4Iteration[]): L4Iteration[] {
  const mean = scores.reduce((sum, one) => sum + one.similarity, 0) / scores.length;
  const variance =
    scores.reduce((sum, one) => sum + (one.similarity - mean) ** 2, 0) / scores.length;
  const limit = mean - SIGMAS * Math.sqrt(variance);
  return scores.filter((one) => one.similarity < limit).sort((a, b) => a.similarity - b.similarity);
}
