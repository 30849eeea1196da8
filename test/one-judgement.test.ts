/**
 * One engine, one answer: on files that are logs alone `faultline logs` and `faultline diagnose` name the same cause with
 * the same confidence, and both read whatever either reads. Texts in the words of the programs, made up by us.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { logsFromFiles } from "../src/pipeline/logs.ts";
import type { LogCause } from "../src/model/log-report.ts";
import type { Job } from "../src/model/job.ts";
import type { Verdict } from "../src/model/verdict.ts";
import { diagnose, readJob } from "../src/pipeline/diagnose.ts";

const env = { signal: new AbortController().signal, progress: () => undefined };
const scratch = mkdtempSync(join(tmpdir(), "faultline-one-judgement-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
let cases = 0;

function put(name: string, content: string | Uint8Array): string {
  const folder = join(scratch, String(++cases));
  mkdirSync(folder);
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

interface Answers {
  readonly job: Job;
  readonly cause: LogCause | null;
  readonly verdict: Verdict;
}

async function answersOf(path: string): Promise<Answers> {
  const { cause } = await logsFromFiles([path], { workers: 0 }, env);
  const { job, verdict } = await diagnose({ paths: [path] }, env);
  return { job, cause, verdict };
}

async function asked(lines: readonly string[], name = "console.log"): Promise<Answers> {
  const answers = await answersOf(put(name, `${lines.join("\n")}\n`));
  expectSame(answers);
  return answers;
}

/** The same cause at the same confidence, or none from either. */
function expectSame({ cause, verdict }: Answers): void {
  const [lead] = verdict.suspects;
  expect(lead?.cause ?? null).toBe(cause?.cause ?? null);
  if (cause) expect(verdict.confidence).toBeCloseTo(cause.confidence, 2);
}

const frame = (file: string, line = 12): string[] => [
  `  File "${file}", line ${line}, in step`,
  "    work(x)",
];
const OWN = "/home/ann/job/train.py";
const INSTALLED = "/opt/conda/lib/python3.11/site-packages";
const traceback = (error: string, files: readonly string[] = [OWN], prefix = ""): string[] =>
  ["Traceback (most recent call last):", ...files.flatMap((file) => frame(file)), error].map(
    (line) => prefix + line,
  );

const MLPERF_DONE =
  ':::MLLOG {"namespace": "", "time_ms": 1763164800000, "event_type": "INTERVAL_END", "key": "run_stop", "value": null, "metadata": {"file": "train.py", "lineno": 9, "status": "success"}}';

