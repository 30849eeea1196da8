/** The likeliest hypothesis of the judge → a finding that accuses it. */
import { count, rankWords } from "../../base/text.ts";
import { leadWords } from "../../model/compared-words.ts";
import type { Judged, SlowDevice, SlowRank } from "../../model/facts.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { median } from "../../maths/robust.ts";
import { row, type Account } from "./account.ts";
import { comparedRanks, wireFigures } from "./describe.ts";
import { gpuOrCpu, type GpuOrCpu } from "./gpu-part.ts";
import { type Compared, LEAST_LEAD, type RankEvidence } from "./compare.ts";
import type { Hypothesis, Posterior } from "./posterior.ts";
import { isHeldUpByData } from "./loader.ts";
import { spikingBlocks } from "./spikes.ts";
import { slowTimes } from "./slow-times.ts";
import type { Device } from "./weigh-wires.ts";

/** Below, GPU and CPU are a toss-up, and both are named. */
const TOLD_APART = 0.55;
/** A CPU that is late by less of its rank's lead is said not to be late. */
const HARDLY_LATE = 0.05;
/** Ranks that are this probably slow themselves are not said to wait only. */
const MAY_BE_SLOW = 0.05;
/** Blocks at the end of the record that tell how a rank is now. */
const LATELY = 5;
/** Other answers that are named beside the likeliest. */
const LEAST_RIVAL = 0.02;
const MOST_RIVALS = 5;

export type SlowFinding = NewFinding<SlowRank | SlowDevice>;

export interface Witness {
  readonly job: Job;
  readonly operators: ReadonlyMap<Rank, RankOperators>;
  readonly lacks: readonly string[];
}

/** `end`: the last iteration that was compared, where the slowdown is over since. */
export function accuse(
  best: Hypothesis,
  posterior: Posterior,
  witness: Witness,
  end = Infinity,
): SlowFinding[] {
  const last = end < Infinity ? posterior.compared.account.blocks - 1 : lastSlow(best, posterior);
  return [
    ...(best.ranks.length > 0 ? [ofRanks(best, posterior, witness, last)] : []),
    ...(best.wire ? [ofWire(best, posterior, witness, last)] : []),
  ];
}

function ofRanks(
  best: Hypothesis,
  posterior: Posterior,
  witness: Witness,
  last: number,
): SlowFinding {
  const { compared } = posterior;
  const { account } = compared;
  const { job, operators, lacks } = witness;
  const figures = comparedRanks(compared, best.ranks, job.groups);
  const [first] = best.ranks;
  const { place, isNowAndThen } = first!;
  const moment = onsetOf(first!, compared);
  const spikes = isNowAndThen
    ? spikingBlocks(account, compared.series[1] ?? compared.series[0]!, place)
    : null;
  const ranks = best.places.map((each) => account.ranks[each]!);
  const says = `${leadWords(ranks, figures)}: the others wait for ${ranks.length === 1 ? "it" : "them"}`;
  const own = operators.get(account.ranks[place]!)!;
  const judged: Judged = {
    probability: best.probability,
    healthyMs: usualMs(account, spikes, moment, false),
    slowMs: usualMs(account, spikes, moment, true)!,
    compared: figures,
    rivals: rivalsOf(posterior, best),
  };
  return {
    says,
    weight: best.probability,
    at: [{ file: own.file }],
    data: {
      fact: "slow-rank",
      ...slowTimes(account, own, moment, spikes, last),
      growthMs: figures.leadMs[1] - (figures.leadMs[0] ?? 0),
      ...(spikes ? { slowIterations: [...spikes].map((k) => account.numbers[k]!) } : {}),
      judged,
    },
    accuses:
      best.kind === "machine"
        ? accusationsOf("machine", ranks, meanOf(best.ranks.map(sideOf)))
        : best.ranks.flatMap((one) =>
            accusationsOf("rank", [account.ranks[one.place]!], sideOf(one)),
          ),
    clears: onlyWaiting(posterior, best.places),
    lacks,
  };

  function sideOf({ place: at, moment: since, lead }: RankEvidence): GpuOrCpu {
    return gpuOrCpu(account, at, since, lead);
  }

  function isOfData(rank: Rank): boolean {
    const one = best.ranks.find((evidence) => account.ranks[evidence.place] === rank)!;
    const { place: at, moment: since, lead, isNowAndThen: comesAndGoes } = one;
    return !comesAndGoes && isHeldUpByData(account, operators.get(rank)!, at, since, lead);
  }

  function accusationsOf(
    type: "rank" | "machine",
    blamed: readonly Rank[],
    side: GpuOrCpu,
  ): Accusation[] {
    const { probability } = side;
    const toldApart = Math.max(probability, 1 - probability);
    const name = type === "machine" ? (job.ranks.get(blamed[0]!)?.machine ?? null) : null;
    const why = `${says}; ${sideWords(side)}`;
    const about = { kind: "fail-slow", type, ranks: blamed, link: null, name, why } as const;
    const isLoader = probability < 0.5 && type === "rank" && blamed.every((rank) => isOfData(rank));
    const causes = ["gpu-slow", isLoader ? "dataloader" : "cpu-stall"] as const;
    const [likelier, other] = probability >= 0.5 ? causes : causes.toReversed();
    const first = { ...about, cause: likelier, weight: best.probability * toldApart };
    if (toldApart >= TOLD_APART) return [first];
    return [first, { ...about, cause: other, weight: best.probability * (1 - toldApart) }];
  }
}

