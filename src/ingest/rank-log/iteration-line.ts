/**
 * What an iteration line says beside its number. Formats, each with where it is written:
 *   Megatron-LM   megatron/training/training.py, training_log(): the mean over the log interval
 *   NeMo          nemo/lightning/pytorch/callbacks/progress_printer.py: likewise; "iteration" counts within an epoch,
 *                 "global_step" over all. NeMo 1 prints the same after a progress bar, with "=".
 *   DeepSpeed     runtime/pipe/engine.py ("iter time (s)", a mean), utils/timer.py, ThroughputTimer: the samples a
 *                 second of the last step; runtime/engine.py ("step=10, skipped=0"): the number only
 *   torchtitan    components/metrics.py, MetricsProcessor.log(): tokens a second and device since the last line
 *   nanoGPT, llm.c and their like: "iter 10: loss 2.1, time 12.31ms", "| dt: 12.31ms |", "| 12.31 ms |", "2932 ms/iter";
 *   detectron2: "iter: 399  total_loss: 0.47 … time: 0.6771", seconds
 * and those of step-formats.ts.
 */
import { numberAfter } from "./number-after.ts";
import { STEP_NEEDLES, stepOf, type Step } from "./step-formats.ts";

/** Which of a job's writers printed the line; several of them report the same step. */
const MEGATRON = 1;
const NEMO = 2;
const PIPELINE = 4;
const DEEPSPEED_STEP = 8;
const DEEPSPEED_RATE = 16;
export const TORCHTITAN = 32;
const PLAIN = 64;
const PATTERN = 128;
const STEP = 256;

const ELAPSED = "elapsed time per iteration (";
const STEP_TIMING = "train_step_timing in s";
const SAMPLES_PER_SEC = ", RunningAvgSamplesPerSec=";

/** Lines without a number that `iterationOf` would see. */
export const TIMING_NEEDLES: readonly string[] = [STEP_TIMING, SAMPLES_PER_SEC, ...STEP_NEEDLES];

const VALIDATION_OF =
  /\bTesting: iteration|\b[Vv]alidat(?:e|ion|ing)\b[^|]{0,40}?\b(?:step|iteration)\b/;
const VALIDATION_LOSS = /\bval(?:idation)?[ _]loss\b/;
const PLAIN_MS =
  /(?:\bdt|\btime|\|)[:=]? {0,6}(\d{1,9}(?:\.\d{1,9})?) ?ms\b|\b(\d{1,9}(?:\.\d{1,9})?) ?ms\/(?:iter|step|it)\b/;
const PLAIN_SECONDS = /[ ,]time: (\d{1,6}\.\d{1,9})(?=[ ,]|$)/;
/** Bars of less are of something else: shards that are loaded, a sanity check. */
const LEAST_OF_BAR = 10;
/** "epoch=0/micro_step=80/global_step=20, Running…"; up to DeepSpeed 0.7 "0/20, Running…". */
const RATED_STEP = /(?:global_step=|\d\/)(\d{1,12}), RunningAvgSamplesPerSec=/;

/** Iterations that are counted anew in each epoch, counted on. */
class Epochs {
  #epoch = NaN;
  #last = 0;
  #of = NaN;
  #before = 0;

  countedOn({ iteration, of, epoch }: Pick<Step, "iteration" | "of" | "epoch">): number {
    if (epoch >= 0) {
      // Whether the first epoch is 0 or 1 changes no difference. The last batch of an epoch may be left out of the next.
      const ahead = epoch - this.#epoch;
      if (ahead > 0) this.#before += ahead * (this.#of > 0 ? this.#of : this.#last);
      else if (ahead !== 0) this.#before = of > 0 ? epoch * of : 0;
      this.#epoch = epoch;
    } else if (iteration < this.#last && this.#last === this.#of) this.#before += this.#of;
    this.#last = iteration;
    this.#of = of;
    return this.#before + iteration;
  }
}

/** Reused for every line. NaN and -1 stand for unknown. */
export class IterationLine {
  kind = 0;
  iteration = -1;
  /** Milliseconds an iteration. */
  ms = NaN;
  /** Samples or tokens a second. */
  rate = NaN;
  batch = NaN;
  rank = -1;
  /** Which words the time or the rate stands behind, for people. */
  time = "";
  /** Milliseconds since the start of the training, and whether they are right to a second only. */
  elapsedMs = NaN;
  isCoarse = false;
  /** Whether the line reports an iteration of an evaluation instead. */
  isEvaluation = false;
  /** Iterations of the longest bar so far: a shorter one beside it is an evaluation's, as is any beside lines that tell. */
  #longest = 0;
  #hasLines = false;
  readonly #epochs = new Epochs();

