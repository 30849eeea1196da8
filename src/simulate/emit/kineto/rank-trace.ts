/**
 * One rank's steps as a trace: what its CPU did (fetching, collecting garbage, waiting for the GPU,
 * launching) and what its GPU ran. All times are the simulation's; only the division of a stretch of
 * compute into kernels, and of the CPU's time into launches, is made up here.
 */
import type { IterationTimes, Simulation } from "../../cluster/times.ts";
import type { ClusterGroups } from "../../cluster/groups.ts";
import { hostTimes } from "../../cluster/host-times.ts";
import * as P from "../../cluster/program.ts";
import type { Writer } from "../emitter.ts";
import { ranBefore } from "../operator-counts.ts";
import { copyArgs, inputs, kernelArgs, listInputs, ncclArgs, tensorInputs } from "./arguments.ts";
import { communications, type Communication } from "./communication.ts";
import type { Piece } from "./durations.ts";
import { STREAM_SYNC, TAIL_NS, writeHostWork } from "./host-work.ts";
import { PythonFrames } from "./python-frames.ts";
import { RankEvents, type Call } from "./rank-events.ts";
import { RankKernelPlan } from "./rank-kernels.ts";
import { computedNs } from "./work-ns.ts";

/** Streams as torch numbers them: compute and what it waits for, gradients, receives, sends from there on. */
const COMPUTE_STREAM = 7;
const GRADIENT_STREAM = 24;
const RECV_STREAM = 28;
const FIRST_SEND_STREAM = 32;

const LAUNCH: Call = { cat: "cuda_runtime", name: "cudaLaunchKernel", cbid: 211 };
const LAUNCH_EX: Call = { cat: "cuda_driver", name: "cuLaunchKernelEx", cbid: 652 };
const COPY: Call = { cat: "cuda_runtime", name: "cudaMemcpyAsync", cbid: 41 };

