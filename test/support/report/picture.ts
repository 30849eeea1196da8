/** Made-up pictures and verdicts, for tests and for looking: a slow GPU, and a job that stands still. */
import type { Rank } from "../../../src/model/ids.ts";
import type { Incident } from "../../../src/model/incident.ts";
import type { MachinePicture } from "../../../src/model/machine-picture.ts";
import type {
  IncidentPicture,
  LogExcerpt,
  StoryBar,
  StoryHop,
} from "../../../src/model/picture.ts";
import {
  CPU_ACTIVITIES,
  GPU_ACTIVITIES,
  type CpuActivity,
  type GpuActivity,
  type RankLane,
  type TimelinePicture,
} from "../../../src/model/trace-picture.ts";
import type { Verdict } from "../../../src/model/verdict.ts";

/** Every text that a stranger could have written passes through here. */
export type Texts = (plain: string) => string;
const asIs: Texts = (plain) => plain;

const CULPRIT = 17;
const ONSET_MS = Date.UTC(2026, 10, 15, 0, 41, 49, 457);
const machineOf = (rank: Rank): string => `node${String(Math.floor(rank / 8)).padStart(3, "0")}`;
/** Something uneven, the same every time. */
const uneven = (i: number): number => ((i * 7919) % 101) / 101;

export interface Sample {
  readonly verdict: Verdict;
  readonly picture: IncidentPicture;
  readonly incident: Incident;
}

export function slowGpu(text: Texts = asIs): Sample {
  const verdict = slowVerdict(text);
  return {
    verdict,
    incident: incidentOf(verdict, text),
    picture: {
      schema: "faultline.picture/1",
      story: {
        hops: slowHops(text),
        ends: text(
          `Rank ${CULPRIT} (node002) waits for no other rank: its GPU computes slowly. An iteration takes 497 ms, 262 ms before.`,
        ),
      },
      metrics: metrics(text),
      logs: logs(text),
      timeline: timeline(text),
      lacks: [text("No NIC counters of node002: they were not collected.")],
    },
  };
}

/** All of one machine never arrived to what the others wait in. */
export function standstill(text: Texts = asIs): Sample {
  const { verdict: slow, picture } = slowGpu(text);
  const verdict: Verdict = {
    ...slow,
    kind: "hang",
    victims: slow.victims.filter((rank) => machineOf(rank) !== "node003").concat(CULPRIT),
    summary: text(
      "The eight ranks of node003 never arrived to all_gather #88: the machine is gone.",
    ),
    when: { iteration: null, from: "2026-11-15T00:41:49.457Z", to: null },
    mitigation: null,
    suspects: [
      {
        ...slow.suspects[0]!,
        type: "machine",
        ranks: [24, 25, 26, 27, 28, 29, 30, 31],
        machine: text("node003"),
        cause: "process-gone",
        why: text("node003 left no dump and does not report any more"),
      },
    ],
  };
  const bars = Array.from({ length: 64 }, (_, rank): StoryBar => {
    const isGone = machineOf(rank) === "node003";
    return {
      rank,
      machine: text(machineOf(rank)),
      ms: isGone ? null : 600_000 + 900 * uneven(rank),
      beforeMs: null,
      role: isGone ? "absent" : "waits",
    };
  });
  return {
    verdict,
    incident: incidentOf(verdict, text),
    picture: {
      ...picture,
      story: {
        hops: [
          {
            kind: "collective",
            title: text("all_gather #88 of DEFAULT"),
            says: text("56 of 64 ranks have waited for 10 minutes; ranks 24–31 never arrived."),
            from: 0,
            to: 24,
            bars,
            leftOut: 192,
          },
        ],
        ends: text("Ranks 24–31 do nothing: their processes are gone with node003."),
      },
      timeline: null,
      lacks: [text("A job that stands still has no iteration to compare.")],
    },
  };
}

function slowHops(text: Texts): StoryHop[] {
  const bar = (
    rank: Rank,
    ms: number,
    role: StoryBar["role"],
    beforeMs: number | null,
  ): StoryBar => ({
    rank,
    machine: text(machineOf(rank)),
    ms,
    beforeMs,
    role,
  });
  const peers = Array.from({ length: 16 }, (_, i) => 16 + i);
  return [
    {
      kind: "inside",
      title: text("time in operators, of an iteration: DATA_PARALLEL_1"),
      says: text(
        "Rank 17 waits 229 ms less in each iteration than the 15 others of DATA_PARALLEL_1 (before: about as long as they); by chance such leads are 4 ms. Medians of 40 iterations.",
      ),
      from: 16,
      to: CULPRIT,
      bars: peers.map((rank) =>
        rank === CULPRIT
          ? bar(CULPRIT, 85, "late", 81)
          : bar(rank, 310 + 8 * uneven(rank), "waits", 80 + 8 * uneven(rank)),
      ),
      leftOut: 0,
    },
    {
      kind: "own",
      title: text("time outside operators, of an iteration"),
      says: text("Rank 17 spends 412 ms, 181 ms before; its peers spend 184 ms."),
      from: CULPRIT,
      to: CULPRIT,
      bars: peers.map((rank, i) =>
        rank === CULPRIT
          ? bar(CULPRIT, 412, "late", 181)
          : bar(rank, 180 + 8 * uneven(i), "waits", 179 + 8 * uneven(i)),
      ),
      leftOut: 0,
    },
  ];
}