describe("both commands", () => {
  const oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB.";
  const ranks = (error: string): string[] =>
    [0, 1, 2, 3].flatMap((rank) => traceback(error, [OWN], `[rank${rank}]: `));

  it.each<[string, readonly string[], string, string]>([
    ["GPU memory", traceback(oom), "user.config", "gpu-memory"],
    [
      "a kernel's line of a GPU",
      ["NVRM: Xid (PCI:0000:4b:00): 79, pid=4711, name=python3, GPU has fallen off the bus."],
      "hardware.accelerator",
      "gpu-error",
    ],
    [
      "a node that failed",
      [
        "slurmstepd: error: *** STEP 8812.0 ON node7 CANCELLED AT 2026-11-15T00:41:02 DUE TO NODE FAILURE ***",
      ],
      "hardware.node",
      "process-gone",
    ],
    [
      "shared memory",
      [
        "gpu2:2143:2561 [1] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
      ],
      "user.config",
      "user-config",
    ],
    [
      "a disk that is full",
      ["OSError: [Errno 28] No space left on device: '/scratch/ckpt/step_10.pt'"],
      "hardware.storage",
      "storage",
    ],
    [
      "a ValueError of all ranks",
      ranks("ValueError: 100 heads of 7"),
      "user.program",
      "user-program",
    ],
    [
      "processes that never joined JAX",
      traceback(
        "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect::0. # of tasks that reached the barrier: 3/4.",
        [OWN, `${INSTALLED}/jax/_src/distributed.py`],
      ),
      "user.config",
      "user-config",
    ],
    [
      "an argument that nobody knows",
      ["usage: train.py [-h] [--lr LR]", "train.py: error: unrecognized arguments: --lrr 0.1"],
      "user.config",
      "user-config",
    ],
    [
      "an empty state dict",
      [
        ...traceback("RuntimeError: Error(s) in loading state_dict for Llama:", [
          OWN,
          `${INSTALLED}/torch/nn/modules/module.py`,
        ]),
        "\tsize mismatch for wte.weight: copying a param with shape torch.Size([0]) from checkpoint, the shape in current model is torch.Size([32000, 512]).",
      ],
      "user.program",
      "user-program",
    ],
    [
      "an error of UCX",
      ["[1731628800.1] [node3:221:0] UCX  ERROR uct_ep_flush failed: Input/output error"],
      "hardware.network",
      "network-hang",
    ],
  ])("name %s alike", async (_, lines, category, cause) => {
    const { cause: said, verdict } = await asked(lines);
    expect(said).toMatchObject({ category, cause });
    expect(verdict.suspects).toMatchObject([{ cause }]);
  });

  it("agree on the logs of recorded jobs: a process that was killed, and one that waits", async () => {
    for (const name of ["families/zb-kill2", "families/hf-raise6", "recordings/oom2"]) {
      const path = fileURLToPath(new URL(`../fixtures/${name}.tar.gz`, import.meta.url));
      const answers = await answersOf(path);
      expect(answers.cause?.cause).toBe(answers.verdict.suspects[0]?.cause);
      expect(answers.cause?.ranks).toEqual(answers.verdict.suspects[0]?.ranks);
      if (answers.job.dumps.size === 0) expectSame(answers);
    }
  });

  it.each<[string, string, readonly string[] | Uint8Array]>([
    ["any ending", "notes.txt", ["step 3 failed: device lost"]],
    ["a bare traceback", "error", traceback("KeyError: 'input_ids'")],
    [
      "prefixes of a launcher of one's own",
      "out.txt",
      traceback("KeyError: 'x'", [OWN], "PID 4711: "),
    ],
    ["lines of JSON", "app.log", ['{"level": "error", "msg": "CUDA error: out of memory"}']],
    ["UTF-16", "wide.log", Buffer.from("\ufeffRuntimeError: CUDA out of memory\n", "utf16le")],
    ["NCCL's lines alone", "nccl.txt", ["n1:12:13 [7] NCCL INFO bootstrap.cc:270 -> 2"]],
  ])("read %s", async (_, name, content) => {
    const bytes = content instanceof Uint8Array ? content : `${content.join("\n")}\n`;
    const path = put(name, bytes);
    const report = await logsFromFiles([path], { workers: 0 }, env);
    const { job } = await readJob({ paths: [path] }, env);
    expect(report.lines).toBeGreaterThan(0);
    expect(job.logDigest?.files[0]?.lines).toBe(report.lines);
  });
});

