/**
 * Slots that compute slowly brought together in few replicas: a replica is as slow as its slowest slot, so that with
 * micro-batches shared out anew (S2) the second straggler of a replica costs next to nothing, and all other replicas
 * are healthy. Insertion alone does not get there: the first stragglers are cheap wherever they are.
 */
import { Arrangement } from "./arrangement.ts";
import { identity, inverse, type JobTables } from "./cost-model.ts";
import type { Work } from "./work.ts";

/** Places with the slow slots in as few replicas as pays; as they are where nothing pays. */
export function consolidate(job: JobTables, bad: readonly number[], work: Work): Int32Array {
  const { stages, compute, replicas } = job;
  const slow = bad.filter((slot) => compute[slot]! > 1);
  slow.sort((a, b) => compute[b]! - compute[a]! || a - b);
  // Who sits with the worst already need not move.
  const weight = new Float64Array(replicas);
  for (const slot of slow) weight[slot % replicas]! += compute[slot]! - 1;
  const order = [...identity(replicas)].sort((a, b) => weight[b]! - weight[a]! || a - b);
  // Only what computes counts here: the network is dealt with from there.
  const computing: JobTables = {
    ...job,
    network: new Float64Array(job.network.length).fill(1),
    links: { ...job.links, factor: new Float64Array(job.links.factor.length).fill(1) },
  };
  let best = identity(compute.length);
  let cost = new Arrangement(computing, best, true, work).cost;
  // The mildest may stay where they are, hence fewer replicas than all slow slots fill.
  const most = Math.ceil(slow.length / stages);
  for (let chosen = 1; chosen <= most; chosen = Math.max(chosen + 1, Math.floor(chosen * 1.2))) {
    const placeOf = gather(job, slow, order.slice(0, Math.min(chosen, most)));
    const reached = new Arrangement(computing, placeOf, true, work).cost;
    if (reached >= cost) continue;
    cost = reached;
    best = placeOf;
  }
  return best;
}

/** Worst first into the chosen replicas; within its stage where there is room, which leaves exchanges as they are. */
function gather(job: JobTables, slow: readonly number[], chosen: readonly number[]): Int32Array {
  const { replicas, stages, compute } = job;
  const placeOf = identity(compute.length);
  const slotAt = inverse(placeOf);
  const isChosen = new Uint8Array(replicas);
  for (const replica of chosen) isChosen[replica] = 1;
  /** By stage: how many of the chosen replicas have a slow slot there, from the first on. None of these leaves. */
  const filled = new Int32Array(stages);
  const freePlace = (stage: number): number => {
    const first = stage * replicas;
    while (filled[stage]! < chosen.length) {
      const place = first + chosen[filled[stage]!]!;
      if (compute[slotAt[place]!] === 1) return place;
      filled[stage]!++;
    }
    return -1;
  };
  for (const slot of slow) {
    if (isChosen[placeOf[slot]! % replicas] === 1) continue;
    const home = Math.floor(placeOf[slot]! / replicas);
    let target = -1;
    for (let s = 0; s < stages && target < 0; s++) target = freePlace((home + s) % stages);
    if (target < 0) break;
    const other = slotAt[target]!;
    slotAt[placeOf[slot]!] = other;
    placeOf[other] = placeOf[slot]!;
    slotAt[target] = slot;
    placeOf[slot] = target;
  }
  return placeOf;
}
