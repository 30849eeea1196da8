/**
 * One rank's profiler trace as columns: what its GPU ran, which CPU call launched it, and what the CPU did beside
 * launching. A trace has millions of events, so an event never becomes an object; texts are numbers into `names`.
 * All times are nanoseconds since `epochNs`, exact to the nanosecond where the trace is. Every table is in the
 * order of its start times.
 */
import type { Rank } from "./ids.ts";

/** Kinds of GPU events. */
export const COMPUTE = 0;
export const COMMUNICATION = 1;
export const MEMCPY = 2;
export const MEMSET = 3;

/**
 * What the GPU did: kernels, copies, fills. FLARE's metrics (§5.2.2) come from here: issue latency is `startNs` less
 * the launch's start; a slot between two events of all streams is void; bandwidth and FLOPS are size over `durNs`.
 */
export interface GpuEvents {
  readonly count: number;
  readonly startNs: Float64Array;
  readonly durNs: Float64Array;
  /** Index into `names`. */
  readonly name: Int32Array;
  /** COMPUTE, COMMUNICATION, MEMCPY or MEMSET. */
  readonly kind: Uint8Array;
  readonly device: Int32Array;
  readonly stream: Int32Array;
  /** Index into `calls` of what launched it (kernels of a graph share one); -1 where the trace lacks it. */
  readonly launch: Int32Array;
  /** The profiler's number that launch and kernel share, modulo 2^32; 0 where there is none. */
  readonly correlation: Uint32Array;
  /** Index into `collectives`; -1 for what is none, or says nothing of itself. */
  readonly collective: Int32Array;
  /** Index into `matrixOps` of the operator that launched it; -1 for all others and traces without shapes. */
  readonly matrixOp: Int32Array;
}

/** Kinds of CUDA or HIP calls. */
export const LAUNCH = 0;
/** One call, many kernels. */
export const GRAPH_LAUNCH = 1;
/** Copies and fills: they launch a GPU event, and block where memory is pageable. */
export const COPY = 2;
/** The CPU waits for the GPU: cudaDeviceSynchronize, cudaStreamSynchronize, cudaEventSynchronize. */
export const SYNCHRONIZE = 3;
export const ALLOCATE = 4;
export const FREE = 5;
/** Anything else that took LONG_CALL_NS or more; shorter ones are not kept, they stall nobody. */
export const OTHER_CALL = 6;

export const LONG_CALL_NS = 100_000;

export interface RuntimeCalls {
  readonly count: number;
  /** The moment of issue. */
  readonly startNs: Float64Array;
  /** How long the CPU was in the call. */
  readonly durNs: Float64Array;
  readonly name: Int32Array;
  /** LAUNCH to OTHER_CALL. */
  readonly kind: Uint8Array;
  /** The operating system's thread, as in `HostEvents`. */
  readonly thread: Int32Array;
  readonly correlation: Uint32Array;
}

/** Kinds of what Python and the user's marks say. */
export const ANNOTATION = 0;
/** `enumerate(DataLoader)#….__next__`, and the loader's Python functions. */
export const DATA_LOADER = 1;
export const GARBAGE_COLLECTION = 2;
/** Python's synchronize(), and operators that wait for the GPU to hand a value to the CPU: aten::item. */
export const HOST_SYNCHRONIZE = 3;
/** Python functions that took LONG_CALL_NS or more; shorter ones are not kept. */
export const PYTHON_FUNCTION = 4;

/** What the CPU did, as far as it matters for a diagnosis. Ordinary operators are not kept. */
export interface HostEvents {
  readonly count: number;
  readonly startNs: Float64Array;
  readonly durNs: Float64Array;
  readonly name: Int32Array;
  /** ANNOTATION to PYTHON_FUNCTION. */
  readonly kind: Uint8Array;
  readonly thread: Int32Array;
}

/** Marks of the profiler's schedule, `ProfilerStep#N`. None where the user did not call step(). */
export interface StepMarks {
  readonly count: number;
  /** N. */
  readonly number: Float64Array;
  readonly startNs: Float64Array;
  readonly durNs: Float64Array;
}

/** Sizes and types of an operator's inputs, in the order of its arguments. */
export interface InputShape {
  /** [[512, 256], [256, 1024]]; [] for what is no tensor. */
  readonly dims: readonly (readonly number[])[];
  /** "c10::BFloat16"; [] where the trace has none. */
  readonly types: readonly string[];
}

/** Operators that multiply matrices (GEMM, convolution, attention); an operator may launch several kernels. */
export interface MatrixOps {
  readonly count: number;
  readonly startNs: Float64Array;
  readonly durNs: Float64Array;
  /** "aten::mm". */
  readonly name: Int32Array;
  /** Index into `shapes`; -1 where the trace has none. */
  readonly shape: Int32Array;
  readonly thread: Int32Array;
}

/** What communication kernels say of themselves; one row a kernel. */
export interface Collectives {
  readonly count: number;
  /** Index into `names`: "allreduce", "_allgather_base", "send". */
  readonly operation: Int32Array;
  /** Index into `groups`; -1 where the kernel does not say. */
  readonly group: Int32Array;
  /** Elements; NaN where the trace has none. */
  readonly inputNumel: Float64Array;
  readonly outputNumel: Float64Array;
  /** Index into `names`: "BFloat16"; -1 where the trace has none. */
  readonly dtype: Int32Array;
  /** Members of the group; 0 where the trace does not say. */
  readonly groupSize: Int32Array;
  /** The group's own count of its collectives, in newer traces; NaN in others. */
  readonly seq: Float64Array;
  /** Global rank of the other side of a send or receive; -1 for others. */
  readonly peer: Int32Array;
}

export interface TraceGroup {
  readonly name: string;
  readonly desc: string;
  /** Global ranks in group order; null where the trace cut the list and its header does not have it. */
  readonly ranks: readonly Rank[] | null;
}

export interface TraceDevice {
  /** "NVIDIA H200". */
  readonly name: string;
}

export interface RankKernels {
  readonly file: string;
  readonly rank: Rank | null;
  /** 0 where the trace does not say. */
  readonly worldSize: number;
  /** "nccl", "gloo"; "" where the trace does not say. */
  readonly backend: string;
  readonly host: string;
  /** Nanoseconds since 1970 that all times are relative to. */
  readonly epochNs: bigint;
  /** Whether the file ends in the middle, or more events were in it than are kept. */
  readonly isCut: boolean;
  /**
   * instrumented: only matrix products and communication were recorded (FLARE §4.1), so that a gap between two of them
   * may hold any other kernel. Absent where the trace has all.
   */
  readonly coverage?: "instrumented";
  readonly devices: readonly TraceDevice[];
  readonly names: readonly string[];
  readonly gpu: GpuEvents;
  readonly calls: RuntimeCalls;
  readonly hostEvents: HostEvents;
  readonly steps: StepMarks;
  readonly matrixOps: MatrixOps;
  readonly shapes: readonly InputShape[];
  readonly collectives: Collectives;
  readonly groups: readonly TraceGroup[];
}
