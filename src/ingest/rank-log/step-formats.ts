/**
 * Lines of frameworks that tell an iteration and how long it took in ways of their own, each with where it is written:
 *   tqdm          tqdm/std.py, format_meter(): "  4%|▍     | 20/500 [00:10<04:00,  2.00it/s]" (Transformers' Trainer, Lightning
 *                 "Epoch 0:  45%|…"); its rate is smoothed over the last iterations, so that the time since the start is taken
 *   rich          lightning/pytorch/callbacks/progress/rich_progress.py: "━━━━ 45/203 0:00:01 • 0:00:10 8.5it/s"
 *   modded-nanoGPT train_gpt.py: "step:18/1480 train_time:1141ms step_avg:142.57ms", the time since the start
 *   LLaMA-Factory src/llamafactory/train/callbacks.py, LogCallback: {"current_steps": 10, … "elapsed_time": "0:00:31"}
 *   torchvision   references/ and pytorch/examples imagenet: "Epoch: [0][ 14/42]\tTime  0.076 ( 0.174)"
 *   mmcv, mmengine runner/hooks/logger: "Epoch [1][50/1000] lr: …, time: 0.345", "Iter(train) [ 50/4000] … time: 0.3"
 *   fairseq       logging/progress_bar.py: {"epoch": 1, … "ups": "2.5", … "num_updates": "100"}
 *   OLMo          olmo/train.py: "[step=10/739328]"; Caffe  solver.cpp: "Iteration 20, loss = 6.4"
 *   MXNet, GluonCV  callback.py, Speedometer: "Epoch[0] Batch [380-400]\tSpeed: 11272.5 samples/sec", "[Epoch 2][Batch 50], Speed: …"
 *   Keras         utils/generic_utils.py, Progbar: " 12/100 [==>...] - ETA: 5s - 123ms/step", Keras 3 "12/100 ━━━━ 5s 50ms/step";
 *   PaddlePaddle  hapi/progressbar.py: "step  20/614 - loss: 0.19 - 1.2s/step": both are means since the epoch began
 *   and what loops of people's own print: "global_step=19 … step_time_ms=53.1", {'step': 42, 'step_time': 0.17}
 */
interface StepFormat {
  /** What is taken as the time, for people. */
  readonly time: string;
  /** One of these is in every such line. */
  readonly needles: readonly string[];
  /**
   * Groups: epoch, n, of; ms or s an iteration, iterations (rate) or samples a second; totalMs, totalS, hms: since the start,
   * meanMs, meanS: the mean since the epoch began.
   */
  readonly pattern: RegExp;
}

const NUMBER = String.raw`\d{1,12}(?:\.\d{1,9})?`;

/** Needles have six characters at least. */
function afterDigits(...ends: readonly string[]): string[] {
  return ends.flatMap((end) => Array.from({ length: 10 }, (_, digit) => `${digit}${end}`));
}

