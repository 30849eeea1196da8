/**
 * Pauses that recur in a job: checkpoints, evaluations, compilations. One that comes every so many iterations is expected
 * at its turn only; others may come at any time.
 */

/** An iteration that took much longer than others. */
export interface PastPause {
  readonly iteration: number;
  readonly durationMs: number;
}

/** Pauses that tell whether they recur. */
const LOOKED_AT = 6;
const LEAST = 2;
/** Of those that recur every so many iterations, some come one iteration early or late. */
const SLACK = 1;
/** Fewer iterations from one to the next are no turn: every iteration would be one. */
const LEAST_TURN = 8;

/** How long a pause at this iteration would usually last; 0 where none is usual. `pauses`: oldest first. */
export function usualPauseMs(pauses: readonly PastPause[], iteration: number): number {
  const last = pauses.slice(-LOOKED_AT);
  if (last.length < LEAST) return 0;
  const longestMs = Math.max(...last.map(({ durationMs }) => durationMs));
  const gaps = last.slice(1).map((one, i) => one.iteration - last[i]!.iteration);
  const turn = Math.min(...gaps);
  if (turn < LEAST_TURN || last.length < LEAST + 1) return longestMs;
  if (!gaps.every((gap) => isTurn(gap, turn))) return longestMs;
  return isTurn(iteration - last.at(-1)!.iteration, turn) ? longestMs : 0;
}

function isTurn(gap: number, turn: number): boolean {
  const rest = gap % turn;
  return gap >= turn - SLACK && Math.min(rest, turn - rest) <= SLACK;
}
