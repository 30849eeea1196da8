/**
 * A Chrome trace as Kineto writes it (libkineto/src/output_json.cpp; our own recordings of torch with
 * CUDA 13 field by field). Events go out as they come, in pieces of some ten kilobytes.
 */
import type { Writer } from "../emitter.ts";

/** Kineto counts from the last full quarter of a year of 7,889,238 s (ChromeTraceBaseTime). */
const QUARTER_NS = 7_889_238_000_000_000n;
const CHUNK = 1 << 16;

interface TraceHeader {
  readonly rank: number;
  readonly gpus: number;
  readonly traceId: string;
  readonly groupCount: number;
  readonly groups: readonly { name: string; desc: string; ranks: readonly number[] }[];
  /** GPUs of the machine: Kineto lists them all. */
  readonly devices: number;
  readonly epochNs: bigint;
}

/** Args of an event, already as JSON: `"External id": 7, "Ev Idx": 3`. */
type Args = string;

export class TraceFile {
  readonly #writer: Writer;
  readonly #offsetNs: number;
  #buffer = "";
  #isFirst = true;

  constructor(writer: Writer, header: TraceHeader) {
    this.#writer = writer;
    const base = (header.epochNs / QUARTER_NS) * QUARTER_NS;
    this.#offsetNs = Number(header.epochNs - base);
    this.#buffer = headerText(header, base);
  }

  /** Microseconds with three decimals, exact to the nanosecond; `ns` since the job's epoch. */
  #us(ns: number): string {
    const whole = Math.round(ns) + this.#offsetNs;
    return `${Math.floor(whole / 1000)}.${String(whole % 1000).padStart(3, "0")}`;
  }

  #put(text: string): void {
    this.#buffer += this.#isFirst ? text : `,\n${text}`;
    this.#isFirst = false;
    if (this.#buffer.length < CHUNK) return;
    this.#writer.write(this.#buffer);
    this.#buffer = "";
  }

  /** A complete event from one time to another; both are rounded, so that neighbours never overlap. */
  complete(
    cat: string,
    name: string,
    pid: number,
    tid: number,
    fromNs: number,
    toNs: number,
    args: Args,
  ): void {
    const ns = Math.max(0, Math.round(toNs) - Math.round(fromNs));
    const dur = `${Math.floor(ns / 1000)}.${String(ns % 1000).padStart(3, "0")}`;
    this.#put(
      `  {\n    "ph": "X", "cat": "${cat}", "name": "${name}", "pid": ${pid}, "tid": ${tid},\n` +
        `    "ts": ${this.#us(fromNs)}, "dur": ${dur},\n    "args": {\n      ${args}\n    }\n  }`,
    );
  }

  /** The arrow from a launch to its kernel. */
  flow(isStart: boolean, id: number, pid: number, tid: number, ns: number): void {
    const [ph, end] = isStart ? ["s", ""] : ["f", ', "bp": "e"'];
    this.#put(
      `  {\n    "ph": "${ph}", "id": ${id}, "pid": ${pid}, "tid": ${tid}, "ts": ${this.#us(ns)},\n` +
        `    "cat": "ac2g", "name": "ac2g"${end}\n  }`,
    );
  }

  metadata(name: string, pid: number, tid: number, ns: number, args: Args): void {
    this.#put(
      `  {\n    "name": "${name}", "ph": "M", "ts": ${this.#us(ns)}, "pid": ${pid}, "tid": ${tid},\n` +
        `    "args": {\n      ${args}\n    }\n  }`,
    );
  }

  /** What stands at the end of every trace. */
  end(fromNs: number, toNs: number, path: string): void {
    const from = this.#us(fromNs);
    const ns = Math.round(toNs) - Math.round(fromNs);
    this.#put(
      `  {\n    "ph": "X", "cat": "Trace", "ts": ${from}, "dur": ${(ns / 1000).toFixed(3)},\n` +
        `    "pid": "Spans", "tid": "PyTorch Profiler",\n    "name": "PyTorch Profiler (0)",\n` +
        `    "args": {\n      "Op count": 0\n    }\n  }`,
    );
    this.#put(
      `  {\n    "name": "process_sort_index", "ph": "M", "ts": ${from},\n` +
        `    "pid": "Spans", "tid": 0,\n    "args": {\n      "sort_index": 536870912\n    }\n  }`,
    );
    this.#put(
      `  {\n    "name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g",\n` +
        `    "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": ${from}\n  }`,
    );
    this.#put(
      `  {\n    "name": "Record Window End", "ph": "i", "s": "g",\n` +
        `    "pid": "", "tid": "", "ts": ${this.#us(toNs)}\n  }`,
    );
    this.#writer.write(`${this.#buffer}\n  ],\n  "traceName": ${JSON.stringify(path)}\n}\n`);
    this.#buffer = "";
    this.#writer.end();
  }
}

function headerText(header: TraceHeader, base: bigint): string {
  const devices = Array.from(
    { length: header.devices },
    (_, id) => `    {
      "id": ${id}, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84929347584,
      "computeMajor": 9, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": 132
    , "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472
    }`,
  );
  const distributed = {
    backend: "nccl",
    rank: header.rank,
    world_size: header.gpus,
    pg_count: header.groupCount,
    pg_config: header.groups.map(({ name, desc, ranks }) => ({
      pg_name: name,
      pg_desc: desc,
      backend_config: "cuda:nccl",
      pg_size: ranks.length,
      ranks,
    })),
    nccl_version: "2.28.9",
  };
  return `
  {
    "schemaVersion": 1,
    "deviceProperties": [
${devices.join(",\n")}
    ],
      "trace_id": "${header.traceId}",
      "record_shapes": 1,
      "distributedInfo": ${JSON.stringify(distributed)},
      "cuda_driver_version": 13000,
      "cuda_runtime_version": 13000,
      "cupti_version": 130001,
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": ${base},
  "traceEvents": [
`;
}
