import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Reading } from "../../model/reading.ts";
import { CHECKPOINT, EVALUATION, START } from "../../model/series.ts";
import type { IterationSeries } from "../../model/series.ts";
import { rankLog } from "../rank-log.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
} from "../../../test/support/ingest/reader-contract.ts";
import { runs } from "../../../test/support/cases.ts";

const read = (text: string, file = "train.log"): Reading => readBytes(rankLog, file, text);

function only(text: string, file?: string): IterationSeries {
  const { series } = read(text, file);
  expect(series).toHaveLength(1);
  return series![0]!;
}

/** "iteration:duration", which reads better than columns. */
const brief = ({ iteration, durationMs }: IterationSeries): string[] =>
  [...iteration].map((n, at) => `${n}:${Number(durationMs[at]!.toFixed(3))}`);

const megatron = (iteration: number, ms: number, time = "", batch = 48): string =>
  ` ${time}iteration ${String(iteration).padStart(8)}/    1200 | consumed samples: ${String(iteration * batch).padStart(12)} | elapsed time per iteration (ms): ${ms.toFixed(1)} | learning rate: 1.000E-04 | global batch size: ${String(batch).padStart(5)} | lm loss: 9.1E+00 | loss scale: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |\n`;

describe("Megatron-LM", () => {
  it("says itself how long iterations take, with and without a time before it", () => {
    const old = only(megatron(1, 88966.1) + megatron(2, 1851) + megatron(3, 1385.3));
    expect(old).toMatchObject({ source: "train.log", file: "train.log", rank: null });
    expect(old.basis).toBe("reported");
    expect(brief(old)).toEqual(["1:88966.1", "2:1851", "3:1385.3"]);
    expect([...old.line]).toEqual([1, 2, 3]);
    expect([...old.batch]).toEqual([48, 48, 48]);
    expect([...old.endMs]).toEqual([NaN, NaN, NaN]);

    const now = only(
      megatron(10, 1200, "[2026-11-15 00:00:12.345678] ") +
        megatron(20, 1300, "[2026-11-15 00:00:25] "),
    );
    expect(brief(now)).toEqual(["10:1200", "20:1300"]);
    expect([...now.endMs]).toEqual([
      Date.UTC(2026, 10, 15, 0, 0, 12, 345),
      Date.UTC(2026, 10, 15, 0, 0, 25),
    ]);
  });

  it("keeps a counter that goes back, and marks what was done in between", () => {
    const series = only(
      "> initializing torch distributed ...\n" +
        megatron(1, 900) +
        " validation loss at iteration 1 | lm loss value: 2.7E+00 | lm loss PPL: 1.5E+01 |\n" +
        "saving checkpoint at iteration       1 to /ckpt in torch_dist format\n" +
        "  successfully saved checkpoint from iteration       1 to /ckpt\n" +
        megatron(2, 500) +
        megatron(3, 500) +
        " loading checkpoint from /ckpt at iteration 1\n" +
        megatron(2, 700) +
        megatron(3, 500),
    );
    expect(brief(series)).toEqual(["1:900", "2:500", "3:500", "2:700", "3:500"]);
    expect([...series.between]).toEqual([START, CHECKPOINT | EVALUATION, 0, START, 0]);
  });

  it("belongs to the rank that wrote it, in a file of one and of many", () => {
    expect(only(megatron(1, 5), "logs/rank3.log")).toMatchObject({
      source: "logs/rank3.log",
      rank: 3,
    });
    const many = read(
      `[rank0]: hello\n[rank7]:${megatron(1, 5)}[rank0]: saving checkpoint at iteration 1\n[rank7]:${megatron(2, 6)}`,
    );
    expect(many.series).toMatchObject([{ source: "train.log, rank 7", rank: 7 }]);
    // Rank 0 reports no iterations, so its checkpoint is the job's.
    expect([...many.series![0]!.between]).toEqual([0, CHECKPOINT]);
  });

  it("keeps writers apart that report the same iterations", () => {
    const { series } = read(
      `[rank0]:${megatron(1, 5)}[rank1]:${megatron(1, 6)}[rank0]:${megatron(2, 7)}[rank0]: saving checkpoint at iteration 2\n[rank1]:${megatron(2, 8)}[rank0]:${megatron(3, 9)}`,
    );
    expect(series?.map((s) => [s.source, ...brief(s)])).toEqual([
      ["train.log, rank 0", "1:5", "2:7", "3:9"],
      ["train.log, rank 1", "1:6", "2:8"],
    ]);
    // A late line of rank 1 is not after rank 0's checkpoint.
    expect(series?.map((s) => [...s.between])).toEqual([
      [0, 0, CHECKPOINT],
      [0, 0],
    ]);
  });
});

