/** What the judge says of a running job, and what its wires show, as findings. */
import { durationWords, intermittentWords } from "../../base/text.ts";
import { leadWords } from "../../model/compared-words.ts";
import type { Judged, SlowDevice, SlowDown, SlowRank, SlowTimes } from "../../model/facts.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { LiveCulprit } from "../../model/live-judgement.ts";
import { betweenMachines, type NetworkSuspect, networkSuspect } from "./network-suspect.ts";
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
  const leadMs = compared.leadMs[1] - (compared.leadMs[0] ?? 0);
  if (type === "wire") {
    // Operators run side by side: what they lose together is more than what an iteration loses.
    const lostMs = stretch.isPaced ? Math.max(0, stretch.afterMs - stretch.beforeMs) : Infinity;
    const suspect = networkSuspect(ranks, job, compared.wires ? betweenMachines(ranks, job) : null);
    const says = longerWords(suspect.words, culprit);
    const about = { says, weight: probability, growthMs: Math.min(leadMs, lostMs), explains: 1 };
    return deviceFinding(about, suspect, culprit, stretch);
  }
  const says = leadWords(ranks, compared);
  const accusation = { kind: "fail-slow", type, ranks, link: null } as const;
  return {
    says,
    weight: probability,
    at: [{ file: stretch.source }],
    data: {
      fact: "slow-rank",
      ...timesOf(stretch),
      growthMs: round(leadMs),
      judged: judgedOf(stretch, culprit, probability),
    },
    accuses: causesOf(culprit).map(({ cause, weight, why }) => {
      return { ...accusation, cause, weight, why: `${says}; ${why}` };
    }),
    clears: waiting,
  };
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
  const suspect = networkSuspect(ranks, job);
  const about = {
    says: `what is sent over ${suspect.words} is on the wire for ${durationWords(afterMs)} instead of ${durationWords(beforeMs)} in ${slow.length} of ${of} slow iterations${others}`,
    weight: culprit.probability * (isAmbiguous ? AMBIGUOUS_ON_WIRE : ON_WIRE),
    growthMs: afterMs - beforeMs,
    explains: slow.length,
    ...(stretch.intermittent ? { slowIterations: [...slow] } : {}),
  };
  return deviceFinding(about, suspect, culprit, stretch);
}

function deviceFinding(
  {
    says,
    weight,
    growthMs,
    ...rest
  }: Pick<NewFinding, "says" | "weight"> &
    Pick<SlowDevice, "growthMs" | "explains" | "slowIterations">,
  { place, words }: NetworkSuspect,
  culprit: LiveCulprit,
  stretch: LiveStretch,
): NewFinding<SlowDevice> {
  return {
    says,
    weight,
    at: [{ file: stretch.source }],
    data: {
      fact: "slow-device",
      ...timesOf(stretch),
      growthMs: round(growthMs),
      ...rest,
      device: words,
      judged: judgedOf(stretch, culprit, weight),
    },
    accuses: [{ kind: "fail-slow", ...place, cause: "network-slow", weight, why: says }],
    clears: [],
  };
}

function judgedOf(
  { beforeMs, afterMs }: LiveStretch,
  { compared }: LiveCulprit,
  probability: number,
): Judged {
  return { probability, healthyMs: beforeMs, slowMs: afterMs, compared };
}

function longerWords(words: string, { compared }: LiveCulprit): string {
  const { group, leadMs, chanceMs } = compared;
  const [before, since] = leadMs;
  const was =
    before === null ? "" : ` (${before < 0 ? "−" : ""}${durationWords(Math.abs(before))} before)`;
  const longer = `${durationWords(since)} longer in an iteration than`;
  const chance = `by chance such differences are ${durationWords(chanceMs)}`;
  if (compared.wires === undefined)
    return `communication over ${words} takes ${longer} that of groups like it${was}, even on the member that waits least; ${chance}`;
  return `what is sent over ${words} is on the wire for ${longer} what the others of ${group} send${was}; ${chance}`;
}

const WHY = {
  "gpu-slow": "its GPU computes for longer",
  "cpu-stall": "its CPU issues operators later",
  "network-slow": "its communication takes longer",
} as const;

/** The one that the judge names; else both that it may be. */
function causesOf({
  cause,
  causeProbability,
  probability,
}: LiveCulprit): Pick<Accusation, "cause" | "weight" | "why">[] {
  if (cause !== null) return [{ cause, weight: probability * causeProbability, why: WHY[cause] }];
  const weight = Math.min(MOST_OF_TWO, probability / 2);
  const why = "whether its GPU or its CPU is slow the record does not tell";
  return (["gpu-slow", "cpu-stall"] as const).map((one) => ({ cause: one, weight, why }));
}

function timesOf({ slowFrom, fromMs }: LiveStretch): SlowTimes {
  const from = Number.isFinite(fromMs) ? new Date(fromMs).toISOString() : null;
  return { slowDown: true, iteration: slowFrom, until: null, from, to: null };
}

function round(ms: number): number {
  return Math.round(1000 * ms) / 1000;
}
