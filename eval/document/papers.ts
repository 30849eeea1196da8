/**
 * What the five papers report, table by table, and where ours stands in what the evaluations print. Every figure of
 * ours is looked up there: one that is not found stops the document.
 */
import {
  countedIn,
  intervalWords,
  shareWords,
  sumOf,
  type Chapter,
  type Counted,
  type Row,
} from "./chapter.ts";
import { LAB } from "./lab.ts";
import type { Part } from "./part.ts";
import { TOGETHER } from "./together.ts";

/** A share out of one cell: the figure, and how far it can be trusted. */
function share(row: string, column: string): Pick<Row, "ours" | "count"> {
  const counted = (part: Part): Counted => sumOf(part.cells(row, column).map(countedIn));
  return {
    ours: (part) => shareWords(counted(part)),
    count: (part) => intervalWords(counted(part)),
  };
}

/** "at most 0.12 % in 13 of 14; 1: no period": what has no figure is not passed over. */
const atMost = (cells: readonly string[]): string => {
  const isFigure = (cell: string): boolean => !Number.isNaN(Number.parseFloat(cell));
  const values = cells.filter((cell) => isFigure(cell)).map((cell) => Number.parseFloat(cell));
  if (values.length === 0) throw new Error(`no figure in ${cells.join(", ")}`);
  const most = `at most ${Math.max(...values)} %`;
  const others = cells.filter((cell) => !isFigure(cell));
  if (others.length === 0) return most;
  const words = [...new Set(others)].map(
    (word) => `${others.filter((other) => other === word).length}: ${word}`,
  );
  return `${most} in ${values.length} of ${cells.length}; ${words.join(", ")}`;
};

const sizes = (part: Part): string => part.match(/^([\d,]+ GPUs, \d+ cases, \d+ trainings)/m);

const endToEnd = (gpus: string, published: string): Row => ({
  at: "Figure 15b, §5.1.2",
  shows: `end-to-end localization, ${gpus} GPUs`,
  published,
  script: "localize/run.ts",
  under: `${gpus} GPUs`,
  ours: (part) =>
    `${shareWords(countedIn(part.cell("ours, end to end", "all")))}; random walk ${part.cell("random walk", "all")}, Holmes with 3-sigma ${part.cell("Holmes as published, 3-sigma", "all")}`,
  count: (part) =>
    `${intervalWords(countedIn(part.cell("ours, end to end", "all")))}; seeds from ${part.match(/seeds from (\d+)/)}`,
});

const forest = (part: Part, row: string): string => {
  const share = (column: string): string => (Number(part.cell(row, column)) / 100).toFixed(3);
  return `${share("precision")} / ${share("recall")} / ${part.cell(row, "F1")}`;
};

