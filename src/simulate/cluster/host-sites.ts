/**
 * What a CPU does before certain operators only: waits for the GPU, collects garbage, checks packages,
 * asks the driver for memory. Where it happens is the code's doing (each layer, each micro-batch) or
 * chance (a collection, on each rank by itself: FLARE §6.4), never the order of calls.
 */
import type { FaultSpec } from "./fault-spec.ts";
import { STREAM, uniform } from "./noise.ts";
import { BACKWARD, FORWARD, RECV, type StageProgram } from "./program.ts";
import type { RankWork } from "./rank-work.ts";
import type { ClusterSpec } from "./spec.ts";

export type HostWork = "synchronize" | "collect" | "check" | "allocate";

export interface HostSite {
  readonly what: HostWork;
  /** Whether the CPU first waits until its GPU has run dry: cudaFree does, as all that synchronises does. */
  readonly drains: boolean;
  /** CPU time before an operator of a rank, on top of the wait; -1 where nothing happens. */
  ns(rank: number, op: number): number;
}

interface Acting {
  readonly fault: FaultSpec;
  readonly severity: number;
  readonly ranks: ReadonlySet<number>;
}

/** CPU time that a severity of 2 adds at each site: Python around a wait, a full collection, a driver call. */
const SITE_NS: Readonly<Record<HostWork, number>> = {
  synchronize: 1e5,
  collect: 1e7,
  check: 1e5,
  allocate: 1e6,
};
/** Collections of a rank in a step. Each takes tens of milliseconds where a model has millions of objects. */
const COLLECTIONS = 2;

const WORK: Readonly<Partial<Record<FaultSpec["cause"], HostWork>>> = {
  synchronization: "synchronize",
  "garbage-collection": "collect",
  "user-program": "check",
  "memory-management": "allocate",
};

export function hostSites(
  spec: ClusterSpec,
  acting: readonly Acting[],
  work: RankWork | null,
  iteration: number,
): HostSite[] {
  if (work === null) return [];
  const sites: HostSite[] = [];
  if (spec.p2pSync) {
    const isRecv = (rank: number, op: number): boolean => work.programOf(rank).kind[op] === RECV;
    sites.push({
      what: "synchronize",
      drains: true,
      ns: (rank, op) => (isRecv(rank, op) ? 0 : -1),
    });
  }
  if (spec.placement > 0) sites.push(allocatorRetries(spec, work, iteration));
  for (const { fault, severity, ranks } of acting) {
    const what = WORK[fault.cause];
    if (what === undefined || (fault.how === "" && what !== "allocate")) continue;
    const meanNs = SITE_NS[what] * (severity - 1);
    const isAt = (rank: number, op: number): boolean => {
      const { layers, passes } = startsOf(work.programOf(rank));
      return (fault.how === "micro-batch" || fault.how === "" ? passes : layers)[op] === 1;
    };
    const now = (rank: number, op: number): number => {
      const u = uniform(spec.seed ^ STREAM.site, rank, op, iteration);
      const share = COLLECTIONS / work.counts[rank]!;
      return u < share ? meanNs * (0.5 + u / share) : -1;
    };
    sites.push({
      what,
      drains: what === "synchronize" || what === "allocate",
      ns(rank, op) {
        if (!ranks.has(rank)) return -1;
        if (what === "collect") return now(rank, op);
        return isAt(rank, op) ? meanNs : -1;
      },
    });
  }
  return sites;
}

/** In health too the caching allocator now and then finds no block, hands some back and asks for others. Assumed. */
const RETRIES = 0.01;
const RETRY_NS = 2e6;

function allocatorRetries(spec: ClusterSpec, work: RankWork, iteration: number): HostSite {
  return {
    what: "allocate",
    drains: true,
    ns(rank, op) {
      const u = uniform(spec.seed ^ STREAM.retry, rank, op, iteration);
      const share = (spec.placement * RETRIES) / work.counts[rank]!;
      return u < share ? RETRY_NS * (0.5 + u / share) : -1;
    },
  };
}

interface Starts {
  /** 1 at the first operator of a layer's forward pass; of a pass where the program has no layers. */
  readonly layers: Uint8Array;
  readonly passes: Uint8Array;
}

const known = new WeakMap<StageProgram, Starts>();

function startsOf(program: StageProgram): Starts {
  const before = known.get(program);
  if (before) return before;
  const { count, phase, microBatch, layer, async } = program;
  const layers = new Uint8Array(count);
  const passes = new Uint8Array(count);
  let pass = "";
  let inLayer = "";
  let hasLayers = false;
  for (let op = 0; op < count; op++) {
    if (async[op] === 1 || (phase[op] !== FORWARD && phase[op] !== BACKWARD)) continue;
    const here = `${phase[op]}/${microBatch[op]}`;
    if (here !== pass) passes[op] = 1;
    const there = `${here}/${layer[op]}`;
    if (phase[op] === FORWARD && layer[op]! >= 0 && there !== inLayer) {
      layers[op] = 1;
      hasLayers = true;
    }
    pass = here;
    inLayer = there;
  }
  const starts = { layers: hasLayers ? layers : passes, passes };
  known.set(program, starts);
  return starts;
}
