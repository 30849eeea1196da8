/**
 * Every machine has a clock of its own: some milliseconds off and drifting a little, as NTP leaves them.
 */
import { STREAM, uniform } from "./noise.ts";
import type { ClusterSpec } from "./spec.ts";

const OFFSET_NS = 2e6;
/** Parts per million. */
const DRIFT = 5e-6;

/** What a machine's clock shows, in ns since the job's epoch, when the job's clock shows `jobNs`. */
export function machineNs(spec: ClusterSpec, machine: number, jobNs: number): number {
  if (spec.noise === 0) return jobNs;
  const offset = 2 * OFFSET_NS * (uniform(spec.seed ^ STREAM.clock, machine, 0, 0) - 0.5);
  const drift = 2 * DRIFT * (uniform(spec.seed ^ STREAM.clock, machine, 1, 0) - 0.5);
  return jobNs + spec.noise * (offset + drift * jobNs);
}
