/** What is said of a job that stands still or died. */
import { rankWords } from "../../../base/text.ts";
import type { Rank } from "../../../model/ids.ts";
import type { Suspect, Verdict } from "../../../model/verdict.ts";
import type { JobRun } from "../job/job-run.ts";

const SURE_OF_PROCESSES = 0.6;
const UNSURE_OF_PROCESSES = 0.3;
const MOST_SUSPECTS = 64;

/**
 * The verdict of a standstill: that of the evidence, or, where the evidence says no more, what the service itself knows of
 * ranks that are gone or stopped. `diagnosed`: the verdict on the evidence, where there is one.
 */
export function standstillVerdict(
  run: JobRun,
  kind: "hang" | "crash",
  ranks: readonly Rank[],
  says: string,
  diagnosed: Verdict | null,
  /** Of its incident. */
  fromIteration: number | null,
): Verdict {
  if (diagnosed && (diagnosed.suspects.length > 0 || diagnosed.kind === kind)) return diagnosed;
  const blamed = ranks.slice(0, MOST_SUSPECTS);
  // A log says that they failed; their processes are there.
  const isAlive = kind === "crash" && blamed.every((rank) => run.ranks.get(rank)?.state !== "gone");
  const cause = isAlive ? "unknown" : kind === "crash" ? "process-gone" : "process-stopped";
  const sure = isAlive ? UNSURE_OF_PROCESSES : SURE_OF_PROCESSES;
  const suspects = blamed.map((rank): Suspect => ({
    type: "rank",
    ranks: [rank],
    machine: run.ranks.get(rank)?.machine ?? null,
    link: null,
    name: null,
    cause,
    score: Math.floor((1000 * sure) / Math.max(1, blamed.length)) / 1000,
    why: says,
    evidence: ["f1"],
  }));
  const who =
    suspects.length > 0
      ? isAlive
        ? `The log of ${rankWords(ranks)} tells of a failure, and nothing has gone on since (${says})`
        : `${rankWords(ranks)} ${kind === "crash" ? "died" : "stopped"}, which stops the job`
      : says;
  const last = fromIteration === null ? "" : ` The last iteration is ${fromIteration - 1}.`;
  const evidence = diagnosed
    ? "The collected evidence shows no more."
    : `No evidence could be collected.${last}`;
  const finding = {
    id: "f1",
    method: "live/processes" as const,
    says,
    weight: suspects.length > 0 ? sure : UNSURE_OF_PROCESSES,
    at: [],
    data: { fact: "remark" } as const,
  };
  return {
    schema: "faultline.verdict/1",
    kind,
    summary: `${who}. ${evidence}`,
    confidence: suspects.length > 0 ? sure : UNSURE_OF_PROCESSES,
    when: {
      iteration: fromIteration,
      from: null,
      to: null,
    },
    suspects,
    victims: [],
    owner: null,
    actions: [],
    findings: [finding],
    inputs: diagnosed?.inputs ?? [],
    missing: diagnosed?.missing ?? [],
    wouldHelp: diagnosed?.wouldHelp ?? [],
  };
}