describe("NeMo", () => {
  const line = (epoch: number, n: number, step: number, s: number): string =>
    `Training epoch ${epoch}, iteration ${n}/99 | lr: 1e-05 | global_batch_size: 128 | global_step: ${step} | reduced_train_loss: 6.2 | train_step_timing in s: ${s} | consumed_samples: 12544 | val_loss: 2.8\n`;

  it("counts steps over all epochs and tells seconds", () => {
    const series = only(
      line(0, 8, 8, 13.04) +
        "Validation: iteration 1/8\n[NeMo I 2026-02-17 17:58:50 nemo_logging:393] Async checkpoint save for step 9 (/c) finalized successfully.\n" +
        line(1, 0, 9, 12.5),
    );
    expect(series.basis).toBe("reported");
    expect(brief(series)).toEqual(["8:13040", "9:12500"]);
    expect([...series.batch]).toEqual([128, 128]);
    expect([...series.between]).toEqual([0, CHECKPOINT | EVALUATION]);
  });

  it("does not take an iteration of the validation for the last of the training", () => {
    expect(read(`${line(0, 8, 8, 13)}Validation: iteration 1/8\n`).rankLogs?.[0]).toMatchObject({
      lastIteration: 8,
      lastIterationLine: 1,
    });
  });

  it("is read from the progress bar of NeMo 1 as well", () => {
    const bar = (step: number, s: string): string =>
      `Epoch 0: :   0%|          | ${step}/300 [00:55<27:05, v_num=a1, reduced_train_loss=9.1, global_step=${step}.000, consumed_samples=10.0, train_step_timing in s=${s}]`;
    expect(
      brief(only(`2026-11-15 00:00:00 [INFO] x\n${bar(1, "3.10")}\r${bar(2, "3.20")}\n`)),
    ).toEqual(["1:3100", "2:3200"]);
  });
});

