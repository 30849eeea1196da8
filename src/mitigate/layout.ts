/** Which rank sits at which place (replica, stage), from the job's process groups. */
import type { Rank } from "../model/ids.ts";
import type { Group, Job } from "../model/job.ts";

export interface PlacesOfRanks {
  readonly replicas: number;
  readonly stages: number;
  /** Ranks of each place, stage · replicas + replica. */
  readonly ranks: readonly (readonly Rank[])[];
  /** Why all replicas must take equal counts of micro-batches; null where they need not. */
  readonly mustBeEven: string | null;
  readonly assumes: readonly string[];
}

const DATA = /data|(^|[^a-z])dp([^a-z]|$)|replicate/i;
const PIPELINE = /pipeline|(^|[^a-z])pp([^a-z]|$)/i;
/** Who computes one micro-batch together. */
const TOGETHER = /tensor|context|sequence|(^|[^a-z])(tp|cp|sp)([^a-z]|$)/i;
const EXPERTS = /expert|moe|(^|[^a-z])ep([^a-z]|$)/i;
const SHARDED = /shard|fsdp|zero_?3/i;
const OTHER = /expert|moe|embedding|(^|[^a-z])ep([^a-z]|$)/i;

/** `why` where the groups do not tell. */
export function placesOf(job: Job): PlacesOfRanks | { readonly why: string } {
  const all = job.groups.filter(({ ranks }) => ranks.length > 1);
  const plain = all.filter(({ role }) => !OTHER.test(role));
  const pipeline = plain.filter(({ role }) => PIPELINE.test(role));
  const data = plain.filter(({ role }) => DATA.test(role) && !PIPELINE.test(role));
  const together = plain.filter(
    ({ role }) => TOGETHER.test(role) && !DATA.test(role) && !PIPELINE.test(role),
  );
  const known = pipeline.length + data.length + together.length > 0;
  const smaller = all.filter(({ ranks }) => ranks.length < job.worldSize);
  if (!known && smaller.length > 0)
    return {
      why: "the roles of its process groups are unknown, so replicas and stages are unknown",
    };
  const ranks = [...job.ranks.keys()].sort((a, b) => a - b);
  if (ranks.length < 2) return { why: "a single rank has no other rank to share work with" };
  const stages = pipeline[0]?.ranks.length ?? 1;
  const stageOf = new Map<Rank, number>();
  for (const group of pipeline) group.ranks.forEach((rank, i) => stageOf.set(rank, i));
  // Ranks that compute together are one place; places of a stage are its replicas, in the order of their ranks.
  const teamOf = teams(ranks, together);
  const byStage = Array.from({ length: stages }, (): Rank[][] => []);
  const seen = new Map<Rank, Rank[]>();
  for (const rank of ranks) {
    const first = teamOf(rank);
    let place = seen.get(first);
    if (!place) {
      place = [];
      seen.set(first, place);
      byStage[stageOf.get(rank) ?? 0]!.push(place);
    }
    place.push(rank);
  }
  const replicas = byStage[0]!.length;
  const size = byStage[0]![0]?.length ?? 0;
  const isGrid = byStage.every(
    (places) => places.length === replicas && places.every((place) => place.length === size),
  );
  if (!isGrid) return { why: "its process groups do not form a grid of replicas and stages" };
  const assumes = known
    ? []
    : [
        "the job is purely data parallel, every rank a replica (a fully sharded job cannot take uneven counts)",
      ];
  return { replicas, stages, ranks: byStage.flat(), mustBeEven: whyEven(all, data), assumes };
}

/** Collectives of several replicas within a micro-batch must match: with other counts the job would hang. */
function whyEven(all: readonly Group[], data: readonly Group[]): string | null {
  if (all.some(({ role }) => EXPERTS.test(role)))
    return "experts are spread over replicas, so replicas must take equal counts of micro-batches";
  if (data.some(({ role }) => SHARDED.test(role)))
    return "parameters are sharded over replicas, so replicas must take equal counts of micro-batches";
  return null;
}

/** The first rank of each rank's team, groups joined where they share ranks. */
function teams(ranks: readonly Rank[], groups: readonly Group[]): (rank: Rank) => Rank {
  const parent = new Map<Rank, Rank>(ranks.map((rank) => [rank, rank]));
  const root = (rank: Rank): Rank => {
    let at = rank;
    while (parent.get(at) !== at) at = parent.get(at)!;
    let next = rank;
    while (next !== at) {
      const up = parent.get(next)!;
      parent.set(next, at);
      next = up;
    }
    return at;
  };
  for (const group of groups) {
    const [first, ...rest] = group.ranks.filter((rank) => parent.has(rank));
    for (const rank of rest) {
      const [a, b] = [root(first!), root(rank)];
      if (a !== b) parent.set(Math.max(a, b), Math.min(a, b));
    }
  }
  return root;
}
