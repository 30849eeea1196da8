/**
 * The rows of FLARE's Table 4 and the steps of Table 5 as faults. How strong each is comes from the paper: an MFU
 * decline of x makes a step 1 / (1 − x) times as long. Where it gives one job only, severities are drawn from that
 * figure down to a half of it.
 */
import { pick, randomInt, type Random } from "../../src/base/random.ts";
import type { Cause } from "../../src/model/cause.ts";
import type { ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { between, type JobKind } from "./jobs.ts";
import { unfusedCost } from "./minority-steps.ts";

export interface DrawnFault {
  readonly text: string;
  /** Ranks at fault; empty where it is the code, the same on all. */
  readonly culprits: readonly number[];
}

export interface RegressionKind {
  readonly name: string;
  readonly cause: Cause;
  readonly paper: string;
  readonly jobs: readonly JobKind[];
  readonly leastGpus: number;
  readonly mostGpus?: number;
  /** All ranks leave a trace, as they do under FLARE; where not, a few. */
  readonly isWholeJob?: boolean;
  /** What the run has that its baseline has not, besides the fault. */
  readonly change?: (spec: ClusterSpec) => ClusterSpec;
  /** What both must have. */
  readonly needs?: Partial<ClusterSpec>;
  draw(random: Random, spec: ClusterSpec): DrawnFault;
}

/** Step growth that goes with an MFU decline. */
export const growth = (decline: number): number => 1 / (1 - decline) - 1;
const code = (text: string): DrawnFault => ({ text, culprits: [] });
const cost = (value: number): string => `cost=${value.toFixed(5)}`;
/** Longer sequences need more of everything; masks grow with their square (FLARE §7.3.3). */
const LONGER = 2;
/** Factor on the time of what runs at so much less of its speed. */
const slower = (decline: number): string => (1 / (1 - decline)).toFixed(3);
/** Small machines, so that a job of eight crosses them. */
const WHOLE = {
  leastGpus: 8,
  mostGpus: 8,
  isWholeJob: true,
  needs: { gpusPerMachine: 4 },
} as const;
const LLMS = ["megatron", "fsdp", "vision"] as const;

export const REGRESSIONS: readonly RegressionKind[] = [
  {
    name: "Python GC",
    cause: "garbage-collection",
    paper: "10 % (Llama-80B), 60 % (LlamaVision-11B)",
    jobs: LLMS,
    leastGpus: 8,
    draw: (random) =>
      code(
        `garbage-collection:how=now-and-then:${cost(growth(pick(random, [0.1, between(random, 0.1, 0.3), 0.6])))}`,
      ),
  },
  {
    name: "unnecessary sync",
    cause: "synchronization",
    paper: "2.66 % (Llama-20B)",
    jobs: LLMS,
    leastGpus: 8,
    draw: (random) =>
      code(
        `synchronization:how=${pick(random, ["layer", "micro-batch"])}:${cost(pick(random, [0.0266, between(random, 0.0266, 0.1)]))}`,
      ),
  },
  {
    name: "package checking",
    cause: "user-program",
    paper: "30 % (LlamaVision-20B)",
    jobs: ["megatron", "fsdp", "vision", "vision"],
    leastGpus: 8,
    needs: { pythonStacks: true },
    draw: (random) =>
      code(`user-program:how=package-check:${cost(growth(between(random, 0.15, 0.3)))}`),
  },
  {
    name: "memory management",
    cause: "memory-management",
    paper: "19 % (Llama-176B)",
    jobs: LLMS,
    leastGpus: 8,
    draw: (random) =>
      code(
        `memory-management:how=${pick(random, ["layer", "micro-batch"])}:${cost(growth(between(random, 0.095, 0.19)))}`,
      ),
  },
  {
    name: "dataloader",
    cause: "dataloader",
    paper: "41 % (Llama-80B)",
    jobs: ["megatron", "fsdp", "vision", "recommendation"],
    leastGpus: 8,
    draw: (random) => code(`dataloader:${cost(growth(between(random, 0.1, 0.41)))}`),
  },
  {
    name: "mask generation",
    cause: "dataloader",
    paper: "41 % (Llama-80B at 64k)",
    jobs: ["megatron", "fsdp"],
    leastGpus: 8,
    change: (spec) => ({ ...spec, sequence: LONGER * spec.sequence }),
    draw: () => code(`dataloader:how=mask:${cost(growth(0.41))}`),
  },
  {
    name: "backend migration",
    cause: "gemm-layout",
    paper: "33.3 % (Llama-80B), the kernels 65.3 %",
    jobs: ["megatron"],
    leastGpus: 8,
    // 33 % fewer FLOPS of these kernels up to the paper's 65.3 %.
    draw: (random) => code(`gemm-layout:severity=${slower(between(random, 0.33, 0.653))}`),
  },
  {
    name: "GPU underclocking",
    cause: "gpu-slow",
    paper: "14 % (Llama-65B)",
    jobs: LLMS,
    leastGpus: 8,
    draw(random, spec) {
      const ranks = pick(random, [1, 1, 2]);
      const first = randomInt(random, spec.gpus - 1);
      const culprits = Array.from({ length: ranks }, (_, i) => first + i);
      const text = `gpu-slow:rank=${culprits.join(",")}:severity=${slower(0.14)}`;
      return { text, culprits };
    },
  },
  {
    name: "network jitter",
    cause: "network-slow",
    paper: "10 to 20 % (Llama-65B)",
    jobs: ["megatron", "fsdp"],
    ...WHOLE,
    draw: (random) => code(`network-slow:${cost(growth(between(random, 0.1, 0.2)))}`),
  },
  {
    // Milder than the paper's: what is lost is bandwidth, of which the step sees a part.
    name: "bandwidth 10 to 20 % down",
    cause: "network-slow",
    paper: "",
    jobs: ["megatron", "fsdp"],
    ...WHOLE,
    draw: (random) => code(`network-slow:severity=${slower(between(random, 0.1, 0.2))}`),
  },
  {
    name: "GDR down",
    cause: "network-slow",
    paper: "80 %, 62.5 % (Llama-10B)",
    jobs: ["megatron", "fsdp"],
    ...WHOLE,
    draw: (random) =>
      code(`network-slow:machine=node000:severity=${slower(pick(random, [0.625, 0.8]))}`),
  },
  {
    name: "GDR down, few ranks traced",
    cause: "network-slow",
    paper: "as before",
    jobs: ["megatron", "fsdp"],
    leastGpus: 16,
    draw: (random) =>
      code(`network-slow:machine=node000:severity=${slower(pick(random, [0.625, 0.8]))}`),
  },
  {
    name: "minority kernels",
    cause: "minority-kernels",
    paper: "V_minority 9 → 14, 15, 28 % (Table 5)",
    jobs: LLMS,
    leastGpus: 8,
    draw(random) {
      const how = pick(random, ["pe", "pe-act", "pe-act-norm"]);
      return code(`minority-kernels:how=${how}:${cost(unfusedCost(how))}`);
    },
  },
];
