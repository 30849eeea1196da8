/** Small traces by hand, for the tests of this folder; every field as the writer named has it. */
interface Sample {
  readonly cat: string;
  readonly name: string;
  readonly ts: number | string;
  readonly dur?: number | string;
  readonly pid?: number | string;
  readonly tid?: number | string;
  readonly args?: Readonly<Record<string, unknown>>;
}

/** Keys in the order in which today's Kineto writes them; `ts` as text keeps its digits. */
export function event({ cat, name, ts, dur = 1, pid = 100, tid = 101, args = {} }: Sample): string {
  return `  {
    "ph": "X", "cat": "${cat}", "name": ${JSON.stringify(name)}, "pid": ${JSON.stringify(pid)}, "tid": ${JSON.stringify(tid)},
    "ts": ${ts}, "dur": ${dur},
    "args": ${JSON.stringify(args)}
  }`;
}

export function trace(events: readonly string[], top = '"schemaVersion": 1,', after = ""): string {
  return `{\n  ${top}\n  "traceEvents": [\n${events.join(",\n")}\n  ]${after}\n}\n`;
}

export const HEADER = `"schemaVersion": 1,
  "deviceProperties": [
    {"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, "numSms": 132}
  ],
  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_count": 2, "pg_config": [
    {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 8, "ranks": [0, 1, 2, 3, 4, 5, 6, 7]},
    {"pg_name": "9", "pg_desc": "PIPELINE_PARALLEL_3", "pg_size": 2, "ranks": [3, 7]}], "nccl_version": "2.28.9"},
  "baseTimeNanoseconds": 1790857026000000001,`;

const group = (name: string, desc: string, ranks: string, size: number) => ({
  "Group size": size,
  dtype: "BFloat16",
  "Process Group Name": name,
  "Process Group Description": desc,
  "Process Group Ranks": ranks,
});

/** One step of a small job: a GEMM with its operator, an all-reduce, a send, a copy, a graph, a wait. */
export const ONE_STEP: readonly string[] = [
  event({ cat: "user_annotation", name: "ProfilerStep#12", ts: "1000.000", dur: "900.5" }),
  event({
    cat: "cpu_op",
    name: "aten::mm",
    ts: "1001.000",
    dur: "20",
    args: {
      "External id": 7,
      "Input type": ["c10::BFloat16", "c10::BFloat16"],
      "Input Dims": [
        [512, 256],
        [256, 1024],
      ],
    },
  }),
  event({
    cat: "cuda_driver",
    name: "cuLaunchKernelEx",
    ts: "1005.125",
    dur: "4.001",
    args: { "External id": 7, cbid: 652, correlation: 51 },
  }),
  event({
    cat: "kernel",
    name: "nvjet_sm90_tst_64x64_64x13_1x2_h_bz_NTT",
    ts: "1100.001",
    dur: "7.136",
    pid: 0,
    tid: 7,
    args: { "External id": 7, device: 0, stream: 7, correlation: 51, grid: [2, 64, 1] },
  }),
  event({
    cat: "cuda_runtime",
    name: "cudaLaunchKernelExC",
    ts: "1030.000",
    args: { correlation: 52 },
  }),
  event({
    cat: "kernel",
    name: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    ts: "1110.000",
    dur: "500.250",
    pid: 0,
    tid: 7,
    args: {
      stream: 7,
      correlation: 52,
      "Collective name": "allreduce",
      "In msg nelems": 131072,
      "Out msg nelems": 131072,
      ...group("0", "default_pg", "[0, 1, ...]", 8),
    },
  }),
  event({
    cat: "cuda_runtime",
    name: "cudaLaunchKernel",
    ts: "1040.000",
    args: { correlation: 53 },
  }),
  event({
    cat: "kernel",
    name: "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
    ts: "1111.000",
    dur: "22.783",
    pid: 0,
    tid: 28,
    args: {
      stream: 28,
      correlation: 53,
      "Collective name": "send",
      "In msg nelems": 64,
      "Out msg nelems": 64,
      "Dst Rank": 7,
      ...group("9", "PIPELINE_PARALLEL_3", "[3, 7]", 2),
    },
  }),
  event({
    cat: "cuda_runtime",
    name: "cudaMemcpyAsync",
    ts: "1050.000",
    args: { correlation: 54 },
  }),
  event({
    cat: "gpu_memcpy",
    name: "Memcpy HtoD (Pageable -> Device)",
    ts: "1051.000",
    dur: "3",
    pid: 0,
    tid: 7,
    args: { stream: 7, correlation: 54, bytes: 4096, "memory bandwidth (GB/s)": 1.3 },
  }),
  event({
    cat: "cuda_runtime",
    name: "cudaGraphLaunch",
    ts: "1060.000",
    args: { correlation: 55 },
  }),
  ...["a", "b"].map((name, i) =>
    event({
      cat: "kernel",
      name,
      ts: `162${i}.000`,
      pid: 0,
      tid: 7,
      args: { stream: 7, correlation: 55, "graph id": 1, "graph node id": i },
    }),
  ),
  event({ cat: "cuda_runtime", name: "cudaEventQuery", ts: "1070.000", args: { correlation: 56 } }),
  event({
    cat: "cuda_runtime",
    name: "cudaDeviceSynchronize",
    ts: "1071.000",
    dur: "600",
    args: { correlation: 57 },
  }),
  `  {"ph": "s", "id": 51, "pid": 100, "tid": 101, "ts": 1005.125, "cat": "ac2g", "name": "ac2g"}`,
  `  {"name": "process_name", "ph": "M", "ts": 1000.000, "pid": 0, "tid": 0, "args": {"name": "python3"}}`,
];
