/** A regression's figures and words, put together. */
import { cutText } from "../../base/text.ts";
import type { Cause } from "../../model/cause.ts";
import type { Rank } from "../../model/ids.ts";
import { REGRESSION_OWNERS, type Regression, type TraceMetric } from "../../model/regression.ts";
import type { RankProfile } from "../../model/trace-profile.ts";

const MOST_FILES = 8;
export const MOST_NAME = 80;

export function regression(
  cause: Cause,
  profiles: readonly RankProfile[],
  metric: TraceMetric,
  figures: { value: number; baseline: number; share: number; excess: number },
  why: string,
  threshold: string,
): Regression {
  const ranks: Rank[] = profiles.map(({ rank }) => rank).toSorted((a, b) => a - b);
  const files = [...new Set(profiles.flatMap((profile) => profile.files))];
  const { value, baseline, share, excess } = figures;
  return {
    cause,
    owner: REGRESSION_OWNERS[cause] ?? "infrastructure",
    ranks,
    metric,
    value,
    baseline,
    share,
    why,
    at: files.slice(0, MOST_FILES).map((file) => ({ file })),
    threshold,
    // At the threshold as likely as not; three times beyond it nine in ten.
    weight: Math.min(0.95, 1 - 0.5 * Math.exp(-0.8 * (excess - 1))),
  };
}

/** "void at::native::vectorized_elementwise_kernel<8, …>(…)" → "vectorized_elementwise_kernel<8, …". */
export function kernelName(name: string): string {
  const bare = name
    .replace(/^void /, "")
    .replace(/\(anonymous namespace\)::/g, "")
    .replace(/\([^()]*\)$/, "")
    .replace(/^at::native::|^at::cuda::/, "");
  return cutText(bare, MOST_NAME);
}

export function tidy(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}
