/**
 * Which devices the slow iterations speak for, taken one by one (Holmes §4.4): each is searched alone, what it comes
 * to counts with the rate at which it goes along with iteration times, and rates add up over the devices that it
 * used. A device that is slow now and then gathers, hiccups of others scatter.
 */
import type { DeviceRanking } from "../../model/facts.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import { accumulate, type DeviceScore, type Irregularity } from "./attribution/accumulate.ts";
import { devicesOf } from "./attribution/devices.ts";
import { irregularityRate } from "./attribution/irregularity-rate.ts";
import { Searcher, SEARCH_DEFAULTS, type Arrival } from "./progressive/search.ts";
import type { OperatorSource, Split } from "./progressive/source.ts";

/** Slow iterations that are searched, and pivots in each. */
const MOST_ITERATIONS = 12;
const PIVOTS = 3;

export interface Attribution {
  /** The most suspect first. */
  readonly devices: readonly DeviceScore[];
  /** Slow iterations that were searched, and those that came to something. */
  readonly searched: number;
  readonly irregularities: number;
  /** What each search of an iteration came to. */
  readonly found: readonly { readonly iteration: number; readonly what: Irregularity }[];
}

export function attributeDevices(
  source: OperatorSource,
  job: Pick<Job, "groups" | "ranks" | "worldSize">,
  split: Split,
  pivots: readonly Rank[],
  cpuOrGpu: (rank: Rank) => "gpu" | "cpu" | null,
  /** Kept by whoever asks again once more is fetched, with the same split. */
  searchers = new Map<number, Searcher>(),
): Attribution {
  const step = Math.max(1, Math.ceil(split.slow.length / MOST_ITERATIONS));
  const chosen = [...split.slow.keys()].filter((i) => i % step === 0);
  const found = chosen.flatMap((i) => {
    const { alone, ms } = aloneAt(split, i);
    const some = pivots.filter((_, p) => p % Math.ceil(pivots.length / PIVOTS) === 0);
    let searcher = searchers.get(i);
    if (!searcher) {
      searcher = new Searcher(source, job.groups, alone, { ...SEARCH_DEFAULTS, pivots: some });
      searchers.set(i, searcher);
    }
    return some.flatMap((pivot) =>
      irregularity(searcher.from(pivot), ms, cpuOrGpu).map((what) => ({
        iteration: split.slow[i]!,
        what,
      })),
    );
  });
  const places = Array.from({ length: job.worldSize }, (_, rank) => {
    const { machine = null, nic = null, leaf = null } = job.ranks.get(rank) ?? {};
    return { machine, nic, leaf };
  });
  return {
    devices: accumulate(
      found.map(({ what }) => what),
      devicesOf(places),
    ),
    searched: chosen.length,
    irregularities: found.length,
    found,
  };
}

/** One slow iteration against the normal ones; the others are read along, for the rate. */
function aloneAt(split: Split, i: number): { alone: Split; ms: readonly number[] } {
  const { normal, slow, normalMs, slowMs } = split;
  const others = [...slow.keys()].filter((other) => other !== i);
  const alone: Split = {
    normal,
    slow: [slow[i]!],
    normalMs,
    slowMs: [slowMs[i]!],
    also: others.map((other) => slow[other]!),
  };
  return { alone, ms: [...normalMs, slowMs[i]!, ...others.map((other) => slowMs[other]!)] };
}

/** Devices that are shown (the paper's K is 2), and ranks of each. */
const SHOWN = 5;
const MOST_RANKS = 16;

/** The ranking as it stands in a finding. */
export function rankingOf({ devices, searched }: Attribution): DeviceRanking {
  const shown = devices.slice(0, SHOWN).map(({ device, score, irregularities }) => ({
    kind: device.kind,
    name: device.name,
    ranks: device.ranks.slice(0, MOST_RANKS),
    score: Number(score.toPrecision(3)),
    irregularities,
  }));
  return { devices: shown, iterationsSearched: searched };
}

function irregularity(
  arrival: Arrival | null,
  iterationMs: readonly number[],
  cpuOrGpu: (rank: Rank) => "gpu" | "cpu" | null,
): Irregularity[] {
  if (!arrival?.evidence || arrival.cause === "unseen") return [];
  const { cause, ranks, evidence } = arrival;
  const rate = irregularityRate(evidence, iterationMs);
  return [
    cause === "compute"
      ? { cause, ranks, rate, side: cpuOrGpu(ranks[0]!) }
      : { cause, ranks, rate },
  ];
}