describe("DeepSpeed", () => {
  const at = (s: number): string =>
    `[2026-11-15 00:${String(Math.floor(s / 60)).padStart(2, "0")}:${(s % 60).toFixed(3).padStart(6, "0").replace(".", ",")}] [INFO]`;
  const step = (n: number, s: number): string =>
    `${at(s)} [logging.py:96:log_dist] [Rank 0] step=${n}, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]\n`;
  const timer = (n: number, s: number, rate: number): string =>
    `${at(s)} [timer.py:260:stop] epoch=0/micro_step=${n * 4}/global_step=${n}, RunningAvgSamplesPerSec=25.0, CurrSamplesPerSec=${rate}, MemAllocated=4.32GB, MaxMemAllocated=38.49GB\n`;

  it("tells steps by the times of the lines, where it tells nothing else", () => {
    const series = only(step(10, 0) + step(20, 30) + step(30, 50));
    expect(series.basis).toBe("timestamps");
    expect(brief(series)).toEqual(["10:NaN", "20:3000", "30:2000"]);
  });

  it("prefers samples a second, scaled to the times, and makes one point of a step's lines", () => {
    const series = only(
      [10, 20, 30, 40]
        .map((n, i) => step(n, 20 * i) + timer(n, 20 * i + 0.003, i === 3 ? 10 : 20))
        .join(""),
    );
    expect(series.basis).toBe("throughput");
    expect([...series.iteration]).toEqual([10, 20, 30, 40]);
    const [, a, b, c] = series.durationMs;
    expect(c! / b!).toBeCloseTo(2);
    // 60 s of 30 iterations
    expect(10 * (a! + b! + c!)).toBeCloseTo(60_000);
  });

  it("prefers the pipeline engine's own time to all", () => {
    const pipe = (n: number, s: number): string =>
      `steps: ${n} loss: 5.5508 iter time (s): ${s} samples/sec: 456.789\n`;
    const series = only(
      step(10, 0) +
        pipe(10, 0.936) +
        timer(10, 0, 5) +
        step(20, 9) +
        pipe(20, 0.9) +
        timer(20, 9, 5),
    );
    expect(series.basis).toBe("reported");
    expect(brief(series)).toEqual(["10:936", "20:900"]);
  });

  it("reads the older timer and marks the checkpoint", () => {
    const old = (n: number, rate: number): string =>
      `${at(n)} [timer.py:198:stop] 0/${n}, RunningAvgSamplesPerSec=232.7, CurrSamplesPerSec=${rate}, MemAllocated=0.36GB\n`;
    const series = only(
      `${old(1, 200)}${old(2, 200)}${at(2)} [logging.py:68:log_dist] [Rank 0] Saving model checkpoint: a/b.pt\n${old(3, 100)}`,
    );
    expect(brief(series)).toEqual(["1:1000", "2:1000", "3:2000"]);
    expect([...series.between]).toEqual([0, 0, CHECKPOINT]);
  });
});

describe("torchtitan", () => {
  const line = (time: string, step: number, tps: string): string =>
    `\u001b[36m[titan]\u001b[0m ${time}root - INFO - \u001b[31mstep: ${String(step).padStart(2)}  \u001b[32mloss:  8.1234  \u001b[38;2;180;60;0mgrad_norm:  1.2  memory:  9.9GiB(12.1%)  \u001b[34mtps: ${tps}  \u001b[36mtflops: 40.1  \u001b[35mmfu: 12.1%\u001b[39m\n`;

  it("tells by its times where these are exact", () => {
    const series = only(
      line("2026-11-15 00:00:00,500 - ", 1, "100") +
        line("2026-11-15 00:00:09,500 - ", 10, "7,234") +
        "[titan] 2026-11-15 00:00:09,600 - root - INFO - Saving the checkpoint (or staging if async is enabled).\n" +
        "[titan] 2026-11-15 00:00:10,600 - root - INFO - validate step: 10  loss:  7.1  memory:  9.9GiB(12.1%)  tps: 9,999\n" +
        line("2026-11-15 00:00:29,500 - ", 20, "3,617"),
    );
    expect(series.basis).toBe("timestamps");
    expect(brief(series)).toEqual(["1:NaN", "10:1000", "20:2000"]);
    expect([...series.between]).toEqual([0, 0, CHECKPOINT | EVALUATION]);
  });

  it("tells by tokens a second where its times are of whole seconds", () => {
    const series = only(
      [1, 2, 3, 4, 5]
        .map((n) =>
          line(`2026-11-15 00:00:0${Math.floor(n * 1.2)} - `, n, n === 4 ? "1,000" : "2,000"),
        )
        .join(""),
    );
    expect(series.basis).toBe("throughput");
    const [, b, c, d, e] = series.durationMs;
    expect(d! / c!).toBeCloseTo(2);
    expect(b! + c! + d! + e!).toBeCloseTo(5000);
  });

  it("gives milliseconds for 1,000 tokens where there are no times", () => {
    const series = only(line("", 1, "1,000") + line("", 2, "4,000"));
    expect(series.basis).toBe("throughput");
    expect(brief(series)).toEqual(["1:1000", "2:250"]);
  });
});

