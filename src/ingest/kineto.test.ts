import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as Kernels from "../model/kernels.ts";
import type { Reading } from "../model/reading.ts";
import { simulate } from "../simulate/cluster/engine.ts";
import { parseFault } from "../simulate/cluster/fault-spec.ts";
import { completeSpec } from "../simulate/cluster/spec.ts";
import { emitKineto } from "../simulate/emit/kineto.ts";
import { memoryOutput } from "../../test/support/simulate/memory-output.ts";
import { recognise } from "./formats.ts";
import { kineto, kinetoSink, rankOf, type KinetoLimits } from "./kineto.ts";
import { event, HEADER, ONE_STEP, trace } from "../../test/support/ingest/kineto-traces.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";

const WHOLE = trace(ONE_STEP, HEADER);
const read = (text: string, file = "kineto.rank5.json"): Reading => readBytes(kineto, file, text);
const only = (reading: Reading): Kernels.RankKernels => reading.kernels![0]!;
const whats = (reading: Reading): string[] => reading.defects.map(({ what }) => what);
/** Read with small limits, in chunks of seven bytes. */
function readLimited(text: string, limits: KinetoLimits): Reading {
  const open = (file: string) => kinetoSink(file, limits);
  return readBytes({ ...kineto, open }, "kineto.rank5.json", text, 7);
}
const gpuNames = ({ gpu, names }: Kernels.RankKernels): string[] =>
  Array.from(gpu.name, (name) => names[name]!);

describe("a trace of today's Kineto", () => {
  const reading = read(WHOLE);
  const rank = only(reading);

  test("is recognised, before the flight recorder", () => {
    const bytes = Buffer.from(WHOLE);
    const head = { name: "x", bytes, text: bytes.toString("latin1") };
    expect(recognise(head)?.format).toBe("kineto");
    expect(sniffs(kineto, '{"version": "2.10", "pg_config": {}, "entries": []}')).toBe(false);
    expect(sniffs(kineto, "iteration 1 loss 2")).toBe(false);
  });

  test("says who wrote it, where and when", () => {
    expect(reading).toMatchObject({ rank: 3, records: ONE_STEP.length, worldSize: 8, defects: [] });
    expect(rank).toMatchObject({ backend: "nccl", isCut: false });
    expect(rank.devices).toEqual([{ name: "NVIDIA H200" }]);
    expect(rank.epochNs).toBe(1790857026001000001n);
  });

  test("has GPU events in the order of their start, exact to the nanosecond", () => {
    const { gpu } = rank;
    expect([...gpu.startNs]).toEqual([51_000, 100_001, 110_000, 111_000, 620_000, 621_000]);
    expect([...gpu.durNs]).toEqual([3000, 7136, 500_250, 22_783, 1000, 1000]);
    const { MEMCPY, COMPUTE, COMMUNICATION } = Kernels;
    const kinds = [MEMCPY, COMPUTE, COMMUNICATION, COMMUNICATION, COMPUTE, COMPUTE];
    expect([...gpu.kind]).toEqual(kinds);
    expect([...gpu.stream]).toEqual([7, 7, 7, 28, 7, 7]);
  });

  test("knows each one's launch, and one launch for all kernels of a graph", () => {
    const { gpu, calls, names } = rank;
    const launched = Array.from(gpu.launch, (call) => names[calls.name[call]!]);
    expect(launched).toEqual([
      "cudaMemcpyAsync",
      "cuLaunchKernelEx",
      "cudaLaunchKernelExC",
      "cudaLaunchKernel",
      "cudaGraphLaunch",
      "cudaGraphLaunch",
    ]);
    expect(calls.startNs[gpu.launch[1]!]).toBe(5125);
    expect(gpu.launch[4]).toBe(gpu.launch[5]);
  });

  test("keeps waits, and leaves out short calls that launch nothing", () => {
    const { calls, names } = rank;
    expect([...calls.kind]).toContain(Kernels.SYNCHRONIZE);
    expect(Array.from(calls.name, (name) => names[name])).not.toContain("cudaEventQuery");
  });

  test("has steps, shapes of matrix kernels and what collectives say", () => {
    const { steps, gpu, matrixOps, shapes, collectives, groups, names } = rank;
    expect([...steps.number]).toEqual([12]);
    expect(steps.durNs[0]).toBe(900_500);
    expect([...gpu.matrixOp]).toEqual([-1, 0, -1, -1, -1, -1]);
    expect(shapes[matrixOps.shape[0]!]).toEqual({
      dims: [
        [512, 256],
        [256, 1024],
      ],
      types: ["c10::BFloat16", "c10::BFloat16"],
    });
    expect(Array.from(collectives.operation, (name) => names[name])).toEqual(["allreduce", "send"]);
    expect([...collectives.inputNumel]).toEqual([131072, 64]);
    expect([...collectives.peer]).toEqual([-1, 7]);
    expect([...gpu.collective]).toEqual([-1, -1, 0, 1, -1, -1]);
    // The kernel's own list is cut; the header has it.
    expect(groups).toEqual([
      { name: "0", desc: "default_pg", ranks: [0, 1, 2, 3, 4, 5, 6, 7] },
      { name: "9", desc: "PIPELINE_PARALLEL_3", ranks: [3, 7] },
    ]);
  });
});

