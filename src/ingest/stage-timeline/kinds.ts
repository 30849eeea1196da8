/** Operations of stages by the names that ByteDance's StragglerAnalysis gives them (analyzer/metatypes.py). */
import { OPERATION_KINDS } from "../../model/stage-operations.ts";

export const KINDS = [
  ...OPERATION_KINDS,
  // Written by the same tool for other jobs; nothing asks for them yet.
  "data-load",
  "data-sync",
  "backward-wgrad-compute",
  "forward-backward",
  "forward-send-backward-recv",
  "backward-send-forward-recv",
  "grads-reduce-scatter-nonoverlapping",
  "params-all-gather-nonoverlapping",
  "optimizer-inner-step",
  "tp-reducescatter",
  "tp-allgather",
  "tp-allreduce",
] as const;
export const KIND_OF: ReadonlyMap<unknown, number> = new Map(KINDS.map((name, i) => [name, i]));