describe("plain loops", () => {
  it("tell by the times of their lines", () => {
    const series = only(
      "2026-11-15 00:00:01.000 [INFO] step 1 | lr 0.1 | loss 2.0\n" +
        "2026-11-15 00:00:01.250 [INFO] step 2 | lr 0.1 | loss 2.0\n" +
        "2026-11-15 00:00:02.250 [INFO] step 4 | lr 0.1 | loss 2.0\n" +
        "2026-11-15 00:00:09.000 [INFO] step 3 | lr 0.1 | loss 2.0\n",
    );
    expect(series.basis).toBe("timestamps");
    expect(brief(series)).toEqual(["1:NaN", "2:250", "4:500", "3:NaN"]);
  });

  it("are believed where they say how long they took", () => {
    const gpt = only(
      "iter 1: loss 2.1, time 12.31ms, mfu 3.1%\nstep 2: train loss 2.0, val loss 2.1\niter 2: loss 2.0, time 13.00ms, mfu 3.1%\n",
    );
    expect(brief(gpt)).toEqual(["1:12.31", "2:13"]);
    expect([...gpt.between]).toEqual([0, EVALUATION]);
    expect(
      brief(
        only("step    1/100 | loss 1.0 (+nanz)| norm 1.0 | lr 1e-3 | 300.15 ms | 50.1% bf16 MFU\n"),
      ),
    ).toEqual(["1:300.15"]);
  });

  it("are joined until times of whole seconds tell something", () => {
    const text = Array.from({ length: 101 }, (_, n) => {
      const s = Math.floor(n * 0.6);
      return `2026-11-15 00:${String(Math.floor(s / 60)).padStart(2, "0")}:${String(s % 60).padStart(2, "0")} step ${n} | loss 2.0\n`;
    }).join("");
    const series = only(text);
    expect(series.iteration.length).toBeLessThan(10);
    for (const ms of series.durationMs.slice(1)) expect(Math.abs(ms - 600)).toBeLessThan(70);
    expect(series.iteration.at(-1)).toBe(100);
  });

  it("get the year of another line, and go without where there is none", () => {
    const glog = (s: number, n: number): string =>
      `[I1115 00:00:0${s}.500000 loop.cpp:1] step ${n} | loss 2\n`;
    const dated = only(`${glog(1, 1)}${glog(3, 2)}2026-11-15 00:00:04 [INFO] x\n`);
    expect(brief(dated)).toEqual(["1:NaN", "2:2000"]);
    expect(dated.endMs[1]).toBe(Date.UTC(2026, 10, 15, 0, 0, 3, 500));
    const undated = only(glog(1, 1) + glog(3, 2));
    expect(brief(undated)).toEqual(["1:NaN", "2:2000"]);
    expect([...undated.endMs]).toEqual([NaN, NaN]);
  });

  it("make no series where nothing tells how long they took", () => {
    expect(read("step 1 | loss 2.0\nstep 2 | loss 2.0\n").series).toEqual([]);
  });
});

const HOSTILE_WORDS = [
  " iteration 5/ 9 |",
  "elapsed time per iteration (ms):",
  " nan",
  "1e999",
  "-5",
  ",",
  " tps: ",
  "step: 3  loss: 1",
  "global_step=7, RunningAvgSamplesPerSec=",
  "train_step_timing in s",
  "=",
  "CurrSamplesPerSec=",
  "2026-11-15 00:00:00",
  "saving checkpoint",
  "[rank3]:",
  "time 3 ms",
  "\n",
  "global batch size:",
];

