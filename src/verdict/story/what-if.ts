/** What an iteration takes, took, and would take without the suspect: figures of the replay, or worked out here. */
import { count, rankWords } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { WhatIf } from "../../model/picture.ts";
import type { Suspect, Verdict } from "../../model/verdict.ts";
import { middle } from "./middle.ts";
import { ownExcess, usualOwn, type OwnTime } from "./own-times.ts";
import { deviceWords, isNetwork, msWords, named } from "./story-words.ts";
import { issuing } from "./tell-walk.ts";
import type { ToldIterations } from "./told-iterations.ts";

/** From localize/what-if, which has replayed traced passes (methods/localize/what-if). */
export function replayedWhatIf({ findings, suspects }: Verdict): WhatIf | null {
  const found = findings.find(({ method }) => method === "localize/what-if");
  const number = (name: string): number => {
    const value = found?.data[name];
    return typeof value === "number" ? value : NaN;
  };
  const [now, ideal] = [number("actualMs"), number("idealMs")];
  if (!found || !(now > 0) || !(ideal > 0)) return null;
  const [first] = suspects.filter(({ evidence }) => evidence.includes(found.id));
  const share = first ? shareOf(first, found.data) : NaN;
  const without = now - Math.min(1, share) * (now - ideal);
  const bars: WhatIf["bars"] = [
    { label: "now", ms: now, kind: "now" },
    ...(share > 0
      ? [{ label: `without ${suspectWords(first!)}`, ms: without, kind: "without" as const }]
      : []),
    { label: "if all did alike", ms: ideal, kind: "without" },
  ];
  const gain =
    share > 0 ? ` Without ${suspectWords(first!)} it would take ${msWords(without)}.` : "";
  return {
    says: `Worked out by running ${count(number("steps") || 1, "traced step")} again with typical durations: an iteration takes ${msWords(now)}, and ${msWords(ideal)} if all did alike.${gain}`,
    bars,
  };
}

function shareOf({ type }: Suspect, data: Readonly<Record<string, unknown>>): number {
  const number = (value: unknown): number => (typeof value === "number" ? value : NaN);
  if (type === "data") return number(data["evenMicroBatchesShare"]);
  const stages = data["stageShares"];
  if (type === "stage")
    return Array.isArray(stages) ? stages.map(number).reduce((a, b) => (b > a ? b : a), 0) : NaN;
  return number(data["workerShare"]);
}

/**
 * A slow-down whose healthy time is known. What is left without the suspect is what the next slowest rank still costs:
 * the iteration's growth, in proportion to its own excess.
 */
export function slowWhatIf(
  verdict: Verdict,
  { slow, healthy, slowMs, healthyMs }: ToldIterations,
  own: ReadonlyMap<Rank, OwnTime>,
): WhatIf | null {
  const [lead] = verdict.suspects;
  if (!lead || !(slowMs > 0)) return null;
  const blamed = new Set(verdict.suspects.flatMap(({ ranks }) => ranks));
  const hasBefore = healthy.length > 0 && healthyMs > 0;
  const excess = [...own.keys()].map((rank) => ({ rank, ms: excessOf(own, rank, slow, healthy) }));
  const worst = (isBlamed: boolean) =>
    excess
      .filter(({ rank, ms }) => blamed.has(rank) === isBlamed && ms > 0)
      .reduce((a, b) => (b.ms > a.ms ? b : a), { rank: -1, ms: 0 });
  const next = worst(false);
  const grew = hasBefore ? slowMs - healthyMs : NaN;
  const network = isNetwork(lead);
  const [issuedBefore, issuedNow] = issuing(verdict, lead) ?? [0, 0];
  const longest = worst(true).ms;
  // A rank adds time outside communication, or by calling late, which others see as communication (localize/weigh.ts).
  const isCalling = lead.cause === "cpu-stall" && issuedNow - issuedBefore > longest;
  const ownCost = isCalling ? issuedNow - issuedBefore : longest;
  const cost = network ? costOf(verdict, lead) : ownCost;
  if (!(cost > 0) || (hasBefore && !(grew > 0))) return null;
  const least = hasBefore ? healthyMs + grew * Math.min(1, next.ms / cost) : 0;
  const gained = hasBefore && !network ? grew : Math.max(0, cost - next.ms);
  const without = Math.min(slowMs, Math.max(least, slowMs - gained));
  const whom = suspectWords(lead, [...blamed]);
  const what = network
    ? `communication over ${deviceWords(lead)} costs ${msWords(cost)} of an iteration more than before`
    : `${whom} ${blamed.size === 1 ? "needs" : "need"} up to ${msWords(cost)} more ${isCalling ? "to issue operators" : "outside communication"} than ${hasBefore ? "before" : "ranks that do the same"}`;
  const others =
    next.ms > 0 ? `; of the others rank ${next.rank} needs most, ${msWords(next.ms)} more` : "";
  return {
    says: `Worked out from slow ${hasBefore ? "and healthy " : ""}iterations: ${what}${others}. Without that an iteration would take about ${msWords(without)} instead of ${msWords(slowMs)}.`,
    bars: [
      { label: "now", ms: slowMs, kind: "now" },
      ...(hasBefore ? [{ label: "before", ms: healthyMs, kind: "before" as const }] : []),
      { label: `without ${whom}`, ms: without, kind: "without" },
    ],
  };
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
    .map(({ data }) => data["growthMs"]);
  return values.find((value) => typeof value === "number") ?? NaN;
}

function suspectWords(suspect: Suspect, all: readonly Rank[] = suspect.ranks): string {
  if (isNetwork(suspect)) return deviceWords(suspect);
  if (suspect.type === "machine" && suspect.machine !== null) return named(suspect.machine);
  return all.length === 0 ? `the ${suspect.type}` : rankWords(all);
}
