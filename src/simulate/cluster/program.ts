/**
 * The operators that every rank of a stage runs in one iteration, as columns. Sizes follow the model:
 * a layer holds 12·h² parameters, a forward pass costs 24·h² operations a token, a backward pass twice
 * that (Narayanan et al., SC '21); one micro-batch is one sequence.
 */
import type { ClusterSpec } from "./spec.ts";
import { stagePasses, type Pass } from "./schedule.ts";

export const ALL_GATHER = 0;
export const REDUCE_SCATTER = 1;
export const ALL_REDUCE = 2;
export const ALL_TO_ALL = 3;
export const SEND = 4;
export const RECV = 5;
/** No communication: the optimizer's kernels. */
export const COMPUTE = 6;

export const TP = 0;
export const CP = 1;
export const DP = 2;
export const EP = 3;
export const PP = 4;
/** First and last stage, which share the embedding. */
export const EMBEDDING = 5;
export const WORLD = 6;
export const NO_GROUP = 7;

export const FORWARD = 0;
export const BACKWARD = 1;
export const GRADIENTS = 2;
export const OPTIMIZER = 3;

export interface StageProgram {
  readonly stage: number;
  readonly count: number;
  readonly kind: Uint8Array;
  readonly role: Uint8Array;
  /** Bytes that a rank puts in (all_gather, sends) or takes out of (reduce_scatter) the operator. */
  readonly bytes: Float64Array;
  /** Mean time of the kernels in front of it on the compute stream, of a healthy GPU. */
  readonly computeNs: Float64Array;
  /** What of it belongs to attention, to the feed-forward block and to the norms of layers. */
  readonly attentionNs: Float64Array;
  readonly feedForwardNs: Float64Array;
  readonly normNs: Float64Array;
  /** The operator (asynchronous) that must have ended before these kernels begin; -1 for none. */
  readonly waitsFor: Int32Array;
  /** 1 where later operators do not wait for it until the gradients are needed. */
  readonly async: Uint8Array;
  readonly phase: Uint8Array;
  readonly microBatch: Int16Array;
  readonly layer: Int16Array;
  /** 1 where the rank first fetches a batch from its data loader. */
  readonly loads: Uint8Array;
  /** Stage and index of the send that a recv waits for; -1 otherwise. */
  readonly peerStage: Int16Array;
  readonly peerOp: Int32Array;
}

/** Dense bf16 of an H100 at 40 % of its peak, an assumption of the order that large jobs report. */
export const FLOPS_PER_NS = 400_000;
const BYTES = 2;
/** Gradient buckets of a stage; Megatron's distributed optimizer has about one per 40 M parameters. */
const BUCKET_PARAMETERS = 40e6;
/** Kernels of a layer before the first collective: layer norm. */
const NORM_SHARE = 0.02;
/** Adam over a rank's shard, memory-bound: 16 bytes a parameter at 2.5 TB/s. */
const OPTIMIZER_NS_PER_PARAMETER = 16 / 2500;
/**
 * Logits and loss on the last stage, in layers' worth of time, each way: with four layers a stage the last
 * one takes 1.25 times the others'. An assumption, milder than ByteDance's ST trace, whose last stage
 * takes 1.64 times (0.167 s against 0.102 s).
 */
const LOSS_LAYERS = 1.5;

/** Of a layer's time; norms come twice. */
export function layerShares(spec: ClusterSpec): {
  readonly attention: number;
  readonly feedForward: number;
  readonly norm: number;
} {
  if (!spec.sharesByFlops) return { attention: 0.34, feedForward: 0.62, norm: NORM_SHARE };
  const { hidden, sequence } = spec;
  const feedForward = ((1 - 2 * NORM_SHARE) * 16 * hidden) / (24 * hidden + 4 * sequence);
  return { attention: 1 - 2 * NORM_SHARE - feedForward, feedForward, norm: NORM_SHARE };
}

const VOCABULARY = 32_000;
/** Softmax over the logits and its gradient, in layers' worth of time. */
const SOFTMAX_LAYERS = 0.1;

/** Logits, loss and their gradients, both ways together, on one rank. */
export function lossNs(spec: ClusterSpec): number {
  const { hidden, sequence, tp, cp, sharesByFlops } = spec;
  const layer = 24 * hidden * hidden + 4 * hidden * sequence;
  const layerNs = (layer * (sequence / cp)) / tp / FLOPS_PER_NS;
  if (!sharesByFlops) return 2 * LOSS_LAYERS * layerNs;
  return layerNs * ((3 * 2 * hidden * VOCABULARY) / layer + SOFTMAX_LAYERS);
}

