/**
 * What Megatron prints of its progress (megatron/training/training.py, training_log and
 * evaluate_and_print_results): one line an iteration on the last rank, with --log-interval 1 and
 * --log-throughput; validation every so often; checkpoints on rank 0.
 */
import type { Simulation } from "../../cluster/times.ts";
import { STREAM, uniform } from "../../cluster/noise.ts";
import type { ClusterSpec } from "../../cluster/spec.ts";

const WARM_UP_ITERATIONS = 100;
const PEAK_RATE = 3e-4;

/** `isNan`: the loss is not a number, which Megatron prints and counts before it gives up. */
export function iterationLine(
  { spec }: Simulation,
  iteration: number,
  elapsedMs: number,
  isNan = false,
): string {
  const batch = spec.microBatches * spec.dp;
  const n = spec.noise;
  const u = (k: number): number => uniform(spec.seed ^ STREAM.logs, iteration, k, 1) - 0.5;
  const norm = (0.6 + 4 * Math.exp(-iteration / 60)) * (1 + 0.3 * n * u(1));
  const rate = PEAK_RATE * Math.min(1, iteration / WARM_UP_ITERATIONS);
  return [
    ` iteration ${pad(iteration, 8)}/${pad(spec.iterations, 8)}`,
    `consumed samples: ${pad(iteration * batch, 12)}`,
    `elapsed time per iteration (ms): ${elapsedMs.toFixed(1)}`,
    `throughput per GPU (TFLOP/s/GPU): ${teraflops(spec, elapsedMs).toFixed(1)}`,
    `learning rate: ${scientific(rate)}`,
    `global batch size: ${pad(batch, 5)}`,
    `lm loss: ${isNan ? "NAN" : scientific(lossAt(iteration) * (1 + 0.01 * n * u(2)))}`,
    `loss scale: 1.0`,
    `grad norm: ${isNan ? "nan" : norm.toFixed(3)}`,
    `number of skipped iterations: ${pad(0, 3)}`,
    `number of nan iterations: ${pad(isNan ? 1 : 0, 3)}`,
    "",
  ]
    .join(" | ")
    .trimEnd();
}

export function validationLines(spec: ClusterSpec, iteration: number): string[] {
  const loss =
    lossAt(iteration) *
    (1.01 + 0.01 * spec.noise * (uniform(spec.seed ^ STREAM.logs, iteration, 3, 1) - 0.5));
  const line = ` validation loss at iteration ${iteration} | lm loss value: ${scientific(loss)} | lm loss PPL: ${scientific(Math.exp(loss))} | `;
  const rule = "-".repeat(line.length);
  return [rule, line, rule];
}

/** From the entropy of a vocabulary of 32,000 down to what a model of a few billion parameters reaches. */
function lossAt(iteration: number): number {
  return 2.1 + 8.3 / (1 + iteration / 40) ** 0.8;
}

/** Model operations of one iteration (Narayanan et al., SC '21) over all GPUs and the time. */
function teraflops(spec: ClusterSpec, elapsedMs: number): number {
  const { hidden, sequence, layersPerStage, pp, microBatches, dp, gpus } = spec;
  const perToken = 3 * (24 * hidden * hidden + 4 * hidden * sequence) * layersPerStage * pp;
  return (perToken * sequence * microBatches * dp) / gpus / elapsedMs / 1e9;
}

function pad(value: number, width: number): string {
  return String(value).padStart(width, " ");
}

/** Python's {:.6E}: at least two digits in the exponent. */
function scientific(value: number): string {
  const [mantissa, exponent] = value.toExponential(6).split("e") as [string, string];
  return `${mantissa}E${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}
