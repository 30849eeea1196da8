/**
 * What a rank's probes record beside its communication in one iteration: the calls of its CPU that matter (loading, waits for
 * the GPU, garbage collections), and one matrix product in some, as FAULTLINE_KERNELS=N samples them.
 */
import type { FaultSpec } from "../../simulate/cluster/fault-spec.ts";
import { hostTimes } from "../../simulate/cluster/host-times.ts";
import { runOf } from "../../simulate/cluster/shares.ts";
import type { IterationTimes, Simulation } from "../../simulate/cluster/times.ts";
import { RankKernelPlan } from "../../simulate/emit/kineto/rank-kernels.ts";
import { computedNs } from "../../simulate/emit/kineto/work-ns.ts";

/** One operator in so many has a traced product before it. */
const EVERY = 5;

export type HostCall = "load" | "synchronize" | "collect";

/** Times are simulated nanoseconds, ascending. */
export interface RankWork {
  readonly calls: readonly {
    readonly what: HostCall;
    readonly fromNs: number;
    readonly toNs: number;
  }[];
  /** By the program's operator that it runs before. */
  readonly products: ReadonlyMap<number, TracedProduct>;
}

export interface TracedProduct {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly startNs: number;
  readonly endNs: number;
}

export class RankWorkPlan {
  readonly #simulation: Simulation;
  readonly #rank: number;
  readonly #kernels: RankKernelPlan;

  constructor(simulation: Simulation, rank: number) {
    this.#simulation = simulation;
    this.#rank = rank;
    this.#kernels = new RankKernelPlan(simulation, rank);
  }

  /** `beginNs`: when the rank was done with the iteration before. */
  of(times: IterationTimes, beginNs: number, faults: readonly FaultSpec[]): RankWork {
    const { spec, lanes, programs } = this.#simulation;
    const rank = this.#rank;
    const stage = Math.floor(rank / lanes.lanes);
    const lane = rank % lanes.lanes;
    const program = programs[stage]!;
    const { issueNs, startNs, endNs } = times.stages[stage]!;
    const { devices, iteration } = times;
    const hostBefore = hostTimes(this.#simulation, times, rank);
    const kernelsBefore = this.#kernels.of(times, faults);
    const issuingNs = spec.issueNs * devices.cpu[rank]!;
    const isSync = devices.sync[rank] === 1;
    const calls: { what: HostCall; fromNs: number; toNs: number }[] = [];
    const call = (what: HostCall, fromNs: number, toNs: number): void => {
      if (toNs > fromNs && toNs < Infinity) calls.push({ what, fromNs, toNs });
    };
    const products = new Map<number, TracedProduct>();
    let cpu = beginNs;
    let gpu = 0;
    for (const op of runOf(program, times.shares.skipped[lane]!).ops) {
      const at = op * lanes.lanes + lane;
      const issue = issueNs[at]!;
      if (!(issue < Infinity)) break;
      const { fetchNs, lookupNs, collectNs, sites } = hostBefore(op);
      call("load", cpu, cpu + fetchNs);
      cpu += fetchNs + lookupNs;
      const until = issue - issuingNs - collectNs - (isSync ? 0 : devices.stallNs[rank]!);
      if (isSync) call("synchronize", cpu, until);
      let left = sites.reduce((sum, { ns }) => sum + ns, 0);
      for (const { what, ns } of sites) {
        const from = Math.max(cpu, until - left);
        if (what === "synchronize") call("synchronize", cpu, from + ns);
        if (what === "collect") call("collect", from, from + ns);
        cpu = from + ns;
        left -= ns;
      }
      call("collect", until, until + collectNs);
      const gathered = program.waitsFor[op]!;
      const from = gathered < 0 ? 0 : endNs[gathered * lanes.lanes + lane]!;
      const begin = Math.max(issue, gpu, from);
      gpu = begin + computedNs(this.#simulation, times, rank, op, startNs[at]! - begin);
      if ((op + iteration + rank) % EVERY === 0 && gpu < Infinity) {
        const product = firstProduct(kernelsBefore(op, gpu - begin), begin);
        if (product) products.set(op, product);
      }
      if (program.async[op] === 0) gpu = endNs[at]!;
      cpu = issue;
    }
    // The loss is printed: its value waits for the GPU.
    call("synchronize", cpu, times.rankEndNs[rank]!);
    return { calls, products };
  }
}

function firstProduct(
  pieces: ReturnType<ReturnType<RankKernelPlan["of"]>>,
  beginNs: number,
): TracedProduct | null {
  let startNs = beginNs;
  for (const { kernel, takesNs, runNs } of pieces) {
    if (kernel.kind === "gemm") {
      const [[m, k], [, n]] = kernel.dims as unknown as [[number, number], [number, number]];
      return { m, n, k, startNs, endNs: startNs + runNs };
    }
    startNs += takesNs;
  }
  return null;
}
