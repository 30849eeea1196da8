/**
 * What a rank's CPU does before it issues an operator, as events: fetches a batch, looks embeddings up,
 * waits for the GPU, collects garbage, checks packages, asks the driver for memory. Python functions are
 * there only where the profiler recorded stacks; the CUDA calls always are.
 */
import type { HostWork } from "../../cluster/host-sites.ts";
import type { Call, RankEvents } from "./rank-events.ts";

const DEVICE_SYNC: Call = { cat: "cuda_runtime", name: "cudaDeviceSynchronize", cbid: 165 };
export const STREAM_SYNC: Call = { cat: "cuda_runtime", name: "cudaStreamSynchronize", cbid: 131 };
const MALLOC: Call = { cat: "cuda_runtime", name: "cudaMalloc", cbid: 20 };
const FREE: Call = { cat: "cuda_runtime", name: "cudaFree", cbid: 22 };
const FETCH = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
const LOOKUP = "aten::embedding_bag";
const MASK = "megatron/training/utils.py(214): get_ltor_masks_and_position_ids";
const COLLECT = "Python GC";

/** The longest that a launch and its CPU operator reach past the moment of issue. */
export const TAIL_NS = 4_000;
/** A call that finds nothing to wait for. */
const CALL_NS = 3_000;

interface BeforeIssue {
  readonly tid: number;
  /** When the CPU is done with the operator before, and when it begins to issue this one. */
  readonly fromNs: number;
  readonly toNs: number;
  /** How long each takes; 0 for what does not happen. */
  readonly fetchNs: number;
  readonly lookupNs: number;
  readonly collectNs: number;
  /** Whether the CPU waits for the GPU before every operator. */
  readonly syncs: boolean;
  readonly sites: readonly {
    readonly what: HostWork;
    readonly drains: boolean;
    readonly ns: number;
  }[];
  /** CPU time behind the sites that nobody gives a name: contention. */
  readonly stallNs: number;
  readonly isMask: boolean;
  readonly hasStacks: boolean;
}

/** Returns since when the CPU has nothing more to do but to launch. */
export function writeHostWork(events: RankEvents, host: BeforeIssue): number {
  const { fromNs, toNs, fetchNs, lookupNs, collectNs, sites, hasStacks } = host;
  let at = fromNs;
  if (fetchNs > 0) {
    const loaded = at + fetchNs - TAIL_NS;
    events.operator("user_annotation", FETCH, events.main, at, loaded);
    if (hasStacks && host.isMask) events.python(MASK, events.main, at + 0.02 * fetchNs, loaded);
    at = loaded;
  }
  if (lookupNs > 0) {
    events.operator("cpu_op", LOOKUP, events.main, at, at + lookupNs);
    at += lookupNs;
  }
  const waited = Math.max(at, toNs - collectNs);
  if (host.syncs && waited > at + 2 * TAIL_NS) {
    events.wait(DEVICE_SYNC, events.main, at, waited);
    at = waited;
  }
  let left = sites.reduce((sum, { ns }) => sum + ns, 0);
  const until = toNs - collectNs - host.stallNs;
  for (const { what, drains, ns } of sites) {
    const from = Math.max(at, until - left);
    if (drains) writeDrain(events, host, what, at, from);
    writeWork(events, host, what, from, ns);
    at = from + ns;
    left -= ns;
  }
  if (collectNs > 0) {
    events.garbageCollection(COLLECT, events.main, waited, toNs);
    at = toNs;
  }
  return at;
}

/** The first cudaFree waits as a synchronisation does (CUDA's programming guide: implicit synchronisation). */
function writeDrain(
  events: RankEvents,
  { tid, hasStacks }: BeforeIssue,
  what: HostWork,
  fromNs: number,
  toNs: number,
): void {
  const end = Math.max(toNs, fromNs + CALL_NS);
  if (what === "allocate") {
    events.wait(FREE, tid, fromNs, end);
    return;
  }
  const call = what === "synchronize" && events.prefersStreamSync ? STREAM_SYNC : DEVICE_SYNC;
  if (hasStacks) events.python("torch/cuda/__init__.py(1040): synchronize", tid, fromNs, end);
  events.wait(call, tid, fromNs, end);
}

const CHECKS = [
  "transformers/utils/import_utils.py(52): _is_package_available",
  "importlib/metadata/__init__.py(889): version",
  "importlib/metadata/__init__.py(862): distribution",
];
/** Blocks that the allocator hands back and asks for anew at a time. */
const BLOCKS = 4;

function writeWork(
  events: RankEvents,
  { tid, hasStacks }: BeforeIssue,
  what: HostWork,
  fromNs: number,
  ns: number,
): void {
  if (ns < CALL_NS) return;
  const toNs = fromNs + ns;
  if (what === "collect") events.garbageCollection(COLLECT, tid, fromNs, toNs);
  else if (what === "allocate") {
    // Frees are cheaper than the mappings of new memory.
    const freeNs = (0.2 * ns) / BLOCKS;
    const mallocNs = (0.8 * ns) / BLOCKS;
    for (let i = 0; i < BLOCKS; i++) {
      const at = fromNs + i * freeNs;
      events.wait(FREE, tid, at, at + 0.95 * freeNs);
    }
    for (let i = 0; i < BLOCKS; i++) {
      const at = fromNs + BLOCKS * freeNs + i * mallocNs;
      events.wait(MALLOC, tid, at, at + 0.95 * mallocNs);
    }
  } else if (hasStacks) {
    if (what === "synchronize")
      events.python("megatron/core/timers.py(142): elapsed", tid, fromNs, toNs);
    else
      CHECKS.forEach((name, depth) =>
        events.python(name, tid, fromNs + 0.02 * depth * ns, toNs - 0.02 * depth * ns),
      );
  }
}
