/** An iteration on its way into the rings: the engine's times, copied and set to the machine's clock. */
import type { IterationTimes } from "../../simulate/cluster/times.ts";

/** Monotonic nanoseconds of the machine; Infinity for what never happens. */
export interface Flight {
  readonly iteration: number;
  readonly stages: readonly {
    readonly issueNs: Float64Array;
    readonly startNs: Float64Array;
    readonly endNs: Float64Array;
  }[];
  /** By rank: when it began, and when it was done. */
  readonly beginNs: Float64Array;
  readonly endNs: Float64Array;
}

/** `before` is the flight of the iteration before; null for the first, which begins at `zeroNs`. */
export function flightOf(
  { iteration, stages, rankEndNs }: IterationTimes,
  zeroNs: number,
  scale: number,
  before: Flight | null,
): Flight {
  const placed = (column: Float64Array): Float64Array => column.map((ns) => zeroNs + ns * scale);
  return {
    iteration,
    stages: stages.map((stage) => ({
      issueNs: placed(stage.issueNs),
      startNs: placed(stage.startNs),
      endNs: placed(stage.endNs),
    })),
    beginNs: before?.endNs ?? new Float64Array(rankEndNs.length).fill(zeroNs),
    endNs: placed(rankEndNs),
  };
}
