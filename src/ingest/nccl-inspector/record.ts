/**
 * The parts of one line of NCCL Inspector's output, as
 * NVIDIA/nccl plugins/profiler/inspector/inspector_json.cc writes them. Whatever is not of the expected type
 * becomes "nothing": a reader does not throw.
 */
import { fieldsOf, type Fields } from "../../base/json.ts";

interface CallTimes {
  /** Microseconds since 1970; NaN where the line has none. */
  createdUs: number;
  startedUs: number;
  completedUs: number;
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A count, size or time; NaN (the writer's word for it is "nan") and negative numbers are none. */
export function amount(value: unknown, otherwise: number): number {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER
    ? value
    : otherwise;
}

/**
 * NCCL_INSPECTOR_DUMP_VERBOSE=1 adds times of the machine's clock (gettimeofday): *_start_ts and *_stop_ts
 * frame the CPU's enqueueing, microseconds apart; when the GPU worked stands in kernel_events, a channel
 * each. A channel that saw no event has zeros, and channels beyond the first n of a communicator are not
 * written at all, so that the kernel's times may be missing; the start then falls back on the CPU's.
 */
export function readTimes(trace: Fields | null, into: CallTimes): void {
  into.createdUs = NaN;
  into.startedUs = NaN;
  into.completedUs = NaN;
  if (!trace) return;
  into.createdUs = amount(trace["coll_start_ts"] ?? trace["p2p_start_ts"], NaN) || NaN;
  const channels = trace["kernel_events"];
  let first = Infinity;
  let last = 0;
  for (const channel of Array.isArray(channels) ? channels : []) {
    const times = fieldsOf(channel);
    if (!times) continue;
    first = Math.min(first, amount(times["kernel_start_ts"], 0) || Infinity);
    last = Math.max(last, amount(times["kernel_stop_ts"], 0));
  }
  into.startedUs = first === Infinity ? into.createdUs : first;
  into.completedUs = last || NaN;
}

/** The names of ncclFuncToString (inspector.cc) as PyTorch's dumps write them. */
const NAMES: Readonly<Record<string, string>> = {
  AllGather: "all_gather",
  AllGatherV: "all_gather_v",
  AllReduce: "all_reduce",
  All2All: "all_to_all",
  Broadcast: "broadcast",
  Recv: "recv",
  Reduce: "reduce",
  ReduceScatter: "reduce_scatter",
  Send: "send",
  SendRecv: "send_recv",
};

/** Names of later releases are written in the same way. */
export function operatorName(func: string): string {
  if (Object.hasOwn(NAMES, func)) return NAMES[func]!;
  return func
    .slice(0, 64)
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase();
}
