/**
 * The number of the iteration that a line reports as finished. Formats: Megatron-LM
 * (megatron/training/training.py), NeMo (progress_printer.py), DeepSpeed (engine.py, pipe/engine.py), torchtitan
 * (components/metrics.py), Hugging Face and tqdm-less loops of the same shape.
 */
const FORMATS: readonly { readonly needle: string; readonly pattern: RegExp }[] = [
  // " iteration      812/    1000 | consumed samples: …", NeMo "iteration 9/99 | …", "iteration: 2500/500000"
  { needle: "iteration", pattern: /\biteration:?\s{0,12}(\d{1,12})\s?\/\s{0,12}\d{1,12}\s?[|%]?/ },
  // torchtitan "step: 12  loss: 1.0", DeepSpeed pipeline "steps: 10 loss: 1.0 iter time"
  { needle: "step", pattern: /\bsteps?: {1,12}(\d{1,12}) {1,4}loss:/ },
  // DeepSpeed "[Rank 0] step=10, skipped=0", "global_step=10, RunningAvgSamplesPerSec"
  { needle: "step=", pattern: /\bstep=(\d{1,12}), (?:skipped|Running)/ },
  {
    needle: "step",
    pattern: /\b[Ss]tep:? {0,12}(\d{1,12})\s?(?:\/\s?\d{1,12})?\s?[|,: ].{0,200}\bloss[ :=]/,
  },
  { needle: "iter", pattern: /\biter:? {1,12}(\d{1,12}):? {1,4}(?:total_)?loss[ :=]/ },
];

/** Every line that one of the patterns accepts has one of these. */
export const ITERATION_NEEDLES: readonly string[] = [
  "iteration",
  " loss:",
  " loss ",
  " loss=",
  "total_loss",
  "skipped=",
  "global_step=",
];

/** -1 where the line reports none. */
export function iterationOf(line: string): number {
  for (const { needle, pattern } of FORMATS) {
    if (!line.includes(needle)) continue;
    const m = pattern.exec(line);
    if (m) return Number(m[1]);
  }
  return -1;
}

const FINISHED =
  /\btraining (?:is |has )?(?:finished|complete|completed|done|ended)\b|`Trainer\.fit` stopped|\bfinished training\b|'train_runtime':|\bexiting program (?:after \d|at iteration \d)/i;

export const FINISHED_NEEDLES: readonly string[] = [
  "raining finished",
  "raining complete",
  "raining done",
  "raining ended",
  "raining is ",
  "raining has ",
  "inished training",
  "`Trainer.fit` stopped",
  "'train_runtime':",
  "xiting program ",
];

/** Whether the line says that training came to its end in order. */
export function saysFinished(line: string): boolean {
  return FINISHED_NEEDLES.some((needle) => line.includes(needle)) && FINISHED.test(line);
}
