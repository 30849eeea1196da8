/** What the service itself knows of a job that stands still: who is gone or stopped. For when the evidence says no more. */
import { rankWords } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { Suspect, Verdict } from "../../model/verdict.ts";
import type { JobRun } from "./job-run.ts";

const SURE = 0.6;
const UNSURE = 0.3;
const MOST_SUSPECTS = 64;

/** `told`: what a diagnosis of the evidence said, where there is one. */
export function standstillVerdict(
  run: JobRun,
  kind: "hang" | "crash",
  ranks: readonly Rank[],
  says: string,
  told: Verdict | null,
): Verdict {
  if (told && (told.suspects.length > 0 || told.kind === kind)) return told;
  const blamed = ranks.slice(0, MOST_SUSPECTS);
  const cause = kind === "crash" ? "process-gone" : "process-stopped";
  const suspects = blamed.map((rank): Suspect => ({
    type: "rank",
    ranks: [rank],
    machine: run.ranks.get(rank)?.machine ?? null,
    link: null,
    name: null,
    cause,
    score: Math.floor((1000 * SURE) / Math.max(1, blamed.length)) / 1000,
    why: says,
    evidence: ["f1"],
  }));
  const who =
    suspects.length > 0
      ? `${rankWords(ranks)} ${kind === "crash" ? "died" : "stopped"}, and that ends the job's progress`
      : says;
  const finding = {
    id: "f1",
    method: "live/processes" as const,
    says,
    weight: suspects.length > 0 ? SURE : UNSURE,
    at: [],
    data: { fact: "remark" } as const,
  };
  return {
    schema: "faultline.verdict/1",
    kind,
    summary: `${who}. ${told ? "The evidence collected does not say more." : "No evidence could be collected."}`,
    confidence: suspects.length > 0 ? SURE : UNSURE,
    when: {
      iteration: run.lastIteration >= 0 ? run.lastIteration + 1 : null,
      from: null,
      to: null,
    },
    suspects,
    victims: [],
    owner: null,
    actions: [],
    findings: [finding],
    inputs: told?.inputs ?? [],
    missing: told?.missing ?? [],
    wouldHelp: told?.wouldHelp ?? [],
  };
}
