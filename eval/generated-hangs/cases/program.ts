import type { Role } from "../../../src/simulate/flight/rank-records.ts";
import type { Layout, Membership } from "./layout.ts";
import { stageOf } from "./layout.ts";
import { noise } from "./noise.ts";
import type { Kind, Op, Shape, Site } from "../../../src/simulate/flight/op.ts";
import { shapeOf } from "../../../src/simulate/flight/op.ts";
import { WAIT_ALL } from "./op-rules.ts";
import type { Action, Schedule } from "./schedule.ts";
import { stageActions } from "./schedule.ts";

export interface ProgramOptions {
  readonly iterations: number;
  readonly microBatches: number;
  readonly layers: number;
  readonly schedule: Schedule;
  /** One all_reduce a layer and direction, or sequence parallelism's gather and scatter. */
  readonly tensor: "all_reduce" | "gather-scatter";
  /** Gradients: after the backward pass, overlapped with it, or sharded (then parameters are gathered). */
  readonly data: "all_reduce" | "overlapped" | "sharded";
  readonly embedding: boolean;
  readonly experts: boolean;
  /** Routing sizes come back to the CPU before tokens are dispatched, which stops it from running ahead. */
  readonly expertSync: boolean;
  /** What the whole world does once an iteration. */
  readonly world: "none" | "barrier" | "all_reduce";
  /** Copying a batch from pageable memory makes the first stage's CPU wait, as in the lab's recordings. */
  readonly loadSync: boolean;
  /** A collective in the pipeline groups at the start: P2P entries then carry its stale number. */
  readonly pipelineWarmUp: boolean;
  /** Tokens of a micro-batch; a multiple of tp. */
  readonly sequence: number;
  readonly hidden: number;
}

/** The operators of one rank over all iterations, in the order in which its CPU issues them. */
export function rankProgram(
  rank: number,
  layout: Layout,
  joined: readonly Membership[],
  options: ProgramOptions,
  seed: number,
): Op[] {
  const program = new RankProgram(rank, layout, joined, options, seed);
  program.warmUp();
  for (let iteration = 0; iteration < options.iterations; iteration++) program.iterate(iteration);
  return program.ops;
}

interface Call {
  readonly kind: Kind;
  readonly site: Site;
  readonly shape: Shape;
  readonly gapNs: number;
  readonly dtype?: string;
  readonly async?: boolean;
  readonly peer?: number;
}

class RankProgram {
  readonly ops: Op[] = [];
  readonly #layout: Layout;
  readonly #joined: readonly Membership[];
  readonly #options: ProgramOptions;
  readonly #seed: number;
  readonly #stage: number;
  /** Micro-batches that the data loader's copies let the CPU be ahead of the GPU. */
  readonly #runAhead: number;
  readonly #activation: Shape;
  readonly #gather: Shape;
  readonly #scatter: Shape;
  #iteration = 0;
  #hostWait = 0;
  #dispatches = 0;

  constructor(
    rank: number,
    layout: Layout,
    joined: readonly Membership[],
    options: ProgramOptions,
    seed: number,
  ) {
    this.#layout = layout;
    this.#joined = joined;
    this.#options = options;
    this.#seed = seed;
    this.#stage = stageOf(layout, rank);
    this.#runAhead = noise(seed, rank, 1) < 0.5 ? 0 : 1;
    const { sequence, hidden } = options;
    this.#activation = shapeOf([1, sequence, hidden]);
    const shard = [sequence / layout.tp, 1, hidden];
    const whole = [sequence, 1, hidden];
    this.#gather = shapeOf(shard, whole);
    this.#scatter = shapeOf(whole, shard);
  }

  warmUp(): void {
    this.#barrier("warm-up");
    if (this.#options.pipelineWarmUp && this.#layout.pp > 1) {
      const shape = shapeOf([2]);
      this.#add("pp", { kind: "broadcast", site: "warm-up", shape, dtype: "Long", gapNs: 0 });
    }
  }

  iterate(iteration: number): void {
    const { schedule, microBatches, loadSync, world } = this.#options;
    this.#iteration = iteration;
    this.#hostWait = WAIT_ALL;
    if (world === "barrier") this.#barrier("norm");
    const ends: number[] = [];
    stageActions(schedule, this.#stage, this.#layout.pp, microBatches).forEach((action, a) => {
      if (loadSync && this.#stage === 0 && action.forward && a > this.#runAhead)
        this.#waitFor(ends[a - 1 - this.#runAhead] as number);
      this.#pass(action);
      ends.push(this.ops.length - 1);
    });
    this.#gradients();
    if (world === "all_reduce") {
      const shape = shapeOf([1]);
      this.#add("default", { kind: "all_reduce", site: "norm", shape, dtype: "Float", gapNs: 3e4 });
    }
  }

