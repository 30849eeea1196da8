/** The story of a slow job: whom the judge of slowness compared with whom, by what the first suspect's finding says. */
import { capital, count, durationWords, harmless, rankWords } from "../../base/text.ts";
import type { Cause } from "../../model/cause.ts";
import { leadWords, wireWords } from "../../model/compared-words.ts";
import { factOf, type Compared, type Judged, type SlowDevice } from "../../model/facts.ts";
import type { Job } from "../../model/job.ts";
import type { Story, StoryBar, StoryHop } from "../../model/picture.ts";
import type { Suspect, Verdict } from "../../model/verdict.ts";
import { machineName, MOST_BARS, named, who } from "./story-words.ts";

export function slowStory(
  job: Job,
  { findings, suspects }: Verdict,
): { readonly story: Story | null; readonly lacks: readonly string[] } {
  const lack = (why: string) => ({ story: null, lacks: [`No story: ${why}.`] });
  const [first] = suspects;
  if (!first) return lack("the verdict names no rank and no link");
  const fact = findings
    .filter(({ id }) => first.evidence.includes(id))
    .map((finding) => factOf(finding, "slow-rank", "slow-device"))
    .find((one) => one !== null);
  if (!fact) return lack("the suspect was not compared with others");
  const told: Told = { job, suspects, first, judged: fact.judged };
  if (fact.fact === "slow-rank")
    return { story: { hops: [insideHop(told), ownHop(told)], ends: rankEnds(told) }, lacks: [] };
  if (!fact.judged.compared.wires?.length) return lack("what like wires take is not on record");
  return { story: { hops: [wiresHop(told, fact)], ends: wireEnds(told, fact) }, lacks: [] };
}

interface Told {
  readonly job: Job;
  readonly suspects: readonly Suspect[];
  readonly first: Suspect;
  readonly judged: Judged;
}

/** Of a synchronous job's iteration the slow rank spends least in operators: it does not wait there. */
function insideHop(told: Told): StoryHop {
  const { group } = told.judged.compared;
  return {
    kind: "inside",
    title: `time in operators, of an iteration: ${named(group)}`,
    says: harmless(sentence(leadWords(told.first.ranks, told.judged.compared))) + overWords(told),
    ...barsOf(told, ({ insideMs }) => insideMs),
  };
}

function ownHop(told: Told): StoryHop {
  const [first, ...others] = told.judged.compared.ranks;
  const own = others.map(({ ownMs }) => ownMs[1]).sort((a, b) => a - b);
  const usual = own[own.length >> 1];
  const [before, since] = first!.ownMs;
  const past = before === null ? "" : `, ${durationWords(before)} before`;
  const peers = others.length === 1 ? "its peer spends" : "its peers spend";
  const beside = usual === undefined ? "" : `; ${peers} ${durationWords(usual)}`;
  return {
    kind: "own",
    title: "time outside operators, of an iteration",
    says: sentence(`rank ${first!.rank} spends ${durationWords(since)}${past}${beside}`),
    ...barsOf(told, ({ ownMs }) => ownMs),
  };
}

function barsOf(
  { job, suspects, first, judged }: Told,
  timesOf: (one: Compared["ranks"][number]) => readonly [number | null, number],
): Pick<StoryHop, "from" | "to" | "bars" | "leftOut"> {
  const blamed = new Set(suspects.flatMap(({ ranks }) => ranks));
  const bars = judged.compared.ranks
    .toSorted((a, b) => a.rank - b.rank)
    .map((one): StoryBar => {
      const [beforeMs, ms] = timesOf(one);
      const role = blamed.has(one.rank) ? "late" : "waits";
      return { rank: one.rank, machine: machineName(job, one.rank), ms, beforeMs, role };
    });
  const rank = first.ranks[0]!;
  return { from: rank, to: rank, bars: bars.slice(0, MOST_BARS), leftOut: 0 };
}

function wiresHop(told: Told, { device, explains }: SlowDevice): StoryHop {
  const { compared } = told.judged;
  const { wires = [] } = compared;
  const rank = told.first.ranks[0]!;
  const bars = wires.map(({ name, ranks, leastMs: [beforeMs, ms] }, i): StoryBar => ({
    rank: ranks[0] ?? rank,
    machine: null,
    label: named(name),
    ms,
    beforeMs,
    role: i < Math.max(1, explains) ? "late" : "waits",
  }));
  return {
    kind: "wires",
    title: "what communication takes at least, of an iteration",
    says: harmless(sentence(wireWords(device, Math.max(1, explains), compared))) + overWords(told),
    from: rank,
    to: rank,
    bars: bars.slice(0, MOST_BARS),
    leftOut: 0,
  };
}

/** None: stretches of time were compared, because iterations are not known. */
function overWords({ judged }: Told): string {
  const { iterations } = judged.compared;
  return iterations > 0 ? ` Medians of ${count(iterations, "iteration")}.` : "";
}

const DOES: Readonly<Partial<Record<Cause, string>>> = {
  "gpu-slow": "its GPU computes slowly",
  "cpu-stall": "its CPU is late to issue work",
  dataloader: "it waits for its data",
  storage: "it waits for its storage",
  "garbage-collection": "it runs Python's garbage collection",
};

/** What the suspect does instead of waiting, and what it makes of an iteration. */
function rankEnds(told: Told): string {
  const { job, suspects, first } = told;
  const { ranks } = first;
  const does = suspects
    .filter((one) => one.ranks.join() === ranks.join())
    .flatMap(({ cause }) => DOES[cause] ?? [])
    .join(", or ");
  const waits = ranks.length === 1 ? `${who(job, ranks[0]!)} waits` : `${rankWords(ranks)} wait`;
  return `${sentence(`${waits} for no other rank${does === "" ? "" : `: ${does}`}`)}${takesWords(told)}`;
}

function wireEnds(told: Told, { device }: SlowDevice): string {
  return `No rank came late: communication over ${named(device)} is slow.${takesWords(told)}`;
}

function takesWords({ judged: { healthyMs, slowMs } }: Told): string {
  if (healthyMs === null) return "";
  return ` An iteration takes ${durationWords(slowMs)}, ${durationWords(healthyMs)} before.`;
}

function sentence(text: string): string {
  return `${capital(text)}.`;
}
