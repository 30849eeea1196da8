/**
 * The order in which a pipeline stage runs its micro-batches, as Megatron-LM's schedules.py has it:
 * GPipe (all forward, then all backward), 1F1B (warm-up, one forward one backward, cool-down), and the
 * interleaved form with several model chunks a stage.
 */
import type { ClusterSpec } from "./spec.ts";

export interface Pass {
  readonly backward: boolean;
  readonly microBatch: number;
  /** Model chunk of the stage, 0 without interleaving. */
  readonly chunk: number;
}

export function stagePasses(spec: ClusterSpec, stage: number): Pass[] {
  if (spec.schedule === "interleaved") return interleaved(spec, stage);
  const { microBatches: m, pp } = spec;
  const warmUp = spec.schedule === "gpipe" ? m : Math.min(pp - stage - 1, m);
  const passes: Pass[] = [];
  for (let i = 0; i < warmUp; i++) passes.push({ backward: false, microBatch: i, chunk: 0 });
  for (let i = warmUp; i < m; i++) {
    passes.push({ backward: false, microBatch: i, chunk: 0 });
    passes.push({ backward: true, microBatch: i - warmUp, chunk: 0 });
  }
  for (let i = m - warmUp; i < m; i++) passes.push({ backward: true, microBatch: i, chunk: 0 });
  return passes;
}

function interleaved(spec: ClusterSpec, stage: number): Pass[] {
  const { microBatches, pp, chunks } = spec;
  const total = microBatches * chunks;
  const warmUp = Math.min((pp - stage - 1) * 2 + (chunks - 1) * pp, total);
  const forward = (k: number): Pass => {
    const inRound = k % (pp * chunks);
    const microBatch = Math.floor(k / (pp * chunks)) * pp + (inRound % pp);
    return { backward: false, microBatch, chunk: Math.floor(inRound / pp) };
  };
  const backward = (k: number): Pass => {
    const pass = forward(k);
    return { ...pass, backward: true, chunk: chunks - 1 - pass.chunk };
  };
  const passes: Pass[] = [];
  for (let k = 0; k < warmUp; k++) passes.push(forward(k));
  for (let k = warmUp; k < total; k++) passes.push(forward(k), backward(k - warmUp));
  for (let k = total - warmUp; k < total; k++) passes.push(backward(k));
  return passes;
}
