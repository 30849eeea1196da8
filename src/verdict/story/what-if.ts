/** What an iteration takes, took, and would take without the suspect: figures of the replay, or worked out here. */
import { largest } from "../../base/numbers.ts";
import { count, rankWords } from "../../base/text.ts";
import { factOf, type ReplayedWhatIf } from "../../model/facts.ts";
import type { Rank } from "../../model/ids.ts";
import type { WhatIf } from "../../model/picture.ts";
import type { Suspect, Verdict } from "../../model/verdict.ts";
import { middle } from "./middle.ts";
import { ownExcess, usualOwn, type OwnTime } from "./own-times.ts";
import { deviceWords, isNetwork, msWords, named } from "./story-words.ts";
import { issuing } from "./walk-story.ts";
import type { StoryIterations } from "./story-iterations.ts";

/** From localize/what-if, which has replayed traced passes (methods/localize/what-if). */
export function replayedWhatIf({ findings, suspects }: Verdict): WhatIf | null {
  const found = findings.find((finding) => factOf(finding, "replayed-what-if"));
  const replayed = found ? factOf(found, "replayed-what-if") : null;
  const [now, ideal] = [replayed?.actualMs ?? 0, replayed?.idealMs ?? 0];
  if (!found || !replayed || now <= 0 || ideal <= 0) return null;
  const [first] = suspects.filter(({ evidence }) => evidence.includes(found.id));
  const share = first ? shareOf(first, replayed) : NaN;
  const without = now - Math.min(1, share) * (now - ideal);
  const bars: WhatIf["bars"] = [
    { label: "now", ms: now, kind: "now" },
    ...(share > 0
      ? [{ label: `without ${suspectWords(first!)}`, ms: without, kind: "without" as const }]
      : []),
    { label: "if all ranks took equal time", ms: ideal, kind: "without" },
  ];
  const gain =
    share > 0 ? ` Without ${suspectWords(first!)} it would take ${msWords(without)}.` : "";
  return {
    says: `Estimated by replaying ${count(replayed.steps || 1, "traced step")} with typical durations: an iteration takes ${msWords(now)}, and ${msWords(ideal)} if all ranks took equal time.${gain}`,
    bars,
  };
}

function shareOf({ type }: Suspect, replayed: ReplayedWhatIf): number {
  const { evenMicroBatchesShare, stageShares, workerShare } = replayed;
  if (type === "data") return evenMicroBatchesShare ?? NaN;
  return type === "stage"
    ? largest(
        stageShares.map((share) => share ?? 0),
        0,
      )
    : (workerShare ?? NaN);
}

/** Whose own time grew most, and by how much; rank -1 where nobody's did. */
interface Latest {
  readonly rank: Rank;
  readonly ms: number;
}

/**
 * A slow-down whose healthy time is known. What is left without the suspect is what the next slowest rank still costs:
 * the iteration's growth, in proportion to its own excess.
 */
