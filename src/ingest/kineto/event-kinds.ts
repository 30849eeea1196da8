/** What an event is, by its category and its name. Asked once for each distinct text, so that patterns cost nothing. */
import * as Kernels from "../../model/kernels.ts";

/** Categories, as far as somebody needs them. */
export const IGNORED = 0;
export const CPU_OP = 1;
export const ANNOTATION = 2;
export const RUNTIME = 3;
export const KERNEL = 4;
export const MEMCPY = 5;
export const MEMSET = 6;
export const PYTHON = 7;

/** Of today's Kineto, then of its first releases (2021), then of other devices. */
const CATEGORIES: Readonly<Record<string, number>> = {
  cpu_op: CPU_OP,
  user_annotation: ANNOTATION,
  cuda_runtime: RUNTIME,
  cuda_driver: RUNTIME,
  kernel: KERNEL,
  gpu_memcpy: MEMCPY,
  gpu_memset: MEMSET,
  python_function: PYTHON,
  operator: CPU_OP,
  runtime: RUNTIME,
  memcpy: MEMCPY,
  memset: MEMSET,
  hip_runtime: RUNTIME,
  hip_driver: RUNTIME,
  xpu_runtime: RUNTIME,
  xpu_driver: RUNTIME,
  mtia_runtime: RUNTIME,
  mtia_ccp_events: KERNEL,
  privateuse1_runtime: RUNTIME,
  privateuse1_driver: RUNTIME,
};

export function categoryOf(text: string): number {
  const key = text.toLowerCase();
  return Object.hasOwn(CATEGORIES, key) ? CATEGORIES[key]! : IGNORED;
}

/**
 * NCCL names its kernels ncclKernel_… up to 2.18 and ncclDevKernel_… since; RCCL follows, with ncclDevKernel_Generic
 * and msccl kernels of its own. Then the all-reduce kernels of symmetric memory, of inference engines and of
 * TransformerEngine's user buffers.
 */
const COMMUNICATION =
  /^(?:void )?(?:nccl|rccl|msccl|oneccl)|multimem_(?:all|reduce)|cross_device_reduce|userbuffers_fp16/i;

/** COMPUTE or COMMUNICATION. */
export function kernelKind(name: string): number {
  return COMMUNICATION.test(name) ? Kernels.COMMUNICATION : Kernels.COMPUTE;
}

const RUNTIME_CALLS: readonly (readonly [RegExp, number])[] = [
  [/^(?:cuda|cu|hip)GraphLaunch/, Kernels.GRAPH_LAUNCH],
  // cudaLaunchHostFunc runs on the CPU.
  [/LaunchHostFunc/, Kernels.OTHER_CALL],
  [/Launch/, Kernels.LAUNCH],
  [/^(?:cuda|cu|hip)Mem(?:cpy|set)|EnqueueMem/, Kernels.COPY],
  [/Synchronize/, Kernels.SYNCHRONIZE],
  [/^(?:cuda|cu|hip)(?:Ext)?(?:Malloc|Mem(?:Host)?Alloc|MemCreate|HostAlloc)/, Kernels.ALLOCATE],
  [/^(?:cuda|cu|hip)(?:HostFree|Free|Mem(?:Host)?Free|MemRelease|MemUnmap)/, Kernels.FREE],
];

export function callKind(name: string): number {
  return RUNTIME_CALLS.find(([pattern]) => pattern.test(name))?.[1] ?? Kernels.OTHER_CALL;
}

/** What names of CPU events say, whatever their category: the first releases had one for all. */
export const PLAIN = 0;
export const STEP = 1;
export const LOADER = 2;
export const GC = 3;
export const SYNC = 4;
/** A CPU operator whose kernels multiply matrices. */
export const MATRIX = 5;

const HOST_NAMES: readonly (readonly [RegExp, number])[] = [
  [/^ProfilerStep#?\d+/, STEP],
  [/^enumerate\(DataLoader\)|DataLoaderIter.*__next__|dataloader\.py\(\d+\): __next__/, LOADER],
  [/^Python GC|\bgc\.collect\b|\bgc\.py\(\d+\)|built-in (?:function|method) collect\b/, GC],
  [/(?:^|[ .:])synchronize\b/, SYNC],
  // They wait for the GPU to learn a value or a size.
  [/^aten::(?:item|_local_scalar_dense|is_nonzero|nonzero|masked_select)$/, SYNC],
  [/^(?!autograd::|record_param|c10d::).*(?:::|_)\w*(?:mm|mv|gemm|linear)(?:_\w*)?$/i, MATRIX],
  [/^(?!autograd::).*::\w*(?:conv|attention|attn)\w*$/i, MATRIX],
];

export function hostName(name: string): number {
  return HOST_NAMES.find(([pattern]) => pattern.test(name))?.[1] ?? PLAIN;
}

/** "ProfilerStep#12" → 12. */
export function stepNumber(name: string): number {
  return Number(/\d+/.exec(name)?.[0] ?? NaN);
}
