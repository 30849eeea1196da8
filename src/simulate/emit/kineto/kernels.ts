/**
 * What a GPU runs between two operators, as kernels with shapes: layer norm, attention, feed-forward,
 * loss, optimizer, and the mirror image of each on the way back. Weights are floating-point operations
 * (Narayanan et al., SC '21), so that the FLOPS that a reader works out of "Input Dims" are even.
 */
import { BACKWARD, FLOPS_PER_NS, FORWARD, OPTIMIZER, RECV } from "../../cluster/program.ts";
import type { StageProgram } from "../../cluster/program.ts";
import type { ClusterSpec } from "../../cluster/spec.ts";

export interface Kernel {
  readonly kind: "gemm" | "attention" | "small" | "memcpy";
  /** The CPU operator that launches it. */
  readonly op: string;
  readonly name: string;
  readonly dims: readonly (readonly number[])[];
  readonly weight: number;
  readonly grid: readonly number[];
  readonly block: readonly number[];
}

const VOCABULARY = 32_000;
const HEAD = 128;
/** Share of a layer that a norm and a residual addition take (program.ts, NORM_SHARE). */
const NORM_SHARE = 0.02;

const GELU = "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)";
const GELU_BACKWARD =
  "at::native::GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)";
const ADD = "at::native::CUDAFunctor_add<c10::BFloat16>";
const elementwise = (functor: string, tensors: number): string =>
  `void at::native::vectorized_elementwise_kernel<8, ${functor}, std::array<char*, ${tensors}ul> >(int, ${functor}, std::array<char*, ${tensors}ul>)`;

/** A GEMM whose inner sizes are no multiple of 8 misses the tensor cores' fast path (FLARE §7.3.2: 8484). */
export function oddSize(n: number): number {
  const odd = Math.floor((n * 8484) / 8192 / 4) * 4;
  return odd % 8 === 0 ? odd + 4 : odd;
}

export class KernelPlan {
  readonly #spec: ClusterSpec;
  readonly #tokens: number;
  readonly #layerFlops: number;
  readonly #isOdd: boolean;

  /** `isOdd`: the feed-forward width of a model whose layout nobody padded. */
  constructor(spec: ClusterSpec, isOdd: boolean) {
    this.#spec = spec;
    this.#isOdd = isOdd;
    this.#tokens = spec.sequence / spec.cp;
    const perToken = 24 * spec.hidden * spec.hidden + 4 * spec.hidden * spec.sequence;
    this.#layerFlops = (perToken * this.#tokens) / spec.tp;
  }

  /** The kernels in front of an operator; none where it has no compute. */
  before(program: StageProgram, op: number): Kernel[] {
    const ns = program.computeNs[op]!;
    if (ns === 0) return [];
    const phase = program.phase[op]!;
    const load = program.loads[op] ? [this.#copyIn()] : [];
    if (phase === OPTIMIZER) return this.#optimizer();
    const isBackward = phase !== FORWARD;
    const layerNs = this.#layerFlops / FLOPS_PER_NS;
    let left = ns / layerNs;
    const loss = isBackward && this.#startsBackward(program, op) && left >= 3 ? this.#loss() : [];
    if (loss.length > 0) left -= 3;
    left /= isBackward ? 2 : 1;
    const layers: Kernel[] = [];
    const take = (share: number, kernels: () => Kernel[]): void => {
      if (left < share - 0.005) return;
      left -= share;
      layers.push(...kernels());
    };
    while (left >= 0.995)
      take(1, () => [
        ...this.#norm(isBackward),
        ...this.#attention(isBackward),
        ...this.#norm(isBackward),
        ...this.#feedForward(isBackward),
      ]);
    take(0.62, () => this.#feedForward(isBackward));
    take(0.34, () => this.#attention(isBackward));
    if (left > 0.005 || layers.length + loss.length === 0) layers.push(...this.#norm(isBackward));
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
    const project = this.#linear(isBackward, this.#tokens, part, hidden);
    const queries = this.#linear(isBackward, this.#tokens, hidden, 3 * part);
    return isBackward ? [...project, flash, ...queries] : [...queries, flash, ...project];
  }

  #feedForward(isBackward: boolean): Kernel[] {
    const { hidden, tp } = this.#spec;
    const even = (4 * hidden) / tp;
    const width = this.#isOdd ? oddSize(even) : even;
    const shape = [this.#tokens, 1, width];
    const up = this.#linear(isBackward, this.#tokens, hidden, width);
    const down = this.#linear(isBackward, this.#tokens, width, hidden);
    const gelu = isBackward
      ? this.#small("aten::gelu_backward", elementwise(GELU_BACKWARD, 3), [shape, shape, []], 0.03)
      : this.#small("aten::gelu", elementwise(GELU, 2), [shape, []], 0.02);
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