  /** `iteration`: what iterationOf() says. Whether the line reports an iteration of the training. */
  read(body: string, iteration: number): boolean {
    this.#clear(iteration);
    const elapsed = iteration < 0 ? -1 : body.indexOf(ELAPSED);
    if (elapsed >= 0) this.#hasLines = true;
    if (elapsed >= 0) return this.#megatron(body, elapsed + ELAPSED.length);
    const timing = body.indexOf(STEP_TIMING);
    if (timing >= 0) return this.#nemo(body, timing + STEP_TIMING.length);
    if (body.includes("SamplesPerSec=")) return this.#deepSpeedRate(body);
    if (iteration < 0) return this.#step(body);
    this.isEvaluation = VALIDATION_OF.test(body);
    if (this.isEvaluation) return false;
    // A bar's own number is better than what else of the line looks like one.
    if (body.includes("/step") && this.#step(body)) return true;
    this.#clear(iteration);
    const isTold = this.#pipeline(body) || this.#torchtitan(body) || this.#plain(body);
    this.#hasLines ||= isTold && (this.ms > 0 || this.rate > 0);
    return isTold;
  }

  /** By the user's own pattern. */
  readPattern(line: string, pattern: RegExp): boolean {
    this.#clear(-1);
    const groups = pattern.exec(line)?.groups;
    if (!groups) return false;
    this.kind = PATTERN;
    this.time = "your pattern";
    const number = (name: string): number => {
      const text = groups[name];
      return text === undefined ? NaN : Number(text.replaceAll(",", "").trim() || NaN);
    };
    this.iteration = number("iteration");
    this.ms = "s" in groups ? number("s") * 1000 : number("ms");
    this.batch = number("batch");
    const rank = number("rank");
    this.rank = Number.isSafeInteger(rank) ? rank : -1;
    return this.iteration >= 0 && Number.isFinite(this.iteration);
  }

  #clear(iteration: number): void {
    this.kind = 0;
    this.iteration = iteration;
    this.ms = this.rate = this.batch = this.elapsedMs = NaN;
    this.rank = -1;
    this.isEvaluation = false;
  }

  #megatron(body: string, at: number): boolean {
    this.kind = MEGATRON;
    this.time = '"elapsed time per iteration"';
    const inMs = body.startsWith("ms):", at);
    this.ms = numberAfter(body, at + (inMs ? 4 : 3)) * (inMs ? 1 : 1000);
    const batch = body.indexOf("global batch size:", at);
    if (batch >= 0) this.batch = numberAfter(body, batch + 18);
    return true;
  }

  #nemo(body: string, at: number): boolean {
    this.kind = NEMO;
    this.time = '"train_step_timing in s"';
    this.ms = numberAfter(body, at + 1) * 1000;
    const batch = body.indexOf("global_batch_size");
    if (batch >= 0) this.batch = numberAfter(body, batch + 18);
    const step = body.indexOf("global_step");
    if (step >= 0) {
      const overall = numberAfter(body, step + 12);
      if (overall >= 0) this.iteration = overall;
    }
    return this.iteration >= 0;
  }

  #deepSpeedRate(body: string): boolean {
    this.kind = DEEPSPEED_RATE;
    this.time = '"CurrSamplesPerSec="';
    const at = body.indexOf("CurrSamplesPerSec=");
    if (at >= 0) this.rate = numberAfter(body, at + 18);
    if (this.iteration < 0) this.iteration = Number(RATED_STEP.exec(body)?.[1] ?? -1);
    return this.iteration >= 0;
  }

  #pipeline(body: string): boolean {
    const at = body.indexOf("iter time (s):");
    if (at < 0) return false;
    this.kind = PIPELINE;
    this.time = '"iter time (s):"';
    this.ms = numberAfter(body, at + 14) * 1000;
    return true;
  }

  #torchtitan(body: string): boolean {
    const at = body.indexOf(" tps: ");
    if (at < 0) return false;
    this.kind = TORCHTITAN;
    this.time = '"tps:"';
    this.rate = numberAfter(body, at + 6);
    return true;
  }

  #plain(body: string): boolean {
    // nanoGPT: "step 250: train loss 2.0, val loss 2.1"
    this.isEvaluation = VALIDATION_LOSS.test(body);
    if (this.isEvaluation) return false;
    this.kind = body.includes(", skipped=") ? DEEPSPEED_STEP : PLAIN;
    const ms = PLAIN_MS.exec(body);
    const seconds = ms ? null : PLAIN_SECONDS.exec(body);
    this.time = `"${(ms ?? seconds)?.[0].trim() ?? "none"}"`;
    this.ms = ms ? Number(ms[1] ?? ms[2]) : 1000 * Number(seconds?.[1] ?? NaN);
    return true;
  }

  #step(body: string): boolean {
    const step = stepOf(body);
    if (!step) return false;
    const isBar = body.includes("it/s") || body.includes("s/it");
    if (isBar && step.of < LEAST_OF_BAR) return false;
    this.isEvaluation = isBar && (step.of < this.#longest || this.#hasLines);
    if (this.isEvaluation) return false;
    if (isBar) this.#longest = step.of;
    this.kind = STEP;
    this.time = step.time;
    this.iteration = this.#epochs.countedOn(step);
    this.ms = step.ms;
    this.rate = step.rate;
    this.elapsedMs = step.elapsedMs;
    this.isCoarse = step.isCoarse;
    return true;
  }
}
