/**
 * Lines that tell what a job does between iterations: checkpoints, evaluations, starts. What they are good for is
 * that the iteration after them is not called slow. Written by:
 *   Megatron-LM   training/checkpointing.py, training.py ("validation loss at iteration", "Evaluating on"),
 *                 initialize.py, training.py ("[before the start of training step]"), pretrain_*.py ("building GPT")
 *   DeepSpeed     runtime/engine.py ("Saving model checkpoint:", "is about to be saved"), "DeepSpeed info: version="
 *   torchtitan    components/checkpoint.py, metrics.py ("validate step:"), trainer.py ("Training starts at step")
 *   NeMo          Megatron's words with a capital, "checkpoint save for step"; Lightning's progress bars
 *   torchrun      torch/distributed/elastic/agent/server/api.py, launcher/api.py, run.py
 */
import { CHECKPOINT, EVALUATION, START } from "../../model/series.ts";
import { Needles } from "../needles.ts";

const CHECKPOINTS: readonly string[] = [
  "aving checkpoint",
  "aved checkpoint",
  "aving the checkpoint",
  "aving model checkpoint",
  "heckpoint save",
  "heckpoint Save",
  "is about to be saved",
];
const EVALUATIONS: readonly string[] = [
  "alidation loss at ",
  "validate step:",
  "Validation: iteration",
  "Validation DataLoader",
  "Validating:",
  "Evaluating ",
  "unning Evaluation",
  "unning evaluation",
];
const STARTS: readonly string[] = [
  "nitializing torch distributed",
  "nitializing distributed: GLOBAL_RANK",
  "building GPT model",
  "building BERT model",
  "building T5 model",
  "before the start of training step",
  "oading checkpoint from",
  "oading the checkpoint",
  "starting workers for entrypoint",
  "tarting worker group",
  "tarting elastic_operator",
  "Setting OMP_NUM_THREADS",
  "DeepSpeed info: version",
  "raining starts",
  "unning training",
];

export const PAUSE_NEEDLES: readonly string[] = [...CHECKPOINTS, ...EVALUATIONS, ...STARTS];

const ANY = new Needles(PAUSE_NEEDLES);

/** CHECKPOINT, EVALUATION, START; 0 for other lines. */
export function pauseOf(body: string): number {
  if (!ANY.in(body)) return 0;
  const has = (needle: string): boolean => body.includes(needle);
  if (CHECKPOINTS.some(has)) return CHECKPOINT;
  if (EVALUATIONS.some(has)) return EVALUATION;
  return START;
}

/** The last lines in which a writer reported each. */
export class Pauses {
  #checkpoint = 0;
  #evaluation = 0;
  #start = 0;

  add(bits: number, line: number): void {
    if (bits & CHECKPOINT) this.#checkpoint = line;
    if (bits & EVALUATION) this.#evaluation = line;
    if (bits & START) this.#start = line;
  }

  since(line: number): number {
    return (
      (this.#checkpoint > line ? CHECKPOINT : 0) |
      (this.#evaluation > line ? EVALUATION : 0) |
      (this.#start > line ? START : 0)
    );
  }
}