const HOLMES: Chapter = {
  title: "Holmes: which device makes it slow",
  about:
    "Jobs of thousands of GPUs with one slow GPU, CPU, NIC, link or leaf switch; who is it? “Ours” is `methods/slow`; “as published” is our reading of the paper's algorithm 1 with its forest or with the 3-sigma rule, on the same simulated jobs.",
  paper: {
    cited:
      "Holmes: Localizing Irregularities in LLM Training with Mega-scale GPU Clusters, NSDI 2025",
    tables: 1,
    figures: 27,
    drawings: [
      "Figures 1, 2, 8 to 13, 19 and 20 (operators, logging, graph, search)",
      "Figure 22 (the testbed's network)",
    ],
    notReproduced: [
      {
        at: "Table 1, Figures 3 to 7",
        shows: "how often which device fails, what irregularity costs, examples of its three kinds",
        why: "three months of a production cluster of over 10,000 GPUs. Table 1's shares are the prior that Figure 26 asks about; the three kinds of Figures 5 to 7 are what the simulator makes",
      },
      {
        at: "Figure 16a",
        shows: "time to detect abnormal operators in one GPU's log: 111.7 to 375.7 ms",
        why: "not needed: the judge has no classifier. `node --import tsx bench/holmes.mjs` times ours (10,000 operators, 100 iterations); it is no part of this document",
      },
      {
        at: "Figures 17 and 27",
        shows: "one production case on 3,072 GPUs, and its throughput after the node was taken out",
        why: "a production job. The same path (pipeline, data-parallel group, tensor-parallel group) is searched in every simulated job of Holmes' chapter",
      },
      {
        at: "Figure 18",
        shows: "the spectrum of one job's fluctuation, periods of 6.94 iterations",
        why: "needs that job's iteration times. `faultline iterations` names the period of a fluctuation",
      },
      {
        at: "Figure 21c",
        shows: "which features the forest uses",
        why: "bars without numbers; what our forest uses is under “Abnormal operators”",
      },
      {
        at: "Figure 15b, Seer",
        shows: "a network of CNN and LSTM on all logs, 80.7 % at 8,192 GPUs",
        why: "neither code nor data; the random walk was rebuilt",
      },
      {
        at: "Figure 15c, six dimensions",
        shows: "86.0 % with six parallelism dimensions",
        why: "the simulator knows five (data, tensor, pipeline, context, expert)",
      },
    ],
  },
  rows: [
    {
      at: "Figure 14a, §5.1.1",
      shows: "F1 of detecting abnormal operators",
      published: "forest 0.93, SVM 0.86, KNN 0.82, 3-sigma 0.62 (4,096 GPUs)",
      script: "holmes/detect.ts",
      ours: (part) =>
        `forest with our features, gini ${part.cell("forest, gini", "F1")}, entropy ${part.cell("forest, entropy", "F1")}; with the paper's features only, gini ${part.cell("forest, gini, the paper's features only", "F1")}, entropy ${part.cell("forest, entropy, the paper's features only", "F1")}; SVM ${part.cell("linear SVM", "F1")}, KNN ${part.match(/\| 5 nearest[^|]*\|[^|]*\|[^|]*\| ([\d.]+)/)}, 3-sigma ${part.cell("3-sigma", "F1")}`,
      count: (part) =>
        `${part.match(/^(\d+ jobs, \d+ operators)/m)}; layouts that nothing was learnt from`,
    },
    {
      at: "Figures 21a and 21b, appendix F",
      shows: "the forest by criterion: precision / recall / F1",
      published:
        "gini F1 0.921, entropy 0.927 (the best, at 3,072 GPUs); precision above 0.9, recall above 0.85 at every size",
      script: "holmes/detect.ts",
      ours: (part) =>
        ["gini", "entropy"]
          .map(
            (criterion) =>
              `${criterion} ${forest(part, `forest, ${criterion}`)}, with the paper's features only ${forest(part, `forest, ${criterion}, the paper's features only`)}`,
          )
          .join("; "),
      count: (part) =>
        `${part.match(/^(\d+ jobs, \d+ operators)/m)}; layouts that nothing was learnt from`,
    },
    {
      at: "Figures 14b and 25, §5.1.1",
      shows: "F1 under drift, tuned by mean, P75 or P99, and not tuned",
      published:
        "tuned above 0.917, not tuned 0.922 → 0.906; 8,192 GPUs: mean 0.91, others below 0.90",
      script: "localize/tables.ts",
      under: "Drift",
      isFullOnly: true,
      ours: (part) =>
        `at +10 %: mean ${part.cell("+10 %", "mean")}, P75 ${part.cell("+10 %", "p75")}, P99 ${part.cell("+10 %", "p99")}, not tuned ${part.cell("+10 %", "not tuned")}`,
      count: (part) => part.match(/mean F1 over (.*)/),
    },
    {
      at: "Figure 14c, §5.1.1",
      shows: "accuracy of single iterations by the number of pivots",
      published:
        "1 pivot: 91.6 / 88.0 / 71.1 % (2,048 / 3,072 / 4,096 GPUs); 6 pivots: 100 % (4,096)",
      script: "localize/tables.ts",
      under: "Number of pivots",
      ours: (part) =>
        `as published: ${part.cell("1", "single iterations")} with one, ${part.cell("6", "single iterations")} with six; over all iterations ours ${part.cell("1", "ours (own pivots)")}`,
      count: sizes,
    },
    {
      at: "Figure 15a, §5.1.2",
      shows: "accuracy by δ, the growth that counts as irregular",
      published: "best between 1.06 and 1.12, default 1.1",
      script: "localize/tables.ts",
      under: "δ",
      ours: (part) =>
        `as published: ${part.cell("1.06", "first")} at 1.06, ${part.cell("1.10", "first")} at 1.10, ${part.cell("1.20", "first")} at 1.20; ours, which has no δ: ${part.cell("1.10", "ours (no δ)")}`,
      count: sizes,
    },
    endToEnd("2,048", "97.2 %"),
    { ...endToEnd("3,072", "not given as a number"), isFullOnly: true },
    { ...endToEnd("4,096", "not given as a number"), isFullOnly: true },
    { ...endToEnd("8,192", "88.2 % (random walk 78.0 %, Seer 80.7 %)"), isFullOnly: true },
    {
      at: "Figure 15c, §5.1.2",
      shows: "accuracy by the number of parallelism dimensions",
      published: "3D 94.6 %, 4D 89.6 % (medians)",
      script: "localize/tables.ts",
      under: "Parallelism dimensions",
      isFullOnly: true,
      ours: (part) =>
        `3D ${part.cell("3D: dp, tp 8, pp 4", "ours")}, 4D ${part.cell("4D: dp, tp 8, pp 4, ep 4", "ours")}, 5D ${part.cell("5D: dp, tp 4, pp 4, cp 2, ep 4", "ours")}; as published, among the first two, 3D ${part.cell("3D: dp, tp 8, pp 4", "first two")}, 4D ${part.cell("4D: dp, tp 8, pp 4, ep 4", "first two")}`,
      count: sizes,
    },
    {
      at: "Figure 16b, §5.2",
      shows: "share of the logs that is read to name the device",
      published: "0.84 of 24.36 GB (3.4 %)",
      script: "localize/run.ts",
      under: "2,048 GPUs",
      ours: (part) =>
        `${part.cell("ours, end to end", "bytes read, mean")} (most ${part.cell("ours, end to end", "most")})`,
      count: (part) => `n ${countedIn(part.cell("ours, end to end", "all")).of}`,
    },
    {
      at: "Figures 16c and 16d, §5.2",
      shows: "time of one localization",
      published: "15.5 s (2,048 GPUs) to 30.3 s (8,192), fetching over a network included",
      script: "localize/run.ts",
      under: "2,048 GPUs",
      ours: (part) =>
        `${part.cell("ours, end to end", "analysis, mean")} (2,048 GPUs), the analysis alone: logs are in memory`,
      count: (part) => `n ${countedIn(part.cell("ours, end to end", "all")).of}`,
    },
    {
      at: "Figure 23, appendix E",
      shows: "what logging costs",
      published: "0.064 to 0.19 % of the step, below 2 µs an operator",
      script: LAB,
      under: "What it costs",
      ours: (part) =>
        `${part.match(/\*\*(189 ns)\*\*/)} of host time for a recorded collective; step time within noise (${part.cell("all (the default)", "against none")})`,
      count: (part) => `95 %: ${part.cell("all (the default)", "95 %")}; two ranks, one H200`,
    },
    {
      at: "Figure 24, appendix E",
      shows: "accuracy by kind of irregularity: spike, fluctuation, degradation",
      published: "90.7, 93.0, 93.2 %",
      script: "localize/tables.ts",
      under: "Kinds of irregularity",
      ours: (part) =>
        ["spike", "fluctuation", "persistent degradation"]
          .map((kind) => part.cell(kind, "ours"))
          .join("; "),
      count: sizes,
    },
    {
      at: "Figure 26, appendix E",
      shows: "whether the prior helps",
      published: "up to 3.3 points (8,192 GPUs)",
      script: "localize/tables.ts",
      under: "Prior and decay",
      ours: (part) =>
        `as published, first two: prior ${part.cell("prior, decay", "first two")}, plain sum ${part.cell("plain sum, decay", "first two")}; ours has a posterior of its own`,
      count: sizes,
    },
  ],
  peers: [
    "PipeMorph's runs (NSDI 2026) are in “When did it become slow”.",
    "NVIDIA's resiliency extension scores ranks and leaves NCCL kernels out; HTA always names the two latest ranks; neither publishes an accuracy.",
  ],
  scripts: ["localize/run.ts", "localize/tables.ts", "localize/files.ts", "holmes/detect.ts"],
};

