import type { Random } from "../../../src/base/random.ts";
import { pick, randomInt } from "../../../src/base/random.ts";
import { sample } from "../../../test/support/sample.ts";
import { COMPLETED } from "../../../src/model/operators.ts";
import type { DumpOptions, FlightVersion } from "../../../src/simulate/flight/flight-recorder.ts";
import { FLIGHT_VERSIONS, visibleRecords } from "../../../src/simulate/flight/flight-recorder.ts";
import type { Membership } from "./layout.ts";
import { noise } from "./noise.ts";
import { canBeBatched, type RankRecords } from "../../../src/simulate/flight/rank-records.ts";

/** What makes dumps hard to read without being a fault of the job. */
export interface Nuisances {
  /** Innocent ranks whose dump was lost. */
  readonly missing: number;
  /**
   * Entries that a recorder keeps, Infinity for all; raised to what the job has in flight, because a
   * real ring of thousands never loses an operator before it has completed.
   */
  readonly ringSize: number;
  readonly onlyActive: boolean;
  /** Pipelines exchange by batch_isend_irecv. */
  readonly batched: boolean;
  /** Ranks, culprits or not, that wrote counters but no entries. */
  readonly emptied: number;
  readonly timing: boolean;
  /** Share of the ranks whose dump is JSON. */
  readonly json: number;
  readonly mixedVersions: boolean;
  /** One rank's file is there twice. */
  readonly duplicate: boolean;
  /** Ranks joined their groups in an order of their own, where their entries still tell the names. */
  readonly permutedIds: boolean;
  readonly stacks: boolean;
}

export const NO_NUISANCES: Nuisances = {
  missing: 0,
  ringSize: Infinity,
  onlyActive: false,
  batched: false,
  emptied: 0,
  timing: true,
  json: 0,
  mixedVersions: false,
  duplicate: false,
  permutedIds: false,
  stacks: false,
};

/** How one rank's file is written. */
export interface FilePlan {
  readonly rank: number;
  /** False where the rank leaves no dump. */
  readonly written: boolean;
  readonly format: "pickle" | "json";
  readonly copies: 1 | 2;
  readonly options: DumpOptions;
}

/** What the files are to be made of. */
export interface Filing {
  readonly records: readonly RankRecords[];
  readonly joined: readonly (readonly Membership[])[];
  readonly nuisances: Nuisances;
  readonly guilty: readonly number[];
  /** Whether the guilty leave no dump. */
  readonly guiltyAbsent: boolean;
  /** Of every operator, in milliseconds. */
  readonly timeoutMs: number;
  readonly seed: number;
}

export function planFiles(filing: Filing, random: Random): FilePlan[] {
  const { records, joined, nuisances, guilty, timeoutMs, seed } = filing;
  const ranks = records.length;
  const innocent = [...records.keys()].filter((rank) => !guilty.includes(rank));
  const lost = new Set(filing.guiltyAbsent ? guilty : []);
  // At least one innocent stays to tell the tale.
  const losses = Math.min(nuisances.missing, innocent.length - 1);
  for (const i of sample(random, innocent.length, losses)) lost.add(innocent[i] as number);
  const present = [...records.keys()].filter((rank) => !lost.has(rank));
  const emptied = new Set(
    sample(random, present.length, nuisances.emptied).map((i) => present[i] as number),
  );
  const version = pick(random, FLIGHT_VERSIONS.slice(-3));
  const twin = nuisances.duplicate ? pick(random, present) : -1;
  const inFlight = Math.max(...records.map(uncompleted));
  const epochNs = 1_790_000_000_000_000_000n + BigInt(randomInt(random, 1e9)) * 1_000_003n;
  return records.map((record, rank): FilePlan => {
    const own: FlightVersion = nuisances.mixedVersions ? pick(random, FLIGHT_VERSIONS) : version;
    const options: DumpOptions = {
      version: own,
      library: own === "2.10" ? "2.28.9" : "2.27.3",
      timing: nuisances.timing,
      ringSize: Math.max(nuisances.ringSize, inFlight),
      onlyActive: nuisances.onlyActive,
      batched: nuisances.batched && canBeBatched(record),
      stacks: nuisances.stacks,
      entries: !emptied.has(rank),
      timeoutMs,
      epochNs,
      localIds: new Map(joined[rank]?.map(({ group }, id) => [group.index, id])),
    };
    return {
      rank,
      written: !lost.has(rank),
      format: ranks * nuisances.json > randomInt(random, ranks) ? "json" : "pickle",
      copies: rank === twin ? 2 : 1,
      options: nuisances.permutedIds
        ? { ...options, localIds: permuted(record, options, seed) }
        : options,
    };
  });
}

/** Entries from the first that has not completed to the last. */
function uncompleted(record: RankRecords): number {
  const first = record.state.findIndex((state) => state !== COMPLETED);
  return first < 0 ? 0 : record.ops.length - first;
}

/** A rotation of the local ids, unless some group could then no longer be told from the entries. */
function permuted(
  record: RankRecords,
  options: DumpOptions,
  seed: number,
): ReadonlyMap<number, number> {
  const seen = new Set(visibleRecords(record, options).map((i) => record.ops[i]?.group));
  const used = [...record.status.keys()];
  if (noise(seed, record.rank, 9) < 0.5 || !used.every((group) => seen.has(group)))
    return options.localIds;
  const ids = used.map((group) => options.localIds.get(group) as number);
  const shift = 1 + Math.floor(noise(seed, record.rank, 10) * (used.length - 1));
  return new Map(used.map((group, i) => [group, ids[(i + shift) % ids.length] as number]));
}