describe("the contract", () => {
  const text =
    "Setting OMP_NUM_THREADS environment variable for each process to be 1\n" +
    megatron(1, 900, "[2026-11-15 00:00:12] ") +
    "[rank1]:" +
    megatron(1, 900) +
    "saving checkpoint at iteration 1\n" +
    megatron(2, 910, "[2026-11-15 00:00:13] ");

  it("holds at every chunk size and wherever the file is cut", () => {
    const [first, ...others] = readAtAllSizes(rankLog, "train.log", text);
    for (const other of others) expect(other).toEqual(first);
    for (const { series } of readCutEverywhere(rankLog, "train.log", text, runs(5, 1))) {
      for (const s of series ?? []) expect(s.iteration.length).toBeLessThanOrEqual(2);
    }
  });

  it("holds for lines of any words", () => {
    const word = fc.constantFrom(...HOSTILE_WORDS);
    fc.assert(
      fc.property(fc.array(word, { maxLength: 60 }), (words) => {
        for (const s of read(words.join("")).series ?? []) {
          for (const ms of s.durationMs) expect(Number.isNaN(ms) || Math.abs(ms) >= 0).toBe(true);
        }
      }),
      { numRuns: 500, seed: 4 },
    );
  });

  it("bounds what one file may hold", () => {
    // As short as the format allows: a million of them.
    const line = (n: number): string =>
      ` iteration ${n}/ 9 | elapsed time per iteration (ms): 5.0 |\n`;
    const sink = rankLog.open("train.log");
    const block = Buffer.from(Array.from({ length: 1000 }, (_, i) => line(i)).join(""));
    for (let i = 0; i < 1001; i++) sink.push(block);
    const reading = sink.end();
    expect(reading.series?.[0]?.iteration.length).toBe(1_000_000);
    expect(reading.defects).toEqual([
      { file: "train.log", what: "1000 iterations after the first 1000000 were left out" },
    ]);
  });
});

