/**
 * Faults that lengthen single parts of a layer. A layout that nobody padded slows the feed-forward
 * products down and nothing else (FLARE §7.3.2); kernels that nobody fused come on top of attention
 * (position embedding), of the feed-forward block (activation) or of the norms (FLARE §7.3.3, Table 5).
 */
import type { FaultSpec } from "./fault-spec.ts";
import type { StageProgram } from "./program.ts";
import type { ClusterSpec } from "./spec.ts";

/** By rank: what is added to each part of a layer, as a share of that part's time. */
export interface PartShares {
  readonly attention: Float64Array;
  readonly feedForward: Float64Array;
  readonly norm: Float64Array;
}

/**
 * What a severity of 2 adds to each part. From Table 5: V_minority of 9, 14, 15 and 28 % are minority kernels of
 * 9.9, 16.3, 17.6 and 38.9 % of all other time; the differences, over the parts' shares of a layer (program.ts).
 */
export const UNFUSED = { attention: 0.064 / 0.34, feedForward: 0.0137 / 0.62, norm: 0.212 / 0.04 };

export function slowParts(
  spec: ClusterSpec,
  acting: readonly { fault: FaultSpec; severity: number; ranks: ReadonlySet<number> }[],
): PartShares | null {
  const zeros = (): Float64Array => new Float64Array(spec.gpus);
  let parts: PartShares | null = null;
  for (const { fault, severity, ranks } of acting) {
    const isUnfused = fault.cause === "minority-kernels" && fault.how !== "";
    if (!isUnfused && fault.cause !== "gemm-layout") continue;
    parts ??= { attention: zeros(), feedForward: zeros(), norm: zeros() };
    const more = severity - 1;
    for (const rank of ranks) {
      if (!isUnfused) parts.feedForward[rank]! += more;
      else {
        parts.attention[rank]! += more * UNFUSED.attention;
        if (fault.how !== "pe") parts.feedForward[rank]! += more * UNFUSED.feedForward;
        if (fault.how === "pe-act-norm") parts.norm[rank]! += more * UNFUSED.norm;
      }
    }
  }
  return parts;
}

/** What the parts add to the kernels in front of an operator, of a healthy GPU. */
export function partsNs(
  program: StageProgram,
  op: number,
  parts: PartShares | null,
  rank: number,
): number {
  if (parts === null) return 0;
  return (
    program.attentionNs[op]! * parts.attention[rank]! +
    program.feedForwardNs[op]! * parts.feedForward[rank]! +
    program.normNs[op]! * parts.norm[rank]!
  );
}
