import { describe, expect, test } from "vitest";
import * as Kernels from "../../model/kernels.ts";
import {
  callKind,
  categoryOf,
  hostName,
  IGNORED,
  kernelKind,
  MATRIX,
  PLAIN,
} from "./event-kinds.ts";

describe("what names say", () => {
  test.each([
    ["cudaLaunchKernel", Kernels.LAUNCH],
    ["cudaLaunchCooperativeKernel", Kernels.LAUNCH],
    ["cuLaunchKernelEx", Kernels.LAUNCH],
    ["hipModuleLaunchKernel", Kernels.LAUNCH],
    ["cudaGraphLaunch", Kernels.GRAPH_LAUNCH],
    ["hipGraphLaunch", Kernels.GRAPH_LAUNCH],
    ["cudaLaunchHostFunc", Kernels.OTHER_CALL],
    ["cudaMemsetAsync", Kernels.COPY],
    ["hipMemcpyWithStream", Kernels.COPY],
    ["cudaStreamSynchronize", Kernels.SYNCHRONIZE],
    ["cudaMalloc", Kernels.ALLOCATE],
    ["cuMemCreate", Kernels.ALLOCATE],
    ["cudaHostAlloc", Kernels.ALLOCATE],
    ["cudaFree", Kernels.FREE],
    ["hipHostFree", Kernels.FREE],
    ["cudaMemGetInfo", Kernels.OTHER_CALL],
    ["INVALID", Kernels.OTHER_CALL],
  ])("%s", (name, kind) => expect(callKind(name)).toBe(kind));

  test.each([
    ["ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", Kernels.COMMUNICATION],
    ["ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)", Kernels.COMMUNICATION],
    ["ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", Kernels.COMMUNICATION],
    ["mscclKernel_Sum_half_Simple_0(x)", Kernels.COMMUNICATION],
    ["nvjet_sm90_tst_64x64_64x13_1x2_h_bz_NTT", Kernels.COMPUTE],
    ["void at::native::(anonymous namespace)::multi_tensor_apply_kernel<x>", Kernels.COMPUTE],
  ])("%s", (name, kind) => expect(kernelKind(name)).toBe(kind));

  test.each([
    ["aten::mm", MATRIX],
    ["aten::addmm", MATRIX],
    ["aten::_scaled_mm", MATRIX],
    ["aten::cudnn_convolution", MATRIX],
    ["aten::_scaled_dot_product_flash_attention_backward", MATRIX],
    ["flash_attn::_flash_attn_forward", MATRIX],
    ["autograd::engine::evaluate_function: AddmmBackward0", PLAIN],
    ["record_param_comms", PLAIN],
    ["aten::add_", PLAIN],
  ])("%s", (name, what) => expect(hostName(name)).toBe(what));

  test("categories that nobody needs are ignored, whatever they are called", () => {
    for (const name of ["ac2g", "toString", "__proto__", ""])
      expect(categoryOf(name)).toBe(IGNORED);
  });
});
