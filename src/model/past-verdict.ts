/** What is over is told in the past: who was slow, what it did, who waited. */
import { capital } from "../base/text.ts";
import type { Answer } from "./answer.ts";
import type { Verdict } from "./verdict.ts";

const PAST: Readonly<Record<string, string>> = {
  is: "was",
  are: "were",
  has: "had",
  have: "had",
  gets: "got",
  get: "got",
  takes: "took",
  take: "took",
  makes: "made",
  make: "made",
  hangs: "hung",
  hang: "hung",
  stops: "stopped",
  stop: "stopped",
  may: "may have",
};

/** "computes slowly: …" → "computed slowly: …"; of a verb at the beginning, and of what shows it. */
export function pastWords(what: string): string {
  return what
    .replace(/^may slow down or stop\b/, "may have slowed down or stopped")
    .replace(
      /^(is|are|has|have|gets?|stops?|computes?|communicates?|waits?|takes?|slows?|makes?|hangs?|stands?)\b/,
      (verb) => PAST[verb] ?? (verb.startsWith("stand") ? "stood" : verb.replace(/e?s?$/, "ed")),
    )
    .replace(/: (communication|a transfer) takes\b/, ": $1 took");
}

/** The same where it is over already, or nobody is suspected. */
export function pastVerdict(verdict: Verdict): Verdict {
  const { answer, summary } = verdict;
  if (!answer || answer.isOver) return verdict;
  const over: Answer = {
    ...answer,
    what: pastWords(answer.what),
    effect: pastWords(answer.effect),
    isOver: true,
    waiting:
      answer.waiting
        ?.replace(/only waits?\b/, "only waited")
        .replace(/ (is|are) (a )?victim/, wasVictim) ?? null,
  };
  let told = summary;
  for (const [now, then] of [
    [`${answer.who} ${answer.what}`, `${over.who} ${over.what}`],
    [answer.effect, over.effect],
    [answer.waiting ?? "", over.waiting ?? ""],
  ] as const)
    if (now !== "") told = told.replace(now, () => then).replace(capital(now), () => capital(then));
  return { ...verdict, answer: over, summary: told };
}

function wasVictim(words: string): string {
  return words.replace(" is ", " was ").replace(" are ", " were ");
}
