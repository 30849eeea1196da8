import { describe, expect, test } from "vitest";
import { UserError } from "../../base/errors.ts";
import { machineNs } from "../cluster/clocks.ts";
import { simulate } from "../cluster/engine.ts";
import type { Simulation } from "../cluster/times.ts";
import { parseFault } from "../cluster/fault-spec.ts";
import { NO_GROUP, SEND } from "../cluster/program.ts";
import { completeSpec, type ClusterSpec } from "../cluster/spec.ts";
import type { Output } from "./emitter.ts";
import { emitKineto, chooseRanks, chooseSteps, type KinetoOptions } from "./kineto.ts";
import { listText } from "./kineto/communication.ts";
import { oddSize } from "./kineto/kernels.ts";

interface Event {
  readonly ph: string;
  readonly cat?: string;
  readonly name: string;
  readonly id?: number;
  readonly pid: number | string;
  readonly tid: number | string;
  readonly ts: number;
  readonly dur?: number;
  readonly args?: Readonly<Record<string, unknown>>;
}
interface Trace {
  readonly distributedInfo: { readonly pg_config: readonly { readonly pg_name: string }[] };
  readonly baseTimeNanoseconds: number;
  readonly traceEvents: readonly Event[];
}

/** The job's files as text, and how many pieces each came in. */
function emit(given: Partial<ClusterSpec>, options: KinetoOptions = {}) {
  const spec = completeSpec({ iterations: 4, microBatches: 2, layersPerStage: 2, ...given });
  const simulation = simulate(spec);
  const files = new Map<string, string>();
  const chunks: number[] = [];
  const output: Output = {
    open(path) {
      files.set(path, "");
      return {
        write(chunk) {
          chunks.push(chunk.length);
          files.set(path, files.get(path)! + String(chunk));
        },
        end: () => undefined,
      };
    },
  };
  const emitter = emitKineto(simulation, output, options);
  const kept = new Map<number, { issue: Float64Array; start: Float64Array; end: Float64Array }[]>();
  for (const times of simulation.iterations()) {
    emitter.iteration(times);
    const copy = times.stages.map(({ issueNs, startNs, endNs }) => ({
      issue: issueNs.slice(),
      start: startNs.slice(),
      end: endNs.slice(),
    }));
    kept.set(times.iteration, copy);
  }
  emitter.end();
  return { simulation, files, chunks, kept };
}

const faulty = (words: string): Partial<ClusterSpec> => ({ faults: [parseFault(words)] });
const traceOf = (files: ReadonlyMap<string, string>, rank = 0): Trace =>
  JSON.parse(files.get(`kineto/kineto.rank${rank}.json`)!) as Trace;
const of = (trace: Trace, cat: string): Event[] =>
  trace.traceEvents.filter((event) => event.ph === "X" && event.cat === cat);
const named = (trace: Trace, name: string): Event[] =>
  trace.traceEvents.filter((event) => event.ph === "X" && event.name.startsWith(name));
const sum = (events: readonly Event[]): number => events.reduce((all, { dur }) => all + dur!, 0);
/** Times as whole nanoseconds: microseconds with three decimals are no exact doubles. */
const ns = (us: number): number => Math.round(us * 1000);

/** The steps of a trace apart, by what ran within each ProfilerStep. */
function inStep(trace: Trace, step: number): (event: Event) => boolean {
  const mark = of(trace, "user_annotation").find((event) => event.name === `ProfilerStep#${step}`)!;
  return (event) => event.ts >= mark.ts && event.ts <= mark.ts + mark.dur!;
}