function slowVerdict(text: Texts): Verdict {
  return {
    schema: "faultline.verdict/1",
    kind: "fail-slow",
    summary: text(
      "The GPU of rank 17 on node002 computes at less than half its pace, and the other 63 ranks wait for it.",
    ),
    confidence: 0.94,
    when: { iteration: 801, from: "2026-11-15T00:41:49.457Z", to: null },
    suspects: [
      {
        type: "gpu",
        ranks: [CULPRIT],
        machine: text("node002"),
        link: null,
        name: null,
        cause: "gpu-slow",
        score: 0.91,
        why: text(
          "Rank 17 computes 412 ms per iteration, its peers 184 ms; its GPU runs at 780 MHz.",
        ),
        evidence: ["f1", "f2"],
      },
      ...[40, 41, 42, 43, 44].map((rank, i) => ({
        type: "link" as const,
        ranks: [rank],
        machine: text(machineOf(rank)),
        link: [text("node005"), text("leaf2")] as const,
        name: text(`node005/mlx5_${i}`),
        cause: "network-slow" as const,
        score: 0.03 - 0.005 * i,
        why: text("Transfers over this link take 1.2 times as long as others."),
        evidence: ["f3"],
      })),
    ],
    victims: Array.from({ length: 64 }, (_, rank) => rank).filter((rank) => rank !== CULPRIT),
    owner: "operations",
    actions: [
      {
        do: text("check-gpu"),
        target: text("rank 17 on node002"),
        why: text(
          "nvidia-smi -q shows its clocks and why they are held down; dmesg | grep -i xid, too",
        ),
      },
      {
        do: "replace-machine",
        target: text("node002"),
        why: text("if it stays slow, take it out"),
      },
    ],
    mitigation: {
      nowMs: 497,
      healthyMs: 262,
      bound: 2,
      steps: [
        {
          strategy: "S2",
          do: "rebalance-microbatches",
          iterationMs: 331,
          overheadMs: 0,
          afterIterations: 1,
          why: text("replica 0 takes fewer micro-batches"),
          microBatches: [5, 9, 9, 9, 8, 8, 8, 8],
        },
        {
          strategy: "S4",
          do: "restart-without",
          iterationMs: 262,
          overheadMs: 600_000,
          afterIterations: 2_553,
          why: text("restart on a healthy machine"),
          exclude: [text("node002")],
        },
      ],
      assumes: [text("a spare machine is free")],
    },
    findings: [
      {
        id: "f1",
        method: "slow/judge",
        says: text("rank 17's own time rose from 181 to 412 ms at iteration 801"),
        weight: 0.9,
        at: [{ file: text("/run/42/rank17.log"), line: 4 }],
        data: { fact: "stopped-rank", side: "cpu", last: text("by level") },
      },
      {
        id: "f2",
        method: "machines/peers",
        says: text("gpu1 of node002 runs at 780 MHz, peers at 1,755 MHz"),
        weight: 0.8,
        at: [],
        data: { fact: "remark" },
      },
      {
        id: "f3",
        method: "validation/tests",
        says: text("a slow link"),
        weight: 0.1,
        at: [],
        data: { fact: "remark" },
      },
    ],
    inputs: [{ path: text("/run/42"), format: "flight-recorder", rank: null, records: 128_000 }],
    missing: [text("rank 6 left no dump")],
    wouldHelp: [text("GPU metrics of node005")],
  };
}

function incidentOf(verdict: Verdict, text: Texts): Incident {
  const base = { target: text("node002"), changedMs: ONSET_MS + 30_000, canRun: true, data: {} };
  return {
    id: "inc-1",
    job: text("llama-70b"),
    run: "run-7",
    revision: 3,
    state: "confirmed",
    kind: verdict.kind === "hang" ? "hang" : "fail-slow",
    summary: verdict.summary,
    onsetMs: ONSET_MS,
    openedMs: ONSET_MS + 6_000,
    changedMs: ONSET_MS + 30_000,
    resolvedMs: null,
    fromIteration: verdict.when.iteration,
    relapses: 0,
    verdict,
    machines: [text("node002")],
    ranks: [CULPRIT],
    wastedGpuMs: 64 * 3_600_000,
    actions: [
      {
        ...base,
        id: "a1",
        do: "cordon-node",
        why: text("its GPU is slow"),
        state: "proposed",
        outcome: "",
      },
      {
        ...base,
        id: "a2",
        do: "micro-batches",
        why: text("replica 0 takes fewer"),
        state: "proposed",
        outcome: "",
        canRun: false,
      },
      {
        ...base,
        id: "a3",
        do: "exclude-node",
        why: text("tried"),
        state: "failed",
        outcome: text("scontrol: permission denied"),
      },
    ],
  };
}