/** One operator on its way from the CPU to the GPU. */
interface Issue {
  readonly op: number;
  readonly tid: number;
  readonly ns: number;
  /** Between two launches; how long each takes; and how long before it the CPU operator began. */
  readonly spacing: number;
  readonly takes: number;
  readonly lead: number;
  /** Since when the CPU has been held in its next launch by a full queue; NaN where it was not. */
  readonly heldNs: number;
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
  readonly #kernels: RankKernelPlan;
  /** By role: how many operators of its group the rank has run. */
  readonly #issued = new Map<number, number>();
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
    this.#kernels = new RankKernelPlan(simulation, rank);
    this.#communications = communications(simulation, groups, rank);
  }

  step(times: IterationTimes): void {
    const { spec, lanes } = this.#simulation;
    const { iteration, devices } = times;
    const rank = this.#rank;
    const { issueNs, startNs, endNs } = times.stages[Math.floor(rank / lanes.lanes)]!;
    const { async, phase } = this.#program;
    const hostBefore = hostTimes(this.#simulation, times, rank);
    const ran = ranBefore(this.#simulation, iteration);
    for (let role = 0; role < P.NO_GROUP; role++) this.#issued.set(role, ran(rank, role));
    const issuing = spec.issueNs * devices.cpu[rank]!;
    const pieces = this.#kernels.of(times, spec.faults);
    const isMask = spec.faults.some(({ how, from }) => how === "mask" && from <= iteration);
    const frames = spec.pythonStacks ? new PythonFrames(this.#events, this.#program) : null;
    const begun = { ns: Infinity, kernel: Infinity, optimizer: Infinity };
    let before = 0;
    let gpu = 0;
    for (let op = 0; op < this.#program.count; op++) {
      const at = op * lanes.lanes + (rank % lanes.lanes);
      const issue = issueNs[at]!;
      const { fetchNs: fetch, lookupNs: lookup, collectNs: collect, sites } = hostBefore(op);
      const atSites = sites.reduce((sum, { ns }) => sum + ns, 0);
      if (begun.ns === Infinity)
        before = begun.ns = issue - issuing - collect - fetch - lookup - atSites - TAIL_NS;
      const tid = this.#isAutograd(op) ? this.#events.autograd : this.#events.main;
      const idle = writeHostWork(this.#events, {
        tid,
        fromNs: before + TAIL_NS,
        toNs: issue - issuing,
        fetchNs: fetch,
        lookupNs: lookup,
        collectNs: collect,
        syncs: devices.sync[rank] === 1,
        sites,
        stallNs: devices.sync[rank] === 1 ? 0 : devices.stallNs[rank]!,
        isMask,
        hasStacks: spec.pythonStacks,
      });
      frames?.operator(op, before + TAIL_NS, issue + TAIL_NS);
      const gathered = this.#program.waitsFor[op]!;
      const from = gathered < 0 ? 0 : endNs[gathered * lanes.lanes + (rank % lanes.lanes)]!;
      const begin = Math.max(issue, gpu, from);
      gpu = begin + computedNs(this.#simulation, times, rank, op, startNs[at]! - begin);
      const own = pieces(op, gpu - begin);
      if (own.length > 0) begun.kernel = Math.min(begun.kernel, begin);
      if (phase[op] === P.OPTIMIZER)
        begun.optimizer = Math.min(begun.optimizer, issue - 0.9 * issuing);
      const spacing = (0.8 * issuing) / (own.length + 1);
      const where: Issue = {
        op,
        tid,
        ns: issue,
        spacing,
        takes: Math.min(0.35 * spacing, 0.75 * TAIL_NS),
        lead: Math.min(0.3 * spacing, 20_000),
        heldNs: this.#isHeld(op, sites.length) && issue - issuing > idle + TAIL_NS ? idle : NaN,
      };
      this.#compute(where, begin, own);
      this.#communicate(where, startNs[at]!, endNs[at]!);
      if (async[op] === 0) gpu = endNs[at]!;
      before = issue;
    }
    frames?.end(begun.ns, before + TAIL_NS);
    this.#finish(iteration, before, Math.max(times.rankEndNs[rank]!, gpu), begun);
  }

  /** Whether only a full queue can keep the CPU from launching. */
  #isHeld(before: number, sites: number): boolean {
    const { launchQueue } = this.#simulation.spec;
    return launchQueue > 0 && before >= launchQueue && sites === 0;
  }

  #isAutograd(op: number): boolean {
    const { phase, microBatch } = this.#program;
    return phase[op] === P.BACKWARD || (phase[op] === P.GRADIENTS && microBatch[op]! >= 0);
  }

  /** Launches up to the moment of issue, kernels from the moment the GPU is free. */
  #compute(issue: Issue, begin: number, pieces: readonly Piece[]): void {
    const events = this.#events;
    const { tid, takes, lead } = issue;
    let at = begin;
    pieces.forEach((piece, i) => {
      const planned = issue.ns - (pieces.length - i) * issue.spacing;
      // A launch into a full queue is a long call.
      const isHeld = i === 0 && issue.heldNs < planned;
      const launch = isHeld ? issue.heldNs : planned;
      const from = isHeld ? launch : launch - lead;
      const until = planned + takes;
      const { op, dims, kind, name } = piece.kernel;
      const isForward = tid === events.main;
      const forward = isForward
        ? `"Sequence number": ${this.#sequence++}, "Fwd thread id": 0, `
        : "";
      const args = inputs(dims, forward);
      const id = events.operator("cpu_op", op, tid, from, planned + 1.2 * takes, args);
      const isCopy = kind === "memcpy";
      const call = kind === "gemm" ? LAUNCH_EX : isCopy ? COPY : LAUNCH;
      const correlation = events.launch(call, tid, launch, until, id);
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

  #communicate({ op, tid, ns, takes, lead }: Issue, fromNs: number, toNs: number): void {
    const what = this.#communications[op];
    if (!what) return;
    const events = this.#events;
    const { dims, annotation } = what;
    const cpu = (cat: string, name: string, nesting: number, args: string): number => {
      const until = ns + (1.3 - nesting / 10) * takes;
      return events.operator(cat, name, tid, ns - (1 - nesting / 5) * lead, until, args);
    };
    const number = this.#issued.get(what.role)! + 1;
    this.#issued.set(what.role, number);
    const seq = `, "Seq": ${number}`;
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
    if (until > waits) events.wait(STREAM_SYNC, events.main, waits, until);
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
