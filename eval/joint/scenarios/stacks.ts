/**
 * "stacks/rankN.txt": what py-spy or faulthandler shows of every process that can still be looked at. Ranks that wait sit
 * where their script waits for the GPU; frames as in the lab's recordings hang3 and mismatch1.
 */
import { hash } from "../../../src/simulate/cluster/noise.ts";
import type { Simulation } from "../../../src/simulate/cluster/times.ts";
import type { Output } from "../../../src/simulate/emit/emitter.ts";
import { SITE } from "../../../src/simulate/emit/logs/rank-file.ts";
import type { Frame } from "../../../src/model/operators.ts";
import { pidOf } from "./kernel-lines.ts";
import type { Family, Scenario, StackForm, Stacks } from "./scenario.ts";

const SCRIPT = "/srv/job/train.py";
const TORCH = `${SITE}/torch`;
const frame = (func: string, file: string, line: number): Frame => ({ func, file, line });
const MAIN = [frame("train_step", SCRIPT, 181), frame("<module>", SCRIPT, 197)];

const WAITS: Readonly<Record<Stacks["wait"], readonly Frame[]>> = {
  stream: [frame("synchronize", `${TORCH}/cuda/streams.py`, 108), ...MAIN],
  item: [frame("reduce_loss", SCRIPT, 176), ...MAIN],
  barrier: [
    frame("barrier", `${TORCH}/distributed/distributed_c10d.py`, 5030),
    frame("wrapper", `${TORCH}/distributed/c10d_logger.py`, 83),
    ...MAIN,
  ],
};

const LIB = "/usr/lib/python3.12";
/** Where a CPU that is stuck may be: somebody's lock, a child process, a regular expression that never ends. */
const STALLS: readonly (readonly Frame[])[] = [
  [frame("train_step", SCRIPT, 159), frame("<module>", SCRIPT, 197)],
  [
    frame("wait", `${LIB}/threading.py`, 355),
    frame("acquire", "/srv/job/telemetry/lock.py", 41),
    frame("train_step", SCRIPT, 169),
    frame("<module>", SCRIPT, 197),
  ],
  [
    frame("communicate", `${LIB}/subprocess.py`, 1209),
    frame("nvidia_smi", "/srv/job/telemetry/gpu.py", 27),
    frame("train_step", SCRIPT, 170),
    frame("<module>", SCRIPT, 197),
  ],
  [
    frame("sub", `${LIB}/re/__init__.py`, 186),
    frame("clean", "/srv/job/text/normalise.py", 88),
    frame("train_step", SCRIPT, 152),
    frame("<module>", SCRIPT, 197),
  ],
];
const LOADER: readonly Frame[] = [
  frame("poll", `${LIB}/multiprocessing/connection.py`, 257),
  frame("get", `${LIB}/multiprocessing/queues.py`, 113),
  frame("_try_get_data", `${TORCH}/utils/data/dataloader.py`, 1251),
  frame("_next_data", `${TORCH}/utils/data/dataloader.py`, 1448),
  frame("__next__", `${TORCH}/utils/data/dataloader.py`, 734),
  frame("train_step", SCRIPT, 150),
  frame("<module>", SCRIPT, 197),
];
const STORAGES: readonly (readonly Frame[])[] = [
  [
    frame("write_record", `${TORCH}/serialization.py`, 968),
    frame("_save", `${TORCH}/serialization.py`, 1213),
    frame("save", `${TORCH}/serialization.py`, 964),
    frame("save_checkpoint", "/srv/job/megatron/training/checkpointing.py", 545),
    frame("<module>", SCRIPT, 199),
  ],
  [
    frame("_read", "/srv/job/megatron/core/datasets/indexed_dataset.py", 388),
    frame("__getitem__", "/srv/job/megatron/core/datasets/gpt_dataset.py", 214),
    frame("next_batch", "/srv/job/data/stream.py", 66),
    frame("train_step", SCRIPT, 150),
    frame("<module>", SCRIPT, 197),
  ],
];

/** Whose process, or machine, nobody can look at any more. */
const GONE: readonly Family[] = [
  "machine-lost",
  "process-gone",
  "host-memory",
  "gpu-error",
  "gpu-memory",
  "exception",
  "nan",
];

