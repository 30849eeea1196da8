/**
 * One rank's steps as a trace: what its CPU did (fetching, collecting garbage, waiting for the GPU,
 * launching) and what its GPU ran. All times are the simulation's; only the division of a stretch of
 * compute into kernels, and of the CPU's time into launches, is made up here.
 */
import { ISSUE_NS } from "../../cluster/engine.ts";
import type { IterationTimes, Simulation } from "../../cluster/times.ts";
import { faultRanks, severityAt } from "../../cluster/faults.ts";
import type { ClusterGroups } from "../../cluster/groups.ts";
import { fetchNs, gcPause } from "../../cluster/noise.ts";
import * as P from "../../cluster/program.ts";
import type { Writer } from "../emitter.ts";
import { copyArgs, inputs, kernelArgs, listInputs, ncclArgs, tensorInputs } from "./arguments.ts";
import { communications, type Communication } from "./communication.ts";
import { shareOut, type Piece } from "./durations.ts";
import { KernelPlan } from "./kernels.ts";
import { RankEvents, type Call } from "./rank-events.ts";
import { workNs } from "./work-ns.ts";

/** Streams as torch numbers them: compute and what it waits for, gradients, receives, sends from there on. */
export const COMPUTE_STREAM = 7;
const GRADIENT_STREAM = 24;
const RECV_STREAM = 28;
const FIRST_SEND_STREAM = 32;

const LAUNCH: Call = { cat: "cuda_runtime", name: "cudaLaunchKernel", cbid: 211 };
const LAUNCH_EX: Call = { cat: "cuda_driver", name: "cuLaunchKernelEx", cbid: 652 };
const COPY: Call = { cat: "cuda_runtime", name: "cudaMemcpyAsync", cbid: 41 };
const DEVICE_SYNC: Call = { cat: "cuda_runtime", name: "cudaDeviceSynchronize", cbid: 165 };
const STREAM_SYNC: Call = { cat: "cuda_runtime", name: "cudaStreamSynchronize", cbid: 131 };
const FETCH = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";

/** The longest that a launch and its CPU operator reach past the moment of issue. */
const TAIL_NS = 4_000;

/** One operator on its way from the CPU to the GPU. */
interface Issue {
  readonly op: number;
  readonly iteration: number;
  readonly tid: number;
  readonly ns: number;
  /** Between two launches; how long each takes; and how long before it the CPU operator began. */
  readonly spacing: number;
  readonly takes: number;
  readonly lead: number;
}

export class RankTrace {
  readonly #simulation: Simulation;
  readonly #rank: number;
  readonly #path: string;
  readonly #events: RankEvents;
  readonly #program: P.StageProgram;
  readonly #communications: readonly (Communication | null)[];
  /** By send stream: when its last kernel ended. */
  readonly #sendStreams: number[] = [];
  #sequence = 0;

  constructor(
    simulation: Simulation,
    groups: ClusterGroups,
    rank: number,
    path: string,
    writer: Writer,
  ) {
    this.#simulation = simulation;
    this.#rank = rank;
    this.#path = path;
    this.#events = new RankEvents(simulation, groups, rank, writer);
    this.#program = simulation.programs[Math.floor(rank / simulation.lanes.lanes)]!;
    this.#communications = communications(simulation, groups, rank);
  }

