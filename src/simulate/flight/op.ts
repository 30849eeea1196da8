export type Kind =
  | "all_reduce"
  | "_all_gather_base"
  | "_reduce_scatter_base"
  | "all_to_all"
  | "broadcast"
  | "all_reduce_barrier"
  | "send"
  | "recv";

/** Where in the training script the operator is called; decides its stack and its thread. */
export type Site =
  | "warm-up"
  | "forward"
  | "backward"
  | "experts-forward"
  | "experts-backward"
  | "send"
  | "recv"
  | "gradients"
  | "parameters"
  | "embedding"
  | "norm"
  | "extra";

export interface Shape {
  readonly input: readonly number[];
  readonly output: readonly number[];
  /** Of the larger of the two. */
  readonly elements: number;
}

export function shapeOf(input: readonly number[], output = input): Shape {
  const product = (size: readonly number[]): number => size.reduce((a, b) => a * b, 1);
  return { input, output, elements: Math.max(product(input), product(output)) };
}

/** One communication operator in a rank's program order. */
export interface Op {
  /** Index of the group in the job's list. */
  readonly group: number;
  readonly kind: Kind;
  /** Group rank of the other side of a P2P operator; -1 for collectives. */
  readonly peer: number;
  readonly shape: Shape;
  readonly dtype: string;
  /** Later operators do not wait for it on the GPU; the CPU does at the end of the iteration. */
  readonly async: boolean;
  /** How many operators back the CPU waits for before it issues this one; 0 for none, -1 for all. */
  readonly hostWait: number;
  /** Mean time of the kernels in front of it on the compute stream. */
  readonly gapNs: number;
  readonly iteration: number;
  readonly site: Site;
}

export function isP2p(op: Op): boolean {
  return op.peer >= 0;
}
