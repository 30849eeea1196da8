/**
 * What a probe in every rank would tell of an iteration (Greyhound §4.3, profiling): how long the rank itself took for
 * a micro-batch, without waiting for others, and how long its groups' transfers took once everybody was there.
 */
import { DP, RECV, SEND, TP } from "../../src/simulate/cluster/program.ts";
import type { LaneGroups } from "../../src/simulate/cluster/lanes.ts";
import type { IterationTimes, Simulation } from "../../src/simulate/cluster/times.ts";

export interface Profile {
  /** By rank: one micro-batch's kernels and tensor-parallel transfers, forward and backward. */
  readonly passMs: Float64Array;
  /** By stage and data-parallel group: all its transfers of the iteration. */
  readonly exchangeMs: Float64Array;
  /** By stage: a typical transfer of activations to it. */
  readonly activationMs: Float64Array;
}

export function profileOf(simulation: Simulation, times: IterationTimes): Profile {
  const { programs, lanes, spec } = simulation;
  const passMs = new Float64Array(spec.gpus);
  const exchangeMs = new Float64Array(lanes.stages * lanes.dp.count);
  const activationMs = new Float64Array(lanes.stages);
  const free = new Float64Array(lanes.lanes);
  programs.forEach((program, stage) => {
    const { startNs, endNs } = times.stages[stage]!;
    free.fill(NaN);
    let received = 0;
    const last = program.microBatch.reduce((most, m) => Math.max(most, m), 0);
    for (let op = 0; op < program.count; op++) {
      const at = op * lanes.lanes;
      const kind = program.kind[op]!;
      const role = program.role[op]!;
      // Behind the last backward pass gradients are reduced: whether its kernels or the network are late is not plain.
      const isOwn = program.microBatch[op]! >= 0 && program.microBatch[op]! < last;
      if (role === DP)
        addTransfers(lanes.dp, startNs, endNs, at, exchangeMs, stage * lanes.dp.count);
      for (let lane = 0; lane < lanes.lanes; lane++) {
        const start = startNs[at + lane]!;
        // Left out by its replica.
        if (Number.isNaN(start)) continue;
        const rank = stage * lanes.lanes + lane;
        if (kind !== SEND && program.async[op] === 1) continue;
        const since = start - free[lane]!;
        if (isOwn && since > 0) passMs[rank]! += since / 1e6;
        // Sends run beside kernels.
        free[lane] = kind === SEND ? start : endNs[at + lane]!;
      }
      if (role === TP && isOwn) {
        const { groupOf, size, members } = lanes.tp;
        for (let lane = 0; lane < lanes.lanes; lane++) {
          if (Number.isNaN(startNs[at + lane]!)) continue;
          let latest = 0;
          const first = groupOf[lane]! * size;
          for (let m = first; m < first + size; m++)
            latest = Math.max(latest, startNs[at + members[m]!]!);
          passMs[stage * lanes.lanes + lane]! += (endNs[at + lane]! - latest) / 1e6;
        }
      }
      if (kind === RECV && program.peerStage[op]! >= 0) {
        const sent = times.stages[program.peerStage[op]!]!.startNs;
        const from = program.peerOp[op]! * lanes.lanes;
        let shortest = Infinity;
        for (let lane = 0; lane < lanes.lanes; lane++) {
          const took = endNs[at + lane]! - Math.max(startNs[at + lane]!, sent[from + lane]!);
          if (took < shortest) shortest = took;
        }
        if (shortest < Infinity) {
          activationMs[stage]! += shortest / 1e6;
          received++;
        }
      }
    }
    if (received > 0) activationMs[stage]! /= received;
  });
  const replicaSize = spec.tp * spec.cp;
  for (let rank = 0; rank < spec.gpus; rank++)
    passMs[rank]! /= times.shares.microBatches[Math.floor((rank % lanes.lanes) / replicaSize)]! - 1;
  return { passMs, exchangeMs, activationMs };
}

/** From when the last member was there. */
function addTransfers(
  groups: LaneGroups,
  startNs: Float64Array,
  endNs: Float64Array,
  at: number,
  sums: Float64Array,
  first: number,
): void {
  for (let group = 0; group < groups.count; group++) {
    let latest = 0;
    for (let m = group * groups.size; m < (group + 1) * groups.size; m++)
      latest = Math.max(latest, startNs[at + groups.members[m]!]!);
    sums[first + group]! += (endNs[at + groups.members[group * groups.size]!]! - latest) / 1e6;
  }
}
