/** What to do about code that is slower than it was, and whose it is (FLARE, Table 1, §5.2.4, §7.3). */
import type { Cause } from "../model/cause.ts";
import { REGRESSION_OWNERS } from "../model/regression.ts";
import type { Advice } from "./advice.ts";

const WORDS: Partial<Record<Cause, Omit<Advice, "owner">>> = {
  synchronization: {
    is: ["waits for the GPU unnecessarily", "wait for the GPU unnecessarily"],
    actions: {
      "fix-code": "take {call} out of the layers, or call it only every N steps",
    },
  },
  "garbage-collection": {
    is: ["stops for Python's garbage collection", "stop for Python's garbage collection"],
    actions: {
      "fix-code": "call gc.disable(), and gc.collect() every N iterations on all ranks at once",
    },
  },
  dataloader: {
    is: ["waits for its data loader", "wait for their data loaders"],
    actions: {
      "fix-code":
        "use more loader workers, prefetching, pinned memory; look for work that grows with the sequence, such as masks",
    },
  },
  "memory-management": {
    is: [
      "allocates and frees GPU memory all the time",
      "allocate and free GPU memory all the time",
    ],
    actions: {
      "fix-config":
        "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; use fewer sizes and no empty_cache() in the step; leave memory free",
    },
  },
  "user-program": {
    is: ["spends the step in Python", "spend the step in Python"],
    actions: {
      "fix-code": "take {call} out of the step",
    },
  },
  "cpu-stall": {
    is: [
      "is held up by its CPU, which issues kernels late",
      "are held up by their CPUs, which issue kernels late",
    ],
    actions: {
      "trace-python":
        "trace with torch.profiler and with_stack=True, which names the function; then look at CPU load and pinning",
    },
  },
  "minority-kernels": {
    is: ["spends more time in small kernels", "spend more time in small kernels"],
    actions: {
      "fuse-kernels": "use torch.compile or a fused kernel for the operators in the evidence",
    },
  },
  "gemm-layout": {
    is: [
      "multiplies matrices whose layout tensor cores cannot read",
      "multiply matrices whose layout tensor cores cannot read",
    ],
    actions: {
      "pad-matrix": "pad the dimension in the evidence to the size that is given there",
    },
  },
  "slow-kernel": {
    is: ["runs a kernel that is slower than it was", "run a kernel that is slower than it was"],
    actions: {
      "fix-kernel":
        "compare versions of the library and the kernel's configuration with the baseline's",
    },
  },
};

export const REGRESSION_ADVICE: Partial<Record<Cause, Advice>> = Object.fromEntries(
  Object.entries(WORDS).map(([cause, words]) => [
    cause,
    { ...words, owner: REGRESSION_OWNERS[cause as Cause] ?? "infrastructure" },
  ]),
);