const FORMATS: readonly StepFormat[] = [
  {
    time: 'the time since the start in front of "<"',
    needles: afterDigits("it/s]", "it/s,", "s/it]", "s/it,"),
    pattern:
      /^\s{0,4}(?:(?:Epoch {1,2}(?<epoch>\d{1,9})|[Tt]rain(?:ing)?|[Ss]teps?|[Ii]ter(?:ation)?s?)[^%|]{0,40} {1,4})?\d{1,3}%\|[^|]{0,300}\| {0,3}(?<n>\d{1,12})\/(?<of>\d{1,12}) \[(?<hms>[\d:]{4,12})<[^,\]]{1,24}, {0,6}[\d.?]{1,12}(?:it\/s|s\/it)/,
  },
  {
    time: 'the time since the start in front of "•"',
    needles: afterDigits("it/s "),
    pattern:
      /(?:Epoch (?<epoch>\d{1,9})\/\S{1,12} {1,4})?[━╸╺ ]{6,300} {0,4}(?<n>\d{1,12})\/(?<of>\d{1,12}) (?<hms>[\d:]{5,12}) • [\d:-]{5,12} [\d.]{1,12}it\/s/,
  },
  {
    time: '"train_time:", since the start',
    needles: ["train_time:"],
    pattern: new RegExp(
      String.raw`\bstep:(?<n>\d{1,12})\/\d{1,12} (?!val_loss)[^\n]{0,120}?\btrain_time:(?:(?<totalMs>${NUMBER})ms|(?<totalS>${NUMBER})s)\b`,
    ),
  },
  {
    time: '"elapsed_time", since the start',
    needles: ['"current_steps":'],
    pattern:
      /"current_steps": ?(?<n>\d{1,12}),.{0,600}"elapsed_time": ?"(?<hms>(?:\d{1,4} days?, )?\d{1,4}:\d\d:\d\d)"/,
  },
  {
    time: '"Time", the number and not the mean in brackets',
    needles: ["\tTime "],
    pattern: new RegExp(
      String.raw`\b(?:Epoch:?|TRAIN) ?\[(?<epoch>\d{1,9})\](?: - Iter:)? ?\[ {0,8}(?<n>\d{1,12})(?:\/(?<of>\d{1,12}))?\].{0,40}?\bTime {1,4}(?<s>${NUMBER})`,
    ),
  },
  {
    time: '"time:", seconds',
    needles: [" time: "],
    pattern: new RegExp(
      String.raw`\b(?:Epoch(?:\(train\)|:)? {0,2}\[(?<epoch>\d{1,9})\] {0,2}|Iter(?:\(train\))? ?)\[ {0,8}(?<n>\d{1,12})\/(?<of>\d{1,12})\].{0,300}?\btime: (?<s>${NUMBER})`,
    ),
  },
  {
    time: '"ups", updates a second',
    needles: ['"num_updates":'],
    pattern: new RegExp(
      String.raw`^(?=.{0,2000}"ups": ?"?(?<rate>${NUMBER}))(?=.{0,2000}"num_updates": ?"?(?<n>\d{1,12}))`,
    ),
  },
  {
    time: "the step's time",
    needles: ["step_time", "iter_time", "iteration_time", "time_per_step", "sec_per_step"],
    pattern: new RegExp(
      String.raw`^(?=.{0,2000}?["']?\b(?:global_step|step|iteration|iter)["']?\s?[:=]\s{0,4}["']?(?<n>\d{1,12}))(?=.{0,2000}?["']?\b(?:(?:step|iter|iteration)_time|time_per_step|sec_per_step)(?:_ms["']?\s?[:=]\s{0,4}["']?(?<ms>${NUMBER})|(?:_s|_sec|_seconds)?["']?\s?[:=]\s{0,4}["']?(?<s>${NUMBER})(?!\d| ?ms)))`,
    ),
  },
  {
    time: "samples a second",
    needles: ["samples/sec", "samples / sec", "samples/s "],
    pattern: new RegExp(
      String.raw`\b(?:Epoch ?\[?(?<epoch>\d{1,9})[\] ,]{1,3}\[?Batch ?\[?(?:\d{1,12}-)?|[Ii]ter(?:ation)?:? {0,12})(?<n>\d{1,12})\b.{0,200}?(?:Speed: {0,4}(?<samples>${NUMBER}) samples\/s|samples ?\/ ?sec: {0,4}(?<samples2>${NUMBER}))`,
    ),
  },
  {
    time: "the mean of a step since the epoch began",
    needles: afterDigits("ms/step", "s/step", "us/step"),
    pattern: new RegExp(
      String.raw`(?:^|[\s\r\x08])(?<n>\d{1,9})\/(?<of>\d{1,9}) (?:\[[=>.]{4,80}\]|[━╸╺ ]{4,80}|- ).{0,4000}?(?:(?<meanMs>${NUMBER}) ?ms|(?<meanS>${NUMBER}) ?s)\/step`,
    ),
  },
  {
    time: "the iteration's time",
    needles: [" time ", " time:", " time="],
    pattern: new RegExp(
      String.raw`\b(?:ITER|[Ii]ter)(?:ATION|ation)?[ :=#]{1,4}(?<n>\d{1,12})\b(?![^\n]{0,400}\b(?:val|test|eval)).{0,400}? time[ :=]{1,3}(?:(?<ms>${NUMBER}) ?ms|(?<s>${NUMBER}) ?s(?:ec|econds)?\b)`,
    ),
  },
  { time: "none", needles: ["[step="], pattern: /\[step=(?<n>\d{1,12})\/\d{1,12}[,\]]/ },
  {
    time: "none",
    needles: ["Iteration "],
    pattern: /\bIteration (?<n>\d{1,12})(?: \([^)]{1,60}\))?, loss = /,
  },
];

/** Every line that one of the patterns accepts has one of these. */
export const STEP_NEEDLES: readonly string[] = FORMATS.flatMap(({ needles }) => needles);

export interface Step {
  /** What was taken as the time, for people. */
  readonly time: string;
  readonly iteration: number;
  /** Iterations of the epoch, or of the training, where the line says; else NaN. */
  readonly of: number;
  /** Milliseconds an iteration; NaN where the line does not say. */
  readonly ms: number;
  readonly epoch: number;
  /** Samples a second; NaN where the line does not say. */
  readonly rate: number;
  /** Milliseconds since the start, or since the epoch began, and whether they are right to a second only. */
  readonly elapsedMs: number;
  readonly isCoarse: boolean;
}

/** null where the line reports no iteration in one of these ways. */
export function stepOf(body: string): Step | null {
  for (const { time, needles, pattern } of FORMATS) {
    if (!needles.some((needle) => body.includes(needle))) continue;
    const groups = pattern.exec(body)?.groups;
    if (groups) return { time, ...stepFrom(groups) };
  }
  return null;
}

function stepFrom(groups: Readonly<Record<string, string | undefined>>): Omit<Step, "time"> {
  const number = (name: string): number => Number(groups[name] ?? NaN);
  const of = number("of");
  const epoch = number("epoch");
  const seconds = groups["s"] === undefined ? 1 / number("rate") : number("s");
  const ms = groups["ms"] === undefined ? 1000 * seconds : number("ms");
  const isCoarse = groups["hms"] !== undefined;
  const meanMs = groups["meanMs"] === undefined ? 1000 * number("meanS") : number("meanMs");
  const elapsedMs = isCoarse
    ? msOf(groups["hms"]!)
    : meanMs > 0
      ? meanMs * number("n")
      : groups["totalS"] === undefined
        ? number("totalMs")
        : 1000 * number("totalS");
  return {
    iteration: number("n"),
    of,
    epoch,
    rate: Number(groups["samples"] ?? groups["samples2"] ?? NaN),
    ms: ms > 0 && Number.isFinite(ms) ? ms : NaN,
    elapsedMs,
    isCoarse,
  };
}

/** "1 day, 0:00:31", "00:31" */
function msOf(text: string): number {
  const [, days, hours, minutes, seconds] =
    /^(?:(\d+) days?, )?(?:(\d+):)?(\d+):(\d\d)$/.exec(text) ?? [];
  const wholeHours = Number(days ?? 0) * 24 + Number(hours ?? 0);
  return 1000 * ((wholeHours * 60 + Number(minutes)) * 60 + Number(seconds));
}
