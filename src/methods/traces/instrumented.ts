/**
 * Which GPU events belong to the instrumented set (FLARE §4.1, §5.2.2): kernels that multiply matrices, and
 * communication. All others, copies and fills too, are minority kernels.
 */
import { COMMUNICATION, COMPUTE, type RankKernels } from "../../model/kernels.ts";

export const MATRIX = 0;
export const COLLECTIVE = 1;
export const MINORITY = 2;

/** cuBLAS, CUTLASS, cuDNN, Triton, FlashAttention, Tensile (AMD): used where the trace names no operator. */
const MATRIX_NAME =
  /gemm|nvjet|cutlass|xmma|wmma|cublas|^Cijk_|flash_|fmha|attention|attn_(?:fwd|bwd)|conv(?:olve|olution)|winograd|wgrad|dgrad|fprop|scudnn|_mm_kernel|matmul/i;
/** What a matrix operator launches besides: bias, copies, reductions of split-K. */
const BESIDE =
  /elementwise|vectorized|reduce_kernel|splitKreduce|[cC]opy|[fF]ill|nchwToNhwc|nhwcToNchw|bn_(?:fw|bw)|batch_norm|MulFunctor/;

/** One entry a GPU event. */
export function eventClasses({ gpu, names }: RankKernels): Uint8Array {
  const isMatrixName = names.map((name) => MATRIX_NAME.test(name));
  const isBeside = names.map((name) => BESIDE.test(name) && !/gemm|nvjet/i.test(name));
  const classes = new Uint8Array(gpu.count);
  for (let i = 0; i < gpu.count; i++) {
    const name = gpu.name[i]!;
    if (gpu.kind[i] === COMMUNICATION) classes[i] = COLLECTIVE;
    else if (gpu.kind[i] !== COMPUTE || isBeside[name]) classes[i] = MINORITY;
    else classes[i] = gpu.matrixOp[i]! >= 0 || isMatrixName[name] ? MATRIX : MINORITY;
  }
  return classes;
}

/** The stream that the model computes on: the one with the most compute kernels; -1 where there are none. */
export function mainStream({ gpu }: RankKernels): number {
  const counts = new Map<number, number>();
  for (let i = 0; i < gpu.count; i++)
    if (gpu.kind[i] === COMPUTE) counts.set(gpu.stream[i]!, (counts.get(gpu.stream[i]!) ?? 0) + 1);
  return [...counts].toSorted((a, b) => b[1] - a[1] || a[0] - b[0])[0]?.[0] ?? -1;
}
