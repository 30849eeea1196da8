/** What the judge says of a running job, and what its wires show, as findings. */
import { durationWords, intermittentWords, rankWords } from "../../base/text.ts";
import type { Judged, SlowDevice, SlowDown, SlowRank, SlowTimes } from "../../model/facts.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { LiveCulprit } from "../../model/live-judgement.ts";
import type { SlowOnWire } from "./on-wire.ts";

/** Since when it lasts, and what iterations took before and take since. */
export interface LiveStretch {
  /** Whether iterations that have ended since tell the pace. */
  readonly isPaced: boolean;
  readonly slowFrom: number;
  readonly fromMs: number;
  readonly beforeMs: number;
  readonly afterMs: number;
  readonly intermittent?: { readonly slow: number; readonly of: number };
  /** The latest iteration; where all of this was seen. */
  readonly last: number;
  readonly source: string;
}

/** Where two causes are possible neither is nearly sure. */
const MOST_OF_TWO = 0.79;
/** Measured where it is slow, in every one of several iterations; and where all that a NIC at its ends serves goes over the link. */
const ON_WIRE = 0.93;
const AMBIGUOUS_ON_WIRE = 0.7;

/** The service has seen it come, a few iterations after it began; a look at the whole series would not yet. */
export function slowDownFinding(stretch: LiveStretch): NewFinding<SlowDown> {
  const { slowFrom, beforeMs, afterMs, intermittent, last, source } = stretch;
  const ratio = afterMs / beforeMs;
  const ms = `(${durationWords(beforeMs)} → ${durationWords(afterMs)})`;
  return {
    says: intermittent
      ? `the job is ${intermittentWords(intermittent.slow, intermittent.of, ratio)} ${ms}, since iteration ${slowFrom}`
      : `iterations take ${ratio.toFixed(2)} times as long since iteration ${slowFrom} ${ms}`,
    weight: 0.9,
    at: [{ file: source }],
    data: {
      fact: "slow-down",
      ...timesOf(stretch),
      detectedAt: Math.max(last, slowFrom),
      beforeMs,
      afterMs,
      ratio,
      ...(intermittent ? { intermittent } : {}),
      wastedHours: 0,
      series: source,
    },
    accuses: [],
    clears: [],
  };
}

/** Ranks, or a group's network, that the judge names; null where it names nobody. `waiting`: ranks that are not accused. */
export function culpritFinding(
  culprit: LiveCulprit,
  stretch: LiveStretch,
  job: Job,
  waiting: readonly Rank[],
): NewFinding<SlowRank | SlowDevice> | null {
  const { type, ranks, compared, probability } = culprit;
  if (type === "all" || ranks.length === 0) return null;
  const says = leadWords(culprit, job);
  const judged = judgedOf(stretch, culprit, probability);
  const isWire = type === "wire";
  const leadMs = compared.leadMs[1] - (compared.leadMs[0] ?? 0);
  // Operators run side by side: what they lose together is more than what an iteration loses.
  const lostMs = stretch.isPaced ? Math.max(0, stretch.afterMs - stretch.beforeMs) : Infinity;
  const growthMs = isWire ? Math.min(leadMs, lostMs) : leadMs;
  const times = { ...timesOf(stretch), growthMs: round(growthMs), judged };
  const accusation = { kind: "fail-slow", ranks, link: null, weight: probability } as const;
  return {
    says,
    weight: probability,
    at: [{ file: stretch.source }],
    data: isWire
      ? {
          fact: "slow-device",
          ...times,
          device: wireWords(ranks, job),
          explains: 1,
        }
      : { fact: "slow-rank", ...times },
    accuses: isWire
      ? [{ ...accusation, ...placeOf(ranks, job), cause: "network-slow", why: says }]
      : causesOf(culprit).map(({ cause, weight, why }) => {
          const place = type === "machine" ? "machine" : "rank";
          return { ...accusation, type: place, cause, weight, why: `${says}; ${why}` };
        }),
    clears: isWire ? [] : waiting,
  };
}

function judgedOf(
  { beforeMs, afterMs }: LiveStretch,
  { compared }: Pick<LiveCulprit, "compared">,
  probability: number,
): Judged {
  return { probability, healthyMs: beforeMs, slowMs: afterMs, compared };
}

/** "rank 5 waits 61 ms less in an iteration than the others of DATA_PARALLEL_1 (4 ms before); by chance such differences are 3 ms" */
function leadWords({ type, ranks, compared }: LiveCulprit, job: Job): string {
  const { group, leadMs, chanceMs } = compared;
  const [before, since] = leadMs;
  const was = before === null ? "" : ` (${signed(before)} before)`;
  const chance = `by chance such differences are ${durationWords(chanceMs)}`;
  if (type === "wire" && compared.wires === undefined)
    return `communication over ${wireWords(ranks, job)} takes ${durationWords(since)} longer in an iteration than that of groups like it${was}, even on the member that waits least; ${chance}`;
  if (type === "wire")
    return `what is sent over ${wireWords(ranks, job)} is on the wire for ${durationWords(since)} longer in an iteration than what the others of ${group} send${was}; ${chance}`;
  const wait = ranks.length > 1 ? "wait" : "waits";
  return `${rankWords(ranks)} ${wait} ${durationWords(since)} less in an iteration than the others of ${group}${was}; ${chance}`;
}