function meanOf(sides: readonly GpuOrCpu[]): GpuOrCpu {
  const mean = (of: (side: GpuOrCpu) => number): number =>
    sides.reduce((sum, side) => sum + of(side), 0) / sides.length;
  return {
    gpuPart: mean(({ gpuPart }) => gpuPart),
    lateness: mean(({ lateness }) => lateness),
    probability: mean(({ probability }) => probability),
  };
}

function sideWords({ probability, gpuPart, lateness }: GpuOrCpu): string {
  const waited = Number.isNaN(gpuPart)
    ? ""
    : `in ${Math.round(100 * gpuPart)} % of what the others wait its call had been made and its GPU was not ready, and `;
  const late =
    lateness < HARDLY_LATE
      ? "its CPU calls no later than the others'"
      : `its CPU calls later than the others' by ${Math.round(100 * lateness)} % of its lead`;
  const side = probability >= 0.5 ? "its GPU" : "its CPU";
  const isOpen = Math.max(probability, 1 - probability) < TOLD_APART;
  return `${waited}${late}: ${isOpen ? "its GPU or its CPU" : side}`;
}

function usualMs(
  { lengthMs }: Account,
  spikes: Int32Array | null,
  moment: number,
  isSlow: boolean,
): number | null {
  const isIn = new Set(spikes ?? []);
  const picked = lengthMs.filter((_, k) => (spikes ? isIn.has(k) : k >= moment) === isSlow);
  return picked.length === 0 ? null : median(picked);
}

/** The block at which its lead changed: the split with the least distance of all blocks from the level on their side of it. */
function onsetOf({ moment, series, isNowAndThen, lead }: RankEvidence, compared: Compared): number {
  if (moment === 0 || series < 0 || isNowAndThen) return moment;
  const { account, moments } = compared;
  const leads = row(compared.series[moments.indexOf(moment)]!.lead, series, account.blocks);
  const usual = median(leads.subarray(0, moment));
  let [distance, least, onset] = [0, 0, 0];
  // From one block to the next the split moves it from behind to in front.
  for (const [k, value] of leads.entries()) {
    distance += Math.abs(value - usual) - Math.abs(value - usual - lead);
    if (distance < least) [least, onset] = [distance, k + 1];
  }
  return onset > 0 && onset < account.blocks ? onset : moment;
}

/** The block behind the last slow one, where the lead is gone at the end of the record; -1: it lasts. */
const GONE_BLOCKS = 3;

function lastSlow(best: Hypothesis, { compared }: Posterior): number {
  const { account, series, moments } = compared;
  if (best.ranks.length === 0) return -1;
  const { moment, lead, series: own, isNowAndThen } = best.ranks[0]!;
  if (own < 0 || isNowAndThen) return -1;
  const leads = row(series[Math.max(0, moments.indexOf(moment))]!.lead, own, account.blocks);
  const usual = moment === 0 ? 0 : median(leads.subarray(0, moment));
  const last = leads.findLastIndex((value) => value - usual > lead / 2);
  return account.blocks - 1 - last >= GONE_BLOCKS ? last : -1;
}

/** Who probably is not slow and therefore only waits. */
function onlyWaiting({ compared, hypotheses }: Posterior, blamed: readonly number[]): Rank[] {
  const { ranks } = compared.account;
  const slow = new Float64Array(ranks.length);
  for (const { kind, places, probability } of hypotheses)
    if (kind === "ranks" || kind === "machine")
      for (const place of places) slow[place]! += probability;
  const leads = leadsBeside(compared);
  return ranks.filter(
    (_, place) =>
      !blamed.includes(place) && slow[place]! < MAY_BE_SLOW && !(leads[place]! > LEAST_LEAD),
  );
}

/** By place, how far it leads all that it is compared with lately: a second slow rank may hide behind the first. */
function leadsBeside({ account, series }: Compared): Float64Array {
  const { lead, of } = series[0]!;
  return Float64Array.from(of, (own) => {
    const lately = Array.from(own, (s) => median(row(lead, s, account.blocks).slice(-LATELY)));
    return own.length === 0 ? 0 : Math.min(...lately);
  });
}