function culpritFrames(
  family: Family,
  form: StackForm,
  seed: number,
  waits: readonly Frame[],
): readonly Frame[] | null {
  if (GONE.includes(family)) return null;
  // py-spy reads the memory of a stopped process; faulthandler's signal is not delivered to it.
  if (family === "process-stopped") return form === "faulthandler" ? null : STALLS[0]!;
  if (family === "cpu-stall") return STALLS[hash(seed, 0, 0, 0xf1) % STALLS.length]!;
  if (family === "storage-hang") return STORAGES[hash(seed, 0, 0, 0xf2) % STORAGES.length]!;
  return family === "dataloader-hang" ? LOADER : waits;
}

export function writeStacks(
  scenario: Scenario,
  { spec, topology }: Simulation,
  output: Output,
): void {
  const { stacks, truths, family, lost } = scenario;
  if (stacks === null) return;
  const waits = WAITS[stacks.wait];
  const guilty = new Set(truths[0]?.ranks);
  const unseen = new Set(lost?.kind === "stacks" ? lost.ranks : []);
  const isRunning = truths.length === 0 || truths[0]!.kind === "fail-slow";
  for (let rank = 0; rank < spec.gpus; rank++) {
    if (unseen.has(rank)) continue;
    const frames = isRunning
      ? runningFrames(family, spec.seed, rank, guilty.has(rank), waits)
      : guilty.has(rank)
        ? culpritFrames(family, stacks.form, spec.seed, waits)
        : waits;
    if (frames === null) continue;
    const pid = pidOf(spec.seed, topology.machineOf(rank)) + topology.gpuOf(rank);
    const file = output.open(
      `stacks/rank${rank}.${stacks.form === "py-spy-json" ? "json" : "txt"}`,
    );
    file.write(dumpText(stacks.form, pid, frames, spec.seed));
    file.end();
  }
}

/** A job that runs, at one moment: most wait for the GPU, some issue kernels, and whoever is late is at it. */
function runningFrames(
  family: Family,
  seed: number,
  rank: number,
  isGuilty: boolean,
  waits: readonly Frame[],
): readonly Frame[] {
  if (isGuilty && family === "dataloader-slow" && hash(seed, rank, 1, 0xf3) % 3 > 0) return LOADER;
  if (hash(seed, rank, 2, 0xf3) % 5 > 0) return waits;
  return [
    frame("forward", `${TORCH}/nn/modules/linear.py`, 125),
    frame("_call_impl", `${TORCH}/nn/modules/module.py`, 1790),
    frame("train_step", SCRIPT, 164),
    frame("<module>", SCRIPT, 197),
  ];
}

function dumpText(form: StackForm, pid: number, frames: readonly Frame[], seed: number): string {
  if (form === "py-spy-json") {
    const thread = (name: string, active: boolean, list: readonly Frame[]) => ({
      pid,
      thread_id: 0x7f0000000000 + hash(seed, pid, name.length, 0xf4),
      thread_name: name,
      os_thread_id: pid,
      active,
      owns_gil: false,
      frames: list.map(({ func, file, line }) => ({
        name: func,
        filename: file,
        module: null,
        short_filename: file.slice(file.lastIndexOf("/") + 1),
        line,
        locals: null,
      })),
      process_info: null,
    });
    return `${JSON.stringify([thread("MainThread", true, frames), thread("Thread-1 (_monitor)", false, MONITOR)], null, 2)}\n`;
  }
  if (form === "py-spy") {
    const list = (of: readonly Frame[]): string =>
      of.map(({ func, file, line }) => `    ${func} (${file}:${line})\n`).join("");
    return `Process ${pid}: /opt/venv/bin/python -u ${SCRIPT}\nPython v3.12.3 (/usr/bin/python3.12)\n\nThread ${pid} (active): "MainThread"\n${list(frames)}Thread ${pid + 301} (idle): "Thread-1 (_monitor)"\n${list(MONITOR)}`;
  }
  const list = (of: readonly Frame[]): string =>
    of.map(({ func, file, line }) => `  File "${file}", line ${line} in ${func}\n`).join("");
  return `Thread 0x00007f${hash(seed, pid, 1, 0xf4).toString(16).padStart(8, "0")}0 (most recent call first):\n${list(MONITOR)}\nCurrent thread 0x00007f${hash(seed, pid, 2, 0xf4).toString(16).padStart(8, "0")}0 (most recent call first):\n${list(frames)}`;
}

const MONITOR = [
  frame("wait", `${LIB}/threading.py`, 359),
  frame("_monitor", "/srv/job/telemetry/beat.py", 30),
];
