/**
 * How long the kernels in front of an operator ran. The engine keeps only when an operator began, which
 * for one that then waited for the gradient stream is later; so the same sum once more, from the same
 * hashes (engine.ts, #begin).
 */
import type { IterationTimes, Simulation } from "../../cluster/times.ts";
import {
  COMPUTE_JITTER,
  commonDrift,
  expertFactor,
  imageFactor,
  sequenceFactor,
  STREAM,
  uniform,
} from "../../cluster/noise.ts";
import { partsNs } from "../../cluster/parts.ts";
import { EMBEDDING, EP, SEND, WORLD } from "../../cluster/program.ts";

export function workNs(
  { spec, lanes, programs }: Simulation,
  { devices, iteration }: IterationTimes,
  rank: number,
  op: number,
): number {
  const { seed, noise } = spec;
  const program = programs[Math.floor(rank / lanes.lanes)]!;
  const own = program.computeNs[op]! + partsNs(program, op, devices.parts, rank);
  const mean = own * commonDrift(seed, iteration, noise);
  if (mean === 0) return 0;
  const u = uniform(seed ^ STREAM.compute, rank, op, iteration);
  let work = mean * devices.gpu[rank]! * (1 + noise * COMPUTE_JITTER * 3.46 * (u - 0.5));
  const microBatch = program.microBatch[op]!;
  if (microBatch >= 0) {
    const replica = Math.floor((rank % lanes.lanes) / (spec.tp * spec.cp));
    work *= imageFactor(seed, replica, microBatch, iteration, spec.imbalance);
    work *= sequenceFactor(seed, replica, microBatch, iteration, noise);
  }
  if (program.role[op] === EP)
    work *= expertFactor(seed, rank, program.layer[op]!, iteration, noise);
  return work;
}

/** How much of the time before an operator the GPU computed: all of it, but for waits for gradients. */
export function computedNs(
  simulation: Simulation,
  times: IterationTimes,
  rank: number,
  op: number,
  atMost: number,
): number {
  const { role, async, kind } = simulation.programs[Math.floor(rank / simulation.lanes.lanes)]!;
  const isBucket = async[op] === 1 && kind[op] !== SEND;
  if (!isBucket && role[op] !== WORLD && role[op] !== EMBEDDING) return atMost;
  return Math.min(workNs(simulation, times, rank, op), atMost);
}
