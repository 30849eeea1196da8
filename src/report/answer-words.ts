/** The answer as people read it, for every form of it: headline, what it does to the job, the first step. */
import { percent, ranges } from "../base/text.ts";
import { effectOf, headlineOf } from "../model/answer.ts";
import type { Action, Verdict } from "../model/verdict.ts";

export interface AnswerWords {
  /** "GPU 5 of node002 (rank 13) is throttled: 645 MHz at 90 °C, peers 1,890 MHz." */
  readonly headline: string;
  /** "The job takes 1.23 times as long: 345 ms → 425 ms per iteration. The other 7 ranks only wait." */
  readonly effect: string;
  /** "GPU 5", "pid 705", "NIC mlx5_5". */
  readonly where: readonly string[];
  /** "ranks 0–2, 4–7"; "" where nobody is known to. */
  readonly waiting: string;
}

/** Below this the headline says "probably". */
const SURE = 0.7;

type Given = Pick<Verdict, "summary" | "answer" | "confidence" | "victims">;

export function answerWords(verdict: Given): AnswerWords {
  const { answer, victims, confidence } = verdict;
  const waiting =
    victims.length === 0 ? "" : `${victims.length === 1 ? "rank" : "ranks"} ${ranges(victims, 10)}`;
  if (answer === undefined) return { headline: verdict.summary, effect: "", where: [], waiting };
  const headline = confidence < SURE ? `Probably ${answer.who} ${answer.what}` : headlineOf(answer);
  return { headline: `${headline}.`, effect: effectOf(answer), where: answer.where, waiting };
}

/** What to do first, and what then: what the plan says in full elsewhere is not repeated. */
export function stepsOf({ actions, mitigation }: Pick<Verdict, "actions" | "mitigation">): {
  first: Action | null;
  next: readonly Action[];
} {
  const planned = new Set(mitigation?.steps.map((step) => step.do));
  const [first = null, ...next] = actions.filter((action) => !planned.has(action.do));
  return { first, next };
}

const SURENESS: readonly (readonly [least: number, words: string])[] = [
  [0.95, "almost certain"],
  [0.8, "very likely"],
  [0.6, "likely"],
  [0.4, "as likely as not"],
];

/** The one number, with its words: "93 %, very likely". */
export function sureWords(confidence: number): string {
  // As it is shown: 95 % is not one thing here and another there.
  const shown = Math.round(100 * confidence) / 100;
  const words = SURENESS.find(([least]) => shown >= least)?.[1] ?? "little more than a guess";
  return `${percent(confidence)}, ${words}`;
}