/** Keys of our own recording reg-none, kineto.rank0.json (torch with CUDA 13 and NCCL 2.28.9, H200). */
const SHAPE = {
  top: "schemaVersion deviceProperties trace_id record_shapes distributedInfo cuda_driver_version cuda_runtime_version cupti_version displayTimeUnit baseTimeNanoseconds traceEvents traceName",
  device:
    "id name totalGlobalMem computeMajor computeMinor maxThreadsPerBlock maxThreadsPerMultiprocessor regsPerBlock warpSize sharedMemPerBlock numSms regsPerMultiprocessor sharedMemPerBlockOptin sharedMemPerMultiprocessor",
  distributed: "backend rank world_size pg_count pg_config nccl_version",
  group: "pg_name pg_desc backend_config pg_size ranks",
};
const KERNEL_KEYS =
  "External id|queued|device|context|stream|correlation|registers per thread|shared memory|blocks per SM|warps per SM|grid|block|est. achieved occupancy %";
const NCCL_KEYS =
  "Collective name|In msg nelems|Out msg nelems|Group size|dtype|In split size|Out split size|Process Group Name|Process Group Description|Process Group Ranks";
const INPUT_KEYS = "Concrete Inputs|Input type|Input Strides|Input Dims";
/** "ph/cat": the sets of argument keys that occur. Ours add "Seq", which torch has in other builds. */
const EVENT_SHAPES: Readonly<Record<string, readonly string[]>> = {
  "X/cpu_op": [
    `External id|Record function id|${INPUT_KEYS}|Ev Idx`,
    `External id|Record function id|Sequence number|Fwd thread id|${INPUT_KEYS}|Ev Idx`,
    ...["", "|Src Rank", "|Dst Rank"].map(
      (peer) =>
        `External id|Record function id|${INPUT_KEYS}|${NCCL_KEYS}|Rank|Global rank start|Global rank stride|Ev Idx${peer}`,
    ),
  ],
  "X/user_annotation": [
    `External id|Record function id|${INPUT_KEYS}|Ev Idx`,
    "External id|Record function id|Ev Idx",
  ],
  "X/gpu_user_annotation": ["External id"],
  "X/kernel": [
    KERNEL_KEYS,
    ...["", "|Src Rank", "|Dst Rank"].map((peer) => `${KERNEL_KEYS}|${NCCL_KEYS}${peer}`),
  ],
  "X/gpu_memcpy": ["External id|device|context|stream|correlation|bytes|memory bandwidth (GB/s)"],
  "X/cuda_runtime": ["External id|cbid|correlation", "cbid|correlation"],
  "X/cuda_driver": ["External id|cbid|correlation"],
  "X/Trace": ["Op count"],
  "s/ac2g": [""],
  "f/ac2g": [""],
  "M/": ["name", "labels", "sort_index"],
  "i/": [""],
};
const FIELDS: Readonly<Record<string, string>> = {
  X: "args cat dur name ph pid tid ts",
  s: "cat id name ph pid tid ts",
  f: "bp cat id name ph pid tid ts",
  M: "args name ph pid tid ts",
  i: "name ph pid s tid ts",
};
const keys = (object: object): string => Object.keys(object).sort().join(" ");
const sorted = (text: string, separator: string): string =>
  text.split(separator).sort().join(separator);

/** Every way in which a trace differs in shape from the recording. */
function shapeDifferences(trace: Trace): string[] {
  const found = new Set<string>();
  const compare = (what: string, object: object, expected: string): void => {
    if (keys(object) !== sorted(expected, " ")) found.add(`${what}: ${keys(object)}`);
  };
  const top = trace as unknown as { deviceProperties: object[]; distributedInfo: object };
  compare("top level", trace, SHAPE.top);
  for (const device of top.deviceProperties) compare("device", device, SHAPE.device);
  compare("distributedInfo", top.distributedInfo, SHAPE.distributed);
  for (const group of trace.distributedInfo.pg_config) compare("pg_config", group, SHAPE.group);
  for (const event of trace.traceEvents) {
    const kind = `${event.ph}/${event.cat ?? ""}`;
    compare(kind, event, FIELDS[event.ph] ?? "");
    const args = Object.keys(event.args ?? {})
      .filter((key) => key !== "Seq")
      .sort()
      .join("|");
    const known = (EVENT_SHAPES[kind] ?? []).map((shape) => sorted(shape, "|"));
    if (!known.includes(args)) found.add(`${kind} ${event.name}: ${args}`);
  }
  return [...found];
}

