/**
 * How far a healthy machine strays. A plain z-score is at most (N - 1) / √N, so one threshold is blind in small jobs
 * and noisy in large ones; these grow with the number of machines that could stray by chance. The tails of monitoring
 * data are heavier than the normal distribution's; Student's t stands in for them.
 */
import { studentQuantile } from "../../maths/student.ts";

/** Chance of a false alarm that a whole call may spend, over all machines and views. */
const CALL_RISK = 0.002;
const VIEWS = 40;
/** Changes of a machine against itself have tails of about this weight, standing differences heavier ones. */
const CHANGE_DEGREES = 8;
const STANDING_DEGREES = 4;

/**
 * Deviations, in units of what peers differ by, that a change must exceed. A mean of n samples has an nth of their excess
 * kurtosis, 6 / (degrees - 4): its tails are those of a t with more degrees.
 */
export function changeLimit(machines: number, samples = 1): number {
  const degrees = 4 + samples * (CHANGE_DEGREES - 4);
  return studentQuantile(CALL_RISK / (VIEWS * Math.max(3, machines)), degrees);
}

/** Standing differences up to this, in the same units, are a machine's nature: its rack, its disks, its age. */
export function standingLimit(machines: number): number {
  return studentQuantile(CALL_RISK / (VIEWS * Math.max(3, machines)), STANDING_DEGREES);
}
