/**
 * What may be changed between two iterations of a simulated job, so that a loop that detects, plans, applies and
 * measures can be closed (Greyhound §5, §7.3). Whatever is given stays in force until it is given anew.
 */
import { UserError } from "../../base/errors.ts";
import type { FaultSpec } from "./fault-spec.ts";

export interface Steering {
  /** By replica (index in dp): micro-batches an iteration; together as many as the job has. */
  readonly microBatches?: readonly number[];
  /**
   * By rank: the GPU that it sits on, as the rank that the GPU has in the unmoved layout; a permutation. Machine, NIC,
   * leaf, and whatever is wrong with them come from there.
   */
  readonly seats?: Int32Array;
  /** So long the job stands still before this one iteration, and it counts to its time: parameters are exchanged. */
  readonly pauseNs?: number;
  /**
   * All that is wrong from now on, in place of the spec's; none heals everything. `from` and `to` are iterations of the
   * job as in the spec: a hang begins in the iteration that it names, and never where that is over. Severities and ends
   * are taken as they are (costs.ts and durations.ts work them out).
   */
  readonly faults?: readonly FaultSpec[];
}

/** Asked before each iteration (from 1); null changes nothing. */
export type Steer = (iteration: number) => Steering | null;

export function checkSeats(seats: Int32Array, gpus: number): void {
  const taken = new Uint8Array(gpus);
  if (seats.length !== gpus)
    throw new UserError(`${seats.length} seats for ${gpus} ranks`, "give one for each rank", 2);
  for (const seat of seats) {
    if (seat < 0 || seat >= gpus || taken[seat] === 1) {
      throw new UserError(
        `seat ${seat} is ${taken[seat] === 1 ? "taken twice" : "not there"}`,
        `seats are a permutation of 0 to ${gpus - 1}`,
        2,
      );
    }
    taken[seat] = 1;
  }
}

export function checkPause(pauseNs: number): void {
  if (pauseNs >= 0 && pauseNs < Infinity) return;
  throw new UserError(`a pause of ${pauseNs} ns`, "give nanoseconds, 0 or more", 2);
}