describe("a trace", () => {
  const job = { gpus: 16, tp: 2, pp: 2, ...faulty("gpu-slow:rank=5:from=3:severity=2") };
  const { simulation, files, chunks, kept } = emit(job);

  test("is written for rank 0, the suspect and a peer of it, a step before and one inside", () => {
    expect([...files.keys()]).toEqual([0, 1, 5].map((rank) => `kineto/kineto.rank${rank}.json`));
    const steps = named(traceOf(files, 5), "ProfilerStep#").map((event) => event.name);
    expect([...new Set(steps)]).toEqual(["ProfilerStep#2", "ProfilerStep#3"]);
  });

  test("has the shape of a recorded one, field by field", () => {
    for (const rank of [0, 1, 5]) expect(shapeDifferences(traceOf(files, rank))).toEqual([]);
    const experts = emit({ gpus: 8, tp: 1, pp: 2, ep: 4, cp: 2, ...faulty("synchronization") });
    expect(shapeDifferences(traceOf(experts.files))).toEqual([]);
  });

  test("comes in bounded pieces", () => {
    expect(Math.max(...chunks)).toBeLessThan(100_000);
    expect(chunks.length).toBeGreaterThan(10);
  });

  test("never has two kernels on a stream at once", () => {
    for (const rank of [0, 1, 5]) {
      const free = new Map<unknown, number>();
      const trace = traceOf(files, rank);
      const onGpu = [...of(trace, "kernel"), ...of(trace, "gpu_memcpy")];
      for (const { ts, dur, tid, args } of onGpu.sort((a, b) => a.ts - b.ts)) {
        expect(args!["stream"]).toBe(tid);
        expect(ns(ts)).toBeGreaterThanOrEqual(free.get(tid) ?? 0);
        free.set(tid, ns(ts) + ns(dur!));
      }
    }
  });

  test("pairs every kernel with a launch before it, by correlation and by flow", () => {
    const trace = traceOf(files, 5);
    const launches = new Map(
      [...of(trace, "cuda_runtime"), ...of(trace, "cuda_driver")].map((event) => [
        event.args!["correlation"],
        event,
      ]),
    );
    const flow = (ph: string): Map<unknown, Event> =>
      new Map(trace.traceEvents.filter((e) => e.ph === ph).map((event) => [event.id, event]));
    const [out, back] = [flow("s"), flow("f")];
    const onGpu = [...of(trace, "kernel"), ...of(trace, "gpu_memcpy")];
    expect(new Set(onGpu.map((event) => event.args!["correlation"])).size).toBe(onGpu.length);
    const ops = new Set(of(trace, "cpu_op").map((event) => event.args!["External id"]));
    for (const kernel of onGpu) {
      const id = kernel.args!["correlation"];
      const launch = launches.get(id)!;
      expect(ns(launch.ts)).toBeLessThanOrEqual(ns(kernel.ts));
      expect(launch.args!["External id"]).toBe(kernel.args!["External id"]);
      expect(ops.has(kernel.args!["External id"])).toBe(true);
      expect([out.get(id)!.ts, back.get(id)!.ts]).toEqual([launch.ts, kernel.ts]);
    }
    expect(out.size).toBe(onGpu.length);
  });

  test("has the simulation's times: launch at issue, kernel from start to end", () => {
    for (const rank of [0, 1, 5]) expectTimes(simulation, kept, traceOf(files, rank), rank, [2, 3]);
  });

  test("repeats byte by byte, and differs by seed", () => {
    expect(emit(job).files).toEqual(files);
    expect(emit({ ...job, seed: 2 }).files).not.toEqual(files);
  });

  test("nests a rank's CPU events and never launches twice at once", () => {
    const trace = traceOf(files, 1);
    const launches = [...of(trace, "cuda_runtime"), ...of(trace, "cuda_driver")];
    for (const tid of new Set(launches.map((event) => event.tid))) {
      let free = 0;
      const own = launches.filter((event) => event.tid === tid).sort((a, b) => a.ts - b.ts);
      for (const { ts, dur } of own) {
        expect(ns(ts)).toBeGreaterThanOrEqual(free);
        free = ns(ts) + ns(dur!);
      }
    }
  });
});

