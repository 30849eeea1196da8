/** How a story speaks: short sentences with ranks, machines, operators and milliseconds. */
import { cutText, harmless, rankWords, capital } from "../../base/text.ts";
import type { Cause } from "../../model/cause.ts";
import type { Rank } from "../../model/ids.ts";
import type { Group, Job } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import type { Suspect } from "../../model/verdict.ts";
import type { WalkedHop } from "./walk.ts";

/** Names come from strangers' files and may be of any length. */
const MOST_NAME = 120;

export function named(text: string): string {
  return harmless(cutText(text, MOST_NAME));
}

export function machineName(job: Job, rank: Rank): string | null {
  const machine = job.ranks.get(rank)?.machine ?? null;
  return machine === null ? null : named(machine);
}

/** "rank 12 (node001)" */
export function who(job: Job, rank: Rank): string {
  const machine = machineName(job, rank);
  return machine === null ? `rank ${rank}` : `rank ${rank} (${machine})`;
}

/** "4.2 ms", "312 ms" */
export function msWords(ms: number): string {
  return `${Math.abs(ms) < 100 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
}

/** "all_reduce #241 of DATA_PARALLEL_1", "transfer 3 from rank 1 to rank 5" */
export function hopTitle(job: Job, { kind, group, from, op, nth, took }: WalkedHop): string {
  const label = groupName(job.groups[group]);
  if (kind === "transfer")
    return `transfer ${nth + 1} from rank ${took[0]!.rank} to rank ${from.rank} (${label})`;
  const name = opName(from.operators, op);
  return from.operators.hasSequence
    ? `${name} #${from.operators.ops.seq[op]} of ${label}`
    : `${name} ${nth + 1} of the iteration, of ${label}`;
}

function groupName(group: Group | undefined): string {
  return group ? named(group.desc || `group ${group.name}`) : "an unknown group";
}

/** Agents tell what kind of operator it is, not its name. */
function opName({ ops }: RankOperators, op: number): string {
  const name = ops.names[ops.name[op]!] ?? "operator";
  return name === "operator" || name === "" ? "collective" : named(name);
}

export function hopSays(
  job: Job,
  { from, op, excessMs, to, took, kind }: WalkedHop,
  hasBefore: boolean,
): string {
  const spent = from.ms(op);
  const more =
    hasBefore && excessMs > 0 ? `, ${msWords(excessMs)} more than in healthy iterations` : "";
  const waited = `${capital(who(job, from.rank))} spends ${msWords(spent)} in it${more}.`;
  if (to === from.rank) {
    const others = took.filter(({ rank }) => rank !== from.rank);
    const least = others.reduce((a, b) => (b.ms < a.ms ? b : a));
    return `${waited} No rank came late: ${who(job, least.rank)} is in it for ${msWords(least.ms)}${others.length > 1 ? ", and no one for less" : ""}.`;
  }
  const stayed = took.find(({ rank }) => rank === to)!.ms;
  const came = `${capital(who(job, to))} is in it for ${stayed < spent / 2 ? "only " : ""}${msWords(stayed)}`;
  return kind === "transfer"
    ? `${waited} ${came}: the sender came last.`
    : `${waited} ${came}: it came last of ${took.length}, and the others wait for it.`;
}

const DOES: Readonly<Partial<Record<Cause, string>>> = {
  "gpu-slow": "Its GPU computes slowly.",
  "cpu-stall": "Its CPU is late to issue work.",
  dataloader: "It waits for its data.",
  "garbage-collection": "It runs Python's garbage collection.",
};

export function ownEnds(
  job: Job,
  rank: Rank,
  ownMs: number,
  excessMs: number,
  hasBefore: boolean,
  { cause }: Suspect,
  issueMs: readonly [number, number] | null,
): string {
  const than = hasBefore ? "more than before" : "more than ranks that do the same";
  const does = DOES[cause] ?? "";
  // What a slow CPU costs shows in when it issues work, and hardly in the time outside communication.
  const issues =
    issueMs && cause === "cpu-stall"
      ? ` It takes ${msWords(issueMs[1])} to issue an iteration's operators, ${msWords(issueMs[0])} before.`
      : "";
  return `${capital(who(job, rank))} waits for no other rank: it spends ${msWords(ownMs)} of the iteration outside communication, ${msWords(excessMs)} ${than}. ${does}${issues}`.trim();
}

export function networkEnds(suspect: Suspect, floorMs: number): string {
  return `All ranks have arrived, and it still takes ${msWords(floorMs)} per iteration longer than before: communication over ${deviceWords(suspect)} is slow.`;
}

export function deviceWords({ type, ranks, name, link }: Suspect): string {
  const called = name === null ? "" : ` (${named(name)})`;
  if (type === "link" || link) return `the link between ${rankWords(ranks)}`;
  if (type === "switch") return name === null ? "a switch" : `switch ${named(name)}`;
  if (type === "nic") return `the NIC of ${rankWords(ranks)}${called}`;
  return `${rankWords(ranks)}${called}`;
}

const NETWORK: ReadonlySet<Suspect["type"]> = new Set(["link", "nic", "switch"]);

/** Whether the suspect is something between ranks. */
export function isNetwork({ type, cause }: Pick<Suspect, "type" | "cause">): boolean {
  return NETWORK.has(type) || cause === "network-slow" || cause === "network-hang";
}