const probing = (at: string, under: string, published: string): Row => ({
  at,
  shows: `${under === "Greyhound's table 3" ? "computation" : "communication"} fail-slows found in probing jobs: accuracy / false positives / false negatives`,
  published,
  script: "iterations.ts",
  under,
  ours: (part) => {
    const of = (column: string): string =>
      shareWords(sumOf(part.cells("ours", column).map(countedIn)));
    return `${of("accuracy")} / ${of("false positives")} / ${of("false negatives")}`;
  },
  count: (part) =>
    `${intervalWords(sumOf(part.cells("ours", "accuracy").map(countedIn)))}; seeds ${part.matches(/seeds (\d+ to \d+)/g).join(", ")}`,
});

const mitigated = (
  at: string,
  shows: string,
  published: string,
  under: string,
  rows: readonly string[],
): Row => ({
  at,
  shows,
  published,
  script: "mitigate/run.ts",
  under,
  ours: (part) =>
    rows
      .map((row) => `${part.cell(row, "without")} → ${part.cell(row, "with")} (${row})`)
      .join("; "),
  count: () => "medians over the seeds of the run, from 1",
});

const GREYHOUND: Chapter = {
  title: "Greyhound: when did it become slow, and how to live with it",
  about:
    "Change points in iteration times, iteration times without a log, and mitigation in a closed loop: every fault is detected, localized, planned for and measured, never given.",
  paper: {
    cited: "Greyhound: Hunting Fail-Slows in Hybrid-Parallel Training at Scale",
    tables: 6,
    figures: 20,
    drawings: [
      "Figures 7 to 12 (architecture, periods, comparison of groups, validation, topology)",
      "Table 2 (strategies in words)",
    ],
    notReproduced: [
      {
        at: "Table 1, Figures 1 to 6",
        shows: "how often production jobs fail slow, for how long, why",
        why: "a production cluster of over 10,000 GPUs; the trace is not public. The simulated probing jobs have Table 1's counts (392 with 6 slow, 107 with 43)",
      },
      {
        at: "Figure 17",
        shows: "validation takes 0.24 s (H800) to 3.04 s (RDMA under congestion)",
        why: "needs A10, A100 and H800 and a network between machines. Validation inside a running job was tried on one H200 (lab/RESULTS.md): both injected faults named",
      },
      {
        at: "Figure 19",
        shows:
          "moving places through memory pauses the job up to 6.72 times shorter than through checkpoints",
        why: "needs GPUs full of parameters; the plan is made, the transfer is the framework's",
      },
      {
        at: "Table 6, seconds",
        shows: "reaction 10.56 s, of which 3.7 s change point and 6.86 s profiling and validation",
        why: "seconds depend on the model's iteration time; ours is counted in iterations (Figure 20), and in seconds in the chapter on the live service",
      },
    ],
  },
  rows: [
    {
      at: "Figure 13, §7.2",
      shows: "error of iteration times found without a log",
      published: "at most 1.2 % (one node), 0.7 % (2TP 2DP 2PP), 0.1 % (2TP 4DP)",
      script: "iterations.ts",
      under: "Iteration times from operators alone: simulated layouts",
      ours: (part) =>
        `${atMost(part.column("largest error of the mean of any rank: flight recorder"))} (from flight recorders; all operators: ${atMost(part.column("all operators"))}); 2T2D2P ${part.cell("2T2D2P", "largest error of the mean of any rank: flight recorder")}, 2T4D1P ${part.cell("2T4D1P", "largest error of the mean of any rank: flight recorder")}`,
      count: (part) =>
        `${part.column("jobs").length} layouts, seeds from 1 (${part.column("jobs")[0]} each)`,
    },
    {
      at: "Figure 13, real jobs",
      shows: "the same on our recordings, against the log's times",
      published: "as above",
      script: "iterations.ts",
      under: "Iteration times from operators alone: recordings",
      ours: (part) => `${atMost(part.column("largest error of the mean"))}, of the mean`,
      count: (part) => `${part.column("largest error of the mean").length} recordings of 8 ranks`,
    },
    probing(
      "Table 3, §7.2",
      "Greyhound's table 3",
      "BOCD+V 100.0 / 0.0 / 0.0 %; BOCD 77.8 / 18.4 / 0.0; sliding window 99.5 / 0.0 / 25.0. The paper adds errors to the base: BOCD 87/473 (of the 386 healthy jobs, as ours is counted, 22.5 %), sliding window 2/8 (of 6: 33.3 %)",
    ),
    probing(
      "Table 4, §7.2",
      "Greyhound's table 4",
      "BOCD+V 99.1 / 0.0 / 2.3 %; BOCD 69.2 / 34.0 / 0.0; sliding window 93.5 / 1.5 / 12.2. The paper adds errors to the base: BOCD+V 1/44 (of the 43 slow jobs, as ours is counted, 2.3 %, too), BOCD 33/97 (of 64: 51.6 %), sliding window 1/65 and 6/49 (of 64: 1.6 %, of 43: 14.0 %)",
    ),
    mitigated(
      "Figure 14, §7.3",
      "iteration time with one slow GPU, S2; 2, 4, 8 data-parallel groups",
      "1.7 → 1.3, 1.1, 1.2 times the healthy one",
      "Figure 14",
      ["2 DP, mean", "4 DP, mean", "8 DP, mean"],
    ),
    mitigated(
      "Figure 15, left, §7.3",
      "several slow groups of four, S2",
      "one: 1.31 s → 0.83 s, 1.59×; four: no room",
      "Figure 15, left",
      ["1 of 4 DP groups slow", "4 of 4 DP groups slow"],
    ),
    mitigated(
      "Figure 15, right, §7.3",
      "congested links, S3",
      "1.6 → 1.3, 1.7 → 1.3, 1.9 → 1.7",
      "Figure 15, right",
      ["1 congested link", "2 congested links", "3 congested links"],
    ),
    mitigated(
      "Figure 16, §7.3",
      "severe congestion, S3, 4 and 8 stages",
      "gain 1.23×, 1.14×",
      "Figure 16",
      ["PP 4, severe (×12)", "PP 8, severe (×12)"],
    ),
    {
      at: "Figure 18, §7.4",
      shows: "what tracking costs",
      published: "0.39 % on average, at most 1.1 %",
      script: LAB,
      under: "What it costs",
      ours: (part) =>
        `${part.cell("all (the default)", "against none")} of the step: within noise. A cost below 1 % is not shown`,
      count: (part) => `95 %: ${part.cell("all (the default)", "95 %")}; two ranks, one H200`,
    },
    {
      at: "Table 5, §7.4",
      shows: "time to share micro-batches out, 512 groups",
      published: "35.93 s (256 groups: 6.78 s)",
      script: "../bench/microbatches.ts",
      ours: (part) =>
        `${part.cell("512", "median, ms")} ms (256 groups: ${part.cell("256", "median, ms")} ms), exact`,
      count: () => "50 draws, seed: the number of groups",
    },
    {
      at: "Table 6, §7.5",
      shows: "twelve fail-slows in one job: named right, and how soon",
      published: "12 of 12, 10.56 s",
      script: "mitigate/run.ts",
      under: "Figure 20",
      isFullOnly: true,
      ours: (part) =>
        `${shareWords(sumOf(part.column("events named right").slice(0, -1).map(countedIn)))}, ${part.cell("1", "after, iterations")} iterations`,
      count: (part) =>
        intervalWords(sumOf(part.column("events named right").slice(0, -1).map(countedIn))),
    },
    {
      at: "Figure 20, §7.5",
      shows: "throughput with and without mitigation",
      published: "18.9 → 29.8 of 37.4 iterations a minute, 1.58×",
      script: "mitigate/run.ts",
      under: "Figure 20",
      isFullOnly: true,
      ours: (part) => part.match(/Gain over \d+ seeds: median ([^.]*\.\d+×)/),
      count: (part) =>
        `${part.match(/Gain over (\d+ seeds)/)} from 1; ${part.match(/^### Figure 20: (\d+ GPUs \([^)]*\))/m)}`,
    },
  ],
  peers: [
    "TCPD: Bayesian online change points at the benchmark's defaults have F1 0.677 and covering 0.653 as published, on the series that are compared here; its table is below.",
    "PipeMorph (128 GPUs) and Alibaba's jobs have known changes; their tables are below. Greyhound's published code uses another method (Rbeast, with outliers dropped) than its paper: the rows “outliers dropped” (abs z > 3) have that rule.",
  ],
  scripts: ["iterations.ts", "mitigate/run.ts", "../bench/microbatches.ts"],
};