/** Operators of a rank in program order against the NCCL kernels in order of their launch. */
function expectTimes(
  { spec, programs, lanes, topology }: Simulation,
  kept: ReturnType<typeof emit>["kept"],
  trace: Trace,
  rank: number,
  steps: readonly number[],
): void {
  const stage = Math.floor(rank / lanes.lanes);
  const base = Number(spec.epochNs - BigInt(trace.baseTimeNanoseconds));
  const launches = new Map(
    of(trace, "cuda_driver").map((event) => [event.args!["correlation"], event.ts]),
  );
  const kernels = of(trace, "kernel").filter((event) => event.args!["Collective name"]);
  const seen = kernels
    .map(({ ts, dur, args }) => [
      ns(launches.get(args!["correlation"])!) - base,
      ns(ts) - base,
      ns(ts) + ns(dur!) - base,
    ])
    .sort((a, b) => a[0]! - b[0]!);
  const program = programs[stage]!;
  const expected = steps.flatMap((step) => {
    const { issue, start, end } = kept.get(step)![stage]!;
    return Array.from({ length: program.count }, (_, op) => op)
      .filter((op) => program.role[op] !== NO_GROUP)
      .map((op) => op * lanes.lanes + (rank % lanes.lanes))
      .map((at) =>
        [issue[at]!, start[at]!, end[at]!].map((time) =>
          Math.round(machineNs(spec, topology.machineOf(rank), time)),
        ),
      );
  });
  expect(seen).toHaveLength(expected.length);
  // JSON carries ts as a double: at 3.8e12 microseconds its last digit is half a nanosecond.
  seen.forEach((times, i) =>
    times.forEach((time, j) => expect(Math.abs(time - expected[i]![j]!)).toBeLessThanOrEqual(1)),
  );
}