export function slowWhatIf(
  verdict: Verdict,
  iterations: StoryIterations,
  own: ReadonlyMap<Rank, OwnTime>,
): WhatIf | null {
  const { slow, healthy, slowMs, healthyMs } = iterations;
  const [lead] = verdict.suspects;
  if (!lead || !(slowMs > 0)) return null;
  const blamed = new Set(verdict.suspects.flatMap(({ ranks }) => ranks));
  const hasBefore = healthy.length > 0 && healthyMs > 0;
  const excess = [...own.keys()].map((rank) => ({ rank, ms: excessOf(own, rank, slow, healthy) }));
  const latest = (isMeant: (rank: Rank) => boolean): Latest =>
    excess
      .filter(({ rank, ms }) => isMeant(rank) && ms > 0)
      .reduce((a, b) => (b.ms > a.ms ? b : a), { rank: -1, ms: 0 });
  const grew = hasBefore ? slowMs - healthyMs : NaN;
  if (hasBefore && !(grew > 0)) return null;
  const next = latest((rank) => !blamed.has(rank));
  const network = isNetwork(lead);
  // A rank that is slow at the end of a link stays slow when the link is fixed.
  if (network && hasBefore)
    return networkWhatIf(
      verdict,
      lead,
      iterations,
      latest(() => true),
    );
  const [issuedBefore, issuedNow] = issuing(verdict, lead) ?? [0, 0];
  const longest = latest((rank) => blamed.has(rank)).ms;
  // A rank adds time outside communication, or by calling late, which others see as communication (localize/weigh.ts).
  const isCalling = lead.cause === "cpu-stall" && issuedNow - issuedBefore > longest;
  const ownCost = isCalling ? issuedNow - issuedBefore : longest;
  const cost = network ? costOf(verdict, lead) : ownCost;
  if (!(cost > 0)) return null;
  const without = hasBefore
    ? healthyMs + grew * Math.min(1, next.ms / cost)
    : slowMs - Math.min(slowMs, Math.max(0, cost - next.ms));
  const whom = suspectWords(lead, [...blamed]);
  const what = network
    ? `communication over ${deviceWords(lead)} costs ${msWords(cost)} per iteration more than in groups that do the same work`
    : `${whom} ${blamed.size === 1 ? "needs" : "need"} up to ${msWords(cost)} more ${isCalling ? "to issue operators" : "outside communication"} than ${hasBefore ? "before" : "ranks that do the same"}`;
  const others =
    next.ms > 0 ? `; of the others rank ${next.rank} needs most, ${msWords(next.ms)} more` : "";
  return {
    says: `Estimated from slow ${hasBefore ? "and healthy " : ""}iterations: ${what}${others}. ${gainWords(without, slowMs)}`,
    bars: barsOf(iterations, whom, without),
  };
}

/**
 * What grew over the one pair of ranks that was measured is but a part of what a link costs: between two machines run
 * many lanes, and collectives pass them one after the other. What it does not cost is known better: the time before,
 * and what ranks need longer by themselves.
 */
function networkWhatIf(
  verdict: Verdict,
  lead: Suspect,
  iterations: StoryIterations,
  { rank, ms }: Latest,
): WhatIf {
  const { slowMs, healthyMs } = iterations;
  const whom = deviceWords(lead);
  const without = Math.min(slowMs, healthyMs + ms);
  const cost = costOf(verdict, lead);
  const part = cost > 0 ? ` (${msWords(cost)} where it was measured)` : "";
  const alone =
    ms > 0
      ? `outside communication rank ${rank} needs most, ${msWords(ms)} more than before`
      : "outside communication no rank needs more than before";
  return {
    says: `Estimated from slow and healthy iterations: an iteration took ${msWords(healthyMs)} before; ${alone}. The rest of the added time is attributed to communication over ${whom}${part}. ${gainWords(without, slowMs)}`,
    bars: barsOf(iterations, whom, without),
  };
}

function gainWords(without: number, slowMs: number): string {
  return `Without that an iteration would take about ${msWords(without)} instead of ${msWords(slowMs)}.`;
}

function barsOf(
  { slowMs, healthyMs, healthy }: StoryIterations,
  whom: string,
  without: number,
): WhatIf["bars"] {
  return [
    { label: "now", ms: slowMs, kind: "now" },
    ...(healthy.length > 0 && healthyMs > 0
      ? [{ label: "before", ms: healthyMs, kind: "before" as const }]
      : []),
    { label: `without ${whom}`, ms: without, kind: "without" },
  ];
}

function excessOf(
  own: ReadonlyMap<Rank, OwnTime>,
  rank: Rank,
  slow: readonly number[],
  healthy: readonly number[],
): number {
  if (healthy.length > 0) return usualOwn(own.get(rank), slow) - usualOwn(own.get(rank), healthy);
  return middle(slow.slice(0, 4).map((iteration) => ownExcess(own, rank, iteration, healthy)));
}

/** Milliseconds an iteration, as the suspect's evidence says. */
function costOf({ findings }: Verdict, { evidence }: Suspect): number {
  const values = findings
    .filter(({ id }) => evidence.includes(id))
    .map((finding) => factOf(finding, "slow-rank", "slow-device")?.growthMs);
  return values.find((value) => value !== undefined) ?? NaN;
}

function suspectWords(suspect: Suspect, all: readonly Rank[] = suspect.ranks): string {
  if (isNetwork(suspect)) return deviceWords(suspect);
  if (suspect.type === "machine" && suspect.machine !== null) return named(suspect.machine);
  return all.length === 0 ? `the ${suspect.type}` : rankWords(all);
}
