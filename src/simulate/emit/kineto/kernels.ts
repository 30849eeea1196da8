/**
 * What a GPU runs between two operators, as kernels with shapes: layer norm, attention, feed-forward,
 * loss, optimizer, and the mirror image of each on the way back. Weights are floating-point operations
 * (Narayanan et al., SC '21), so that the FLOPS that a reader works out of "Input Dims" are even.
 */
import {
  BACKWARD,
  FLOPS_PER_NS,
  FORWARD,
  layerShares,
  lossNs,
  OPTIMIZER,
  RECV,
} from "../../cluster/program.ts";
import type { StageProgram } from "../../cluster/program.ts";
import { UNFUSED as UNFUSED_SHARE } from "../../cluster/parts.ts";
import type { ClusterSpec } from "../../cluster/spec.ts";

export interface Kernel {
  readonly kind: "gemm" | "attention" | "small" | "memcpy";
  /** The CPU operator that launches it. */
  readonly op: string;
  readonly name: string;
  readonly dims: readonly (readonly number[])[];
  readonly weight: number;
  /** A product whose sizes keep it off the tensor cores' fast path. */
  readonly isOdd?: boolean;
  readonly grid: readonly number[];
  readonly block: readonly number[];
}

const VOCABULARY = 32_000;
const HEAD = 128;
/** Share of a layer that a norm and a residual addition take (program.ts, NORM_SHARE). */
const NORM_SHARE = 0.02;
/**
 * And the fused kernels of position embedding and activation. With these a Megatron job of one stage spends 9 % of its
 * steps in minority kernels, as FLARE's healthy one does (Table 5).
 */
const ROTARY_SHARE = 0.028;
const ACTIVATION_SHARE = 0.046;

const GELU = "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)";
const GELU_BACKWARD =
  "at::native::GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)";
const ADD = "at::native::CUDAFunctor_add<c10::BFloat16>";
const elementwise = (functor: string, tensors: number): string =>
  `void at::native::vectorized_elementwise_kernel<8, ${functor}, std::array<char*, ${tensors}ul> >(int, ${functor}, std::array<char*, ${tensors}ul>)`;

type Named = readonly [op: string, functor: string];
const ROTARY: readonly Named[] = [
  ["aten::mul", "BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, MulFunctor<float> >"],
  ["aten::neg", "neg_kernel_cuda(at::TensorIteratorBase&)"],
  ["aten::cat", "CatArrayBatchedCopy<c10::BFloat16>"],
  ["aten::mul", "BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, MulFunctor<float> >"],
  ["aten::add", ADD.replace("at::native::", "")],
];
const GATE: readonly Named[] = [
  ["aten::silu", "silu_kernel(at::TensorIteratorBase&)"],
  ["aten::mul", "BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, MulFunctor<float> >"],
];
const NORM: readonly Named[] = [
  ["aten::copy_", "direct_copy_kernel_cuda(at::TensorIteratorBase&)"],
  ["aten::pow", "pow_tensor_scalar_kernel_impl<float, float>"],
  ["aten::mean", "ReduceOp<float, MeanOps<float, float, float, float>, unsigned int, float, 4>"],
  ["aten::add", "CUDAFunctorOnSelf_add<float>"],
  ["aten::rsqrt", "rsqrt_kernel_cuda(at::TensorIteratorBase&)"],
  ["aten::mul", "BinaryFunctor<float, float, float, MulFunctor<float> >"],
  ["aten::copy_", "bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)"],
];

/** A GEMM whose inner sizes are no multiple of 8 misses the tensor cores' fast path (FLARE §7.3.2: 8484). */
export function oddSize(n: number): number {
  const odd = Math.floor((n * 8484) / 8192 / 4) * 4;
  return odd % 8 === 0 ? odd + 4 : odd;
}

/** A batch of token ids over PCIe. */
const COPY_NS = 5_000;

/** The same kernels with weights that are nanoseconds and add up to so many. */
function lasting(kernels: readonly Kernel[], ns: number): Kernel[] {
  const total = kernels.reduce((sum, { weight }) => sum + weight, 0);
  return kernels.map((kernel) => ({ ...kernel, weight: (ns * kernel.weight) / total }));
}

export class KernelPlan {
  readonly #spec: ClusterSpec;
  readonly #tokens: number;
  /** Of the sizes that these kernels have, and of the model's: what the program's times are made of. */
  readonly #layerFlops: number;
  readonly #nominalFlops: number;
  readonly #isOdd: boolean;

