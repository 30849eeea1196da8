/** The likeliest hypothesis of the judge → a finding that accuses it. */
import { leadWords } from "../../model/compared-words.ts";
import type { Judged, SlowDevice, SlowRank } from "../../model/facts.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { median } from "../../maths/robust.ts";
import { row } from "./account.ts";
import { type Compared, LEAST_LEAD, type RankEvidence } from "./compare.ts";
import {
  comparedRanks,
  comparedWires,
  pairOf,
  type SlowBlocks,
  slowBlocksOf,
  slowSince,
  slowTimes,
} from "./describe.ts";
import { gpuOrCpu, type GpuOrCpu } from "./gpu-part.ts";
import { isHeldUpByData } from "./loader.ts";
import { networkSuspect } from "./network-suspect.ts";
import type { Hypothesis, Posterior } from "./posterior.ts";

/** Below, GPU and CPU are a toss-up, and both are named. */
const TOLD_APART = 0.55;
/** A CPU that is late by less of its rank's lead is said not to be late. */
const HARDLY_LATE = 0.05;
/** Ranks that are this probably slow themselves are not said to wait only. */
const MAY_BE_SLOW = 0.05;
/** Blocks that tell whether a rank leads lately. */
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

/** `isOver`: only what lies before the end of a slowdown was compared. */
export function accuse(
  best: Hypothesis,
  posterior: Posterior,
  witness: Witness,
  isOver: boolean,
): SlowFinding {
  return (best.wire ? ofWire : ofRanks)(best, posterior, witness, isOver);
}

function ofRanks(
  best: Hypothesis,
  posterior: Posterior,
  { job, operators, lacks }: Witness,
  isOver: boolean,
): SlowFinding {
  const { compared } = posterior;
  const { account } = compared;
  const [first] = best.ranks as [RankEvidence];
  const lasting = slowBlocksOf(compared, first);
  const slow = isOver ? { ...lasting, last: account.blocks - 1 } : lasting;
  const figures = comparedRanks(compared, best.ranks, slow, job.groups);
  const ranks = best.places.map((each) => account.ranks[each]!);
  const says = `${leadWords(ranks, figures)}: the others wait for ${ranks.length === 1 ? "it" : "them"}`;
  const own = operators.get(account.ranks[first.place]!)!;
  const sides = best.ranks.map((one) => gpuOrCpu(account, one.place, one.moment, one.lead));
  return {
    says,
    weight: best.probability,
    at: [{ file: own.file }],
    data: {
      fact: "slow-rank",
      ...slowTimes(account, own, slow),
      growthMs: figures.leadMs[1] - (figures.leadMs[0] ?? 0),
      ...(slow.isNowAndThen
        ? { slowIterations: Array.from(slow.since, (k) => account.numbers[k]!) }
        : {}),
      judged: judgedOf(posterior, best, slow, figures),
    },
    accuses:
      best.kind === "machine"
        ? accusationsOf("machine", ranks, sides.reduce(surer))
        : best.ranks.flatMap((one, i) => {
            const rank = account.ranks[one.place]!;
            return accusationsOf("rank", [rank], sides[i]!, isOfData(one, operators.get(rank)!));
          }),
    clears: onlyWaiting(posterior, best.places),
    lacks,
  };

  function isOfData(one: RankEvidence, its: RankOperators): boolean {
    const { place, moment, lead, isNowAndThen } = one;
    return !isNowAndThen && isHeldUpByData(account, its, place, moment, lead);
  }

  function accusationsOf(
    type: "rank" | "machine",
    blamed: readonly Rank[],
    side: GpuOrCpu,
    isLoader = false,
  ): Accusation[] {
    const { probability } = side;
    const name = type === "machine" ? (job.ranks.get(blamed[0]!)?.machine ?? null) : null;
    const why = `${says}; ${sideWords(side)}`;
    const about = { kind: "fail-slow", type, ranks: blamed, link: null, name, why } as const;
    const causes = [
      "gpu-slow",
      isLoader && probability < 0.5 ? "dataloader" : "cpu-stall",
    ] as const;
    const parts = [probability, 1 - probability];
    const likeliest = probability >= 0.5 ? [0, 1] : [1, 0];
    return likeliest
      .slice(0, isToldApart(side) ? 1 : 2)
      .map((i) => ({ ...about, cause: causes[i]!, weight: best.probability * parts[i]! }));
  }
}