  step(times: IterationTimes): void {
    const { spec, lanes } = this.#simulation;
    const { iteration, devices } = times;
    const rank = this.#rank;
    const { issueNs, startNs, endNs } = times.stages[Math.floor(rank / lanes.lanes)]!;
    const { count, async, loads, microBatch, phase } = this.#program;
    const pause = gcPause(spec.seed, rank, iteration, count, spec.noise);
    const issuing = ISSUE_NS * devices.cpu[rank]!;
    const cause = kernelFault(this.#simulation, rank, iteration);
    const plan = new KernelPlan(spec, cause === "gemm-layout");
    const begun = { ns: Infinity, kernel: Infinity, optimizer: Infinity };
    let before = 0;
    let gpu = 0;
    for (let op = 0; op < count; op++) {
      const at = op * lanes.lanes + (rank % lanes.lanes);
      const issue = issueNs[at]!;
      const fetch = loads[op]
        ? fetchNs(spec.seed, rank, microBatch[op]!, iteration, spec.noise) + devices.loadNs[rank]!
        : 0;
      const collect = devices.pauseNs[rank]! + (pause?.op === op ? pause.ns : 0);
      if (op === 0) before = begun.ns = issue - issuing - collect - fetch - TAIL_NS;
      this.#host(before + TAIL_NS, fetch, collect, issue - issuing, devices.sync[rank] === 1);
      const begin = Math.max(issue, gpu);
      gpu = begin + this.#computed(times, op, startNs[at]! - begin);
      const pieces = shareOut(plan, {
        program: this.#program,
        op,
        ns: gpu - begin,
        factor: devices.gpu[rank]!,
        cause,
        seed: spec.seed,
        noise: spec.noise,
        rank,
        iteration,
      });
      if (pieces.length > 0) begun.kernel = Math.min(begun.kernel, begin);
      if (phase[op] === P.OPTIMIZER)
        begun.optimizer = Math.min(begun.optimizer, issue - 0.9 * issuing);
      const spacing = (0.8 * issuing) / (pieces.length + 1);
      const where: Issue = {
        op,
        iteration,
        tid: this.#isAutograd(op) ? this.#events.autograd : this.#events.main,
        ns: issue,
        spacing,
        takes: Math.min(0.35 * spacing, 0.75 * TAIL_NS),
        lead: Math.min(0.3 * spacing, 20_000),
      };
      this.#compute(where, begin, pieces);
      this.#communicate(where, startNs[at]!, endNs[at]!);
      if (async[op] === 0) gpu = endNs[at]!;
      before = issue;
    }
    this.#finish(iteration, before, Math.max(times.rankEndNs[rank]!, gpu), begun);
  }

  #isAutograd(op: number): boolean {
    const { phase, microBatch } = this.#program;
    return phase[op] === P.BACKWARD || (phase[op] === P.GRADIENTS && microBatch[op]! >= 0);
  }

  /** How much of the time before an operator the GPU computed: all of it, but for waits for gradients. */
  #computed(times: IterationTimes, op: number, atMost: number): number {
    const { role, async, kind } = this.#program;
    const isBucket = async[op] === 1 && kind[op] !== P.SEND;
    if (!isBucket && role[op] !== P.WORLD && role[op] !== P.EMBEDDING) return atMost;
    return Math.min(workNs(this.#simulation, times, this.#rank, op), atMost);
  }

  /** The CPU before it issues an operator: fetches a batch, waits for the GPU, collects garbage. */
  #host(from: number, fetch: number, collect: number, to: number, syncs: boolean): void {
    const loaded = fetch > 0 ? from + fetch - TAIL_NS : from;
    if (fetch > 0) this.#events.operator("user_annotation", FETCH, this.#events.main, from, loaded);
    const waited = Math.max(loaded, to - collect);
    if (syncs && waited > loaded + 2 * TAIL_NS) this.#events.wait(DEVICE_SYNC, loaded, waited);
    if (collect > 0) this.#events.garbageCollection(waited, to);
  }

