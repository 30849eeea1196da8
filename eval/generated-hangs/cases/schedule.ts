/** One piece of a stage's work: the forward or the backward pass of one micro-batch. */
export interface Action {
  readonly forward: boolean;
  readonly microBatch: number;
}

export type Schedule = "gpipe" | "1f1b";

/**
 * gpipe: all forward passes, then all backward passes, as the lab's script has it. 1f1b: a stage runs
 * ahead by its distance from the last one, then alternates (PipeDream-flush, Megatron's default).
 */
export function stageActions(
  schedule: Schedule,
  stage: number,
  stages: number,
  microBatches: number,
): Action[] {
  const warmUp = schedule === "gpipe" ? microBatches : Math.min(stages - 1 - stage, microBatches);
  const actions: Action[] = [];
  for (let m = 0; m < warmUp; m++) actions.push({ forward: true, microBatch: m });
  for (let m = warmUp; m < microBatches; m++) {
    actions.push({ forward: true, microBatch: m });
    actions.push({ forward: false, microBatch: m - warmUp });
  }
  for (let m = microBatches - warmUp; m < microBatches; m++)
    actions.push({ forward: false, microBatch: m });
  return actions;
}