  #pass({ forward, microBatch }: Action): void {
    const { layers, microBatches, schedule } = this.#options;
    const from = forward ? this.#stage - 1 : this.#stage + 1;
    const to = forward ? this.#stage + 1 : this.#stage - 1;
    if (this.#isStage(from)) this.#p2p("recv", from, false);
    for (let layer = 0; layer < layers; layer++) {
      this.#tensor(forward ? "forward" : "backward");
      // Experts in the last layer only: enough to mix the groups, and half the records.
      if (this.#options.experts && layer === layers - 1) this.#experts(forward);
      if (this.#options.data === "overlapped" && !forward && microBatch === microBatches - 1) {
        const shape = shapeOf([this.#options.hidden * (layers + 1 - layer)]);
        this.#add("dp", { kind: "all_reduce", site: "gradients", shape, gapNs: 0, async: true });
      }
    }
    // Blocking sends would deadlock in 1f1b, where neighbours send to each other at the same time.
    if (this.#isStage(to)) this.#p2p("send", to, schedule === "1f1b");
  }

  #tensor(site: Site): void {
    if (this.#options.tensor === "all_reduce") {
      this.#add("tp", { kind: "all_reduce", site, shape: this.#activation, gapNs: 4e5 });
      return;
    }
    this.#add("tp", { kind: "_all_gather_base", site, shape: this.#gather, gapNs: 8e4 });
    this.#add("tp", { kind: "_reduce_scatter_base", site, shape: this.#scatter, gapNs: 3.5e5 });
  }

  #experts(forward: boolean): void {
    const { sequence, hidden, expertSync } = this.#options;
    const { group, groupRank } = this.#membership("expert");
    const call = this.#dispatches++;
    const share = (i: number): number =>
      Math.floor(64 * noise(this.#seed, group.index, call, i % group.ranks.length));
    // Differences that telescope: what the members send adds up to what they receive.
    const routed = [sequence + share(groupRank) - share(groupRank + 1), hidden];
    const own = [sequence, hidden];
    const site = forward ? "experts-forward" : "experts-backward";
    if (expertSync && forward) this.#waitFor(this.ops.length - 1);
    const there = shapeOf(own, routed);
    const back = shapeOf(routed, own);
    this.#add("expert", { kind: "all_to_all", site, shape: there, gapNs: 6e4 });
    this.#add("expert", { kind: "all_to_all", site, shape: back, gapNs: 2e5 });
  }

  #gradients(): void {
    const { layers, hidden, data, embedding } = this.#options;
    const site = "gradients";
    if (data === "all_reduce")
      for (let layer = 0; layer < layers; layer++) {
        this.#add("dp", { kind: "all_reduce", site, shape: shapeOf([hidden]), gapNs: 1e4 });
        this.#add("dp", {
          kind: "all_reduce",
          site,
          shape: shapeOf([2 * hidden, hidden]),
          gapNs: 1e4,
        });
      }
    if (data === "sharded") {
      const whole = [this.#layout.dp * hidden * 8];
      const shard = [hidden * 8];
      const down = shapeOf(whole, shard);
      const up = shapeOf(shard, whole);
      const dtype = "Float";
      this.#add("dp", { kind: "_reduce_scatter_base", site, shape: down, dtype, gapNs: 1e4 });
      this.#add("dp", { kind: "_all_gather_base", site: "parameters", shape: up, gapNs: 5e5 });
    }
    const last = this.#layout.pp - 1;
    if (embedding && last > 0 && (this.#stage === 0 || this.#stage === last)) {
      const shape = shapeOf([hidden, 128]);
      this.#add("embedding", { kind: "all_reduce", site: "embedding", shape, gapNs: 1.5e4 });
    }
  }

  #barrier(site: Site): void {
    const shape = shapeOf([1]);
    this.#add("default", { kind: "all_reduce_barrier", site, shape, dtype: "Float", gapNs: 2e4 });
  }

  #p2p(kind: "send" | "recv", peer: number, async: boolean): void {
    const gapNs = async ? 0 : 1.5e4;
    this.#add("pp", { kind, site: kind, shape: this.#activation, gapNs, async, peer });
  }

  #isStage(stage: number): boolean {
    return stage >= 0 && stage < this.#layout.pp;
  }

  #membership(role: Role): Membership {
    return this.#joined.find((m) => m.group.role === role) as Membership;
  }

  #waitFor(index: number): void {
    if (this.#hostWait === 0) this.#hostWait = this.ops.length - index;
  }

  #add(role: Role, call: Call): void {
    this.ops.push({
      group: this.#membership(role).group.index,
      kind: call.kind,
      peer: call.peer ?? -1,
      shape: call.shape,
      dtype: call.dtype ?? "BFloat16",
      async: call.async ?? false,
      hostWait: this.#hostWait,
      gapNs: call.gapNs,
      iteration: this.#iteration,
      site: call.site,
    });
    this.#hostWait = 0;
  }
}