describe("what each fault leaves in a trace", () => {
  /** The same rank in a healthy step and in a faulty one. */
  const steps = (words: string, rank = 0, more: Partial<ClusterSpec> = {}) => {
    const faults = { ...faulty(`${words}:from=3`), noise: 0, gpus: 16, ...more };
    const trace = traceOf(emit(faults, { ranks: [rank], steps: [2, 3] }).files, rank);
    const [healthy, sick] = [2, 3].map((step) => trace.traceEvents.filter(inStep(trace, step)));
    const pick = (events: readonly Event[]) => ({
      kernels: events.filter((e) => e.ph === "X" && e.cat === "kernel"),
      compute: events.filter(
        (e) => e.ph === "X" && e.cat === "kernel" && !e.name.startsWith("nccl"),
      ),
      gemms: events.filter((e) => e.cat === "kernel" && /nvjet|gemm/.test(e.name)),
      calls: events.filter((e) => e.ph === "X"),
      events,
    });
    return { healthy: pick(healthy!), sick: pick(sick!), trace };
  };
  type Picked = ReturnType<typeof steps>["sick"];
  const count = ({ calls }: Picked, name: string): number =>
    calls.filter((event) => event.name.startsWith(name)).length;
  /** Mean microseconds from the launch of an NCCL kernel to its start (FLARE §5.2.2, ④). */
  const issueLatency = ({ events }: Picked): number => {
    const launched = new Map(
      events.filter((e) => e.cat === "cuda_driver").map((e) => [e.args!["correlation"], e.ts]),
    );
    const late = events
      .filter((e) => e.cat === "kernel" && e.name.startsWith("nccl"))
      .map((e) => e.ts - launched.get(e.args!["correlation"])!);
    return late.reduce((a, b) => a + b, 0) / late.length;
  };

  test("gpu-slow: every kernel of the rank takes longer", () => {
    const { healthy, sick } = steps("gpu-slow:rank=5:severity=2", 5);
    expect(sick.compute).toHaveLength(healthy.compute.length);
    sick.compute.forEach((kernel, i) => {
      const ratio = kernel.dur! / healthy.compute[i]!.dur!;
      expect(ratio).toBeGreaterThan(1.8);
      expect(ratio).toBeLessThan(2.2);
    });
  });

  test("synchronization: cudaDeviceSynchronize calls, and short issue latencies", () => {
    const { healthy, sick } = steps("synchronization");
    expect(count(healthy, "cudaDeviceSynchronize")).toBe(0);
    expect(count(sick, "cudaDeviceSynchronize")).toBeGreaterThan(20);
    expect(issueLatency(sick)).toBeLessThan(0.1 * issueLatency(healthy));
    // Each ends when the GPU has run dry: no kernel runs on beyond it.
    for (const sync of sick.calls.filter((e) => e.name === "cudaDeviceSynchronize")) {
      const end = sync.ts + sync.dur!;
      const isOver = sick.kernels.some(
        (k) => k.tid === 7 && k.ts < end - 0.01 && k.ts + k.dur! > end + 0.01,
      );
      expect(isOver).toBe(false);
    }
  });

  test("garbage-collection: Python GC before each operator, and short issue latencies", () => {
    const { healthy, sick } = steps("garbage-collection:rank=0:severity=5");
    expect(count(healthy, "Python GC")).toBe(0);
    const pauses = sick.calls.filter((event) => event.name === "Python GC");
    expect(pauses.length).toBeGreaterThan(20);
    for (const { dur } of pauses) expect(dur).toBeCloseTo(5000, -2);
    expect(issueLatency(sick)).toBeLessThan(0.5 * issueLatency(healthy));
  });

  test("dataloader: long fetches in front of the first kernels", () => {
    const { healthy, sick } = steps("dataloader:severity=2");
    const fetches = (one: Picked): Event[] =>
      one.calls.filter((e) => e.name.startsWith("enumerate(DataLoader)#"));
    expect(fetches(healthy)).toHaveLength(2);
    expect(fetches(sick)).toHaveLength(2);
    for (const { dur } of fetches(healthy)) expect(dur).toBeCloseTo(196, 0);
    for (const { dur } of fetches(sick)) expect(dur).toBeCloseTo(100_196, 0);
  });

  test("minority-kernels: many small kernels, the large ones as before", () => {
    const { healthy, sick } = steps("minority-kernels:severity=1.5");
    expect(sick.compute.length).toBeGreaterThan(2 * healthy.compute.length);
    expect(sum(sick.gemms)).toBeCloseTo(sum(healthy.gemms), -2);
    const small = sick.compute.filter((kernel) => kernel.name.includes("elementwise_kernel"));
    expect(sum(small)).toBeGreaterThan(0.25 * sum(sick.compute));
  });

  test("gemm-layout: GEMMs of an odd shape are slow, everything else is as before", () => {
    const { healthy, sick, trace } = steps("gemm-layout:severity=2");
    // The feed-forward products are two thirds of all.
    expect(sum(sick.gemms)).toBeGreaterThan(1.5 * sum(healthy.gemms));
    const attention = (one: Picked): Event[] => one.compute.filter((e) => /flash/.test(e.name));
    expect(sum(attention(sick))).toBeCloseTo(sum(attention(healthy)), -1);
    const widths = new Set(
      of(trace, "cpu_op")
        .filter(inStep(trace, 3))
        .filter((event) => event.name === "aten::mm")
        .flatMap((event) => (event.args!["Input Dims"] as number[][]).flat()),
    );
    expect(oddSize(8192)).toBe(8484);
    expect(widths).toContain(8484);
  });

  test("slow-kernel: attention and element-wise kernels are slow, GEMMs are not", () => {
    const { healthy, sick } = steps("slow-kernel:severity=2");
    expect(sum(sick.gemms) / sum(healthy.gemms)).toBeLessThan(1.3);
    expect(sum(sick.compute) / sum(healthy.compute)).toBeGreaterThan(1.8);
  });

  test("cpu-stall: launches far apart, the GPU starts at once", () => {
    const { healthy, sick } = steps("cpu-stall:rank=0:severity=200");
    expect(issueLatency(sick)).toBeLessThan(0.3 * issueLatency(healthy));
  });
});