describe("the reader's contract", () => {
  test("the size of chunks makes no difference", () => {
    for (const other of readAtAllSizes(kineto, "kineto.rank5.json", WHOLE)) {
      expect(other).toEqual(read(WHOLE));
    }
  });

  test("nor does the size of the blocks that are scanned", () => {
    for (const blockBytes of [16, 50, 64, 333, 1024]) {
      expect(readLimited(WHOLE, { blockBytes })).toEqual(read(WHOLE));
    }
    const broken = WHOLE.replace('"dur": 7.136', '"dur" 7.136');
    for (const blockBytes of [16, 50, 64, 333, 1024]) {
      expect(readLimited(broken, { blockBytes })).toEqual(read(broken));
    }
  });

  test("cut anywhere, what was whole is kept and the cut is named", () => {
    const events = ONE_STEP.slice(0, 6);
    const text = trace(events, HEADER).trimEnd();
    const open = (file: string) => kinetoSink(file, { blockBytes: 1024 });
    const cuts = readCutEverywhere({ ...kineto, open }, "kineto.rank5.json", text);
    let last = 0;
    for (const reading of cuts.slice(0, -1)) {
      expect(reading.records).toBeGreaterThanOrEqual(last);
      expect(whats(reading)[0]).toMatch(/^cut off after/);
      if (reading.kernels) expect(only(reading).isCut).toBe(true);
      last = reading.records;
    }
    expect(last).toBe(events.length);
  });

  test("never throws, whatever the bytes", () => {
    const bytes = Buffer.from(WHOLE);
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { maxLength: 12 }),
        fc.nat(bytes.length),
        (changes, end) => {
          const hurt = Uint8Array.from(bytes);
          for (const [at, byte] of changes) hurt[at] = byte;
          const cut = hurt.subarray(0, end);
          const whole = readBytes(kineto, "x", cut);
          expect(readBytes(kineto, "x", cut, 64)).toEqual(whole);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("traces that differ", () => {
  test("keys in any order, spaces or none, fields that nobody knows", () => {
    const parsed: unknown = JSON.parse(WHOLE);
    const turned = JSON.stringify(turnedKeys(parsed));
    expect(turned.indexOf("traceEvents")).toBeLessThan(turned.indexOf("distributedInfo"));
    const expected = only(read(JSON.stringify(parsed)));
    const got = only(read(turned));
    expect(gpuNames(got)).toEqual(gpuNames(expected));
    expect(got.gpu.startNs).toEqual(expected.gpu.startNs);
    expect(got.gpu.launch).toEqual(expected.gpu.launch);
    expect(got.epochNs).toBe(expected.epochNs);
    expect(got.rank).toBe(3);
  });

  test("the bare list of events, also without its end", () => {
    const list = `[\n${ONE_STEP.join(",\n")}`;
    expect(sniffs(kineto, list)).toBe(true);
    expect(only(read(`${list}\n]`)).gpu.count).toBe(6);
    const cut = read(list);
    expect(only(cut).gpu.count).toBe(6);
    expect(whats(cut)[0]).toMatch(/^cut off/);
  });

  test("the first releases: other categories, texts for threads, times since 1970", () => {
    const old = trace([
      event({
        cat: "Operator",
        name: "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        ts: 1623142623460245,
        dur: 68694,
        tid: "25738",
      }),
      event({
        cat: "Runtime",
        name: "cudaLaunchKernel",
        ts: 1623142623531598,
        tid: "25738",
        args: { correlation: 9, "external id": 544 },
      }),
      event({
        cat: "Kernel",
        name: "volta_sgemm",
        ts: 1623142623531625,
        pid: 0,
        tid: "stream 7",
        args: { correlation: 9, "external id": 544 },
      }),
    ]);
    const { gpu, calls, hostEvents, epochNs } = only(read(old));
    expect(epochNs + BigInt(gpu.startNs[0]!)).toBe(1623142623531625000n);
    expect(gpu.startNs[0]! - calls.startNs[gpu.launch[0]!]!).toBe(27_000);
    expect([gpu.stream[0], calls.thread[0]]).toEqual([7, 25738]);
    expect([...hostEvents.kind]).toEqual([Kernels.DATA_LOADER]);
  });

  test("AMD: HIP launches, RCCL kernels, hexadecimal streams", () => {
    const launch = (name: string, correlation: number) =>
      event({
        cat: "cuda_runtime",
        name,
        ts: 4203669603752.847 + correlation,
        args: { correlation, stream: "0x0", cid: 107, kernel: "Cijk" },
      });
    const kernel = (name: string, correlation: number) =>
      event({
        cat: "kernel",
        name,
        ts: 4203669603800.5 + correlation,
        pid: 2,
        tid: 0,
        args: { device: 2, stream: 0, correlation, kind: "Dispatch Kernel" },
      });
    const rank = only(
      read(
        trace([
          launch("hipLaunchKernel", 1),
          launch("hipExtModuleLaunchKernel", 2),
          launch("hipMemcpyWithStream", 3),
          launch("hipDeviceSynchronize", 4),
          kernel("Cijk_Alik_Bljk_SB", 1),
          kernel("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", 2),
        ]),
      ),
    );
    expect([...rank.gpu.kind]).toEqual([Kernels.COMPUTE, Kernels.COMMUNICATION]);
    expect([...rank.gpu.launch]).toEqual([0, 1]);
    expect([...rank.gpu.device]).toEqual([2, 2]);
    const { LAUNCH, COPY, SYNCHRONIZE } = Kernels;
    expect([...rank.calls.kind]).toEqual([LAUNCH, LAUNCH, COPY, SYNCHRONIZE]);
  });

  test("no GPU at all: annotations are kept, the lack is named", () => {
    const reading = read(
      trace([event({ cat: "user_annotation", name: "gloo:all_reduce", ts: 5, dur: 70 })]),
    );
    expect(whats(reading)).toEqual(["holds no GPU events: only the CPU was profiled"]);
    expect(only(reading).hostEvents.count).toBe(1);
  });

  test("traces of others, and empty ones, are refused with a reason", () => {
    const chrome = read('{"traceEvents": [{"ph": "X", "cat": "blink", "name": "a", "ts": 1}]}');
    expect(chrome.kernels).toBeUndefined();
    expect(whats(chrome)[0]).toMatch(/none of its 1 event is of a kind/);
    expect(whats(read('{"traceEvents": []}'))).toEqual(["holds no events"]);
  });

  test("kernels whose External id is their correlation find their operator by time", () => {
    const mm = (ts: number, id: number) =>
      event({
        cat: "cpu_op",
        name: "aten::addmm",
        ts,
        dur: 10,
        args: { "External id": id, "Input Dims": [[id]] },
      });
    const call = (ts: number, correlation: number, tid = 101) =>
      event({ cat: "cuda_runtime", name: "cudaLaunchKernel", ts, tid, args: { correlation } });
    const kernel = (ts: number, id: number) =>
      event({
        cat: "kernel",
        name: "gemm",
        ts,
        pid: 0,
        tid: 7,
        args: { correlation: id, "External id": id },
      });
    const rank = only(
      read(
        trace([
          mm(10, 90),
          mm(30, 91),
          call(15, 1),
          call(25, 2),
          call(31, 3),
          call(32, 4, 102),
          ...[1, 2, 3, 4].map((id) => kernel(50 + id, id)),
        ]),
      ),
    );
    expect([...rank.gpu.matrixOp]).toEqual([0, -1, 1, -1]);
  });
});

describe("what Python and the user say", () => {
  const rows: readonly (readonly [string, string, number, number])[] = [
    ["python_function", "Python GC", 5, Kernels.GARBAGE_COLLECTION],
    ["python_function", "<built-in function collect>", 5, Kernels.GARBAGE_COLLECTION],
    ["python_function", "torch/cuda/__init__.py(1038): synchronize", 5, Kernels.HOST_SYNCHRONIZE],
    ["cpu_op", "aten::item", 5, Kernels.HOST_SYNCHRONIZE],
    ["python_function", "torch/utils/data/dataloader.py(701): __next__", 5, Kernels.DATA_LOADER],
    [
      "python_function",
      "importlib/metadata/__init__.py(858): version",
      150,
      Kernels.PYTHON_FUNCTION,
    ],
    ["user_annotation", "## forward ##", 5, Kernels.ANNOTATION],
  ];
  test.each(rows)("%s %s", (cat, name, dur, kind) => {
    const { hostEvents, names } = only(read(trace([event({ cat, name, ts: 1, dur })])));
    expect([...hostEvents.kind]).toEqual([kind]);
    expect(names[hostEvents.name[0]!]).toBe(name);
  });

  test("short Python functions are counted", () => {
    const rank = only(read(trace([event({ cat: "python_function", name: "f", ts: 1, dur: 5 })])));
    expect(rank.hostEvents.count).toBe(0);
  });
});

describe("what is wrong in a file", () => {
  const kernel = (name: string, ts: number) => event({ cat: "kernel", name, ts, pid: 0, tid: 7 });

  test("escaped texts are read, bad escapes are left as they are", () => {
    const rank = only(read(trace([kernel('a "quoted" \\ \u00e9 \n name', 1), kernel("b", 2)])));
    expect(gpuNames(rank)).toEqual(['a "quoted" \\ \u00e9 \n name', "b"]);
    const windows = trace([kernel("PATH", 1)]).replace("PATH", "C:\\users\\x");
    expect(gpuNames(only(read(windows)))).toEqual(["C:\\users\\x"]);
  });

  test("an event that is not JSON is named, and those around it are kept", () => {
    const text = trace(
      [kernel("a", 1), kernel("b", 2), kernel("c", 3)],
      HEADER,
      ', "traceName": "x"',
    );
    for (const [from, to] of [
      ['"name": "b"', '"name": "b'],
      ['"name": "b"', '"name" "b"'],
      ['"name": "b"', '"name": "say "b""'],
      ['"name": "b"', "name: b"],
      ['"ts": 2, "dur": 1', '"ts": , "dur": 1'],
    ] as const) {
      const reading = read(text.replace(from, to));
      expect(gpuNames(only(reading))).toEqual(["a", "c"]);
      expect(whats(reading)).toEqual([
        `1 event cannot be read as JSON; the first begins at byte ${text.indexOf("{", text.indexOf('"a"') + 70)}`,
      ]);
    }
  });

  test("NaN and inf are no reason to stop", () => {
    const text = trace([kernel("a", 1)]).replace('"args": {}', '"args": {"x": -nan, "y": inf}');
    expect(read(text).defects).toEqual([]);
  });

  test("what is not JSON outside the events is named", () => {
    expect(
      whats(
        read(
          `${trace([kernel("a", 1)])
            .trimEnd()
            .slice(0, -1)} oops`,
        ),
      )[0],
    ).toBe("not valid JSON outside its events; kept 1 event before it");
  });

  test("values that are no use are named: base time, header, events without a time", () => {
    const top = '"baseTimeNanoseconds": "soon", "distributedInfo": {"rank": }, ';
    const reading = read(trace([kernel("a", 1), kernel("b", 2).replace('"ts": 2,', "")], top));
    expect(whats(reading)).toEqual([
      "its baseTimeNanoseconds cannot be read",
      "its distributedInfo cannot be read",
      "1 event without a time left out",
    ]);
    expect(reading.rank).toBe(5);
  });

  test("more events than are held, and values beyond all size, are left out by name", () => {
    const many = trace(Array.from({ length: 100 }, (_, i) => kernel("a", i)));
    const few = readLimited(many, { rows: 80 });
    expect(only(few)).toMatchObject({ isCut: true, gpu: { count: 80 } });
    expect(whats(few)).toEqual(["20 events left out: too many to hold"]);
    const long = trace([kernel("a", 1), kernel("x".repeat(5000), 2), kernel("c", 3)]);
    const skipped = readLimited(long, { blockBytes: 512, valueBytes: 2048 });
    expect(gpuNames(only(skipped))).toEqual(["a", "c"]);
    expect(whats(skipped)).toEqual(["1 value of more than 16 MB left out"]);
  });

  test.each([
    ["kineto.rank5.json", 5],
    ["out/trace_8_rank_1.json", 1],
    ["rank-0.Apr_03_18_51_38.1102.pt.trace.json", 0],
    ["3.json", 3],
    ["trace_12.json", 12],
    ["worker0.1623143089861.pt.trace.json", null],
    ["node7_1102.1712195495522.pt.trace.json", null],
  ])("%s is of rank %s", (name, rank) => expect(rankOf(name)).toBe(rank));
});

describe("traces of a simulated job", () => {
  interface Raw {
    readonly ph: string;
    readonly cat: string;
    readonly name: string;
    readonly ts: number;
    readonly dur: number;
    readonly args: Readonly<Record<string, number>>;
  }
  const traced = (words: string) => {
    const faults = words === "" ? [] : [parseFault(words)];
    const given = { gpus: 16, iterations: 4, microBatches: 2, layersPerStage: 2 };
    const simulation = simulate(completeSpec({ ...given, faults }));
    const output = memoryOutput();
    const emitter = emitKineto(simulation, output, { ranks: [0, 9], steps: [2, 3] });
    for (const times of simulation.iterations()) emitter.iteration(times);
    emitter.end();
    return [...output.files].map(([file, text]) => {
      const { traceEvents } = JSON.parse(text) as { traceEvents: readonly Raw[] };
      const of = (...cats: readonly string[]) =>
        traceEvents.filter(({ ph, cat }) => ph === "X" && cats.includes(cat));
      return { reading: read(text, file), of, records: traceEvents.length };
    });
  };
  const sum = (values: Iterable<number>): number => [...values].reduce((a, b) => a + b, 0);

  test("hold what JSON.parse finds: kernels, durations, launches, steps", () => {
    for (const { reading, of, records } of traced("")) {
      const { gpu, calls, steps, collectives, matrixOps } = only(reading);
      const events = of("kernel", "gpu_memcpy");
      const launches = new Map(
        of("cuda_runtime", "cuda_driver").map((call) => [call.args["correlation"], call.ts]),
      );
      expect(reading).toMatchObject({ records, defects: [] });
      expect(gpu.count).toBe(events.length);
      expect(sum(gpu.durNs)).toBe(sum(events.map(({ dur }) => Math.round(dur * 1000))));
      const latencies = events.map(({ ts, args }) => ts - launches.get(args["correlation"])!);
      const ours = Array.from(gpu.launch, (call, i) => gpu.startNs[i]! - calls.startNs[call]!);
      expect(sum(ours) / sum(latencies)).toBeCloseTo(1000, 3);
      expect(steps.number).toEqual(Float64Array.of(2, 3));
      const named = of("kernel").filter(({ args }) => args["Collective name"]);
      expect(collectives.count).toBe(named.length);
      const gemms = of("cpu_op").filter(({ name }) => /mm$|attention/.test(name));
      expect(matrixOps.count).toBe(gemms.length);
      const seen = sum(gpu.matrixOp.map((op) => (op >= 0 ? 1 : 0)));
      expect(seen).toBe(gemms.length);
    }
  });

  test.each([
    ["garbage-collection:rank=0:severity=5:from=3", Kernels.GARBAGE_COLLECTION, "Python GC"],
    ["dataloader:severity=2:from=3", Kernels.DATA_LOADER, "enumerate(DataLoader)"],
  ])("%s shows among host events", (words, kind, name) => {
    const [{ reading, of }] = traced(words) as [ReturnType<typeof traced>[number]];
    const { hostEvents } = only(reading);
    const raw = of("python_function", "user_annotation").filter((e) => e.name.startsWith(name));
    expect(raw.length).toBeGreaterThan(0);
    expect(hostEvents.kind.filter((each) => each === kind)).toHaveLength(raw.length);
  });

  test("synchronization shows among calls", () => {
    const [{ reading, of }] = traced("synchronization:from=3") as [
      ReturnType<typeof traced>[number],
    ];
    const waits = of("cuda_runtime").filter(({ name }) => name.endsWith("Synchronize"));
    const { kind } = only(reading).calls;
    expect(kind.filter((each) => each === Kernels.SYNCHRONIZE)).toHaveLength(waits.length);
  });
});

/** The same with all keys in the opposite order, and one that nobody knows. */
function turnedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turnedKeys);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, each]) => [key, turnedKeys(each)] as const);
  return Object.fromEntries([["unknown", { a: [{}] }], ...entries.reverse()]);
}
