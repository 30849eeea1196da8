/** The verdict in one sentence that a tired engineer can act on. */
import { disagrees, factOf } from "../model/facts.ts";
import { rankWords, thousands, capital } from "../base/text.ts";
import type { Cause } from "../model/cause.ts";
import type { Finding, VerdictKind } from "../model/finding.ts";
import type { Rank } from "../model/ids.ts";
import type { Job } from "../model/job.ts";
import type { Suspect } from "../model/verdict.ts";
import { adviceFor, type OneOrMany } from "./advice.ts";
import { machineSentence } from "./machine-evidence.ts";
import { slowDownOf } from "./slow-down.ts";

const ENDS: Partial<Record<VerdictKind, string>> = {
  crash: "ended the job",
  "fail-slow": "slows the job down",
  regression: "makes the job slower than necessary",
};

/** Below this the sentence says "probably". */
const SURE = 0.7;

export function summarise(
  job: Job,
  kind: VerdictKind,
  suspects: readonly Suspect[],
  victims: readonly Rank[],
  confidence: number,
  findings: readonly Finding[],
): string {
  if (suspects.length === 0) return withoutSuspects(job, kind, victims, findings);
  if (kind === "faulty-machine")
    return `${confidence < SURE ? "Probably " : ""}${machineSentence(suspects)}`;
  const byCause = new Map<Cause, Rank[]>();
  for (const { cause, ranks } of suspects)
    byCause.set(cause, [...(byCause.get(cause) ?? []), ...ranks]);
  const machine = suspects[0]!.type === "machine" ? suspects[0]!.name : null;
  const named = machine === null ? null : `machine ${machine}`;
  const wire = suspects.length === 1 ? wireClause(job, suspects[0]!) : null;
  const parts =
    wire === null
      ? [...byCause].slice(0, 3).map(([cause, ranks]) => clause(job, kind, cause, ranks, named))
      : [wire];
  const sentence = parts.join(", and ");
  const probably = confidence < SURE ? "Probably " : "";
  const start = probably ? sentence : capital(sentence);
  const end = ENDS[kind] ?? "hangs the job";
  return `${probably}${start}, and that ${end}${bystanders(kind, victims, suspects, job.worldSize)}.${disagreement(suspects, findings)}`;
}

/** What speaks against the verdict belongs beside it. */
function disagreement(suspects: readonly Suspect[], findings: readonly Finding[]): string {
  const used = new Set(suspects.flatMap(({ evidence }) => evidence));
  const against = findings.find((finding) => disagrees(finding) && !used.has(finding.id));
  return against ? ` Other evidence disagrees: ${against.says}.` : "";
}

function withoutSuspects(
  job: Job,
  kind: VerdictKind,
  victims: readonly Rank[],
  findings: readonly Finding[],
): string {
  const slow = slowDownOf(findings);
  if (kind === "fail-slow" && slow) {
    return `${capital(slow.says)}. The evidence does not show which rank causes it.`;
  }
  const even = findings.find((finding) => factOf(finding, "even-iterations"));
  const alike = findings.find((finding) => factOf(finding, "alike-machines")?.allAlike);
  if (kind === "healthy" && alike && job.dumps.size === 0)
    return `${capital(alike.says)}; there was no other evidence of the job.`;
  if (kind === "healthy") {
    const moves = findings.some((finding) => factOf(finding, "nothing-pending")?.isMoving);
    const pending = moves
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

const NO_TRACE: OneOrMany = [
  "left no trace: its process is gone, or its files are missing",
  "left no trace: their processes are gone, or their files are missing",
];

function clause(
  job: Job,
  kind: VerdictKind,
  cause: Cause,
  ranks: readonly Rank[],
  named: string | null,
): string {
  const sorted = ranks.toSorted((a, b) => a - b);
  const machine = machineOf(job, sorted);
  const who =
    sorted.length === 0
      ? (named ?? "a process")
      : rankWords(sorted) + (machine === null ? "" : ` on ${machine}`);
  // Of a hang, a missing dump alone proves no death.
  const advice = adviceFor(cause, kind);
  const is =
    cause === "process-gone" && kind === "hang" && !isSeenGone(job, ranks)
      ? NO_TRACE
      : ((kind === "crash" ? advice.crashed : undefined) ?? advice.is);
  return `${who} ${typeof is === "string" ? is : is[sorted.length > 1 ? 1 : 0]}`;
}

/** What lies between ranks is not the ranks: the sentence names the link, so that the technician checks it. */
function wireClause(job: Job, { type, cause, ranks, name }: Suspect): string | null {
  if (cause !== "network-slow") return null;
  const at = (rank: Rank): string => {
    const machine = job.ranks.get(rank)?.machine ?? null;
    return machine === null ? `rank ${rank}` : `rank ${rank} on ${machine}`;
  };
  if (type === "link" && ranks.length === 2)
    return `the link between ${at(ranks[0]!)} and ${at(ranks[1]!)} is slow`;
  if (type === "nic" && ranks.length > 0)
    return `the NIC ${name === null ? "" : `${name} `}of ${rankWords(ranks)} is slow`;
  // A rack or a rail stands for its switch where nobody knows the switch's name.
  if (type === "switch" && name !== null)
    return `${/^(?:rack|rail) /.test(name) ? `the switch of ${name}` : `switch ${name}`}, which ${rankWords(ranks)} hang on, is slow`;
  return null;
}

/** Whether somebody looked for the processes and found none. */
function isSeenGone(job: Job, ranks: readonly Rank[]): boolean {
  return (job.probes ?? []).some(
    ({ rank, state }) => rank !== null && ranks.includes(rank) && /[XZ]/.test(state),
  );
}

/** "the other" only where that is all of them: of some nothing may be known. */
function bystanders(
  kind: VerdictKind,
  victims: readonly Rank[],
  suspects: readonly Suspect[],
  worldSize: number,
): string {
  if (victims.length === 0) return "";
  const isOne = victims.length === 1;
  const blamed = new Set(suspects.flatMap(({ ranks }) => ranks)).size;
  const areAll = worldSize === 0 || victims.length + blamed >= worldSize;
  const count = thousands(victims.length);
  const who = isOne ? "1 other rank" : areAll ? `the other ${count} ranks` : `${count} other ranks`;
  if (kind === "crash") return `; ${who} ${isOne ? "is a victim" : "are victims"} of it`;
  return `; ${who} only ${isOne ? "waits" : "wait"}`;
}

/** The machine that all these ranks share, null where they do not or nothing tells. */
export function machineOf(job: Job, ranks: readonly Rank[]): string | null {
  const machines = new Set(ranks.map((rank) => job.ranks.get(rank)?.machine ?? null));
  return machines.size === 1 ? [...machines][0]! : null;
}