describe("which ranks and steps are traced", () => {
  const chosen = (words: readonly string[], more: Partial<ClusterSpec> = {}) => {
    const faults = words.map(parseFault);
    const simulation = simulate(completeSpec({ gpus: 32, iterations: 10, ...more, faults }));
    return { ranks: chooseRanks(simulation), steps: chooseSteps(simulation) };
  };

  test("follows the faults", () => {
    expect(chosen([])).toEqual({ ranks: [0, 2], steps: [2, 3] });
    expect(chosen(["gpu-slow:rank=17:from=6"])).toEqual({ ranks: [0, 17, 19], steps: [5, 6] });
    expect(chosen(["gpu-slow:rank=17:from=1:to=4"]).steps).toEqual([1, 5]);
    expect(chosen(["gpu-slow:rank=3:from=2:to=6:shape=ramp"]).steps).toEqual([1, 5]);
    expect(chosen(["network-slow:link=2-18:from=3"]).ranks).toEqual([0, 2, 4, 18]);
    expect(chosen(["gpu-slow:machine=node001"]).ranks).toEqual([0, 2, 8, 9, 10, 11]);
    expect(chosen(["gpu-hang:rank=3:from=5"]).steps).toEqual([3, 4]);
  });

  test("a job that hangs in its first step leaves no trace, and a step that hangs is left out", () => {
    expect(emit(faulty("gpu-hang:rank=3:from=1")).files.size).toBe(0);
    const { files } = emit(faulty("gpu-hang:rank=3:from=3"), { ranks: [3], steps: [2, 3] });
    expect(named(traceOf(files, 3), "ProfilerStep#3")).toEqual([]);
    expect(named(traceOf(files, 3), "ProfilerStep#2").length).toBeGreaterThan(0);
  });

  test("refuses a rank that is not there", () => {
    expect(() => emit({}, { ranks: [16] })).toThrow(UserError);
  });

  test("lists of ranks are cut as torch cuts them", () => {
    expect(listText([0, 8])).toBe("[0, 8]");
    const long = listText(Array.from({ length: 64 }, (_, i) => i));
    expect(long.endsWith("28, 29, ...]")).toBe(true);
  });
});

describe("any layout", () => {
  test.each([
    { gpus: 2, tp: 1, pp: 1 },
    { gpus: 4, tp: 1, pp: 4, schedule: "interleaved", microBatches: 4 },
    { gpus: 8, tp: 2, pp: 2, cp: 2, sequenceParallel: false, schedule: "gpipe" },
    { gpus: 16, tp: 1, pp: 2, ep: 8, overlapGradients: false },
    { gpus: 1 },
  ] as const)("%o gives a trace with the simulation's times", (layout) => {
    const { simulation, files, kept } = emit(
      { ...layout, noise: 1 },
      { ranks: [0], steps: [1, 4] },
    );
    const trace = traceOf(files);
    expect(shapeDifferences(trace)).toEqual([]);
    expectTimes(simulation, kept, trace, 0, [1, 4]);
    const free = new Map<unknown, number>();
    for (const { ts, dur, tid } of of(trace, "kernel").sort((a, b) => a.ts - b.ts)) {
      expect(ns(ts)).toBeGreaterThanOrEqual((free.get(tid) ?? 0) - 1);
      free.set(tid, ns(ts) + ns(dur!));
    }
    const sends = simulation.programs[0]!.kind.filter((kind) => kind === SEND).length;
    const sent = of(trace, "kernel").filter((e) => e.args!["Collective name"] === "send");
    expect(sent).toHaveLength(2 * sends);
  });
});
