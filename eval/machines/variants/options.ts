/** The paper's comparisons (§6.1 to §6.5): what Minder does in another way than by default. */
import {
  DEFAULT_OPTIONS,
  PAPER_ORDER,
  type MinderOptions,
} from "../../../src/methods/machines/minder/options.ts";
import type { DistanceMeasure } from "./distances.ts";

/**
 * What machines are compared by. The paper compares "reconstructed embeddings" (§4.4) and calls the latent variable
 * the embedding (§4.2). latent: the encoder's mean; reconstruction: the window without its noise; raw: the samples
 * themselves (RAW, §6.3); moments: mean, variance, skewness and kurtosis, after PCA (MD, §6.1).
 */
export type Embedding = "reconstruction" | "latent" | "raw" | "moments";

export interface VariantOptions extends MinderOptions {
  readonly embedding: Embedding;
  /** Metric by metric as in §3.3; or all side by side (CON), or all through one model (INT), §6.3. */
  readonly combine: "each" | "concatenated" | "integrated";
  readonly distance: DistanceMeasure;
}

/** §6.2: of the GPU's metrics only the duty cycle. */
const FEWER = ["pfc-tx-packet-rate", "cpu-usage", "gpu-duty-cycle", "nvlink-bandwidth"];
const MORE = [
  ...PAPER_ORDER,
  "gpu-temperature",
  "gpu-clocks",
  "gpu-memory-bandwidth",
  "gpu-fp-engine-activity",
];

/** As shipped. */
export const MINDER: VariantOptions = {
  ...DEFAULT_OPTIONS,
  embedding: "latent",
  combine: "each",
  distance: "euclid",
};

/** By the names of the paper's figures. */
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
} as const satisfies Readonly<Record<string, Partial<VariantOptions>>>;

/** Those that the product can be asked for: the others differ in how machines are compared. */
export const SHIPPED = ["minder", "without continuity", "fewer metrics", "more metrics"] as const;