describe("what other frameworks print", () => {
  const steps = (line: (n: number) => string, to = 3): string =>
    Array.from({ length: to }, (_, k) => `${line(k + 1)}\n`).join("");

  it.each<[string, (n: number) => string, string[]]>([
    [
      "modded-nanoGPT: the time since the start",
      (n) => `step:${n + 17}/1480 train_time:${1000 + 142 * n}ms step_avg:142.57ms`,
      ["18:NaN", "19:142", "20:142"],
    ],
    [
      "torchvision: the time of the batch, not its mean",
      (n) => `Epoch: [2][ ${n}/40]\tTime  0.0${n}6 ( 0.174)\tData  0.001 ( 0.090)\tLoss 6.9e+00`,
      ["81:16", "82:26", "83:36"],
    ],
    [
      "mmcv",
      (n) =>
        `2026-05-05 09:11:1${n},737 - mmdet - INFO - Epoch [1][${n}/7330]\tlr: 2.000e-02, eta: 1 day, 4:03:48, time: 1.000, data_time: 0.128, loss: 0.9`,
      ["7331:1000", "7332:1000", "7333:1000"],
    ],
    [
      "mmengine by iterations",
      (n) => `Iter(train) [  ${n * 50}/40000]  lr: 1e-2  eta: 3:00:00  time: 0.34  data_time: 0.01`,
      ["50:340", "100:340", "150:340"],
    ],
    [
      "detectron2: seconds",
      (n) =>
        `eta: 3:23:58  iter: ${n}  total_loss: 0.4671  loss_cls: 0.2  time: 0.6771  data_time: 0.06`,
      ["1:677.1", "2:677.1", "3:677.1"],
    ],
    [
      "fairseq: updates a second",
      (n) =>
        `2026-01-01 00:00:00 | INFO | train_inner | {"epoch": 1, "update": 0.1, "loss": "7.1", "wps": "900", "ups": "2.5", "wpb": "360", "num_updates": "${n * 100}"}`,
      ["100:400", "200:400", "300:400"],
    ],
    [
      "a loop of somebody's own, in a dictionary",
      (n) => `{'loss': 2.5, 'step': ${n}, 'step_time': 0.17}`,
      ["1:170", "2:170", "3:170"],
    ],
    [
      "the same, in milliseconds",
      (n) => `[INFO] global_step=${n} lr=1e-4 step_time_ms=53.1`,
      ["1:53.1", "2:53.1", "3:53.1"],
    ],
    [
      "milliseconds behind the loss",
      (n) => `[train] iter ${n}: loss 3.69 2932 ms/iter`,
      ["1:2932", "2:2932", "3:2932"],
    ],
  ])("%s", (_, line, expected) => {
    expect(brief(only(steps(line)))).toEqual(expected);
  });

  const bar = (n: number, of: number, elapsed: number, what = ""): string => {
    const clock = `${String(Math.floor(elapsed / 60)).padStart(2, "0")}:${String(elapsed % 60).padStart(2, "0")}`;
    return `${what}${String(Math.floor((100 * n) / of)).padStart(3)}%|███   | ${n}/${of} [${clock}<01:00,  1.02it/s]`;
  };

  it("tqdm: by the time since the start, joined to stretches that whole seconds can tell", () => {
    const series = only(steps((n) => bar(n, 500, 2 * n), 40));
    expect(series.basis).toBe("timestamps");
    expect(new Set([...series.durationMs].filter((ms) => !Number.isNaN(ms)))).toEqual(
      new Set([2000]),
    );
    expect(series.iteration.at(-1)).toBe(40);
    expect([...series.endMs].every(Number.isNaN)).toBe(true);
  });

  it("tqdm: bars of loading, and the shorter one of an evaluation, are no iterations", () => {
    const { series } = read(
      steps((n) => bar(n, 254, n, "Loading weights: "), 30) + steps((n) => bar(n, 4, n), 4),
    );
    expect(series ?? []).toEqual([]);
    const withEvaluation = only(
      steps((n) => bar(n, 500, 2 * n), 20) +
        steps((n) => bar(n, 50, n), 50) +
        steps((n) => bar(n + 20, 500, 100 + 2 * n), 20),
    );
    expect(Math.max(...withEvaluation.iteration)).toBe(40);
    expect([...withEvaluation.between].filter((bits) => bits === EVALUATION)).toHaveLength(1);
  });

  it("DeepSpeed: times that are steadier than the rate of one of several passes are believed", () => {
    const at = (n: number): string =>
      new Date(Date.UTC(2026, 0, 1, 0, 0, 0, 4100 * n)).toISOString();
    const line = (n: number): string =>
      `[${at(n).slice(0, 19).replace("T", " ")},${at(n).slice(20, 23)}] [INFO] [timer.py:197:stop] epoch=0/micro_step=${n}/global_step=${n}, RunningAvgSamplesPerSec=30.1, CurrSamplesPerSec=${n > 10 ? 20 + n : 60 - n}, MemAllocated=1GB`;
    const series = only(steps(line, 20));
    expect(series.basis).toBe("timestamps");
    expect([...series.durationMs].slice(1).every((ms) => ms === 4100)).toBe(true);
  });

  it("what a line times is not the iteration where the lines come much less often", () => {
    const at = (n: number): string =>
      `2026-01-01 00:0${Math.floor((n * 2) / 60)}:${String((n * 2) % 60).padStart(2, "0")}.500`;
    const series = only(steps((n) => `${at(n)} iter ${n}: loss 2.1, time 400.00ms`, 20));
    expect(series.basis).toBe("timestamps");
    expect(series.durationMs[5]).toBe(2000);
  });

  it("Keras and PaddlePaddle: the mean since the epoch began is taken apart, and epochs count on", () => {
    const keras = (n: number): string =>
      `${String(n).padStart(3)}/100 [=====>........................] - ETA: 5s - loss: 0.5 - ${(n <= 50 ? 200 : 10000 / n + 400 - 20000 / n).toFixed(3)}ms/step`;
    const series = only(steps(keras, 100) + steps(keras, 100));
    expect(series.iteration.at(-1)).toBe(200);
    expect(series.durationMs[40]).toBeCloseTo(200, 0);
    expect(series.durationMs[80]).toBeCloseTo(400, 0);
    const three = only(steps((n) => `${n}/80 ━━━━━━━━━━━━━━━━━━━━ 5s 50ms/step - loss: 0.5`, 80));
    expect(three.durationMs[30]).toBeCloseTo(50);
    const paddle = only(
      steps(
        (n) => `step ${String(10 * n).padStart(3)}/200 - loss: 0.19 - acc: 0.5 - 1.5s/step`,
        20,
      ),
    );
    expect([paddle.iteration.at(-1), paddle.durationMs[5]]).toEqual([200, 1500]);
  });

  it("MXNet, GluonCV, and what says how many samples a second", () => {
    const at = (n: number): string => `2026-01-01 00:0${Math.floor(n / 10)}:${n % 10}0,000`;
    const mxnet = (epoch: number, n: number): string =>
      `${at(n % 30)} Node[0] Epoch[${epoch}] Batch [${20 * n - 20}-${20 * n}]\tSpeed: 1000.5 samples/sec\taccuracy=0.02`;
    const series = only(steps((n) => mxnet(0, n), 20) + steps((n) => mxnet(1, n), 20));
    expect([series.iteration[0], series.iteration.at(-1)]).toEqual([20, 800]);
    const gluon = only(
      steps((n) => `INFO: [Epoch ${n}][Batch 50], Speed: 6.9 samples/sec, CrossEntropy=1e-2`, 20),
    );
    expect(gluon.iteration.at(-1)).toBe(1000);
    const plain = only(
      steps(
        (n) =>
          `Iteration: ${20 * n}, Loss function: 1.3, avg. samples / sec: ${n > 10 ? 200 : 400}.5`,
        20,
      ),
    );
    expect(plain.isRelative).toBe(true);
    expect(plain.durationMs[15]! / plain.durationMs[5]!).toBeCloseTo(2, 1);
  });

  it("an iteration and its time in words of one's own; another size of an epoch is no restart", () => {
    const own = only(steps((n) => `ITER ${n} loss 0.31 time ${n > 9 ? 0.5 : 0.25} s`, 20));
    expect([own.durationMs[2], own.durationMs[15]]).toEqual([250, 500]);
    const vision = (epoch: number, of: number) => (n: number) =>
      `Epoch: [${epoch}]  [${String(n).padStart(4)}/${of}]  eta: 0:20:42    time: 0.2826  data: 0.0012`;
    const { iteration } = only(steps(vision(2, 30), 30) + steps(vision(3, 29), 29));
    expect([...iteration]).toEqual([...iteration].sort((a, b) => a - b));
    expect(iteration.at(-1)).toBe(119);
    const swav = only(
      [0, 1]
        .map((epoch) => steps((n) => `Epoch: [${epoch}][${50 * n}]\tTime 1.714 (1.851)`, 10))
        .join(""),
    );
    expect([swav.iteration.at(-1), swav.durationMs[4]]).toEqual([1000, 1714]);
  });

  it("a bar beside lines that tell iterations is an evaluation's", () => {
    const line = (n: number): string =>
      `iter: ${20 * n}  loss: 1.08  time: 0.3158 (0.6)  data: 0.1`;
    const { iteration, between } = only(
      steps(line, 20) + steps((n) => bar(n, 313, n), 300) + steps((n) => line(n + 20), 20),
    );
    expect(iteration).toHaveLength(40);
    expect(between[20]).toBe(EVALUATION);
  });

  it("of two processes in one file only who is ahead is followed", () => {
    const at = (step: number, s: number): string =>
      `{"current_steps": ${step}, "total_steps": 900, "loss": 0.8, "elapsed_time": "0:${String(Math.floor(s / 60)).padStart(2, "0")}:${String(s % 60).padStart(2, "0")}"}\n`;
    const both = Array.from({ length: 30 }, (_, i) =>
      i < 3
        ? at(10 * i + 10, 60 * i + 60)
        : at(10 * i + 10, 60 * i + 60) + at(10 * i - 20, 60 * i + 61),
    );
    const series = only(both.join(""), "trainer_log.jsonl");
    expect(series.iteration).toHaveLength(30);
    expect([...series.durationMs].slice(1).every((ms) => Math.round(ms) === 6000)).toBe(true);
  });
});