describe("a cause", () => {
  it("is the specific record's, not the exception's that came with it", async () => {
    const { cause } = await asked([
      ...traceback("AttributeError: 'NoneType' object has no attribute 'shape'"),
      "RuntimeError: CUDA error: uncorrectable ECC error encountered",
    ]);
    expect(cause).toMatchObject({ category: "hardware.accelerator" });
  });

  it("is none that a message only lists as possible", async () => {
    const { cause } = await asked([
      "(raylet) A worker died or was killed while executing a task by an unexpected system error. There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called.",
    ]);
    expect(cause?.cause ?? null).not.toBe("host-memory");
    expect(cause?.confidence ?? 0).toBeLessThan(0.3);
  });

  it("is none of a job that finished, whatever its processes said as they left", async () => {
    const { cause, verdict } = await asked([
      'sysctl: setting key "net.core.rmem_max", ignoring: Read-only file system',
      MLPERF_DONE,
      "[rank3]: n3:12:13 [3] NCCL WARN socketProgress: Connection closed by remote peer n1<40001>",
    ]);
    expect(cause).toBeNull();
    expect(verdict.suspects).toEqual([]);
  });

  it("is no line of a program that the job prints", async () => {
    const { cause } = await asked([
      'raise ValueError("model_dim must be divisible by num_heads")',
      'assert tokens % world_size == 0, "batch size must be divisible by world size"',
      "step 1 loss 4.2",
    ]);
    expect(cause).toBeNull();
  });

  it("is none after which its writer went on for hundreds of lines", async () => {
    const warned =
      "size mismatch for layer2.weight: copying a param with shape torch.Size([512]) from checkpoint, the shape in current model is torch.Size([256]).";
    const rest = (lines: number): string[] =>
      Array.from({ length: lines }, (_, i) => `Epoch [1][${i}/7330] lr 0.02, data_time 0.1`);
    expect((await asked([warned, ...rest(400)])).cause).toBeNull();
    expect((await asked([warned, ...rest(4)])).cause).toMatchObject({ category: "user.config" });
  });

  it.each([
    ["the program's, by its innermost frame", [OWN], "user.program"],
    ["the framework's", [OWN, `${INSTALLED}/deepspeed/runtime/engine.py`], "framework"],
    ["that of versions", [OWN, `${INSTALLED}/triton/compiler.py`], "user.software"],
    [
      "the program's, though Python's own code raised it",
      [OWN, "/usr/lib/python3.11/queue.py"],
      "user.program",
    ],
  ])("is %s", async (_, files, category) => {
    const { cause } = await asked(traceback("TypeError: unsupported operand", files));
    expect(cause).toMatchObject({ category });
    expect(cause!.confidence).toBeLessThan(0.8);
  });

  it("is no preparation of data where ranks wait in their hundred thousandth operator", async () => {
    const waits = (rank: number, seq: number): string =>
      `[rank${rank}]:[E1115 03:02:48.249710795 ProcessGroupNCCL.cpp:616] [Rank ${rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=${seq}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600080 milliseconds before timing out.`;
    const late = await logsFromFiles([put("a.log", `${waits(1, 215121)}\n`)], { workers: 0 }, env);
    expect(late.cause?.signature).not.toBe("context.timeout-before-training");
    const early = await logsFromFiles([put("b.log", `${waits(1, 2)}\n`)], { workers: 0 }, env);
    expect(early.cause?.signature).toBe("context.timeout-before-training");
  });

  it("is the version of NCCL where nodes print different ones", async () => {
    const lines = [1, 2, 3, 4].flatMap((node) => [
      `node${node}:2433:2433 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.${node}<0>`,
      `node${node}:2433:2433 [0] NCCL INFO NCCL version 2.${node === 3 ? 14 : 18}.3+cuda12.1`,
    ]);
    const { cause } = await asked(lines);
    expect(cause).toMatchObject({ category: "user.software", nodes: ["node3"] });
    const alike = lines.map((line) => line.replace("2.14", "2.18"));
    expect((await asked(alike)).cause).toBeNull();
  });

  it("is what a line says broke, though it also explains what usually does", async () => {
    const { cause } = await asked([
      "h1:1:2 [0] transport/nvls.cc:254 NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401. This is usually caused by a system or configuration error in the Fabric Manager or NVSwitches.",
    ]);
    expect(cause).toMatchObject({ category: "platform", signature: "nccl.nvls.bind" });
  });

  it("is one story of all ranks, not one of each", async () => {
    const lines = [0, 1, 2, 3].flatMap((rank) =>
      traceback("TypeError: unsupported operand", [OWN], `[default${rank}]:[rank${rank}]: `),
    );
    const { cause, verdict } = await asked(lines);
    expect(verdict.suspects).toMatchObject([{ type: "code", ranks: [0, 1, 2, 3] }]);
    expect(cause!.ranks).toEqual([0, 1, 2, 3]);
  });

  it("is the way between GPUs where all wait in the first operator and none completed it", async () => {
    const waits = (rank: number): string =>
      `[rank${rank}]:[E1115 03:02:48.249710795 ProcessGroupNCCL.cpp:607] [Rank ${rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600016 milliseconds before timing out.`;
    const stands = (rank: number, issued: number): string =>
      `[rank${rank}]:[E1115 03:02:49.249710795 ProcessGroupNCCL.cpp:1664] [PG 0 (default_pg) Rank ${rank}] Exception (either an error or timeout) detected by watchdog at work: 1, last enqueued NCCL work: ${issued}, last completed NCCL work: -1.`;
    const { cause } = await asked([waits(0), waits(1), stands(0, 1), stands(1, 1)]);
    expect(cause).toMatchObject({ signature: "context.first-operator", cause: "network-hang" });
  });
});

