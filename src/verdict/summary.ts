/** The verdict in one sentence that a tired engineer can act on. */
import { capital, thousands } from "../base/text.ts";
import type { Answer } from "../model/answer.ts";
import { factOf, factsOf } from "../model/facts.ts";
import type { Rank } from "../model/ids.ts";
import { type Case, slowDownOf } from "./case.ts";

/** Below this the sentence says "probably". */
const SURE = 0.7;

export function summarise(
  given: Case,
  answer: Answer | null,
  victims: readonly Rank[],
  confidence: number,
): string {
  if (answer === null) return withoutSuspects(given, victims);
  const { who, what, effect, slower, waiting } = answer;
  const says = `${who} ${what}`;
  const start = confidence < SURE ? `Probably ${says}` : capital(says);
  const much = slower === null ? "" : ` (${slower})`;
  const waits = waiting === null ? "" : `; ${waiting}`;
  // What a machine's metrics show says nothing yet of what it does to a job.
  if (given.kind === "faulty-machine") return `${start}${waits}.`;
  return `${start}, and that ${effect}${much}${waits}.`;
}

/** Ranks that are alike may all wait for one that nobody looked at. */
function whoWords({ job: { worldSize }, findings }: Case): string {
  const even = factsOf(findings, "even-ranks")[0]?.evenRanks;
  if (even === undefined) return "The evidence does not show which rank causes it";
  if (even >= worldSize) return "No rank stands out: all became slower alike";
  const others = worldSize - even;
  return `None of the ${thousands(even)} ranks that were compared stands out: they may wait for one of the other ${thousands(others)}, of which nothing is known`;
}

function withoutSuspects(given: Case, victims: readonly Rank[]): string {
  const { job, kind, findings } = given;
  const slow = slowDownOf(findings);
  if (kind === "fail-slow" && slow) return `${capital(slow.says)}. ${whoWords(given)}.`;
  const even = findings.find((finding) => factOf(finding, "even-iterations"));
  const alike = findings.find((finding) => factOf(finding, "alike-machines")?.allAlike);
  if (kind === "healthy" && alike && job.dumps.size === 0)
    return `${capital(alike.says)}; there was no other evidence of the job.`;
  if (kind === "healthy") {
    const moves = factsOf(findings, "nothing-pending").find(({ isMoving }) => isMoving)?.isMoving;
    const pending =
      moves === "fresh"
        ? "no operator had been pending for longer than two seconds"
        : moves
          ? "operators kept completing until the end of the record"
          : "no operator is pending";
    return `No hang and no crash: ${pending} and no process failed. ${
      even
        ? `Also ${even.says}.`
        : "There are no iteration times, so whether the job was slow is unknown."
    }`;
  }
  if (kind === "hang") {
    if (victims.length === 0)
      return "The job hangs. The evidence does not show which rank causes it.";
    return `The job hangs. The evidence does not show which rank ${victims.length === 1 ? "the waiting rank waits" : `the ${thousands(victims.length)} waiting ranks wait`} for.`;
  }
  const last = [...job.logs.values()].reduce((most, log) => Math.max(most, log.lastIteration), -1);
  if (even)
    return `These files show nothing wrong: ${even.says}${last >= 0 ? `, up to iteration ${last}` : ""}. They do not show whether the job continued after that.`;
  return "These files do not show whether anything is wrong.";
}
