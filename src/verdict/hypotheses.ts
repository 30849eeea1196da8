/**
 * From findings to hypotheses (who, what). Findings that accuse the same ranks strengthen each other;
 * an accusation against ranks that the wait graph shows waiting is worth little, whatever accuses
 * them: a stack outside communication, or an error printed in the aftermath.
 */
import type { Cause } from "../model/cause.ts";
import type { Accusation, Finding, SuspectType } from "../model/finding.ts";
import type { Rank } from "../model/ids.ts";
import type { Job } from "../model/job.ts";
import { joinMachines } from "./machine-evidence.ts";

export interface Hypothesis {
  readonly kind: Accusation["kind"];
  readonly type: SuspectType;
  readonly ranks: readonly Rank[];
  readonly link: readonly [string, string] | null;
  readonly name: string | null;
  readonly cause: Cause;
  /** 0..1 */
  readonly weight: number;
  readonly why: string;
  readonly evidence: readonly string[];
}

/** What an accusation is still worth when the ranks it names are known to wait. */
const CLEARED_FACTOR = 0.1;

/** What it is worth when the dumps name somebody else and the rank it names was alive to write one. */
const NOT_IMPLICATED_FACTOR = 0.3;

export function hypotheses(job: Job, findings: readonly Finding[]): Hypothesis[] {
  const cleared = clearedBy(findings);
  const implicated = implicatedByDumps(findings);
  const byRanks = new Map<string, { finding: Finding; accusation: Accusation; weight: number }[]>();
  for (const finding of findings) {
    for (const accusation of finding.accuses) {
      const { ranks } = accusation;
      const waits = ranks.length > 0 && ranks.every((rank) => otherCleared(cleared, rank, finding));
      const spared =
        implicated.size > 0 &&
        accusation.kind === "hang" &&
        ranks.every((rank) => !implicated.has(rank) && job.dumps.has(rank));
      const factor = waits ? CLEARED_FACTOR : spared ? NOT_IMPLICATED_FACTOR : 1;
      const weight = accusation.weight * factor;
      // A machine and its only rank are not the same accusation; they are joined below.
      const of = accusation.kind === "faulty-machine" ? `machine ${accusation.name}/` : "";
      const key = of + (ranks.length > 0 ? ranks.join() : `${accusation.cause}/${accusation.why}`);
      const list = byRanks.get(key) ?? [];
      list.push({ finding, accusation, weight });
      byRanks.set(key, list);
    }
  }
  const ranked = [...byRanks.values()]
    .map((votes) => {
      const strongest = [...votes].sort((a, b) => b.weight - a.weight);
      const lead =
        strongest.find(
          ({ accusation }) => accusation.kind === "crash" && accusation.weight >= 0.5,
        ) ?? strongest[0]!;
      const doubt = votes.reduce((rest, { weight }) => rest * (1 - weight), 1);
      return {
        kind: lead.accusation.kind,
        type: lead.accusation.type,
        ranks: lead.accusation.ranks,
        link: lead.accusation.link,
        name: lead.accusation.name ?? null,
        cause: refinedCause(
          lead.accusation,
          votes.map((vote) => vote.accusation),
        ),
        weight: Math.min(0.99, 1 - doubt),
        why: [lead.accusation.why, ...codePlace(lead.finding, strongest)].join("; "),
        evidence: strongest
          .map(({ finding }) => finding.id)
          .filter((id, i, all) => all.indexOf(id) === i),
      };
    })
    .sort((a, b) => b.weight - a.weight || (a.ranks[0] ?? 0) - (b.ranks[0] ?? 0));
  return joinMachines(ranked);
}

/** The line that a stack shows belongs into the sentence, whoever leads it. */
function codePlace(
  lead: Finding,
  votes: readonly { finding: Finding; accusation: Accusation; weight: number }[],
): string[] {
  const stack = votes.find(({ finding }) => finding.method === "hang/stacks");
  return stack && stack.finding !== lead && stack.weight >= 0.2 ? [stack.accusation.why] : [];
}

/** Ranks that the wait graph accuses with certainty. */
function implicatedByDumps(findings: readonly Finding[]): Set<Rank> {
  const sure = findings.filter(
    ({ method, weight }) => method === "hang/wait-graph" && weight >= 0.8,
  );
  return new Set(
    sure.flatMap((finding) => finding.accuses.flatMap((accusation) => accusation.ranks)),
  );
}

/** Rank → methods whose findings clear it. */
function clearedBy(findings: readonly Finding[]): Map<Rank, Set<string>> {
  const cleared = new Map<Rank, Set<string>>();
  for (const finding of findings) {
    if (finding.weight < 0.5) continue;
    for (const rank of finding.clears) {
      const methods = cleared.get(rank) ?? new Set();
      methods.add(finding.method);
      cleared.set(rank, methods);
    }
  }
  return cleared;
}

function otherCleared(cleared: Map<Rank, Set<string>>, rank: Rank, finding: Finding): boolean {
  const methods = cleared.get(rank);
  return methods !== undefined && [...methods].some((method) => method !== finding.method);
}

/** A general cause gives way to a special one that another finding knows of the same ranks. */
function refinedCause(lead: Accusation, votes: readonly Accusation[]): Cause {
  const special: Partial<Record<Cause, readonly Cause[]>> = {
    "cpu-stall": [
      "process-stopped",
      "process-gone",
      "dataloader",
      "storage",
      "garbage-collection",
      "synchronization",
    ],
    "process-gone": lead.kind === "crash" ? ["host-memory"] : ["process-stopped"],
  };
  const better = votes.find((vote) => special[lead.cause]?.includes(vote.cause));
  return better?.cause ?? lead.cause;
}