const regression = (at: string, shows: string, published: string, kind: string): Row => ({
  at,
  shows,
  published,
  script: "traces/run.ts",
  ...share(kind, "the first cause is right"),
});

const FLARE: Chapter = {
  title: "FLARE: why is the code slower, and who hangs",
  about:
    "Profiler traces of simulated jobs against healthy runs of the same job; hangs and crashes on recordings.",
  paper: {
    cited:
      "FLARE: Anomaly Diagnostics for Divergent LLM Training in GPU Clusters of Thousand-Plus Scale",
    tables: 5,
    figures: 12,
    drawings: [
      "Figures 1 to 7 (stack, architecture, instrumentation, stacks, intra-kernel inspection, metrics)",
      "Table 1 (taxonomy)",
      "Table 2 (which tool has which function)",
    ],
    notReproduced: [
      {
        at: "Figure 8",
        shows: "0.43 % of latency on 1,024 H800, 1.02 % for TorchRec",
        why: "needs hundreds of GPUs and hours: on one shared H200 the noise is 2 % (lab/RESULTS.md). What a call costs is in Holmes' chapter (Figure 23)",
      },
      {
        at: "Table 3, counts",
        shows: "127 errors of three months, by kind",
        why: "production. The mechanisms are asked on recordings: stacks, flight recorder, RAS, proxies",
      },
      {
        at: "Figure 11",
        shows:
          "distributions of issue latencies, healthy, with garbage collection and with synchronisation, 256 GPUs",
        why: "drawn without figures. `faultline trace --out` draws ours; that both regressions are found is in FLARE's chapter",
      },
      {
        at: "Table 4, hugepages",
        shows: "a host's hugepages cause high system load and less bandwidth, 20 % of MFU",
        why: "no case of ours: the simulator's traces have no operating system. What a trace shows of it, less bandwidth, is among our kinds (“bandwidth 10 to 20 % down”); that hugepages are behind it only the host's counters tell",
      },
      {
        at: "Figure 12, TFLOPS",
        shows: "an operator loses 65.3 % of its FLOPS for an unfavourable layout",
        why: "needs the GPU and the model. Whether it is found is in FLARE's chapter",
      },
    ],
  },
  rows: [
    {
      at: "Figure 9, §6.2",
      shows: "log volume of a GPU",
      published: "0.78 MB a step (16 A100); 1.5 MB a job and GPU (1,536 H800)",
      script: LAB,
      under: "What it costs",
      ours: (part) => part.match(/Volume: ([^;]*; the rings are [^(]*)/).replaceAll("\n", " "),
      count: () => "a small transformer, 8 ranks on one H200",
    },
    {
      at: "Figure 10, §6.3",
      shows: "time to name who hangs in a ring all-reduce",
      published: "29.4 to 309.2 s (inside the kernel, by debugger)",
      script: LAB,
      under: "Is the culprit named",
      ours: (part) =>
        `${part.match(/about \*\*(2 s)\*\*/)} for a dead wire, by another way (proxies' progress, out of the rings), once the job has stood still for a second`,
      count: () => "8 ranks on one H200, two dead wires; development data",
    },
    {
      at: "Table 3, §7.2",
      shows: "hangs and crashes: the culprit and the cause",
      published: "127 errors, no accuracy given",
      script: "hangs.ts",
      ours: (part) =>
        `${part.match(/(\d+ of \d+) right/)} recordings right: kind, exact ranks, cause`,
      count: (part) =>
        `${intervalWords(countedIn(part.match(/(\d+ of \d+) right/)))}; development data`,
    },
    regression(
      "Table 4 and Figure 11, §6.4",
      "garbage collection, first cause right",
      "found (10 to 60 % of MFU)",
      "Python GC",
    ),
    regression(
      "Table 4 and Figure 11, §6.4",
      "unnecessary synchronisation",
      "found (2.66 % of MFU)",
      "unnecessary sync",
    ),
    regression("Table 4, §7.3", "package checking", "found (30 %)", "package checking"),
    regression("Table 4, §7.3", "memory management", "found (19 %)", "memory management"),
    regression("Table 4, §7.3.3", "data loader", "found (41 %)", "dataloader"),
    regression(
      "Table 4 and Figure 12, §7.3.2",
      "backend migration: a layout tensor cores cannot read",
      "found (33.3 %)",
      "backend migration",
    ),
    regression("Table 4, §7.3", "GPU underclocking", "found (14 %)", "GPU underclocking"),
    regression("Table 4, §7.3", "network jitter", "found (10 to 20 %)", "network jitter"),
    regression("Table 4, §7.3", "GPU Direct RDMA down", "found (62.5 to 80 %)", "GDR down"),
    {
      at: "§7.3",
      shows: "the least synchronisation that is found (share of the step)",
      published: "2.66 %",
      script: "traces/run.ts",
      under: "Synchronisation around",
      ours: (part) =>
        ["1.00 %", "2.00 %", "2.66 %"]
          .map((cost) => `${cost}: ${part.cell(cost, "found")}`)
          .join(", "),
      count: (part) => intervalWords(countedIn(part.cell("2.66 %", "found"))),
    },
    {
      at: "§7.3",
      shows: "a week's 113 jobs: healthy ones called slow",
      published: "2 of 104 (1.9 %)",
      script: "traces/run.ts",
      ours: (part) => shareWords(countedIn(part.cell("all", "healthy jobs called slow, by kind"))),
      count: (part) =>
        `${intervalWords(countedIn(part.cell("all", "healthy jobs called slow, by kind")))}; seeds ${part.match(/week, seeds (\d+ to \d+)/)}`,
    },
    {
      at: "§7.3",
      shows: "the same: regressions with the right cause",
      published: "9 of 11 reports right (81.8 %)",
      script: "traces/run.ts",
      ours: (part) => shareWords(countedIn(part.cell("all", "regressions found with their cause"))),
      count: (part) =>
        intervalWords(countedIn(part.cell("all", "regressions found with their cause"))),
    },
    {
      at: "Table 5, §7.3.3",
      shows: "V_minority: healthy, -PE, -PE-ACT, -PE-ACT-NORM",
      published: "9, 14, 15, 28 %",
      script: "traces/run.ts",
      under: "Table 5",
      ours: (part) =>
        ["Healthy", "-PE", "-PE-ACT", "-PE-ACT-NORM"]
          .map((kind) => part.cell(kind, "measured"))
          .join(", "),
      count: () => "one job each",
    },
  ],
  peers: [
    "DLRover's xpu_timer, FLARE's open part, has none of the regression rules and names no culprit of a hang; it claims 0.5 % overhead, a user measured 7 % (its issue 1537).",
    "HTA was measured at about 22,000 events a second; `node bench/kineto.mjs` measures our reader.",
  ],
  scripts: ["traces/run.ts"],
};

const MIX = "precision / recall / F1";

const variants = (at: string, shows: string, published: string, names: readonly string[]): Row => ({
  at,
  shows,
  published,
  script: "machines/run.ts",
  ours: (part) =>
    `our Minder ${part.cell("Minder", MIX)}; ${names.map((name) => `${name} ${part.cell(`Minder, ${name}`, MIX)}`).join("; ")}`,
  count: (part) => mixCount(part),
});

const mixCount = (part: Part): string => part.match(/^## (\d+ faulty and \d+ healthy tasks)/m);

const MINDER: Chapter = {
  title: "Minder: which machine is going bad",
  about:
    "Simulated tasks of 4 to 1,500 machines with Minder's mix of faults and its Table 1's rates at which each metric shows them, with nuisances. “Our Minder” is the paper's method rebuilt (LSTM-VAE a metric), its threshold chosen on other tasks; “ours” is `methods/machines`.",
  paper: {
    cited: "Minder: Faulty Machine Detection for Large-scale Distributed Model Training",
    tables: 2,
    figures: 16,
    drawings: [
      "Figures 3, 5, 6 and 7 (a fault's pattern, architecture, the VAE, the decision tree)",
      "Table 2 (the metrics; `model/metric-catalog.ts` has all of them)",
    ],
    notReproduced: [
      {
        at: "Figures 1, 2 and 4",
        shows: "how often tasks fail, how long diagnosis takes by hand, how long faults last",
        why: "seven months of production. Sizes and durations of simulated tasks follow them",
      },
      {
        at: "Table 1",
        shows: "which metric shows which fault, how often",
        why: "production; it is an input of our simulator, so that agreeing with it would prove nothing",
      },
      {
        at: "Figure 11",
        shows: "accuracy by the number of faults in a task's lifetime",
        why: "needs tasks of months; the paper finds no dependence, and our tasks are independent by construction",
      },
      {
        at: "Figure 8, pulling",
        shows: "3.6 s a call, pulling from the database included",
        why: "our figure is computation alone; `npm run bench:machines` measures a whole call against a real Prometheus",
      },
    ],
  },
  rows: [
    {
      at: "Figure 9, §6.1",
      shows: "precision / recall / F1 on 150 faults",
      published: "Minder 0.904 / 0.883 / 0.893, Mahalanobis 0.788 / 0.767 / 0.777",
      script: "machines/run.ts",
      ours: (part) =>
        `ours ${part.cell("ours", MIX)}; our Minder ${part.cell("Minder", MIX)}; Mahalanobis ${part.cell("Minder, MD", MIX)}`,
      count: (part) =>
        `${mixCount(part)}; recall ${intervalWords(countedIn(part.cell("ours", "recall, 95 %")))}; seeds ${part.match(/Faulty: seeds (\d+ to \d+)/)}`,
    },
    {
      at: "Figure 9, §6.1, false alarms",
      shows: "healthy tasks with an alarm",
      published: "not given",
      script: "machines/run.ts",
      ...share("ours", "healthy tasks with an alarm, 95 %"),
    },
    {
      at: "Figure 8, §6.1",
      shows: "time of a call, computation",
      published: "3.6 s with pulling",
      script: "machines/run.ts",
      under: "Time of a call",
      ours: (part) =>
        `${part.cell("128", "ours, Minder's seven metrics, ms")} ms (128 machines); our Minder ${part.cell("128", "Minder, stride 1, ms")} ms`,
      count: () => "median of 3 calls, 15 minutes at 1 s",
    },
    {
      at: "Figure 10, §6.1",
      shows: "by type of fault: recall",
      published: "bars without figures; ECC, CUDA, card drop, NVLink well, AOC and PCIe less",
      script: "machines/run.ts",
      under: "Our recall, by fault",
      ours: (part) =>
        `all types: ${shareWords(countedIn(part.cell("all", "ours")))}; by type below`,
      count: (part) => intervalWords(countedIn(part.cell("all", "ours"))),
    },
    {
      ...variants(
        "Figure 12, §6.2",
        "fewer and more metrics",
        "bars: more metrics, higher recall and less precision; fewer, worse",
        ["fewer metrics", "more metrics"],
      ),
      ours: (part) => {
        const recall = (row: string): number => Number(part.cell(row, MIX).split("/")[1]);
        const [usual, more] = [recall("Minder"), recall("Minder, more metrics")];
        const how =
          more > usual
            ? "higher, as in the paper"
            : more < usual
              ? "lower, the opposite of the paper's"
              : "no higher, as it is in the paper";
        return `our Minder ${part.cell("Minder", MIX)}; fewer ${part.cell("Minder, fewer metrics", MIX)}; more ${part.cell("Minder, more metrics", MIX)}: recall with more is ${how}`;
      },
    },
    variants(
      "Figure 13, §6.3",
      "without the VAE (RAW), concatenated (CON), one model (INT)",
      "bars: all worse in recall and F1",
      ["RAW", "CON", "INT"],
    ),
    variants("Figure 14, §6.4", "without continuity", "bars: worse", ["without continuity"]),
    variants(
      "Figure 15, §6.5",
      "Manhattan and Chebyshev distances",
      "bars: alike; Chebyshev less precise",
      ["MhtD", "ChD"],
    ),
    {
      at: "Figure 16, §6.6",
      shows: "two of four machines with a bad NIC, by the millisecond: both NICs named",
      published: "both, in one experiment",
      script: "machines/run.ts",
      under: "NICs by the millisecond",
      ...share("both with the right NIC", "ours"),
    },
    {
      at: "§6.6",
      shows: "32 of 600 machines behind a switch that is down",
      published: "hardly found",
      script: "machines/run.ts",
      under: "Several machines at once",
      ours: (part) =>
        `silent ${part.cell("switch, machines silent", "culprits named, ours")}, NICs down ${part.cell("switch, NICs down", "culprits named, ours")} machines named`,
      count: (part) => `tasks of each kind: ${part.cell("switch, NICs down", "tasks")}`,
    },
  ],
  peers: [
    "gpud, NVSentinel, gcm, DCGM and the like check single hosts by rules; none publishes an accuracy on jobs, none compares the machines of one job.",
    "Re-studies (2024, 2026) found that deep detectors of anomalies in metrics are no better than linear ones; our ablation of the VAE agrees.",
    "Fleets by a generator whose author had not seen the methods (eval/machines/independent, 100 faulty and 100 healthy, each seed judged once): F1 0.793 and 4 healthy accused at first, 0.923 and 4 on the second seed, 0.975 and 1 on the third.",
    "ByteDance's trace ST and the public ASD servers are below.",
  ],
  scripts: ["machines/run.ts", "machines/sites.ts", "machines/third-party.ts"],
};

const planted = (row: string, part: Part): { precision: Counted; recall: Counted } => ({
  precision: sumOf(part.cells(row, "precision").map(countedIn)),
  recall: sumOf(part.cells(row, "recall").map(countedIn)),
});

const plantedWords = (row: string, part: Part): string => {
  const { precision, recall } = planted(row, part);
  const f1 = (2 * precision.right) / Math.max(1, precision.of + recall.of);
  return `${(precision.right / Math.max(1, precision.of)).toFixed(3)} / ${(recall.right / Math.max(1, recall.of)).toFixed(3)} / ${f1.toFixed(3)}`;
};

const located = (row: string, column: string, part: Part): Counted =>
  sumOf(
    part
      .cells(row, column)
      .filter((cell) => cell !== "–")
      .map(countedIn),
  );

const L4: Chapter = {
  title: "L4: what the logs say",
  about:
    "Failures planted into logs of 8 to 512 nodes, with decoys and clocks that are off; the lines of half of them are real. And 37 public excerpts of failures with labels. “As published” is our reading of the paper's cross-job, spatial and temporal comparison.",
  paper: {
    cited: "L4: Diagnosing Large-scale LLM Training Failures via Automated Log Analysis",
    tables: 1,
    figures: 7,
    drawings: ["Figures 1, 2 and 5 (process, a report, the framework)"],
    notReproduced: [
      {
        at: "Table 1, Figures 3 and 4",
        shows:
          "428 failures by symptom, by what diagnosis needed, by level and frequency of the telling lines",
        why: "the platform's reports are not public",
      },
      {
        at: "Figure 6, baselines",
        shows: "LogAnomaly, LogRobust and NeuralLog: F1 0.207 to 0.366",
        why: "supervised: they want labelled logs of the same platform. Keyword search stands in their place",
      },
      {
        at: "Figure 7, top 8",
        shows: "91.2 % among the first eight nodes",
        why: "ours counts the first and the first five",
      },
    ],
  },
  rows: [
    {
      at: "Figure 6, §6.2",
      shows: "telling events: precision / recall / F1",
      published: "0.786 / 0.982 / 0.873; baselines F1 0.207 to 0.366",
      script: "logs/run.ts",
      under: "Planted failures",
      ours: (part) =>
        `${plantedWords("Faultline", part)}; L4 as published ${plantedWords("L4 as published", part)}`,
      count: (part) => {
        const { recall } = planted("Faultline", part);
        return `${part.matches(/: (\d+) jobs,/g).join(" + ")} jobs, seeds from 20000; recall ${intervalWords(recall)}`;
      },
    },
    {
      at: "Figure 7, §6.2",
      shows: "the faulty node first, of failures that have one",
      published: "65.8 %; Error_time 47.3 %, Error_count 36.7 %",
      script: "logs/run.ts",
      under: "Planted failures",
      ours: (part) =>
        `${shareWords(located("Faultline", "node top 1", part))}; L4 as published ${shareWords(located("L4 as published", "node top 1", part))}, Error_time ${shareWords(located("Error_time", "node top 1", part))}, Error_count ${shareWords(located("Error_count", "node top 1", part))}`,
      count: (part) => intervalWords(located("Faultline", "node top 1", part)),
    },
    {
      at: "Figure 7, §6.2",
      shows: "the faulty node among the first five",
      published: "91.2 % among eight",
      script: "logs/run.ts",
      under: "Planted failures",
      ours: (part) => shareWords(located("Faultline", "top 5", part)),
      count: (part) => intervalWords(located("Faultline", "top 5", part)),
    },
    {
      at: "§3.3, causes",
      shows: "the category of real failures (37 labelled excerpts; development data)",
      published: "no accuracy given",
      script: "logs/run.ts",
      under: "Real failures",
      ours: (part) => shareWords(countedIn(part.match(/Category right: (\d+ of \d+)/))),
      count: (part) => intervalWords(countedIn(part.match(/Category right: (\d+ of \d+)/))),
    },
  ],
  peers: [
    "NVRx's registry of patterns, on the 73 excerpts of which these are half: 0.890 / 0.340 / 0.492; keyword search there 0.538 / 0.647 / 0.588.",
    "Parsers on Loghub-2k (GA): Drain 0.865, Brain 0.983, both with headers and masks for each set; Drain3 with one list of masks 0.767, on raw lines 0.265. Ours reads raw lines, in one configuration: its table is below.",
  ],
  scripts: ["logs/run.ts"],
};

const RECORDINGS: Chapter = {
  title: "Real recordings",
  about:
    "Eight NCCL ranks of a small transformer that share one H200, each posing as its own host, by family of jobs (framework and layout), and two public incidents of 16 ranks. Families that teach served in development, and confidence is fitted on them; those that only test taught no figure, but wrong answers in them were looked at.",
  rows: [
    {
      at: "families that teach",
      shows: "kind, exact ranks and cause right, nobody else blamed",
      published: "≥ 95 %",
      script: "recordings.ts",
      under: "By family",
      ours: (part) => shareWords(countedIn(part.cell("teaching families", "suspects and cause"))),
      count: (part) =>
        intervalWords(countedIn(part.cell("teaching families", "suspects and cause"))),
    },
    {
      at: "families that only test",
      shows: "kind, exact ranks and cause right, nobody else blamed",
      published: "≥ 90 %",
      script: "recordings.ts",
      under: "By family",
      ours: (part) => shareWords(countedIn(part.cell("test families", "suspects and cause"))),
      count: (part) => intervalWords(countedIn(part.cell("test families", "suspects and cause"))),
    },
    {
      at: "healthy jobs",
      shows: "somebody accused",
      published: "none",
      script: "recordings.ts",
      under: "By family",
      ours: (part) => part.cell("all", "healthy accused"),
      count: (part) => intervalWords(countedIn(part.cell("all", "healthy accused"))),
    },
    {
      at: "sure and wrong",
      shows: "wrong answers at a confidence of 0.8 or more",
      published: "none",
      script: "recordings.ts",
      under: "By family",
      ours: (part) => part.cell("all", "wrong at ≥ 0.8"),
      count: (part) => `n ${part.cell("all", "n")}`,
    },
    {
      at: "a script of ten lines",
      shows: "slow and healthy jobs: exactly the guilty ranks",
      published: "never better than ours",
      script: "recordings.ts",
      under: "By family",
      ours: (part) =>
        `${part.cell("all", "ours on those: ranks")}; the script ${part.cell("all", "ten lines: ranks")}`,
      count: (part) => intervalWords(countedIn(part.cell("all", "ours on those: ranks"))),
    },
    {
      at: "this repository's, and public incidents",
      shows: "the same",
      published: "all",
      script: "hangs.ts",
      ours: (part) => shareWords(countedIn(part.match(/(\d+ of \d+) right/))),
      count: (part) => intervalWords(countedIn(part.match(/(\d+ of \d+) right/))),
    },
  ],
  peers: [],
  scripts: ["recordings.ts", "hangs.ts"],
};

const LIVE: Chapter = {
  title: "Live",
  about:
    "The service and its agents against simulated fleets on a set clock: how soon there is a verdict, whether its first suspect is right, false incidents.",
  rows: [
    {
      at: "how soon",
      shows: "verdict within 10 s of the first slow iteration's end",
      published: "Greyhound: 10.56 s on average (Table 6)",
      script: "live/run.ts",
      ours: (part) =>
        `${shareWords(countedIn(part.match(/verdict within 10 s[^:]*: (\d+ of \d+)/)))}, ${part.match(/median ([\d.]+ s)/)} at the median`,
      count: (part) =>
        `${intervalWords(countedIn(part.match(/verdict within 10 s[^:]*: (\d+ of \d+)/)))}; ${part.match(/(seeds from \d+, \d+ jobs × \d+ faults)/)}`,
    },
    {
      at: "who",
      shows: "the first suspect's place and cause right",
      published: "all",
      script: "live/run.ts",
      ours: (part) => shareWords(countedIn(part.match(/place and cause (\d+ of \d+)/))),
      count: (part) => intervalWords(countedIn(part.match(/place and cause (\d+ of \d+)/))),
    },
    {
      at: "false incidents",
      shows: "incidents of healthy jobs",
      published: "none",
      script: "live/run.ts",
      ours: (part) => part.match(/healthy: (\d+ incidents)/),
      count: (part) => part.match(/incidents in (\d+ jobs of an hour each)/),
    },
  ],
  peers: [
    "Mycroft (ByteDance) reports an anomaly within 15 s in 90 % of cases, a cause within 20 s in 60 %.",
  ],
  scripts: ["live/run.ts"],
};

const SITE: Chapter = {
  title: "What a site learns",
  about:
    "Simulated incidents at one site, the first hundred judged by people who are wrong once in twenty: what feedback changes in the answers about other jobs.",
  rows: [
    {
      at: "who",
      shows: "the first suspect right, before and after feedback",
      published: "better after",
      script: "site-month.ts",
      ours: (part) =>
        `${part.cell("nothing learnt", "first suspect right, of all")} → ${part.cell("feedback", "first suspect right, of all")}`,
      count: (part) => part.match(/(seeds \d+ to \d+[^\n]*)/),
    },
    {
      at: "confidence",
      shows: "Brier score and calibration error, before and after feedback",
      published: "lower after",
      script: "site-month.ts",
      ours: (part) =>
        ["Brier", "calibration error"]
          .map(
            (what) =>
              `${what} ${part.cell("nothing learnt", what)} → ${part.cell("feedback", what)}`,
          )
          .join("; "),
      count: (part) => part.match(/(seeds \d+ to \d+[^\n]*)/),
    },
  ],
  peers: [],
  scripts: ["site-month.ts"],
};

export const CHAPTERS: readonly Chapter[] = [
  HOLMES,
  GREYHOUND,
  FLARE,
  MINDER,
  L4,
  TOGETHER,
  RECORDINGS,
  LIVE,
  SITE,
];
