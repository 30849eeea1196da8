/** What Minder is asked to do: the paper's choices by default, and those it is compared with (§6.1 to §6.5). */
import type { DistanceMeasure } from "../../../maths/pairwise-distances.ts";

/**
 * What machines are compared by. The paper compares "reconstructed embeddings" (§4.4) and calls the latent variable
 * the embedding (§4.2). latent: the encoder's mean; reconstruction: the window without its noise; both side by side; raw: the samples themselves (RAW, §6.3); moments: mean, variance, skewness and kurtosis, after PCA (MD, §6.1).
 */
export type Embedding = "reconstruction" | "latent" | "both" | "raw" | "moments";

export interface MinderOptions {
  /** In the order in which they are tried (§4.3). */
  readonly metrics: readonly string[];
  readonly embedding: Embedding;
  /** Metric by metric as in §3.3; or all side by side (CON), or all through one model (INT), §6.3. */
  readonly combine: "each" | "concatenated" | "integrated";
  readonly distance: DistanceMeasure;
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
  /**
   * Limits of the min-max normalisation (§4.1: "the upper and lower limits of each metric"). task: from the catalog's
   * lower limit to what this task reaches; model: those of the data that the model was trained on; catalog: what
   * hardware could do, which leaves most rates near 0 where a model cannot tell them apart.
   */
  readonly limits: "task" | "model" | "catalog";
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

/** §6.2: of the GPU's metrics only the duty cycle. */
const FEWER = ["pfc-tx-packet-rate", "cpu-usage", "gpu-duty-cycle", "nvlink-bandwidth"];
const MORE = [
  ...PAPER_ORDER,
  "gpu-temperature",
  "gpu-clocks",
  "gpu-memory-bandwidth",
  "gpu-fp-engine-activity",
];

export const DEFAULT_OPTIONS: MinderOptions = {
  metrics: PAPER_ORDER,
  embedding: "latent",
  combine: "each",
  distance: "euclid",
  similarityThreshold: 3,
  scores: {},
  continuityS: 240,
  stride: 1,
  limits: "task",
};

/** The paper's comparisons, by the names of its figures; the rest as in `DEFAULT_OPTIONS`. */
export const VARIANTS = {
  minder: {},
  reconstruction: { embedding: "reconstruction" },
  MD: { embedding: "moments" },
  RAW: { embedding: "raw" },
  CON: { combine: "concatenated" },
  INT: { combine: "integrated" },
  "without continuity": { continuityS: 0 },
  MhtD: { distance: "manhattan" },
  ChD: { distance: "chebyshev" },
  "fewer metrics": { metrics: FEWER },
  "more metrics": { metrics: MORE },
} as const satisfies Readonly<Record<string, Partial<MinderOptions>>>;