  /**
   * `isOdd`: the feed-forward width of a model whose layout nobody padded. `size`: tokens of this micro-batch, as a
   * share of the usual; images differ.
   */
  constructor(spec: ClusterSpec, isOdd: boolean, size = 1) {
    this.#spec = spec;
    this.#isOdd = isOdd;
    const tokens = spec.sequence / spec.cp;
    this.#tokens = size === 1 ? tokens : Math.max(16, 16 * Math.round((tokens * size) / 16));
    const perToken = 24 * spec.hidden * spec.hidden + 4 * spec.hidden * spec.sequence;
    this.#layerFlops = (perToken * this.#tokens) / spec.tp;
    this.#nominalFlops = (perToken * tokens) / spec.tp;
  }

  /** The kernels in front of an operator; none where it has no compute. */
  before(program: StageProgram, op: number): Kernel[] {
    const ns = program.computeNs[op]!;
    if (ns === 0) return [];
    const phase = program.phase[op]!;
    const load = program.loads[op] ? lasting([this.#copyIn()], COPY_NS) : [];
    if (phase === OPTIMIZER) return this.#optimizer();
    const isBackward = phase !== FORWARD;
    const layerNs = this.#nominalFlops / FLOPS_PER_NS;
    const shares = layerShares(this.#spec);
    const blocks = (blockNs: number, share: number): number =>
      Math.round(blockNs / (share * layerNs * (isBackward ? 2 : 1)));
    const attentions = blocks(program.attentionNs[op]!, shares.attention);
    const feedForwards = blocks(program.feedForwardNs[op]!, shares.feedForward);
    const norms = blocks(program.normNs[op]!, shares.norm);
    const layers: Kernel[] = [];
    const block = (kernels: readonly Kernel[], blockNs: number, count: number): void => {
      layers.push(...lasting(kernels, blockNs / count));
    };
    let left = norms;
    const norm = (): void => {
      if (left-- > 0) block(this.#norm(isBackward), program.normNs[op]!, norms);
    };
    for (let i = 0; i < Math.max(attentions, feedForwards); i++) {
      norm();
      if (i < attentions) block(this.#attention(isBackward), program.attentionNs[op]!, attentions);
      if (i < attentions && i < feedForwards) norm();
      if (i < feedForwards)
        block(this.#feedForward(isBackward), program.feedForwardNs[op]!, feedForwards);
    }
    norm();
    const otherNs =
      ns - program.attentionNs[op]! - program.feedForwardNs[op]! - program.normNs[op]!;
    const isLoss =
      isBackward && this.#startsBackward(program, op) && otherNs > 0.9 * lossNs(this.#spec);
    const loss = isLoss ? lasting(this.#loss(), otherNs) : [];
    if (layers.length + loss.length === 0) layers.push(...lasting(this.#norm(isBackward), ns));
    return [...load, ...loss, ...layers];
  }

  /** Last stage, first operator of a way back: the loss comes before it. */
  #startsBackward(program: StageProgram, op: number): boolean {
    if (program.stage !== this.#spec.pp - 1 || program.kind[op] === RECV) return false;
    const isSame = program.microBatch[op - 1] === program.microBatch[op];
    return op === 0 || program.phase[op - 1] !== BACKWARD || !isSame;
  }

  /** Many small element-wise kernels that nobody fused (FLARE §5.2.2, minority kernels). */
  minority(count: number): Kernel[] {
    const shape = [this.#tokens, 1, this.#spec.hidden];
    const ops = ["aten::mul", "aten::add", "aten::sigmoid", "aten::copy_"];
    const functors = ["MulFunctor<float>", "CUDAFunctor_add<float>", "sigmoid", "direct_copy"];
    return Array.from({ length: count }, (_, i) => ({
      kind: "small",
      op: ops[i % 4]!,
      name: elementwise(`at::native::${functors[i % 4]!}`, 2),
      dims: [shape, shape],
      weight: 1,
      grid: [Math.ceil((this.#tokens * this.#spec.hidden) / 1024), 1, 1],
      block: [128, 1, 1],
    }));
  }

  /**
   * What nobody fused in front of an operator (FLARE §7.3.3): rotary position embeddings of queries and keys, the gated
   * activation, the root mean square norm, each as the element-wise kernels that plain PyTorch launches for it.
   */
  unfused(how: string, program: StageProgram, op: number): Kernel[] {
    const { hidden, tp } = this.#spec;
    const shape = [this.#tokens, 1, hidden];
    const part = [this.#tokens, 1, hidden / tp];
    const wide = [this.#tokens, 1, (4 * hidden) / tp];
    const of = (
      dims: number[],
      ns: number,
      list: readonly (readonly [string, string])[],
    ): Kernel[] =>
      list.map(([name, functor]) => ({
        ...this.#small(name, elementwise(`at::native::${functor}`, 2), [dims, dims], 1),
        weight: ns / list.length,
      }));
    const [attentionNs, feedForwardNs, normNs] = [
      program.attentionNs[op]! * UNFUSED_SHARE.attention,
      how === "pe" ? 0 : program.feedForwardNs[op]! * UNFUSED_SHARE.feedForward,
      how === "pe-act-norm" ? program.normNs[op]! * UNFUSED_SHARE.norm : 0,
    ];
    return [
      ...(normNs > 0 ? of(shape, normNs, NORM) : []),
      ...(attentionNs > 0 ? of(part, attentionNs, [...ROTARY, ...ROTARY]) : []),
      ...(feedForwardNs > 0 ? of(wide, feedForwardNs, GATE) : []),
    ];
  }

  #small(op: string, name: string, dims: number[][], share: number): Kernel {
    const elements = dims[0]!.reduce((a, b) => a * b, 1);
    const grid = [Math.max(1, Math.ceil(elements / 1024)), 1, 1];
    return {
      kind: "small",
      op,
      name,
      dims,
      weight: share * this.#layerFlops,
      grid,
      block: [128, 1, 1],
    };
  }

  #gemm(m: number, n: number, k: number, layout: string): Kernel {
    const isOdd = n % 8 !== 0 || k % 8 !== 0 || m % 8 !== 0;
    const name = isOdd
      ? `cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_64x64_32x1_${layout.toLowerCase()}_align4`
      : `nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_${layout}`;
    const grid = [Math.max(1, Math.ceil(m / 128)), Math.max(1, Math.ceil(n / 256)), 1];
    const dims = [
      [m, k],
      [k, n],
    ];
    return {
      kind: "gemm",
      op: "aten::mm",
      name,
      dims,
      weight: 2 * m * n * k,
      isOdd,
      grid,
      block: [384, 1, 1],
    };
  }

  /** y = x·W forward; gradients of x and of W on the way back. */
  #linear(isBackward: boolean, tokens: number, input: number, output: number): Kernel[] {
    if (!isBackward) return [this.#gemm(tokens, output, input, "TNN")];
    return [this.#gemm(tokens, input, output, "NNT"), this.#gemm(input, output, tokens, "NTT")];
  }

  #norm(isBackward: boolean): Kernel[] {
    const { hidden, tp, sequenceParallel } = this.#spec;
    const shape = [this.#tokens / (sequenceParallel ? tp : 1), 1, hidden];
    const add = this.#small("aten::add", elementwise(ADD, 3), [shape, shape, []], NORM_SHARE * 0.4);
    const inner = "void at::native::(anonymous namespace)::";
    if (!isBackward) {
      const name = `${inner}vectorized_layer_norm_kernel<c10::BFloat16, float, false>(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)`;
      const dims = [shape, [], [hidden], [hidden], []];
      return [add, this.#small("aten::native_layer_norm", name, dims, NORM_SHARE * 0.6)];
    }
    const op = "aten::native_layer_norm_backward";
    const dims = [shape, shape, [], [shape[0]!, 1], [shape[0]!, 1], [hidden], [hidden], []];
    return [
      this.#small(
        op,
        `${inner}layer_norm_grad_input_kernel_vectorized<c10::BFloat16, float, false>(c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, c10::BFloat16 const*, c10::BFloat16*, int)`,
        dims,
        NORM_SHARE * 0.7,
      ),
      this.#small(
        op,
        `${inner}GammaBetaBackwardCUDAKernelTemplate<c10::BFloat16, float, 32u, 32u, 256u, false, true, false>(long, long, c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, c10::BFloat16*, c10::BFloat16*)`,
        dims,
        NORM_SHARE * 0.5,
      ),
      { ...add, op: "aten::add_" },
    ];
  }

  #attention(isBackward: boolean): Kernel[] {
    const { hidden, sequence, tp } = this.#spec;
    const heads = Math.max(1, Math.round(hidden / HEAD / tp));
    const query = [1, this.#tokens, heads, HEAD];
    const keys = [1, sequence, heads, HEAD];
    const part = hidden / tp;
    const flash: Kernel = {
      kind: "attention",
      op: isBackward ? "aten::_flash_attention_backward" : "aten::_flash_attention_forward",
      name: isBackward
        ? "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128, 8, 2, 4, 2, false, false, cutlass::bfloat16_t>, false, true, false, false, true, true, false>(flash::Flash_bwd_params)"
        : "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>, false, true, false, false, true, true, false, false>(flash::Flash_fwd_params)",
      dims: isBackward ? [query, query, keys, keys, query] : [query, keys, keys],
      weight: (isBackward ? 2 : 1) * 4 * this.#tokens * sequence * part,
      grid: [Math.max(1, Math.ceil(this.#tokens / 128)), 1, heads],
      block: [isBackward ? 256 : 128, 1, 1],
    };
    const rope = this.#small(
      isBackward ? "FusedRoPEFuncBackward" : "FusedRoPEFunc",
      `void transformer_engine::fused_rope_${isBackward ? "backward" : "forward"}_kernel<__nv_bfloat16>(__nv_bfloat16 const*, int const*, float const*, __nv_bfloat16*, int, int, int)`,
      [[this.#tokens, 1, heads, HEAD]],
      (isBackward ? 2 : 1) * ROTARY_SHARE,
    );
    const project = this.#linear(isBackward, this.#tokens, part, hidden);
    const queries = this.#linear(isBackward, this.#tokens, hidden, 3 * part);
    // The dense part of a recommendation model has interactions in place of attention.
    const middle =
      this.#spec.model === "recommendation" ? [] : isBackward ? [flash, rope] : [rope, flash];
    return isBackward ? [...project, ...middle, ...queries] : [...queries, ...middle, ...project];
  }

  #feedForward(isBackward: boolean): Kernel[] {
    const { hidden, tp } = this.#spec;
    const even = (4 * hidden) / tp;
    const width = this.#isOdd ? oddSize(even) : even;
    const shape = [this.#tokens, 1, width];
    const up = this.#linear(isBackward, this.#tokens, hidden, width);
    const down = this.#linear(isBackward, this.#tokens, width, hidden);
    const gelu = isBackward
      ? this.#small(
          "aten::gelu_backward",
          elementwise(GELU_BACKWARD, 3),
          [shape, shape, []],
          2 * ACTIVATION_SHARE,
        )
      : this.#small("aten::gelu", elementwise(GELU, 2), [shape, []], ACTIVATION_SHARE);
    return isBackward ? [...down, gelu, ...up] : [...up, gelu, ...down];
  }

  #loss(): Kernel[] {
    const part = Math.round(VOCABULARY / this.#spec.tp);
    const logits = [this.#tokens, part];
    const name =
      "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, float, at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(float*, c10::BFloat16 const*, int)";
    return [
      ...this.#linear(false, this.#tokens, this.#spec.hidden, part),
      this.#small("aten::_log_softmax", name, [logits, [], []], 0.1),
      ...this.#linear(true, this.#tokens, this.#spec.hidden, part),
    ];
  }

  #optimizer(): Kernel[] {
    const { hidden, tp, layersPerStage, dp, cp } = this.#spec;
    const shard = Math.ceil((12 * hidden * hidden * layersPerStage) / tp / (dp * cp) / 2);
    const name =
      "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>, float const*, double, double, double, double, double, bool, float const*, float const*>(at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>, float const*, double, double, double, double, double, bool, float const*, float const*)";
    const dims = Array.from({ length: 4 }, () => [shard]);
    const adam = this.#small("aten::_fused_adamw_", name, dims, 0.5);
    return [
      { ...adam, block: [512, 1, 1] },
      { ...adam, block: [512, 1, 1] },
    ];
  }

  #copyIn(): Kernel {
    const ids = [1, this.#tokens];
    const copy = this.#small("aten::copy_", "Memcpy HtoD (Pinned -> Device)", [ids, ids, []], 5e-4);
    return { ...copy, kind: "memcpy" };
  }
}