function wireWords(ranks: readonly Rank[], job: Job): string {
  const [first, second] = ranks;
  const machines = machinesOf(ranks, job);
  if (ranks.length > 2 && machines.length === 1) return `the NICs of ${machines[0]}`;
  if (ranks.length > 2 && machines.length === 2)
    return `the links between ${machines[0]} and ${machines[1]}`;
  if (ranks.length === 2) return `the link between ranks ${first} and ${second}`;
  if (ranks.length > 2) return `the group of ${rankWords(ranks)}`;
  const nic = job.ranks.get(first!)?.nic;
  return `the NIC of rank ${first}${nic ? ` (${nic})` : ""}`;
}

function signed(ms: number): string {
  return `${ms < 0 ? "−" : ""}${durationWords(Math.abs(ms))}`;
}

const WHY = {
  "gpu-slow": "its GPU computes for longer",
  "cpu-stall": "its CPU issues operators later",
  "network-slow": "its communication takes longer",
} as const;

/** The one that the judge names; else both that it may be. */
function causesOf({ cause, causeProbability, probability }: LiveCulprit): readonly {
  readonly cause: Accusation["cause"];
  readonly weight: number;
  readonly why: string;
}[] {
  if (cause !== null) return [{ cause, weight: probability * causeProbability, why: WHY[cause] }];
  const weight = Math.min(MOST_OF_TWO, probability / 2);
  const why = "whether its GPU or its CPU is slow the record does not tell";
  return (["gpu-slow", "cpu-stall"] as const).map((one) => ({ cause: one, weight, why }));
}

/** A link or NIC on which sends stay too long, whoever waits for it: `culprit` is what the judge saw of it. */
export function wireFinding(
  found: SlowOnWire,
  culprit: LiveCulprit,
  stretch: LiveStretch,
  job: Job,
): NewFinding<SlowDevice> {
  const { ranks, slow, of, beforeMs, afterMs, compared, isAmbiguous } = found;
  const others = compared > ranks.length ? "; that of the other links is as usual" : "";
  const words = wireWords(ranks, job);
  const says = `what is sent over ${words} is on the wire for ${durationWords(afterMs)} instead of ${durationWords(beforeMs)} in ${slow.length} of ${of} slow iterations${others}`;
  const weight = culprit.probability * (isAmbiguous ? AMBIGUOUS_ON_WIRE : ON_WIRE);
  return {
    says,
    weight,
    at: [{ file: stretch.source }],
    data: {
      fact: "slow-device",
      ...timesOf(stretch),
      growthMs: round(afterMs - beforeMs),
      ...(stretch.intermittent ? { slowIterations: [...slow] } : {}),
      device: words,
      explains: slow.length,
      judged: judgedOf(stretch, culprit, weight),
    },
    accuses: [
      {
        kind: "fail-slow",
        ranks,
        ...placeOf(ranks, job),
        cause: "network-slow",
        weight,
        why: says,
      },
    ],
    clears: [],
  };
}

/** Of all that are known; none where one is not. */
function machinesOf(ranks: readonly Rank[], job: Job): string[] {
  const machines = new Set(ranks.map((rank) => job.ranks.get(rank)?.machine ?? null));
  return machines.has(null) ? [] : ([...machines] as string[]).sort();
}

/** A rank's NIC, the link of two, that of two machines, or the network of a group. */
function placeOf(ranks: readonly Rank[], job: Job): Pick<Accusation, "type" | "link" | "name"> {
  if (ranks.length === 2)
    return { type: "link", link: [`rank:${ranks[0]}`, `rank:${ranks[1]}`], name: null };
  const machines = machinesOf(ranks, job);
  if (ranks.length > 2 && machines.length === 2)
    return { type: "link", link: [machines[0]!, machines[1]!], name: null };
  const nic = ranks.length === 1 ? (job.ranks.get(ranks[0]!)?.nic ?? null) : null;
  return { type: "nic", link: null, name: nic };
}

function timesOf({ slowFrom, fromMs }: LiveStretch): SlowTimes {
  const from = Number.isFinite(fromMs) ? new Date(fromMs).toISOString() : null;
  return { slowDown: true, iteration: slowFrom, until: null, from, to: null };
}

function round(ms: number): number {
  return Math.round(1000 * ms) / 1000;
}
