/**
 * What may be said while some machines are not heard: who is silent is named, and accused of nothing. That a rank left no
 * trace says that its agent is silent, not that it is the root cause.
 */
import type { Verdict } from "../../../model/verdict.ts";
import { count, rankWords } from "../../../base/text.ts";
import type { ConnectedAgents } from "./job-events.ts";
import type { JobRun } from "./job-run.ts";

const MOST_NAMED = 4;
/** Of a verdict that names nobody because the machines in question are not heard. */
const MOST_UNSURE = 0.3;

export interface Unheard {
  readonly machines: readonly string[];
  readonly ranks: readonly number[];
  /** Machines of the job. */
  readonly of: number;
  /** Ranks that no agent ever reported; of how many. */
  readonly agentless: readonly number[];
  readonly worldSize: number;
}

/** Machines whose agent is not connected, or reports nothing. */
export function unheardOf(run: JobRun, connected: ConnectedAgents | null, nowMs: number): Unheard {
  const machines = new Set<string>();
  const ranks: number[] = [];
  for (const [rank, { agent, machine, state }] of run.ranks) {
    const isHeard = connected?.has(agent) !== false && run.isHeard(agent, nowMs);
    // Its agent has reported its death: that is known.
    if (isHeard || state === "gone") continue;
    machines.add(machine);
    ranks.push(rank);
  }
  const { worldSize, machines: of } = run;
  const agentless = worldSize > run.ranks.size ? ranksWithoutAgent(run) : [];
  return { machines: [...machines].sort(byName), ranks, of, agentless, worldSize };
}

export function ranksUnheard({ ranks, agentless }: Unheard): number {
  return ranks.length + agentless.length;
}

function ranksWithoutAgent({ ranks, worldSize }: JobRun): number[] {
  const without: number[] = [];
  for (let rank = 0; rank < worldSize; rank++) if (!ranks.has(rank)) without.push(rank);
  return without;
}

/** "10 of 20 machines are not heard: node000, node001, node002, node003 and 6 more (ranks 0–79)" */
export function unheardWords({ machines, ranks, of }: Unheard): string | null {
  if (machines.length === 0) return null;
  const named = machines.slice(0, MOST_NAMED).join(", ");
  const more = machines.length > MOST_NAMED ? ` and ${machines.length - MOST_NAMED} more` : "";
  const are = machines.length === 1 ? "is" : "are";
  return `${machines.length} of ${count(of, "machine")} ${are} not heard: ${named}${more} (${rankWords(ranks)})`;
}

/** "16 of 32 ranks have no agent (ranks 16–31)" */
export function agentlessWords({ agentless, worldSize }: Unheard): string | null {
  if (agentless.length === 0) return null;
  const have = agentless.length === 1 ? "has" : "have";
  return `${agentless.length} of ${count(worldSize, "rank")} ${have} no agent (${rankWords(agentless)})`;
}

/**
 * The verdict without suspects that are only silent, and with what is not heard under what is missing. Where the first
 * suspect is one of them, nothing that follows from it stands: not the sentence, not the actions, not the others' rank.
 */
export function withUnheard(verdict: Verdict, unheard: Unheard): Verdict {
  const lines = [unheardWords(unheard), agentlessWords(unheard)].filter((one) => one !== null);
  if (lines.length === 0) return verdict;
  const words = lines.join("; ");
  const silent = new Set([...unheard.ranks, ...unheard.agentless]);
  const machines = new Set(unheard.machines);
  const isSilent = ({ ranks, machine }: Verdict["suspects"][number]): boolean =>
    ranks.length > 0
      ? ranks.every((rank) => silent.has(rank))
      : machine !== null && machines.has(machine);
  const suspects = verdict.suspects.filter((one) => !isSilent(one));
  const missing = [...lines, ...verdict.missing];
  if (verdict.suspects.length === 0)
    return { ...verdict, missing, summary: `${verdict.summary} ${words}.` };
  if (suspects.length === verdict.suspects.length) return { ...verdict, missing };
  if (suspects[0] === verdict.suspects[0]) return { ...verdict, suspects, missing };
  const what = verdict.kind === "fail-slow" ? "The job is slow" : "The job stands still";
  const { answer: _, ...rest } = verdict;
  return {
    ...rest,
    suspects: [],
    missing,
    actions: [],
    owner: null,
    confidence: Math.min(verdict.confidence, MOST_UNSURE),
    summary: `${what}. ${words}, so the evidence does not show which rank causes it.`,
  };
}

/**
 * What the service itself knows of a job that stands still, with who is not heard since when. It rests on what agents reported
 * of processes, never on their silence: its suspects stay.
 */
export function withLastReports(verdict: Verdict, run: JobRun, unheard: Unheard): Verdict {
  const lines = [unheardWords(unheard), agentlessWords(unheard)].filter((one) => one !== null);
  if (lines.length === 0) return verdict;
  const last = lastReportWords(run, unheard);
  const words = [...lines, ...(last === null ? [] : [last])].join("; ");
  const missing = [...lines, ...verdict.missing];
  return { ...verdict, missing, summary: `${verdict.summary} ${words}.` };
}

/** "node003 reported last at 10:00:05 UTC, node001 at 10:00:07 UTC", those that fell silent first. */
function lastReportWords(run: JobRun, { machines }: Unheard): string | null {
  const silent = new Set(machines);
  const heardMs = new Map<string, number>();
  for (const { agent, machine } of run.ranks.values()) {
    const atMs = run.heardMs.get(agent);
    if (silent.has(machine) && atMs !== undefined)
      heardMs.set(machine, Math.max(atMs, heardMs.get(machine) ?? -Infinity));
  }
  const first = [...heardMs].sort((a, b) => a[1] - b[1] || byName(a[0], b[0])).slice(0, MOST_NAMED);
  const words = first.map(
    ([machine, atMs], k) =>
      `${machine}${k === 0 ? " reported last" : ""} at ${new Date(atMs).toISOString().slice(11, 19)} UTC`,
  );
  return words.length > 0 ? words.join(", ") : null;
}

function byName(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
