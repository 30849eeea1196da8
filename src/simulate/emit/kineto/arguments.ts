/** The arguments of events, as JSON without its braces, key by key as in our recordings. */
import type { Piece } from "./durations.ts";
import type { Kernel } from "./kernels.ts";

const SMS = 132;
const product = (values: readonly number[]): number => values.reduce((a, b) => a * b, 1);
const strides = (dims: readonly number[]): number[] =>
  dims.map((_, i) => product(dims.slice(i + 1)));
const sixDigits = (value: number): number => Number(value.toFixed(6));

export function tensorInputs(
  dims: readonly (readonly number[])[],
  types: readonly string[],
): string {
  return (
    `"Concrete Inputs": ${JSON.stringify(dims.map(() => ""))}, "Input type": ${JSON.stringify(types)}, ` +
    `"Input Strides": ${JSON.stringify(dims.map(strides))}, "Input Dims": ${JSON.stringify(dims)}`
  );
}

/** Of an ATen operator; what has no sizes is a scalar. */
export function inputs(dims: readonly (readonly number[])[], before: string): string {
  const types = dims.map((one) => (one.length > 0 ? "c10::BFloat16" : "Scalar"));
  return `, ${before}${tensorInputs(dims, types)}`;
}

/** Of a c10d operator (a list of one tensor and three more) or, with scalars, of record_param_comms. */
export function listInputs(
  dims: readonly number[],
  scalars: readonly string[],
  more: string,
): string {
  const [rank, first, stride, size] = scalars;
  const isParams = scalars.length > 0;
  const concrete = isParams
    ? ["", "", "", rank, "", "[]", "[]", first, stride, size]
    : ["", "", "", ""];
  const types = isParams
    ? ["TensorList", "", "", "Scalar", "", "ScalarList", "ScalarList", "Scalar", "Scalar", "Scalar"]
    : ["TensorList", "", "Scalar", "Scalar"];
  const none = types.slice(1).map(() => []);
  return (
    `, "Concrete Inputs": ${JSON.stringify(concrete)}, "Input type": ${JSON.stringify(types)}, ` +
    `"Input Strides": ${JSON.stringify([[strides(dims)], ...none])}, ` +
    `"Input Dims": ${JSON.stringify([[dims], ...none])}${more}`
  );
}

export function kernelArgs({ grid, block, kind }: Kernel): string {
  const isSmall = kind === "small";
  const warps = (product(grid) * product(block)) / 32 / SMS;
  const occupancy = isSmall ? Math.min(100, Math.round((100 * warps) / 64)) : 0;
  return (
    `"registers per thread": ${isSmall ? 32 : 168}, "shared memory": ${isSmall ? 0 : 213460}, ` +
    `"blocks per SM": ${sixDigits(product(grid) / SMS)}, "warps per SM": ${sixDigits(warps)}, ` +
    `"grid": ${JSON.stringify(grid)}, "block": ${JSON.stringify(block)}, ` +
    `"est. achieved occupancy %": ${occupancy}`
  );
}

const CHANNELS = 24;

export function ncclArgs(threads: number): string {
  return (
    `"registers per thread": 96, "shared memory": 103808, "blocks per SM": ${sixDigits(CHANNELS / SMS)}, ` +
    `"warps per SM": ${sixDigits((CHANNELS * threads) / 32 / SMS)}, ` +
    `"grid": [${CHANNELS}, 1, 1], "block": [${threads}, 1, 1], "est. achieved occupancy %": 0`
  );
}

export function copyArgs({ kernel, runNs }: Piece): string {
  const bytes = 8 * product(kernel.dims[0]!);
  return `"bytes": ${bytes}, "memory bandwidth (GB/s)": ${bytes / Math.max(1, runNs)}`;
}
