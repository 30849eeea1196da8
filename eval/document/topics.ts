/** Every evaluation, by topic: what runs, and with which options when it is to be quick. */

export interface Evaluation {
  /** Below eval/; bench/ holds those that are speed alone. */
  readonly script: string;
  readonly title: string;
  /** Null: a quick run leaves it out. */
  readonly quick: readonly string[] | null;
  /** What the output does not say of itself. */
  readonly seeds?: string;
  /** `--write` is its own: what it writes is not the document. */
  readonly isWriter?: true;
}

const QUICK = ["--quick"];

export const TOPICS = {
  hangs: [
    {
      script: "hangs.ts",
      title: "Recordings of this repository, public incidents",
      quick: [],
      seeds: "none",
    },
  ],
  iterations: [
    {
      script: "iterations.ts",
      title: "When did it become slow",
      quick: QUICK,
    },
  ],
  joint: [
    {
      script: "joint/run.ts",
      title: "One verdict from all inputs",
      quick: [...QUICK, "--count", "6"],
    },
  ],
  live: [
    {
      script: "live/run.ts",
      title: "The live service",
      quick: [...QUICK, "--jobs", "2", "--healthy", "1"],
    },
    {
      script: "live/intermittent.ts",
      title: "The live service: spikes and fluctuations",
      quick: ["--gpus", "256", "--jobs", "1", "--healthy", "1"],
    },
  ],
  localize: [
    { script: "localize/run.ts", title: "Which device, large jobs", quick: QUICK },
    {
      script: "localize/tables.ts",
      title: "Holmes' tables, method by method",
      quick: [
        ...QUICK,
        "--cases",
        "5",
        "--gpus",
        "256",
        "--only",
        "kinds,delta,pivots,prior,shapes",
      ],
      seeds: "case numbers from 0 on, for each table",
    },
    {
      script: "localize/files.ts",
      title: "Which device, through files",
      quick: ["--cases", "11"],
      seeds: "from 70000",
    },
    {
      script: "holmes/detect.ts",
      title: "Abnormal operators",
      quick: ["--jobs", "30", "--held-jobs", "20", "--test-jobs", "24", "--drift-jobs", "0"],
      seeds: "from 1,000,000 (learnt from), 2,000,000 (cuts chosen), 3,000,000 (tested)",
    },
  ],
  logs: [{ script: "logs/run.ts", title: "What the logs say", quick: QUICK }],
  machines: [
    {
      script: "machines/run.ts",
      title: "Which machine is going bad",
      quick: [...QUICK, "--faults", "4"],
    },
    {
      script: "machines/third-party.ts",
      title: "Metrics that others recorded",
      quick: null,
      seeds: "none",
    },
  ],
  "machine-sites": [
    {
      script: "machines/sites.ts",
      title: "Machines of sites as they are",
      quick: ["--faults", "12", "--steps", "15,30"],
    },
  ],
  mitigate: [
    {
      script: "mitigate/run.ts",
      title: "What mitigation brings",
      quick: [...QUICK, "--only", "figures"],
    },
    { script: "../bench/microbatches.ts", title: "Sharing micro-batches out", quick: [] },
  ],
  recordings: [
    {
      script: "recordings.ts",
      title: "Recordings of 8-rank jobs",
      quick: [],
      seeds: "none",
    },
  ],
  site: [{ script: "site-month.ts", title: "A rehearsed month with feedback", quick: QUICK }],
  traces: [{ script: "traces/run.ts", title: "Why is the code slower", quick: QUICK }],
} as const satisfies Readonly<Record<string, readonly Evaluation[]>>;

export type Topic = keyof typeof TOPICS;
export type Script = (typeof TOPICS)[Topic][number]["script"];

export const TOPIC_NAMES = Object.keys(TOPICS) as Topic[];

/**
 * Asked by name only, and no part of the document: the first wants recordings that hold rings and dumps of one job, the
 * second rows that `joint --json` wrote, and makes tables of the verdict's weights of them.
 */
export const ON_REQUEST: Readonly<Record<string, readonly Evaluation[]>> = {
  "generated-hangs": [
    { script: "generated-hangs.ts", title: "Generated hangs", quick: ["20000", "40"] },
  ],
  probe: [{ script: "probe/agree.ts", title: "Rings and flight recorder", quick: [] }],
  intermittent: [
    {
      script: "live/intermittent.ts",
      title: "Spikes and fluctuations, with options",
      quick: ["--jobs", "1", "--healthy", "0"],
    },
  ],
  "ring-links": [
    { script: "live/ring-links.ts", title: "Slow links of rings", quick: ["--jobs", "1"] },
  ],
  "live-recorded": [
    { script: "live/recorded.ts", title: "The live service beside recorded jobs", quick: [] },
  ],
  damage: [
    { script: "recordings/damage.ts", title: "Recorded jobs with evidence missing", quick: [] },
  ],
  "live-shares": [
    {
      script: "live/shares.ts",
      title: "The judge of running jobs, without the service",
      quick: [],
    },
  ],
  fit: [
    { script: "joint/fit.ts", title: "What a method's word is worth", quick: [], isWriter: true },
  ],
};
