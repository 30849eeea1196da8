/** What Minder is asked to do: the paper's choices by default. */

export interface MinderOptions {
  /** In the order in which they are tried (§4.3). */
  readonly metrics: readonly string[];
  /**
   * The normal score above which the machine farthest from all others is a candidate. The paper gives no number. Among
   * N machines no score exceeds (N-1)/√N: 1.5 of 4 machines, 2.85 of 10; so that 3 can never be reached by fewer than
   * 11. That is the method's own limit, not this code's: lower it for small tasks.
   */
  readonly similarityThreshold: number;
  /** Of metrics that have one of their own (train-priorities.ts). */
  readonly scores: Readonly<Record<string, number>>;
  /** How long the same machine must be the candidate (§4.4, step 2); 0: one window is enough (§6.4). */
  readonly continuityS: number;
  /** Samples from one window to the next; 1 in the paper, more for fleets where time is short. */
  readonly stride: number;
}

/** Figure 7, from the root: until a site's own labelled data say otherwise (train-priorities.ts). */
export const PAPER_ORDER: readonly string[] = [
  "pfc-tx-packet-rate",
  "cpu-usage",
  "gpu-duty-cycle",
  "gpu-power-draw",
  "gpu-graphics-engine-activity",
  "gpu-tensor-core-activity",
  "nvlink-bandwidth",
];

export const DEFAULT_OPTIONS: MinderOptions = {
  metrics: PAPER_ORDER,
  similarityThreshold: 3,
  scores: {},
  continuityS: 240,
  stride: 1,
};