function rivalsOf(
  { compared, hypotheses, healthy }: Posterior,
  best: Hypothesis,
): NonNullable<Judged["rivals"]> {
  const { ranks } = compared.account;
  return [
    { what: "nobody", ranks: [], probability: healthy },
    ...hypotheses
      .filter((other) => other !== best)
      .map(({ kind, places, probability }) => ({
        what: kind,
        ranks: kind === "all" || kind === "unseen" ? [] : places.map((place) => ranks[place]!),
        probability,
      })),
  ]
    .filter(({ probability }) => probability >= LEAST_RIVAL)
    .sort((a, b) => b.probability - a.probability)
    .slice(0, MOST_RIVALS);
}

function ofWire(
  best: Hypothesis,
  posterior: Posterior,
  witness: Witness,
  last: number,
): SlowFinding {
  const { account } = posterior.compared;
  const { job, operators, lacks } = witness;
  const { moment, factor, costs, wires } = best.wire!;
  const places = best.device?.places ?? account.wires[wires[0]!]!.places;
  const ranks = places.map((place) => account.ranks[place]!);
  const suspect = suspectOf(best, ranks, job);
  const own = operators.get(ranks[0]!)!;
  const costMs = costs * account.unitMs;
  const says = `communication over ${suspect.words} takes ${factor.toFixed(1)} times as long as over ${moment === 0 ? "others that carry the same" : "it before, and others did not change so"}, even for the last rank to arrive: ${costMs.toFixed(1)} ms an iteration`;
  return {
    says,
    weight: best.probability,
    at: [{ file: own.file }],
    data: {
      fact: "slow-device",
      ...slowTimes(account, own, moment, null, last),
      growthMs: costMs,
      device: suspect.words,
      explains: wires.length,
      judged: {
        probability: best.probability,
        healthyMs: usualMs(account, null, moment, false),
        slowMs: usualMs(account, null, moment, true)!,
        compared: {
          group: count(wires.length, "wire"),
          iterations: account.areIterations ? account.blocks : 0,
          leadMs: [null, costMs],
          chanceMs: 0,
          ranks: [],
          wires: wireFigures(account, wires, moment),
        },
        rivals: rivalsOf(posterior, best),
      },
    },
    accuses: [
      {
        kind: "fail-slow",
        type: suspect.type,
        ranks: suspect.ranks,
        link: suspect.link,
        name: suspect.name,
        cause: "network-slow",
        weight: best.probability,
        why: says,
      },
    ],
    clears: [],
    lacks,
  };
}

interface NetworkSuspect extends Required<Pick<Accusation, "type" | "ranks" | "link" | "name">> {
  readonly words: string;
}

function suspectOf({ device }: Hypothesis, ranks: readonly Rank[], job: Job): NetworkSuspect {
  const kind: Device["kind"] | "wire" = device?.kind ?? "wire";
  const machineOf = (rank: Rank): string | null => job.ranks.get(rank)?.machine ?? null;
  const on = (machines: readonly (string | null)[]): Rank[] =>
    [...job.ranks.values()]
      .filter(({ machine }) => machines.includes(machine))
      .map(({ rank }) => rank);
  if (kind === "leaf") {
    const under = [...job.ranks.values()].filter(({ leaf }) => leaf === device!.name);
    const all = under.map(({ rank }) => rank);
    return {
      type: "switch",
      ranks: all,
      link: null,
      name: device!.name,
      words: `switch ${device!.name}`,
    };
  }
  if (kind === "machine")
    return {
      type: "nic",
      ranks: on([device!.name]),
      link: null,
      name: null,
      words: `the NICs of ${device!.name}`,
    };
  if (kind === "machine-link") {
    const [a, b] = ranks.map(machineOf) as [string, string];
    return {
      type: "link",
      ranks: on([a, b]),
      link: [a, b],
      name: null,
      words: `the links between ${a} and ${b}`,
    };
  }
  if (ranks.length === 2) {
    const link = [`rank:${ranks[0]}`, `rank:${ranks[1]}`] as const;
    return {
      type: "link",
      ranks,
      link,
      name: null,
      words: `the link between ranks ${ranks[0]} and ${ranks[1]}`,
    };
  }
  if (ranks.length === 1) {
    const nic = job.ranks.get(ranks[0]!)?.nic ?? null;
    const words = `the NIC of rank ${ranks[0]}${nic === null ? "" : ` (${nic})`}`;
    return { type: "nic", ranks, link: null, name: nic, words };
  }
  return { type: "nic", ranks, link: null, name: null, words: `the group of ${rankWords(ranks)}` };
}
