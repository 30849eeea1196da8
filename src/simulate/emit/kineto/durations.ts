/**
 * Shares a stretch of compute out to its kernels. A slow GPU stretches them all; the faults of the code
 * show where FLARE §5.2 looks for them: many small kernels, slow GEMMs of an odd shape, one slow kernel.
 */
import { STREAM, uniform } from "../../cluster/noise.ts";
import type { StageProgram } from "../../cluster/program.ts";
import type { Kernel, KernelPlan } from "./kernels.ts";

export interface Piece {
  readonly kernel: Kernel;
  /** Until the next kernel can begin, and without the gap before it. */
  readonly takesNs: number;
  readonly runNs: number;
}

/** A fault of the code that shows in kernels. */
export interface KernelFault {
  readonly cause: string;
  readonly how: string;
  readonly severity: number;
}

interface Stretch {
  readonly program: StageProgram;
  readonly op: number;
  readonly ns: number;
  /** What makes single kernels longer, null for nothing; and how much of `ns` it has added, 0..1. */
  readonly fault: KernelFault | null;
  readonly addedShare: number;
  readonly seed: number;
  readonly noise: number;
  readonly rank: number;
  readonly iteration: number;
}

const MINORITY_NS = 8_000;
const MOST_MINORITY = 24;
const GAP_NS = 1_000;
/** Kernels vary less than the stretch they are in. */
const JITTER = 0.01;

export function shareOut(plan: KernelPlan, stretch: Stretch): Piece[] {
  const kernels = plan.before(stretch.program, stretch.op);
  if (kernels.length === 0 || stretch.ns < kernels.length) return [];
  const cause = stretch.fault?.cause ?? "";
  const extra = stretch.ns * stretch.addedShare;
  const healthy = stretch.ns - extra;
  const weights = kernels.map((kernel, i) => {
    const key = 64 * stretch.op + i;
    const u = uniform(stretch.seed ^ STREAM.kernel, stretch.rank, key, stretch.iteration);
    return kernel.weight * (1 + stretch.noise * JITTER * (2 * u - 1));
  });
  const total = weights.reduce((a, b) => a + b, 0);
  const own = weights.map((weight) => (healthy * weight) / total);
  if (cause === "minority-kernels" && extra > 0) {
    const how = stretch.fault!.how;
    const small =
      how === ""
        ? plan.minority(Math.max(1, Math.min(MOST_MINORITY, Math.round(extra / MINORITY_NS))))
        : plan.unfused(how, stretch.program, stretch.op);
    return withMinority(kernels, own, small, extra);
  }
  const isBlamed = kernels.map((kernel) => blames(cause, kernel));
  const isAny = isBlamed.some(Boolean);
  const blamed = own.reduce((sum, ns, i) => sum + (isBlamed[i] || !isAny ? ns : 0), 0);
  return kernels.map((kernel, i) =>
    piece(kernel, own[i]! + (isBlamed[i] || !isAny ? (extra * own[i]!) / blamed : 0)),
  );
}

function blames(cause: string, kernel: Kernel): boolean {
  if (cause === "gemm-layout") return kernel.isOdd === true;
  return cause === "slow-kernel" && (kernel.kind === "attention" || kernel.kind === "small");
}

function piece(kernel: Kernel, takesNs: number): Piece {
  return { kernel, takesNs, runNs: takesNs - Math.min(GAP_NS, 0.1 * takesNs) };
}

/** The small ones come behind each kernel in turn. */
function withMinority(
  kernels: readonly Kernel[],
  own: readonly number[],
  added: readonly Kernel[],
  extra: number,
): Piece[] {
  const count = added.length;
  const total = added.reduce((sum, { weight }) => sum + weight, 0);
  const small = added.map((kernel) => piece(kernel, (extra * kernel.weight) / total));
  const pieces: Piece[] = [];
  kernels.forEach((kernel, i) => {
    pieces.push(piece(kernel, own[i]!));
    const [from, to] = [i, i + 1].map((at) => Math.floor((at * count) / kernels.length));
    pieces.push(...small.slice(from, to));
  });
  return pieces;
}
