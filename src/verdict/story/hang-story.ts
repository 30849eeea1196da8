/**
 * The story of a job that stands still: from a rank that waits, operator by operator, to the one that never arrived. The
 * wait graph has been followed already (methods/hang); this picks its longest way to a suspect.
 */
import { cutText, harmless, rankWords, capital } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import { COMPLETED } from "../../model/operators.ts";
import type { Story, StoryBar, StoryHop } from "../../model/picture.ts";
import type { Suspect, Verdict } from "../../model/verdict.ts";
import type { Absence, StuckOperator } from "../../model/facts.ts";
import { readWaitOps } from "../../model/wait-ops.ts";
import { machineName, MOST_BARS, who } from "./story-words.ts";

const MOST_TITLE = 300;
const MOST_HOPS = 8;

export function hangStory(
  job: Job,
  verdict: Verdict,
): { readonly story: Story | null; readonly lacks: readonly string[] } {
  const waits = readWaitOps(verdict);
  const lack = (why: string) => ({ story: null, lacks: [why] });
  if (!waits) return lack("No story: the inputs do not show which operators ranks wait in.");
  const blamed = new Set(verdict.suspects.flatMap(({ ranks }) => ranks));
  const way = wayTo(waits.ops, blamed);
  if (way) {
    const hops = way.map((step) => hopOf(job, step));
    return { story: { hops, ends: endsOf(job, verdict, way.at(-1)!, waits.ops) }, lacks: [] };
  }
  const stuck = stuckTogether(waits.ops, blamed);
  if (!stuck) return lack("No story: no operator that ranks wait in leads to the suspect.");
  const hop = hopOf(job, { op: stuck, from: stuck.arrived[0]!, to: stuck.arrived[0]! });
  const suspect = suspectOf(verdict, [...blamed][0]);
  const because = suspect ? ` ${capital(suspect.why)}.` : "";
  const ends = harmless(
    cutText(`All members have arrived, and it does not complete.${because}`, MOST_TITLE * 2),
  );
  return { story: { hops: [hop], ends }, lacks: [] };
}

interface WayStep {
  readonly op: StuckOperator;
  /** Waits in it; did not come to it. */
  readonly from: Rank;
  readonly to: Rank;
}

/** From the suspects backwards, breadth first: the operator that is reached last is the farthest symptom. */
function wayTo(ops: readonly StuckOperator[], blamed: ReadonlySet<Rank>): WayStep[] | null {
  interface Node {
    readonly op: StuckOperator;
    readonly to: Rank;
    readonly next: Node | null;
    readonly depth: number;
  }
  const seen = new Set<StuckOperator>();
  const queue: Node[] = [];
  const reach = (isMissed: (rank: Rank) => boolean, next: Node | null): void => {
    const depth = next ? next.depth + 1 : 1;
    if (depth > MOST_HOPS) return;
    for (const op of ops) {
      // What only suspects wait in begins no story: of a mismatch the culprit waits, too, in a circle.
      if (seen.has(op) || op.arrived.every((rank) => blamed.has(rank))) continue;
      const missed = op.absent.find(({ rank }) => isMissed(rank) && !op.arrived.includes(rank));
      if (!missed) continue;
      seen.add(op);
      queue.push({ op, to: missed.rank, next, depth });
    }
  };
  reach((rank) => blamed.has(rank), null);
  for (let k = 0; k < queue.length; k++) {
    const node = queue[k]!;
    const here = new Set(node.op.arrived);
    reach((rank) => here.has(rank) && !blamed.has(rank), node);
  }
  const farthest = queue.reduce<Node | null>((a, b) => (a && a.depth >= b.depth ? a : b), null);
  if (!farthest) return null;
  const way: WayStep[] = [];
  let from = farthest.op.arrived.find((rank) => !blamed.has(rank)) ?? farthest.op.arrived[0]!;
  for (let node: Node | null = farthest; node; node = node.next) {
    way.push({ op: node.op, from, to: node.to });
    from = node.to;
  }
  return way;
}

