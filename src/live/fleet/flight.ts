/** An iteration on its way into the rings: the engine's times, copied and set to the machine's clock. */
import type { IterationTimes } from "../../simulate/cluster/times.ts";
import type { RankWork } from "./rank-work.ts";

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
  /** By rank: what its probes record beside communication, simulated nanoseconds; null where that is not played. */
  readonly work: readonly RankWork[] | null;
  /** The machine's clock at a simulated moment. */
  at(this: void, simulatedNs: number): number;
}

/** `before` is the flight of the iteration before; null for the first, which begins at `zeroNs`. */
export function flightOf(
  { iteration, stages, rankEndNs }: IterationTimes,
  zeroNs: number,
  scale: number,
  before: Flight | null,
  work: readonly RankWork[] | null,
): Flight {
  const at = (ns: number): number => zeroNs + ns * scale;
  const placed = (column: Float64Array): Float64Array => column.map(at);
  return {
    iteration,
    stages: stages.map((stage) => ({
      issueNs: placed(stage.issueNs),
      startNs: placed(stage.startNs),
      endNs: placed(stage.endNs),
    })),
    beginNs: before?.endNs ?? new Float64Array(rankEndNs.length).fill(zeroNs),
    endNs: placed(rankEndNs),
    work,
    at,
  };
}