describe("a job that lives on", () => {
  const OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB";

  it.each<[string, readonly string[]]>([
    [
      "after it tried a smaller batch",
      [
        OOM,
        "Batch size 64 failed, trying batch size 32",
        "Epoch 1/3 loss=2.1",
        "Epoch 2/3 loss=1.1",
      ],
    ],
    [
      "and says that it retries",
      [
        "Epoch 1/3 loss=2.1",
        `WARNING: ${OOM} -- retrying with batch size 16`,
        "Epoch 2/3 loss=1.1",
      ],
    ],
    ["after it skipped a batch", ["step 2 loss 1.9", `${OOM}, skipping batch`, "step 3 loss 1.8"]],
  ])("is hardly said to have died: %s", async (_, lines) => {
    const { cause } = await asked(lines);
    expect(cause?.confidence ?? 0).toBeLessThanOrEqual(0.5);
  });

  it("is not surely dead where nothing says that a process ended", async () => {
    const steps = [1, 2, 3, 4].map((n) => JSON.stringify({ level: "info", step: n, loss: 2 }));
    const { cause } = await asked([
      ...steps,
      JSON.stringify({ level: "error", msg: "CUDA out of memory" }),
    ]);
    expect(cause).toMatchObject({ cause: "gpu-memory", confidence: 0.75 });
  });

  it("has died where a JSON value holds its traceback", async () => {
    const value = traceback(OOM).join("\n");
    const { cause } = await asked([
      JSON.stringify({ level: "error", msg: "end", exc_info: value }),
    ]);
    expect(cause?.cause).toBe("gpu-memory");
    expect(cause?.confidence).toBeGreaterThan(0.8);
  });
});