/**
 * `mostMicroBatches`: as many as any replica may ever take, where that is more than the usual number. A replica then
 * leaves the first ones out (shares.ts), so that kernels must not be counted to the operator of another micro-batch.
 */
export function makePrograms(
  spec: ClusterSpec,
  mostMicroBatches = spec.microBatches,
): StageProgram[] {
  const isShared = mostMicroBatches > spec.microBatches;
  const largest = { ...spec, microBatches: mostMicroBatches };
  const drafts = Array.from(
    { length: spec.pp },
    (_, stage) => new StageDraft(largest, stage, isShared),
  );
  const sends = new Map<string, { stage: number; op: number }>();
  for (const draft of drafts)
    for (const [key, op] of draft.sends) sends.set(key, { stage: draft.stage, op });
  return drafts.map((draft) => draft.finish(sends));
}

class StageDraft {
  readonly stage: number;
  readonly sends = new Map<string, number>();
  readonly #spec: ClusterSpec;
  readonly #shares: ReturnType<typeof layerShares>;
  readonly #recvs: [op: number, key: string][] = [];
  readonly #columns = {
    kind: [] as number[],
    role: [] as number[],
    bytes: [] as number[],
    computeNs: [] as number[],
    attentionNs: [] as number[],
    feedForwardNs: [] as number[],
    normNs: [] as number[],
    waitsFor: [] as number[],
    async: [] as number[],
    phase: [] as number[],
    microBatch: [] as number[],
    layer: [] as number[],
    loads: [] as number[],
  };
  #computeNs = 0;
  #attentionNs = 0;
  #feedForwardNs = 0;
  #normNs = 0;
  #waitsFor = -1;
  #loads = 0;

  constructor(spec: ClusterSpec, stage: number, isShared: boolean) {
    this.stage = stage;
    this.#spec = spec;
    this.#shares = layerShares(spec);
    const passes = stagePasses(spec, stage);
    const lastBackward = passes.findLastIndex((pass) => pass.backward);
    passes.forEach((pass, i) => {
      if (pass.backward) this.#backward(pass, i === lastBackward);
      else this.#forward(pass);
      const next = passes[i + 1];
      if (isShared && next && next.microBatch !== pass.microBatch) this.#close(pass);
    });
    this.#step();
  }

  get #tokens(): number {
    return this.#spec.sequence / this.#spec.cp;
  }

  /** Time of one layer's forward pass on one rank. */
  get #layerNs(): number {
    const { hidden, sequence, tp } = this.#spec;
    const perToken = 24 * hidden * hidden + 4 * hidden * sequence;
    return (perToken * this.#tokens) / tp / FLOPS_PER_NS;
  }

  get #halfLossNs(): number {
    return this.#spec.sharesByFlops ? lossNs(this.#spec) / 2 : LOSS_LAYERS * this.#layerNs;
  }

  /** Activations of one micro-batch on one rank, with or without sequence parallelism. */
  get #activationBytes(): number {
    const { hidden, tp, sequenceParallel } = this.#spec;
    return (this.#tokens * hidden * BYTES) / (sequenceParallel ? tp : 1);
  }

  #layersOf(chunk: number): number {
    const { layersPerStage, chunks, schedule } = this.#spec;
    if (schedule !== "interleaved") return layersPerStage;
    return Math.floor(layersPerStage / chunks) + (chunk < layersPerStage % chunks ? 1 : 0);
  }

  #push(
    kind: number,
    role: number,
    bytes: number,
    phase: number,
    at: Pass | null,
    layer = -1,
    async = 0,
  ): number {
    const c = this.#columns;
    c.kind.push(kind);
    c.role.push(role);
    c.bytes.push(bytes);
    c.computeNs.push(this.#computeNs);
    c.attentionNs.push(this.#attentionNs);
    c.feedForwardNs.push(this.#feedForwardNs);
    c.normNs.push(this.#normNs);
    c.waitsFor.push(this.#waitsFor);
    c.async.push(async);
    c.phase.push(phase);
    c.microBatch.push(at?.microBatch ?? -1);
    c.layer.push(layer);
    c.loads.push(this.#loads);
    this.#computeNs = this.#attentionNs = this.#feedForwardNs = this.#normNs = 0;
    this.#waitsFor = -1;
    this.#loads = 0;
    return c.kind.length - 1;
  }

  /** Where a pass comes from and goes to; null at the ends of the model. */
  #neighbour(pass: Pass, ahead: boolean): { stage: number; chunk: number } | null {
    const { pp, schedule, chunks } = this.#spec;
    const lastChunk = schedule === "interleaved" ? chunks - 1 : 0;
    if (ahead) {
      if (this.stage < pp - 1) return { stage: this.stage + 1, chunk: pass.chunk };
      return pass.chunk < lastChunk ? { stage: 0, chunk: pass.chunk + 1 } : null;
    }
    if (this.stage > 0) return { stage: this.stage - 1, chunk: pass.chunk };
    return pass.chunk > 0 ? { stage: pp - 1, chunk: pass.chunk - 1 } : null;
  }

  #recv(pass: Pass): void {
    const op = this.#push(
      RECV,
      PP,
      this.#activationBytes,
      pass.backward ? BACKWARD : FORWARD,
      pass,
    );
    this.#recvs.push([op, transferKey(pass.backward, pass.microBatch, this.stage, pass.chunk)]);
  }

  #send(pass: Pass, to: { stage: number; chunk: number }): void {
    const op = this.#push(
      SEND,
      PP,
      this.#activationBytes,
      pass.backward ? BACKWARD : FORWARD,
      pass,
      -1,
      1,
    );
    this.sends.set(transferKey(pass.backward, pass.microBatch, to.stage, to.chunk), op);
  }

  #forward(pass: Pass): void {
    if (this.#neighbour(pass, false)) this.#recv(pass);
    else this.#loads = 1;
    const layers = this.#layersOf(pass.chunk);
    if (this.#spec.fullyShard) this.#shardedPass(pass, layers);
    else for (let layer = 0; layer < layers; layer++) this.#layer(pass, layer, FORWARD, 1);
    const next = this.#neighbour(pass, true);
    if (next) this.#send(pass, next);
    else this.#computeNs += this.#halfLossNs;
    // Without an operator in between, the fetches of all micro-batches would melt into one.
    if (this.#loads) this.#push(COMPUTE, NO_GROUP, 0, FORWARD, pass);
  }

  #backward(pass: Pass, isLast: boolean): void {
    if (this.#neighbour(pass, true)) this.#recv(pass);
    else this.#computeNs += this.#halfLossNs;
    const layers = this.#layersOf(pass.chunk);
    if (this.#spec.fullyShard) {
      this.#shardedPass(pass, layers);
      return;
    }
    for (let layer = layers - 1; layer >= 0; layer--) {
      this.#layer(pass, layer, BACKWARD, 2);
      if (isLast && this.#spec.overlapGradients && this.#spec.dp * this.#spec.cp > 1) {
        const shard = this.#parameters / layers / (this.#spec.dp * this.#spec.cp);
        this.#push(REDUCE_SCATTER, DP, shard * BYTES, GRADIENTS, pass, layer, 1);
      }
    }
    const previous = this.#neighbour(pass, false);
    if (previous) this.#send(pass, previous);
  }

  /** Kernels that no operator of their own pass came after get one. */
  #close(pass: Pass): void {
    if (this.#computeNs === 0) return;
    this.#push(COMPUTE, NO_GROUP, 0, pass.backward ? BACKWARD : FORWARD, pass);
  }

  /**
   * FSDP: a layer's parameters are gathered while the layer before computes (backward: behind it), and its gradients
   * are scattered while the next does. The last layer is still whole when its backward pass comes.
   */
  #shardedPass(pass: Pass, layers: number): void {
    const { dp } = this.#spec;
    const shardBytes = ((this.#parameters / this.#spec.layersPerStage) * BYTES) / dp;
    const phase = pass.backward ? BACKWARD : FORWARD;
    const order = Array.from({ length: layers }, (_, i) => (pass.backward ? layers - 1 - i : i));
    const gather = (layer: number | undefined): number =>
      layer === undefined || dp === 1 || (pass.backward && layer === layers - 1)
        ? -1
        : this.#push(ALL_GATHER, DP, shardBytes, phase, pass, layer, 1);
    let gathered = gather(order[0]);
    order.forEach((layer, i) => {
      const next = gather(order[i + 1]);
      this.#waitsFor = gathered;
      this.#layer(pass, layer, phase, pass.backward ? 2 : 1);
      this.#push(COMPUTE, NO_GROUP, 0, phase, pass, layer);
      if (pass.backward && dp > 1)
        this.#push(REDUCE_SCATTER, DP, shardBytes, GRADIENTS, pass, layer, 1);
      gathered = next;
    });
  }

  /** Attention, then the feed-forward block or the experts; backward is the mirror image. */
  #layer(pass: Pass, layer: number, phase: number, cost: number): void {
    const { tp, cp, ep } = this.#spec;
    const ns = this.#layerNs * cost;
    this.#norm(ns);
    this.#enterBlock(pass, layer, phase);
    if (cp > 1) {
      const kind = phase === FORWARD ? ALL_GATHER : REDUCE_SCATTER;
      this.#push(kind, CP, (2 * this.#activationBytes) / tp, phase, pass, layer);
    }
    this.#computeNs += this.#shares.attention * ns;
    this.#attentionNs += this.#shares.attention * ns;
    this.#leaveBlock(pass, layer, phase);
    this.#norm(ns);
    if (ep > 1) {
      this.#push(ALL_TO_ALL, EP, this.#activationBytes, phase, pass, layer);
      this.#feedForward(ns);
      this.#push(ALL_TO_ALL, EP, this.#activationBytes, phase, pass, layer);
      return;
    }
    this.#enterBlock(pass, layer, phase);
    this.#feedForward(ns);
    this.#leaveBlock(pass, layer, phase);
  }

  #norm(layerNs: number): void {
    this.#computeNs += NORM_SHARE * layerNs;
    this.#normNs += NORM_SHARE * layerNs;
  }

  #feedForward(layerNs: number): void {
    this.#computeNs += this.#shares.feedForward * layerNs;
    this.#feedForwardNs += this.#shares.feedForward * layerNs;
  }

  #enterBlock(pass: Pass, layer: number, phase: number): void {
    if (this.#spec.tp > 1 && this.#spec.sequenceParallel) {
      this.#push(ALL_GATHER, TP, this.#activationBytes, phase, pass, layer);
    }
  }

  #leaveBlock(pass: Pass, layer: number, phase: number): void {
    if (this.#spec.tp === 1) return;
    const kind = this.#spec.sequenceParallel ? REDUCE_SCATTER : ALL_REDUCE;
    this.#push(kind, TP, this.#activationBytes, phase, pass, layer);
  }

  /** Parameters of this stage on one rank. */
  get #parameters(): number {
    const { hidden, layersPerStage, tp } = this.#spec;
    return (12 * hidden * hidden * layersPerStage) / tp;
  }

  /** Everything after the last backward pass. */
  #step(): void {
    const { dp, cp, pp, overlapGradients, fullyShard } = this.#spec;
    const replicas = dp * cp;
    const buckets = Math.max(1, Math.ceil(this.#parameters / BUCKET_PARAMETERS));
    if (replicas > 1 && !overlapGradients && !fullyShard) {
      for (let b = 0; b < buckets; b++) {
        this.#push(
          REDUCE_SCATTER,
          DP,
          (this.#parameters / buckets / replicas) * BYTES,
          GRADIENTS,
          null,
        );
      }
    }
    if (pp > 1 && (this.stage === 0 || this.stage === pp - 1)) {
      this.#push(
        ALL_REDUCE,
        EMBEDDING,
        (this.#spec.hidden * 32_000 * BYTES) / this.#spec.tp,
        GRADIENTS,
        null,
      );
    }
    this.#push(ALL_REDUCE, WORLD, 8, GRADIENTS, null);
    this.#computeNs += (this.#parameters / replicas) * OPTIMIZER_NS_PER_PARAMETER;
    if (replicas > 1 && !fullyShard) {
      for (let b = 0; b < buckets; b++) {
        this.#push(
          ALL_GATHER,
          DP,
          (this.#parameters / buckets / replicas) * BYTES,
          OPTIMIZER,
          null,
        );
      }
    } else this.#push(COMPUTE, NO_GROUP, 0, OPTIMIZER, null);
  }

  finish(sends: ReadonlyMap<string, { stage: number; op: number }>): StageProgram {
    const c = this.#columns;
    const count = c.kind.length;
    const peerStage = new Int16Array(count).fill(-1);
    const peerOp = new Int32Array(count).fill(-1);
    for (const [op, key] of this.#recvs) {
      const send = sends.get(key)!;
      peerStage[op] = send.stage;
      peerOp[op] = send.op;
    }
    return {
      stage: this.stage,
      count,
      kind: Uint8Array.from(c.kind),
      role: Uint8Array.from(c.role),
      bytes: Float64Array.from(c.bytes),
      computeNs: Float64Array.from(c.computeNs),
      attentionNs: Float64Array.from(c.attentionNs),
      feedForwardNs: Float64Array.from(c.feedForwardNs),
      normNs: Float64Array.from(c.normNs),
      waitsFor: Int32Array.from(c.waitsFor),
      async: Uint8Array.from(c.async),
      phase: Uint8Array.from(c.phase),
      microBatch: Int16Array.from(c.microBatch),
      layer: Int16Array.from(c.layer),
      loads: Uint8Array.from(c.loads),
      peerStage,
      peerOp,
    };
  }
}

/** A transfer is known by what arrives: direction, micro-batch, receiving stage and chunk. */
function transferKey(backward: boolean, microBatch: number, stage: number, chunk: number): string {
  return `${backward ? "b" : "f"}${microBatch}/${stage}/${chunk}`;
}
