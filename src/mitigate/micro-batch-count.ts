/** How many micro-batches a replica has in an iteration: as given, as counted, or as assumed, which the answer states. */
import type { Job } from "../model/job.ts";
import type { PlacesOfRanks } from "./layout.ts";

interface MicroBatchCount {
  readonly microBatches: number;
  /** Counts must be multiples of this. */
  readonly multipleOf: number;
  readonly assumes: readonly string[];
}

const USUAL = 8;

export function microBatchesOf(
  job: Job,
  places: PlacesOfRanks,
  given: number | undefined,
): MicroBatchCount {
  const counted = countSends(job, places);
  // Interleaved schedules hand micro-batches out in rounds of as many as there are stages (§5.2, footnote 4).
  const multipleOf = counted.wraps ? places.stages : 1;
  const rounds = counted.wraps
    ? [`the schedule is interleaved, so counts are multiples of ${places.stages}`]
    : [];
  const known = given ?? job.microBatches ?? null;
  if (known !== null) {
    if (known % multipleOf === 0) return { microBatches: known, multipleOf, assumes: rounds };
    return { microBatches: known, multipleOf: 1, assumes: [] };
  }
  if (counted.sends > 0 && !counted.wraps) {
    const assumes = [
      `${counted.sends} micro-batches per replica, as many as its first stage sends`,
    ];
    return { microBatches: counted.sends, multipleOf, assumes };
  }
  const microBatches = Math.ceil(USUAL / multipleOf) * multipleOf;
  const asked = `${microBatches} micro-batches per replica (--micro-batches sets the number)`;
  return { microBatches, multipleOf, assumes: [asked, ...rounds] };
}

/**
 * A first stage sends each micro-batch on once. Where it also speaks with the last stage, the schedule is interleaved, and
 * its transfers are more than micro-batches; with two stages the neighbour is the last one, and nothing tells.
 */
function countSends(
  job: Job,
  { stages, ranks, replicas }: PlacesOfRanks,
): { sends: number; wraps: boolean } {
  const first = stages > 1 ? ranks[0]?.[0] : undefined;
  const operators = first === undefined ? null : job.rankOperators.fetch(first);
  if (!operators || operators.from.length === 0) return { sends: 0, wraps: false };
  const { ops, groupIds } = operators;
  const last = new Set(ranks.slice((stages - 1) * replicas).flat());
  const middle = operators.from.length >> 1;
  let sends = 0;
  let wraps = false;
  for (let op = operators.from[middle]!; op < operators.to[middle]!; op++) {
    if (ops.isP2p[op] !== 1) continue;
    if (ops.isSend[op] === 1) sends++;
    const group = job.groups[groupIds[ops.group[op]!] ?? -1];
    const peer = group?.ranks[ops.peer[op]!];
    if (stages > 2 && peer !== undefined && last.has(peer)) wraps = true;
  }
  return { sends, wraps };
}