function metrics(text: Texts): MachinePicture[] {
  const startS = ONSET_MS / 1000 - 600;
  const timeS = Array.from({ length: 120 }, (_, i) => startS + 10 * i);
  const picture = (
    metric: string,
    title: string,
    unit: string,
    level: number,
    then: number | null,
  ): MachinePicture => ({
    machine: text("node002"),
    metric,
    title: text(title),
    unit,
    device: text("gpu1"),
    timeS,
    value: timeS.map((_, i) =>
      i < 60 ? level * (1 + 0.02 * uneven(i)) : then && then * (1 + 0.02 * uneven(i)),
    ),
    low: timeS.map((_, i) => level * (0.97 + 0.01 * uneven(i))),
    middle: timeS.map((_, i) => level * (1 + 0.01 * uneven(i + 3))),
    high: timeS.map((_, i) => level * (1.04 + 0.01 * uneven(i + 5))),
    fromS: startS + 600,
    toS: startS + 1_195,
  });
  return [
    picture("gpu-clock", "GPU clock", "MHz", 1_755, 780),
    picture("gpu-power-draw", "GPU power", "W", 612, 271),
    picture("gpu-temperature", "GPU temperature", "°C", 64, 93),
    picture("pcie-throughput", "PCIe received", "B/s", 9.1e9, null),
  ];
}

function logs(text: Texts): LogExcerpt[] {
  const line = (
    at: number,
    words: string,
    isKey: boolean,
    count = 1,
  ): LogExcerpt["lines"][number] => ({
    line: at,
    text: text(words),
    isKey,
    timeMs: ONSET_MS + 137 * at,
    count,
  });
  return [
    {
      file: text("/run/42/node002.dmesg"),
      rank: null,
      node: text("node002"),
      lines: [
        line(4_011, "nvidia-nvswitch0: link 3 up", false),
        line(
          4_012,
          "NVRM: GPU at PCI:0000:1b:00: power brake slowdown asserted, clocks limited to 780 MHz",
          true,
        ),
        line(4_013, "NVRM: thermal event", false, 1_204),
        line(4_020, `traceback: ${"frame at 0xffffffff81 in scheduler_tick; ".repeat(24)}`, false),
      ],
    },
    {
      file: text("/run/42/rank17.log"),
      rank: CULPRIT,
      node: text("node002"),
      lines: [
        line(811, "iteration 800: 262.1 ms, loss 2.114", false),
        line(
          812,
          `iteration 801: 497.3 ms <script>alert("x")</script> \u202egnp.exe\u202c [31m`,
          true,
        ),
        { line: null, text: text("the end of the file"), isKey: false, timeMs: null, count: 1 },
      ],
    },
  ];
}

function timeline(text: Texts): TimelinePicture {
  const parts = 240;
  const shares = <K extends string>(
    keys: readonly K[],
    share: (key: K, part: number) => number,
  ): Record<K, Float32Array> =>
    Object.fromEntries(
      keys.map((key) => [key, Float32Array.from({ length: parts }, (_, part) => share(key, part))]),
    ) as Record<K, Float32Array>;
  const lane = (rank: Rank, busy: number): RankLane => ({
    rank,
    gpu: shares<GpuActivity>(GPU_ACTIVITIES, (key, part) =>
      part / parts < busy
        ? { matrix: 0.7, minority: 0.2, copy: 0.05, communication: 0, "launch-gap": 0.05, idle: 0 }[
            key
          ]
        : Number(key === "communication"),
    ),
    communication: Float32Array.from({ length: parts }, (_, part) => Number(part / parts >= busy)),
    cpu: shares<CpuActivity>(CPU_ACTIVITIES, (key, part) =>
      key === "launch" ? 0.4 : key === "synchronization" && part % 60 < 6 ? 0.5 : 0,
    ),
    calls: [
      { activity: "synchronization", name: text("cudaStreamSynchronize"), startMs: 120, durMs: 31 },
      { activity: "memory-management", name: text("cudaMalloc"), startMs: 140, durMs: 4 },
    ],
    steps: [{ number: 812, startMs: 20, endMs: 480 }],
    isAligned: rank !== 3,
    ms: {
      matrix: 350 * busy,
      minority: 100 * busy,
      copy: 25 * busy,
      communication: 500 * (1 - busy),
      "launch-gap": 25 * busy,
      idle: 0,
    },
  });
  return {
    rank: CULPRIT,
    step: 812,
    stepMs: 460,
    windowMs: 500,
    parts,
    lanes: [lane(CULPRIT, 0.93), lane(16, 0.42), lane(3, 0.45)],
    leftOut: [40, 41],
  };
}

export const SLOW_PICTURE: IncidentPicture = slowGpu().picture;
export const HANG_PICTURE: IncidentPicture = standstill().picture;
