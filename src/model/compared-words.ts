/** Who leads whom by how much, as clauses: what the judge of slowness compared. Findings, the story and the reports say it alike. */
import { durationWords, rankWords, thousands } from "../base/text.ts";
import type { Compared } from "./facts.ts";
import type { Rank } from "./ids.ts";

/** Figures of ranks are given for a few dozen: fewer are all that were compared. */
const ARE_ALL = 16;

/** "rank 5 waits 61 ms less in each iteration than the 3 others of DATA_PARALLEL_1 (before: 2 ms less); by chance such leads are 4 ms" */
export function leadWords(ranks: readonly Rank[], compared: Compared): string {
  const { group, leadMs, chanceMs } = compared;
  const [before, since] = leadMs;
  const others = compared.ranks.filter(({ rank }) => !ranks.includes(rank)).length;
  const count = others < ARE_ALL ? `${thousands(others)} others` : "others";
  const than =
    others === 1
      ? `${ranks.length === 1 ? "its" : "their"} peer in ${group}`
      : `the ${count} of ${group}`;
  const who = `${rankWords(ranks)} ${ranks.length === 1 ? "waits" : "wait"}`;
  const past = before === null ? "" : ` (before: ${moreOrLess(before, chanceMs)})`;
  return `${who} ${durationWords(since)} less in each iteration than ${than}${past}; by chance such leads are ${durationWords(chanceMs)}`;
}

function moreOrLess(ms: number, chanceMs: number): string {
  if (Math.abs(ms) <= chanceMs) return "about as long as they";
  return `${durationWords(Math.abs(ms))} ${ms > 0 ? "less" : "more"}`;
}

/**
 * "communication over the link between ranks 2 and 10 takes at least 62 ms of each iteration, 4.1 ms before; 7 others that carry
 * the same take 3.9 ms". `slow`: how many of the wires are the device's.
 */
export function wireWords(device: string, slow: number, { wires = [] }: Compared): string {
  const like = wires.slice(slow);
  const [before, since] = wires[0]!.leastMs;
  const past = before === null ? "" : `, ${durationWords(before)} before`;
  const usual = like.map(({ leastMs }) => leastMs[1]).sort((a, b) => a - b)[like.length >> 1];
  const beside =
    usual === undefined
      ? ""
      : `; ${like.length === 1 ? "another that carries the same takes" : `${thousands(like.length)} others that carry the same take`} ${durationWords(usual)}`;
  return `communication over ${device} takes at least ${durationWords(since)} of each iteration${past}${beside}`;
}