  /** Launches up to the moment of issue, kernels from the moment the GPU is free. */
  #compute(issue: Issue, begin: number, pieces: readonly Piece[]): void {
    const events = this.#events;
    const { tid, takes, lead } = issue;
    let at = begin;
    pieces.forEach((piece, i) => {
      const launch = issue.ns - (pieces.length - i) * issue.spacing;
      const { op, dims, kind, name } = piece.kernel;
      const isForward = tid === events.main;
      const forward = isForward
        ? `"Sequence number": ${this.#sequence++}, "Fwd thread id": 0, `
        : "";
      const args = inputs(dims, forward);
      const id = events.operator("cpu_op", op, tid, launch - lead, launch + 1.2 * takes, args);
      const isCopy = kind === "memcpy";
      const call = kind === "gemm" ? LAUNCH_EX : isCopy ? COPY : LAUNCH;
      const correlation = events.launch(call, tid, launch, launch + takes, id);
      events.gpu({
        cat: isCopy ? "gpu_memcpy" : "kernel",
        name,
        stream: COMPUTE_STREAM,
        fromNs: at,
        toNs: at + piece.runNs,
        id,
        correlation,
        args: isCopy ? copyArgs(piece) : kernelArgs(piece.kernel),
      });
      at += piece.takesNs;
    });
  }

  #communicate({ op, iteration, tid, ns, takes, lead }: Issue, fromNs: number, toNs: number): void {
    const what = this.#communications[op];
    if (!what) return;
    const events = this.#events;
    const { dims, annotation } = what;
    const cpu = (cat: string, name: string, nesting: number, args: string): number => {
      const until = ns + (1.3 - nesting / 10) * takes;
      return events.operator(cat, name, tid, ns - (1 - nesting / 5) * lead, until, args);
    };
    const seq = `, "Seq": ${(iteration - 1) * what.perIteration + what.index + 1}`;
    cpu("cpu_op", what.op, 0, listInputs(dims, [], ""));
    const more = listInputs(dims, what.scalars, `, ${what.cpuArgs}${seq}`);
    const id = cpu("cpu_op", "record_param_comms", 1, more);
    const note = cpu("user_annotation", annotation, 2, `, ${tensorInputs([dims], [what.type])}`);
    const correlation = events.launch(LAUNCH_EX, tid, ns, ns + takes, id);
    const stream = this.#streamOf(op, fromNs, toNs);
    const args = `${ncclArgs(what.block)}, ${what.kernelArgs}${seq}`;
    events.gpu({ cat: "kernel", name: what.kernel, stream, fromNs, toNs, id, correlation, args });
    events.gpuAnnotation(annotation, stream, fromNs, toNs, note);
  }

  /** Two kernels never share a stream at a time: sends that overlap get one each. */
  #streamOf(op: number, start: number, end: number): number {
    const { kind, async } = this.#program;
    if (kind[op] === P.RECV) return RECV_STREAM;
    if (kind[op] !== P.SEND) return async[op] ? GRADIENT_STREAM : COMPUTE_STREAM;
    let free = this.#sendStreams.findIndex((until) => until <= start);
    if (free < 0) free = this.#sendStreams.length;
    this.#sendStreams[free] = end;
    return FIRST_SEND_STREAM + 4 * free;
  }

  /** The end of a step: the CPU waits for the GPU before it logs, and the step is marked. */
  #finish(
    iteration: number,
    lastIssue: number,
    until: number,
    begun: { readonly ns: number; readonly kernel: number; readonly optimizer: number },
  ): void {
    const events = this.#events;
    const waits = lastIssue + 2 * TAIL_NS;
    if (until > waits) events.wait(STREAM_SYNC, waits, until);
    if (begun.optimizer < Infinity) {
      const name = "Optimizer.step#AdamW.step";
      const to = lastIssue + 1.5 * TAIL_NS;
      events.operator("user_annotation", name, events.main, begun.optimizer, to);
    }
    const name = `ProfilerStep#${iteration}`;
    const id = events.step(name, begun.ns, Math.max(until, waits) + 100_000);
    if (begun.kernel < Infinity)
      events.gpuAnnotation(name, COMPUTE_STREAM, begun.kernel, until, id);
  }

  end(): void {
    this.#events.end(this.#path);
  }
}

/** Which of the faults that only lengthen kernels acts on a rank; "" for none or for a slow GPU. */
export function kernelFault(
  { spec, topology }: Simulation,
  rank: number,
  iteration: number,
): string {
  const found = spec.faults.find(
    (fault) =>
      ["minority-kernels", "gemm-layout", "slow-kernel"].includes(fault.cause) &&
      severityAt(fault, iteration, spec.seed) > 1 &&
      faultRanks(spec, topology, fault).includes(rank),
  );
  return found?.cause ?? "";
}
