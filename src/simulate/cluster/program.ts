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

export function makePrograms(spec: ClusterSpec): StageProgram[] {
  const drafts = Array.from({ length: spec.pp }, (_, stage) => new StageDraft(spec, stage));
  const sends = new Map<string, { stage: number; op: number }>();
  for (const draft of drafts)
    for (const [key, op] of draft.sends) sends.set(key, { stage: draft.stage, op });
  return drafts.map((draft) => draft.finish(sends));
}

class StageDraft {
  readonly stage: number;
  readonly sends = new Map<string, number>();
  readonly #spec: ClusterSpec;
  readonly #recvs: [op: number, key: string][] = [];
  readonly #columns = {
    kind: [] as number[],
    role: [] as number[],
    bytes: [] as number[],
    computeNs: [] as number[],
    async: [] as number[],
    phase: [] as number[],
    microBatch: [] as number[],
    layer: [] as number[],
    loads: [] as number[],
  };
  #computeNs = 0;
  #loads = 0;

  constructor(spec: ClusterSpec, stage: number) {
    this.stage = stage;
    this.#spec = spec;
    const passes = stagePasses(spec, stage);
    const lastBackward = passes.findLastIndex((pass) => pass.backward);
    passes.forEach((pass, i) => {
      if (pass.backward) this.#backward(pass, i === lastBackward);
      else this.#forward(pass);
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
    c.async.push(async);
    c.phase.push(phase);
    c.microBatch.push(at?.microBatch ?? -1);
    c.layer.push(layer);
    c.loads.push(this.#loads);
    this.#computeNs = 0;
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
    for (let layer = 0; layer < layers; layer++) this.#layer(pass, layer, FORWARD, 1);
    const next = this.#neighbour(pass, true);
    if (next) this.#send(pass, next);
    else this.#computeNs += LOSS_LAYERS * this.#layerNs;
    // Without an operator in between, the fetches of all micro-batches would melt into one.
    if (this.#loads) this.#push(COMPUTE, NO_GROUP, 0, FORWARD, pass);
  }

  #backward(pass: Pass, isLast: boolean): void {
    if (this.#neighbour(pass, true)) this.#recv(pass);
    else this.#computeNs += LOSS_LAYERS * this.#layerNs;
    const layers = this.#layersOf(pass.chunk);
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

  /** Attention, then the feed-forward block or the experts; backward is the mirror image. */
  #layer(pass: Pass, layer: number, phase: number, cost: number): void {
    const { tp, cp, ep } = this.#spec;
    const ns = this.#layerNs * cost;
    this.#computeNs += NORM_SHARE * ns;
    this.#enterBlock(pass, layer, phase);
    if (cp > 1) {
      const kind = phase === FORWARD ? ALL_GATHER : REDUCE_SCATTER;
      this.#push(kind, CP, (2 * this.#activationBytes) / tp, phase, pass, layer);
    }
    this.#computeNs += 0.34 * ns;
    this.#leaveBlock(pass, layer, phase);
    this.#computeNs += NORM_SHARE * ns;
    if (ep > 1) {
      this.#push(ALL_TO_ALL, EP, this.#activationBytes, phase, pass, layer);
      this.#computeNs += 0.62 * ns;
      this.#push(ALL_TO_ALL, EP, this.#activationBytes, phase, pass, layer);
      return;
    }
    this.#enterBlock(pass, layer, phase);
    this.#computeNs += 0.62 * ns;
    this.#leaveBlock(pass, layer, phase);
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
    const { dp, cp, pp, overlapGradients } = this.#spec;
    const replicas = dp * cp;
    const buckets = Math.max(1, Math.ceil(this.#parameters / BUCKET_PARAMETERS));
    if (replicas > 1 && !overlapGradients) {
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
    if (replicas > 1) {
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
