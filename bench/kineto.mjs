/**
 * Reading a profiler trace: `node scripts/build.mjs && node bench/kineto.mjs [MEGABYTES]` (1,000 where not given). Writes
 * a trace with the mix of events that torch.profiler leaves of a transformer with shapes recorded, and reads it in a
 * process of its own, so that the memory is the reader's. The targets: 150,000 events a second on one core, less than
 * 400 MB for 1 GB.
 */
import { execFileSync } from "node:child_process";
import {
  closeSync,
  createReadStream,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";

const [, script, first = "1000", path] = process.argv;

if (first === "--read") await readTrace(path);
else {
  const folder = mkdtempSync(join(tmpdir(), "bench-kineto-"));
  try {
    const file = join(folder, "kineto.rank0.json");
    writeTrace(file, Number(first) * 1e6);
    const args = [fileURLToPath(new URL(script, "file:")), "--read", file];
    const read = JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" }));
    const mb = statSync(file).size / 1e6;
    console.log(
      "| trace | events | seconds | events/s | MB/s | peak memory | kept |\n|---|---|---|---|---|---|---|",
    );
    console.log(
      `| ${mb.toFixed(0)} MB | ${read.events} | ${read.seconds.toFixed(1)} | ${(read.events / read.seconds).toFixed(0)} | ${(mb / read.seconds).toFixed(0)} | ${read.peakMb.toFixed(0)} MB | ${read.kernels} GPU events, ${read.linked} with their launch |`,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function readTrace(file) {
  const { kineto } = await import("../dist/ingest/kineto.js");
  const started = performance.now();
  const sink = kineto.open(file);
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 18 })) sink.push(chunk);
  const reading = sink.end();
  const seconds = (performance.now() - started) / 1000;
  const { gpu } = reading.kernels[0];
  const result = {
    events: reading.records,
    seconds,
    peakMb: process.resourceUsage().maxRSS / 1024,
    kernels: gpu.count,
    linked: gpu.launch.filter((launch) => launch >= 0).length,
  };
  console.log(JSON.stringify(result));
}

/** One layer after another: operators, launches, kernels, arrows, and an all-reduce at the end of each. */
function writeTrace(file, bytes) {
  const fd = openSync(file, "w");
  const distributed = { backend: "nccl", rank: 0, world_size: 8, nccl_version: "2.28.9" };
  let written = writeSync(
    fd,
    `{\n  "schemaVersion": 1,\n  "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132}],\n` +
      `  "distributedInfo": ${JSON.stringify(distributed)},\n  "baseTimeNanoseconds": 1790857026000000000,\n  "traceEvents": [\n`,
  );
  let id = 0;
  let step = 0;
  while (written < bytes) {
    const from = id;
    let text = "";
    for (let layer = 0; layer < 200; layer++) text += layerText(id++, layer);
    text += event(
      "user_annotation",
      `ProfilerStep#${step++}`,
      99,
      from * 50,
      200 * 50,
      `"External id": ${id}`,
    );
    written += writeSync(fd, text);
  }
  writeSync(
    fd,
    `  {"ph": "i", "name": "Record Window End", "ts": 0}\n  ],\n  "traceName": "x"\n}\n`,
  );
  closeSync(fd);
}

function event(cat, name, tid, us, dur, args) {
  const ts = (3_847_530_158_260 + us).toFixed(3);
  return (
    `  {\n    "ph": "X", "cat": "${cat}", "name": "${name}", "pid": 2292, "tid": ${tid},\n` +
    `    "ts": ${ts}, "dur": ${dur.toFixed(3)},\n    "args": {\n      ${args}\n    }\n  },\n`
  );
}

function layerText(id, layer) {
  const us = id * 50;
  let text = "";
  for (let op = 0; op < 8; op++) {
    const number = id * 16 + op + 1;
    const at = us + op * 6;
    const isGemm = op % 4 === 1;
    const name = isGemm ? "aten::mm" : ["aten::t", "", "aten::view", "aten::add_"][op % 4];
    text += event(
      "cpu_op",
      name,
      2509,
      at,
      5,
      `"External id": ${number},"Record function id": 0, "Concrete Inputs": ["", ""], "Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Strides": [[1, 512], [1024, 1]], "Input Dims": [[${512 + layer}, 256], [256, 1024]], "Ev Idx": ${number}`,
    );
    const call = `"External id": ${number}, "cbid": 652, "correlation": ${number}`;
    text += event(
      "cuda_runtime",
      "cudaEventQuery",
      2509,
      at + 1,
      0.5,
      `"cbid": 136, "correlation": ${number + 8}`,
    );
    if (op % 2 === 0) continue;
    const isComm = op === 7;
    const kernel = isComm
      ? "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
      : isGemm
        ? "nvjet_sm90_tst_64x64_64x13_1x2_h_bz_NTT"
        : "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)";
    const group = isComm
      ? `, "Collective name": "allreduce", "In msg nelems": 131072, "Out msg nelems": 131072, "Group size": 2, "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]", "Process Group Name": "1", "Process Group Description": "TENSOR_PARALLEL_0", "Process Group Ranks": "[0, 1]"`
      : "";
    text += event("cuda_driver", "cuLaunchKernelEx", 2509, at + 2, 3, call);
    text += event(
      "kernel",
      kernel,
      7,
      at + 40,
      4.5,
      `"External id": ${number}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": ${number}, "registers per thread": 168, "shared memory": 229772, "blocks per SM": 0.969697, "warps per SM": 11.636364, "grid": [2, 64, 1], "block": [384, 1, 1], "est. achieved occupancy %": 0${group}`,
    );
    for (const ph of ["s", "f"]) {
      text += `  {\n    "ph": "${ph}", "id": ${number}, "pid": 0, "tid": 7, "ts": ${(3_847_530_158_260 + at).toFixed(3)},\n    "cat": "ac2g", "name": "ac2g"\n  },\n`;
    }
  }
  return text;
}