function surer(a: GpuOrCpu, b: GpuOrCpu): GpuOrCpu {
  return Math.abs(b.probability - 0.5) > Math.abs(a.probability - 0.5) ? b : a;
}

function isToldApart({ probability }: GpuOrCpu): boolean {
  return Math.max(probability, 1 - probability) >= TOLD_APART;
}

function sideWords(side: GpuOrCpu): string {
  const { probability, gpuPart, lateness } = side;
  const waited = Number.isNaN(gpuPart)
    ? ""
    : `in ${Math.round(100 * gpuPart)} % of what the others wait its call had been made and its GPU was not ready, and `;
  const late =
    lateness < HARDLY_LATE
      ? "its CPU calls no later than the others'"
      : `its CPU calls later than the others' by ${Math.round(100 * lateness)} % of its lead`;
  const likelier = probability >= 0.5 ? "its GPU" : "its CPU";
  return `${waited}${late}: ${isToldApart(side) ? likelier : "its GPU or its CPU"}`;
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
function leadsBeside({ account: { blocks }, series: [first] }: Compared): Float64Array {
  const { lead, of } = first!;
  return Float64Array.from(of, (own) => {
    const lately = Array.from(own, (s) => median(row(lead, s, blocks).slice(-LATELY)));
    return own.length === 0 ? 0 : Math.min(...lately);
  });
}

function judgedOf(
  { compared: { account }, hypotheses, healthy }: Posterior,
  best: Hypothesis,
  slow: SlowBlocks,
  compared: Judged["compared"],
): Judged {
  const [healthyMs, slowMs] = pairOf(account.lengthMs, slow, 1);
  const others = hypotheses.filter((other) => other !== best);
  const rivals = [
    { what: "nobody", ranks: [], probability: healthy },
    ...others.map(({ kind, places, probability }) => {
      return { what: kind, ranks: places.map((place) => account.ranks[place]!), probability };
    }),
  ]
    .filter(({ probability }) => probability >= LEAST_RIVAL)
    .sort((a, b) => b.probability - a.probability)
    .slice(0, MOST_RIVALS);
  return { probability: best.probability, healthyMs, slowMs, compared, rivals };
}

function ofWire(
  best: Hypothesis,
  posterior: Posterior,
  { job, operators, lacks }: Witness,
  isOver: boolean,
): SlowFinding {
  const { account } = posterior.compared;
  const { moment, factor, costs, wires } = best.wire!;
  const ranks = best.places.map((place) => account.ranks[place]!);
  const { place, words } = networkSuspect(ranks, job, best.device);
  const slow = slowSince(moment, account, isOver ? account.blocks - 1 : -1);
  const own = operators.get(ranks[0]!)!;
  const costMs = costs * account.unitMs;
  const says = `communication over ${words} takes ${factor.toFixed(1)} times as long as over ${moment === 0 ? "others that carry the same" : "it before, and others did not change so"}, even for the last rank to arrive: ${costMs.toFixed(1)} ms an iteration`;
  const weight = best.probability;
  return {
    says,
    weight,
    at: [{ file: own.file }],
    data: {
      fact: "slow-device",
      ...slowTimes(account, own, slow),
      growthMs: costMs,
      device: words,
      explains: wires.length,
      judged: judgedOf(posterior, best, slow, comparedWires(account, slow, wires, costMs)),
    },
    accuses: [{ kind: "fail-slow", ...place, cause: "network-slow", weight, why: says }],
    clears: [],
    lacks,
  };
}