describe("several processes", () => {
  const iteration = (n: number): string =>
    `[2026-11-17 10:${String(n).padStart(2, "0")}:00] iteration ${n}/ 100 | elapsed time per iteration (ms): 60000 | lm loss: 2.1 |`;
  const to = (n: number): string[] => Array.from({ length: n }, (_, i) => iteration(i + 1));

  it("one that got to its end does not silence another that died", async () => {
    const folder = join(scratch, String(++cases));
    mkdirSync(folder);
    writeFileSync(
      join(folder, "rank0.log"),
      [...to(20), "Training completed successfully."].join("\n"),
    );
    writeFileSync(join(folder, "rank1.log"), [...to(9), ...traceback("KeyError: 'x'")].join("\n"));
    const answers = await answersOf(folder);
    expectSame(answers);
    expect(answers.verdict.suspects[0]).toMatchObject({ ranks: [1], cause: "user-program" });
  });

  it("one whose rank is known tells those of the others' local ranks", async () => {
    const raised = traceback("KeyError: 'x'").flatMap((line) =>
      [0, 1, 2, 3].map((local) => `[default${local}]:${line}`),
    );
    const report = [
      "[0]:",
      "  host      : node001",
      "  rank      : 0 (local_rank: 0)",
      "  exitcode  : 1 (pid: 4711)",
    ];
    const { verdict } = await asked([
      ...to(5),
      ...raised,
      "Root Cause (first observed failure):",
      ...report,
    ]);
    expect(verdict.suspects[0]).toMatchObject({ type: "code", ranks: [0, 1, 2, 3] });
  });

  it("what only confirms is no root because a vaguer record would call it one", async () => {
    const line = "NVRM: Xid (PCI:0000:3b:00): 63, pid=4711, name=python3, Row remapper: recorded";
    const { cause } = await answersOf(put("dmesg.log", `[ 12.345678] ${line}\n`));
    expect(cause).toMatchObject({ signature: "nvidia.xid.63", role: "confirmation" });
  });

  it("the machine that a kernel's or a scheduler's line is about is named", async () => {
    const failed = await asked([...to(5), "srun: error: Node failure on node007"]);
    expect(failed.verdict.suspects[0]).toMatchObject({ machine: "node007", cause: "process-gone" });
    expect(failed.verdict.summary).toMatch(
      /^Machine node007 died: srun: error: Node failure on node007/,
    );
  });
});

describe("a log is read by both", () => {
  it.each<[string, string]>([
    ["behind a configuration in JSON", '{\n  "lr": 0.1\n}\n'],
    ["behind markup", "<config><lr>1</lr></config>\n"],
    [
      "behind a thread's stack",
      'Thread 0x7f (most recent call first):\n  File "a.py", line 3 in f\n',
    ],
    ["behind a NUL", "\0starting\n"],
  ])("%s", async (_, head) => {
    const { cause } = await asked([head + traceback("KeyError: 'x'").join("\n")]);
    expect(cause?.category).toBe("user.program");
  });
});

describe("last words", () => {
  const steps = (rank: number): string[] =>
    [1, 2, 3, 4].map((n) => `2026-03-04 10:01:0${n} INFO [rank${rank}] step ${n} loss 0.9`);
  const lost =
    "2026-03-04 10:01:09 ERROR [rank0] torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error, connection closed by remote peer";

  async function job(last: string): Promise<Answers> {
    const folder = join(scratch, String(++cases));
    mkdirSync(folder);
    for (const rank of [0, 1, 2])
      writeFileSync(
        join(folder, `rank${rank}.log`),
        [...steps(rank), lost.replace("rank0", `rank${rank}`)].join("\n"),
      );
    writeFileSync(join(folder, "rank3.log"), [...steps(3), last].join("\n"));
    const answers = await answersOf(folder);
    expectSame(answers);
    return answers;
  }

  it("of a rank that says why it leaves are its reason, not a machine that died", async () => {
    const { verdict } = await job(
      "2026-03-04 10:01:05 CRITICAL [rank3] license check failed; exiting",
    );
    expect(verdict.suspects[0]).toMatchObject({ ranks: [3], cause: "user-program" });
    expect(verdict.confidence).toBeLessThan(0.8);
  });

  it("that say nothing of leaving are none", async () => {
    const { verdict } = await job("2026-03-04 10:01:05 INFO [rank3] step 5 loss 0.9");
    expect(verdict.suspects[0]).toMatchObject({ ranks: [3], cause: "process-gone" });
  });

  it("of a test run that passed are no failure", async () => {
    const { cause } = await asked([
      ...traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB."),
      "=========== 213 passed, 1 xfailed in 12.34s ===========",
    ]);
    expect(cause).toBeNull();
  });

  it("before another iteration are hardly the last", async () => {
    const step = (n: number): string => `[2026-11-17 10:00:0${n}] step ${n} loss 2.1`;
    const { cause } = await asked([
      step(1),
      step(2),
      ...traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB."),
      step(3),
    ]);
    expect(cause?.confidence ?? 0).toBeLessThanOrEqual(0.5);
  });
});
