/** The events of one process and its GPU, with the ids that tie a CPU operator, a launch and a kernel. */
import { machineNs } from "../../cluster/clocks.ts";
import type { Simulation } from "../../cluster/times.ts";
import type { ClusterGroups } from "../../cluster/groups.ts";
import { hash, STREAM } from "../../cluster/noise.ts";
import type { Writer } from "../emitter.ts";
import { groupsOfRank } from "./communication.ts";
import { TraceFile } from "./trace-file.ts";

export interface Call {
  readonly cat: "cuda_runtime" | "cuda_driver";
  readonly name: string;
  /** Callback id of CUPTI (cupti_runtime_cbid.h, cupti_driver_cbid.h). */
  readonly cbid: number;
}

/** What a launch put on the GPU. */
interface OnGpu {
  readonly cat: "kernel" | "gpu_memcpy";
  readonly name: string;
  readonly stream: number;
  readonly fromNs: number;
  readonly toNs: number;
  /** External id of the CPU operator, and the launch's correlation. */
  readonly id: number;
  readonly correlation: number;
  readonly args: string;
}

export class RankEvents {
  readonly main: number;
  readonly autograd: number;
  /** Which of its two names a needless synchronisation has in this job: .item() or torch.cuda.synchronize(). */
  readonly prefersStreamSync: boolean;
  readonly #simulation: Simulation;
  readonly #file: TraceFile;
  readonly #machine: number;
  readonly #device: number;
  readonly #devices: number;
  readonly #streams = new Set<number>();
  #externalId = 0;
  #eventIndex = 0;
  #pythonId = 0;
  #correlation = 0;
  #fromNs = Infinity;
  #toNs = 0;

  constructor(simulation: Simulation, groups: ClusterGroups, rank: number, writer: Writer) {
    const { spec, topology } = simulation;
    this.#simulation = simulation;
    this.#machine = topology.machineOf(rank);
    this.#device = topology.gpuOf(rank);
    this.#devices = Math.min(spec.gpus, spec.gpusPerMachine);
    this.main = 20_000 + 131 * this.#device;
    this.autograd = this.main + 97;
    // By job, not by run: the same code runs on all its ranks.
    this.prefersStreamSync =
      (spec.hidden / 128 + spec.layersPerStage + spec.microBatches) % 2 === 1;
    const word = (at: number): string =>
      hash(spec.seed ^ STREAM.kernel, rank, at, 0)
        .toString(16)
        .padStart(8, "0");
    this.#file = new TraceFile(writer, {
      rank,
      gpus: spec.gpus,
      traceId: [0, 1, 2, 3].map(word).join("").toUpperCase(),
      groupCount: groups.groups.length,
      groups: groupsOfRank(groups, rank),
      devices: this.#devices,
      epochNs: spec.epochNs,
    });
  }

  /** On the clock of the rank's machine: times come in on the job's. */
  #clock(jobNs: number): number {
    return machineNs(this.#simulation.spec, this.#machine, jobNs);
  }

  #cpu(cat: string, name: string, tid: number, from: number, to: number, args: string): void {
    this.#file.complete(cat, name, this.main, tid, this.#clock(from), this.#clock(to), args);
  }

  /** An operator or an annotation; its External id. `args` begins with a comma where there are any. */
  operator(cat: string, name: string, tid: number, from: number, to: number, args = ""): number {
    const id = ++this.#externalId;
    const index = this.#eventIndex++;
    const all = `"External id": ${id}, "Record function id": 0${args}, "Ev Idx": ${index}`;
    this.#cpu(cat, name, tid, from, to, all);
    return id;
  }

  /** With record_python_gc_info (torch/csrc/profiler/collection.cpp, EventType::PythonGC). */
  garbageCollection(name: string, tid: number, from: number, to: number): void {
    const args = `"Ev Idx": ${this.#eventIndex++}`;
    this.#cpu("python_function", name, tid, from, to, args);
  }

  /** With with_stack: a function, "file(line): name". */
  python(name: string, tid: number, from: number, to: number): void {
    const id = ++this.#pythonId;
    const args = `"Python parent id": ${Math.max(0, id - 1)}, "Python id": ${id}, "Ev Idx": ${this.#eventIndex++}`;
    this.#cpu("python_function", name, tid, from, to, args);
  }

  /** A CUDA call that launches nothing. */
  wait({ cat, name, cbid }: Call, tid: number, from: number, to: number): void {
    const args = `"cbid": ${cbid}, "correlation": ${++this.#correlation}`;
    this.#cpu(cat, name, tid, from, to, args);
  }

  /** The correlation that the kernel gets too. */
  launch({ cat, name, cbid }: Call, tid: number, from: number, to: number, id: number): number {
    const correlation = ++this.#correlation;
    const args = `"External id": ${id}, "cbid": ${cbid}, "correlation": ${correlation}`;
    this.#cpu(cat, name, tid, from, to, args);
    this.#file.flow(true, correlation, this.main, tid, this.#clock(from));
    return correlation;
  }

  gpu({ cat, name, stream, fromNs, toNs, id, correlation, args }: OnGpu): void {
    this.#streams.add(stream);
    const queued = cat === "kernel" ? `"queued": 0, ` : "";
    const all =
      `"External id": ${id}, ${queued}"device": ${this.#device}, "context": 1, ` +
      `"stream": ${stream}, "correlation": ${correlation}, ${args}`;
    const [from, to] = [this.#clock(fromNs), this.#clock(toNs)];
    this.#file.complete(cat, name, this.#device, stream, from, to, all);
    this.#file.flow(false, correlation, this.#device, stream, from);
  }

  /** The shadow of an annotation on the GPU. */
  gpuAnnotation(name: string, stream: number, fromNs: number, toNs: number, id: number): void {
    const [from, to] = [this.#clock(fromNs), this.#clock(toNs)];
    const args = `"External id": ${id}`;
    this.#file.complete("gpu_user_annotation", name, this.#device, stream, from, to, args);
  }

  step(name: string, fromNs: number, toNs: number): number {
    this.#fromNs = Math.min(this.#fromNs, fromNs);
    this.#toNs = Math.max(this.#toNs, toNs);
    return this.operator("user_annotation", name, this.main, fromNs, toNs);
  }

  end(path: string): void {
    const at = this.#clock(this.#fromNs);
    const put = (name: string, pid: number, tid: number, args: string): void =>
      this.#file.metadata(name, pid, tid, at, args);
    const process = (pid: number, label: string, index: number): void => {
      put("process_name", pid, 0, `"name": "python3"`);
      put("process_labels", pid, 0, `"labels": "${label}"`);
      put("process_sort_index", pid, 0, `"sort_index": ${index}`);
    };
    const thread = (pid: number, tid: number, name: string): void => {
      put("thread_name", pid, tid, `"name": "${name}"`);
      put("thread_sort_index", pid, tid, `"sort_index": ${tid}`);
    };
    process(this.main, "CPU", this.main);
    for (let gpu = 0; gpu < this.#devices; gpu++) process(gpu, `GPU ${gpu}`, 5_000_000 + gpu);
    for (const stream of [...this.#streams].sort((a, b) => a - b))
      thread(this.#device, stream, `stream ${stream} `);
    thread(this.main, this.main, `thread ${this.main} (python3)`);
    thread(this.main, this.autograd, `thread ${this.autograd} (pt_autograd_0)`);
    this.#file.end(at, this.#clock(this.#toNs), path);
  }
}
