/** Precision, recall and F1 as Minder §6 defines them, and stricter. */
import { wilson } from "../../src/maths/wilson.ts";
import type { JudgedAnswer } from "./judged-answer.ts";
import { THRESHOLDS, type VariantName } from "./minder-sweep.ts";
import type { TaskOutcome } from "./task-work.ts";

export interface Scores {
  readonly right: number;
  /** In faulty tasks: somebody else first, or nobody. */
  readonly wrong: number;
  readonly missed: number;
  /** Healthy tasks in which somebody was named, and all. */
  readonly alarms: number;
  readonly healthy: number;
  /** Of those alarms, on a machine whose exporter is broken. */
  readonly alarmsBroken: number;
  readonly extra: number;
  readonly exporter: number;
  readonly weakCulprits: number;
}

export type Asked = (outcome: TaskOutcome) => JudgedAnswer | undefined;

export function scoresOf(outcomes: readonly TaskOutcome[], asked: Asked): Scores {
  const answers = outcomes.flatMap((outcome) => {
    const answer = asked(outcome);
    return answer === undefined ? [] : [{ ...answer, isFaulty: outcome.isFaulty }];
  });
  const count = (is: (answer: (typeof answers)[number]) => boolean): number =>
    answers.filter(is).length;
  return {
    right: count(({ isFaulty, first }) => isFaulty && first === "right"),
    wrong: count(({ isFaulty, first }) => isFaulty && first === "wrong"),
    missed: count(({ isFaulty, first }) => isFaulty && first === "nobody"),
    alarms: count(({ isFaulty, first }) => !isFaulty && first !== "nobody"),
    healthy: count(({ isFaulty }) => !isFaulty),
    alarmsBroken: count(
      ({ isFaulty, first, isBroken }) => !isFaulty && first !== "nobody" && isBroken,
    ),
    extra: answers.reduce((sum, { isFaulty, extra }) => sum + (isFaulty ? extra : 0), 0),
    exporter: answers.reduce((sum, { exporter }) => sum + exporter, 0),
    weakCulprits: count(({ isCulpritWeak }) => isCulpritWeak),
  };
}

export interface Rates3 {
  readonly precision: number;
  readonly recall: number;
  readonly f1: number;
}

/** Strictly: naming the wrong machine during a fault is a false alarm, too. */
export function ratesOf({ right, wrong, missed, alarms }: Scores, isStrict: boolean): Rates3 {
  const positives = right + alarms + (isStrict ? wrong : 0);
  const precision = positives === 0 ? 0 : right / positives;
  const recall = right + wrong + missed === 0 ? 0 : right / (right + wrong + missed);
  const f1 = precision + recall === 0 ? 0 : (2 * precision * recall) / (precision + recall);
  return { precision, recall, f1 };
}

/** The threshold with the best F1; of equal ones the higher. The place in THRESHOLDS. */
export function chosenThreshold(tuning: readonly TaskOutcome[], name: VariantName): number {
  let best = 0;
  let bestF1 = -1;
  THRESHOLDS.forEach((_, at) => {
    const { f1 } = ratesOf(
      scoresOf(tuning, ({ minder }) => minder[name][at]),
      false,
    );
    if (f1 >= bestF1) [best, bestF1] = [at, f1];
  });
  return best;
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

/** "3/150 = 2.0 % (0.7 to 5.7)". */
export function shareWords(hits: number, all: number): string {
  if (all === 0) return "–";
  const [low, high] = wilson(hits, all);
  return `${hits}/${all} = ${percent(hits / all)} (${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)})`;
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}
