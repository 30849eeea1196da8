/** Which rank sits at which place (replica, stage), from the job's process groups. */
import type { Rank } from "../model/ids.ts";
import type { Group, Job } from "../model/job.ts";

export interface PlacesOfRanks {
  readonly replicas: number;
  readonly stages: number;
  /** Ranks of each place, stage · replicas + replica. */
  readonly ranks: readonly (readonly Rank[])[];
  readonly assumes: readonly string[];
}

const DATA = /data|(^|[^a-z])dp([^a-z]|$)|replicate/i;
/** Experts' replicas and shards are not the job's. */
const NOT_DATA = /expert|embedding/i;
const PIPELINE = /pipeline|(^|[^a-z])pp([^a-z]|$)/i;

/** Null where the groups do not tell; `why` says what is missing. */
export function placesOf(job: Job): PlacesOfRanks | { readonly why: string } {
  const world = job.worldSize;
  const named = job.groups.filter(({ ranks }) => ranks.length > 1 || world === 1);
  const data = widest(named.filter(({ role }) => DATA.test(role) && !NOT_DATA.test(role)));
  const pipeline = widest(named.filter(({ role }) => PIPELINE.test(role) && !NOT_DATA.test(role)));
  const others = named.filter(({ ranks }) => ranks.length < world);
  if (data.length === 0) {
    if (others.length > 0) return { why: "no data-parallel groups are known, so replicas are not" };
    const ranks = [...job.ranks.keys()].sort((a, b) => a - b);
    if (ranks.length < 2) return { why: "one rank has no replicas" };
    const assumes = [
      "the job is plainly data parallel: every rank is a replica (fully sharded jobs cannot take uneven counts)",
    ];
    return { replicas: ranks.length, stages: 1, ranks: ranks.map((rank) => [rank]), assumes };
  }
  const replicaOf = new Map<Rank, number>();
  for (const { ranks } of data) ranks.forEach((rank, i) => replicaOf.set(rank, i));
  const stageOf = new Map<Rank, number>();
  for (const { ranks } of pipeline) ranks.forEach((rank, i) => stageOf.set(rank, i));
  const replicas = data[0]!.ranks.length;
  const stages = pipeline[0]?.ranks.length ?? 1;
  const ranks = Array.from({ length: replicas * stages }, (): Rank[] => []);
  for (const [rank, replica] of replicaOf)
    ranks[(stageOf.get(rank) ?? 0) * replicas + replica]?.push(rank);
  if (data.some((group) => group.ranks.length !== replicas) || ranks.some((at) => at.length === 0))
    return { why: "the data-parallel and pipeline groups do not form a grid" };
  return { replicas, stages, ranks: ranks.map((at) => at.sort((a, b) => a - b)), assumes: [] };
}

/** Groups of the role whose groups are largest: data parallelism with context parallelism goes before without. */
function widest(groups: readonly Group[]): Group[] {
  let size = 0;
  for (const { ranks } of groups) size = Math.max(size, ranks.length);
  const first = groups.find(({ ranks }) => ranks.length === size);
  return groups.filter(({ role, ranks }) => role === first?.role && ranks.length === size);
}