/** Everybody is in it and nobody leaves: communication itself, or members that call different things. */
function stuckTogether(
  ops: readonly StuckOperator[],
  blamed: ReadonlySet<Rank>,
): StuckOperator | null {
  const all = ops.filter(({ arrived, absent }) => absent.length === 0 && arrived.length > 1);
  const held = (op: StuckOperator): number => op.arrived.filter((rank) => blamed.has(rank)).length;
  const [best] = all.toSorted((a, b) => held(b) - held(a) || b.arrived.length - a.arrived.length);
  return best && (held(best) > 0 || blamed.size === 0) ? best : null;
}

const WHY: Readonly<Record<Absence, string>> = {
  silent: "left no record and never arrived",
  "not-enqueued": "never issued it",
  behind: "has issued it but is blocked before it",
};

function hopOf(job: Job, { op, from, to }: WayStep): StoryHop {
  const members = [...op.arrived, ...op.absent.map(({ rank }) => rank)].sort((a, b) => a - b);
  const named = new Set([from, to, ...op.absent.map(({ rank }) => rank).slice(0, MOST_BARS / 2)]);
  const shown = new Set([...new Set([...named, ...members])].slice(0, MOST_BARS));
  const waited = new Map(op.arrived.map((rank) => [rank, waitedMs(job, rank)]));
  // Of nobody where it is not known of all: a shorter bar would look as if it had come later.
  const isKnown = [...waited.values()].every((ms) => ms !== null);
  const absent = new Set(op.absent.map(({ rank }) => rank));
  const bars = members
    .filter((rank) => shown.has(rank))
    .map((rank): StoryBar => {
      const machine = machineName(job, rank);
      const isAbsent = absent.has(rank);
      const ms = isAbsent || !isKnown ? null : waited.get(rank)!;
      return { rank, machine, ms, beforeMs: null, role: isAbsent ? "absent" : "waits" };
    });
  const longMs = waited.get(from) ?? null;
  const since = longMs === null ? "" : ` for ${(longMs / 1000).toFixed(longMs < 10_000 ? 1 : 0)} s`;
  const why = op.absent.find(({ rank }) => rank === to)?.why;
  const more = op.absent.length > 1 ? `; ${op.absent.length} of ${members.length} are missing` : "";
  const came = why ? `${capital(who(job, to))} ${WHY[why]}${more}.` : "No member is missing.";
  return {
    kind: op.p2p ? "transfer" : "collective",
    title: harmless(cutText(op.what, MOST_TITLE)),
    says: `${capital(who(job, from))} waits in it${since}. ${came}`,
    from,
    to,
    bars,
    leftOut: members.length - bars.length,
  };
}

/**
 * How long a rank has been in its first operator that has not ended, as it tells itself. The flight recorder does not
 * say when it was written; a rank whose watchdog fired has waited for the timeout at least.
 */
function waitedMs(job: Job, rank: Rank): number | null {
  const dump = job.dumps.get(rank)?.dump;
  if (!dump) return null;
  const { ops, takenNs, timeoutMs } = dump;
  const stuck = ops.state.findIndex((state) => state !== COMPLETED);
  if (takenNs !== undefined && stuck >= 0) {
    const began = ops.startedNs[stuck]! > 0 ? ops.startedNs[stuck]! : ops.createdNs[stuck]!;
    const ms = (takenNs - began) / 1e6;
    if (ms > 0) return ms;
  }
  const fired = job.watchdog.some((report) => report.rank === rank);
  return fired && timeoutMs > 0 ? timeoutMs : null;
}

function suspectOf({ suspects }: Verdict, rank: Rank | undefined): Suspect | undefined {
  return rank === undefined ? suspects[0] : suspects.find(({ ranks }) => ranks.includes(rank));
}

function endsOf(
  job: Job,
  verdict: Verdict,
  { to }: WayStep,
  ops: readonly StuckOperator[],
): string {
  const suspect = suspectOf(verdict, to);
  const others = (suspect?.ranks ?? []).filter((rank) => rank !== to);
  const also = others.length === 0 ? "" : ` The same holds for ${rankWords(others)}.`;
  const why = suspect ? ` ${capital(suspect.why)}.` : "";
  const waits = ops.some(({ arrived }) => arrived.includes(to));
  const does = waits
    ? "does not arrive: it is stuck elsewhere"
    : "waits for no other rank and does not arrive";
  return harmless(cutText(`${capital(who(job, to))} ${does}.${also}${why}`, MOST_TITLE * 2));
}
