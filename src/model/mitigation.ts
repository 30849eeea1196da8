/**
 * What is moved and shared out when a job is to live with a fault (Greyhound §5): replicas that take fewer
 * micro-batches, and GPUs that change places.
 *
 * A *place* is (replica, stage) of the layout, counted stage · replicas + replica. A *slot* is the GPUs that fill one
 * place: a tensor- and context-parallel group, which stays together in its machine. Slot i sits at place i before
 * anything is moved.
 */

export interface Slot {
  /** "node003", or "node003/gpu0-1" where a machine has several. */
  readonly name: string;
  readonly machine: string;
  /** Factor on the time of its kernels, 1 for healthy. */
  readonly compute: number;
  /** Factor on everything that passes its NICs, 1 for healthy. */
  readonly network: number;
}

/** A congested way between two slots; whatever they send each other takes `factor` times as long. */
export interface SlowLink {
  readonly a: number;
  readonly b: number;
  readonly factor: number;
}

/** What a job costs on healthy devices, and what is wrong with them. Times in ms. */
export interface PlacedJob {
  readonly replicas: number;
  readonly stages: number;
  /** By replica: micro-batches an iteration. */
  readonly microBatches: readonly number[];
  /** By stage: forward and backward pass of one micro-batch on healthy GPUs. */
  readonly stageMs: readonly number[];
  /** By stage: gradients reduced and parameters gathered over the network, what is not hidden behind compute. */
  readonly gradientMs: readonly number[];
  /** One micro-batch's activations from a stage to the next over the network; counted once each way. */
  readonly activationMs: number;
  /** What every iteration has besides, whatever is moved; below 0 where part of the exchange hides behind compute. */
  readonly restMs: number;
  /** By slot; replicas · stages of them. */
  readonly slots: readonly Slot[];
  readonly links: readonly SlowLink[];
}

export interface Swap {
  readonly a: number;
  readonly b: number;
}

export interface TopologyPlan {
  /** In order; each exchanges the places of two slots. */
  readonly swaps: readonly Swap[];
  /** By slot: the place that it has in the end. */
  readonly placeOf: Int32Array;
  /** Expected time of an iteration before and after, and with healthy devices. */
  readonly beforeMs: number;
  readonly afterMs: number;
  readonly healthyMs: number;
  /** One sentence: what the swaps achieve. */
  readonly why: string;
}

/** How many micro-batches each replica takes (S2). */
export interface MicroBatchPlan {
  readonly allocation: readonly number[];
  /** max over replicas of fixed + micro-batches · time. */
  readonly makespan: number;
  /** No allocation, not even of fractions of a micro-batch, is faster. */
  readonly lowerBound: number;
  /** What each replica's mean gradient is multiplied with before replicas are averaged, so that the loss stays the same. */
  readonly weights: readonly number[];
}

export type Strategy = "S1" | "S2" | "S3" | "S4";

/** One thing that can be done about a fault (Greyhound's Table 2). */
export interface Remedy {
  readonly strategy: Strategy;
  /** Time that doing it (and undoing it) costs the job once. */
  readonly overheadMs: number;
  /** Expected time of an iteration with it. */
  readonly iterationMs: number;
  readonly why: string;
}

/** One step of a plan, as documents have it. */
export interface MitigationStep {
  readonly strategy: Strategy;
  /** "rebalance-microbatches", "swap-nodes", "restart-without" */
  readonly do: string;
  /** Expected time of an iteration with it; null where that is not known. */
  readonly iterationMs: number | null;
  readonly overheadMs: number;
  /** After so many slow iterations it has paid, if it lasts; null: never. */
  readonly afterIterations: number | null;
  readonly why: string;
  /** By replica. */
  readonly microBatches?: readonly number[];
  readonly gradientWeights?: readonly number[];
  /** Pairs of machines (or parts of machines) that exchange places, in order. */
  readonly swaps?: readonly (readonly [string, string])[];
  readonly exclude?: readonly string[];
  /** Where ranks sit after the swaps, for launchers; absent where ranks or machines are not known. */
  readonly placement?: Placement;
}

/** By rank, from 0 on. */
export interface Placement {
  /** The rank whose GPU it has before the swaps. */
  readonly gpuOf: readonly number[];
  readonly hosts: readonly string[];
}

/** What to do while a fault lasts, cheapest first (Greyhound §5.1). */
export interface Mitigation {
  readonly nowMs: number;
  /** Without this fault: where others are slow as well, that is not the job's healthy pace. */
  readonly healthyMs: number;
  /** Others that are slow meanwhile, and what an iteration takes without any of them. Absent where there are none. */
  readonly beside?: { readonly ranks: readonly number[]; readonly healthyMs: number };
  /** Times the loss of the best choice in hindsight, at most. */
  readonly bound: number;
  readonly steps: readonly MitigationStep[];
  /** What was taken for granted, a sentence each. */
  readonly assumes: readonly string[];
}
