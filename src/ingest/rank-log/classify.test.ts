import { describe, expect, it } from "vitest";
import { shippedRecords } from "../../library/shipped.ts";
import { classifyException, classifyLine, couldTell } from "./classify.ts";

const EXCEPTIONS: readonly (readonly [text: string, role: string, cause: string])[] = [
  ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB.", "own", "gpu-memory"],
  ["RuntimeError: CUDA error: out of memory", "own", "gpu-memory"],
  ["MemoryError", "own", "host-memory"],
  ["OSError: [Errno 12] Cannot allocate memory", "own", "host-memory"],
  ["RuntimeError: DataLoader worker (pid 9) is killed by signal: Killed.", "own", "host-memory"],
  ["RuntimeError: DataLoader worker (pid(s) 9, 10) exited unexpectedly", "own", "dataloader"],
  [
    "RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error. It is possible",
    "own",
    "user-config",
  ],
  [
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    "own",
    "gpu-error",
  ],
  ["RuntimeError: CUDA error: device-side assert triggered", "own", "user-program"],
  ["RuntimeError: CUDA error: uncorrectable ECC error encountered", "own", "gpu-error"],
  [
    "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution",
    "own",
    "gpu-error",
  ],
  [
    "RuntimeError: CUDA error: MPS client failed to connect to the MPS control daemon",
    "echo",
    "unknown",
  ],
  ["RuntimeError: CUDA error: invalid device ordinal", "own", "user-config"],
  [
    "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "own",
    "software-version",
  ],
  ["RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "own", "gpu-error"],
  ["RuntimeError: loss is NaN", "own", "numerical"],
  [
    "ValueError: Rank 3, node a, device 2, iteration 10: Unexpected result nan (message='found NaN in local forward loss calculation')",
    "own",
    "numerical",
  ],
  ["OSError: [Errno 28] No space left on device: '/ckpt/iter_10'", "own", "storage"],
  ["OSError: [Errno 28] No space left on device: '/dev/shm/x'", "own", "user-config"],
  ["OSError: [Errno 116] Stale file handle", "own", "storage"],
  [
    "RuntimeError: PytorchStreamWriter failed writing file data/12: file write failed",
    "own",
    "storage",
  ],
  ["ModuleNotFoundError: No module named 'apex'", "own", "software-version"],
  ["ImportError: /x/flash_attn.so: undefined symbol: _ZN3c10", "own", "software-version"],
  [
    "FileNotFoundError: [Errno 2] No such file or directory: 'conf/train.yaml'",
    "own",
    "user-config",
  ],
  [
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/shard_3.bin'",
    "own",
    "user-config",
  ],
  [
    "AssertionError: global batch size (100) is not divisible by micro batch size (3)",
    "own",
    "user-config",
  ],
  ["AssertionError", "own", "user-program"],
  ["KeyError: 'input_ids'", "own", "user-program"],
  [
    "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network error",
    "echo",
    "process-gone",
  ],
  [
    "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error",
    "echo",
    "unknown",
  ],
  ["torch.distributed.DistStoreError: Socket Timeout", "echo", "unknown"],
  [
    "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:99",
    "echo",
    "process-gone",
  ],
  ["ConnectionResetError: [Errno 104] Connection reset by peer", "echo", "process-gone"],
  [
    "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running",
    "echo",
    "collective-mismatch",
  ],
  ["KeyboardInterrupt", "echo", "scheduler"],
  [
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 9 got signal: 15",
    "own",
    "scheduler",
  ],
  ["torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "echo", "unknown"],
  ["torch.multiprocessing.spawn.ProcessRaisedException: ", "echo", "unknown"],
  [
    "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with exit code 1",
    "echo",
    "unknown",
  ],
  [
    "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGKILL",
    "own",
    "process-gone",
  ],
  [
    "subprocess.CalledProcessError: Command '['/usr/bin/python', 'train.py']' returned non-zero exit status 1.",
    "echo",
    "unknown",
  ],
  [
    "subprocess.CalledProcessError: Command '['tokenize', 'a.txt']' returned non-zero exit status 1.",
    "own",
    "user-program",
  ],
  ["lightning.pytorch.utilities.exceptions.SIGTERMException", "echo", "scheduler"],
  [
    "RuntimeError: DataLoader worker (pid 9) is killed by signal: Terminated. ",
    "echo",
    "scheduler",
  ],
  [
    "RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete",
    "echo",
    "unknown",
  ],
];

const LINES: readonly (readonly [text: string, role: string, cause: string])[] = [
  [
    "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
    "own",
    "gpu-error",
  ],
  ["kernel: NVRM: Xid (PCI:0000:3b:00): 45, pid=1, Ch 00000008", "echo", "unknown"],
  ["Out of memory: Killed process 4242 (python) total-vm:1kB", "own", "host-memory"],
  [
    "slurmstepd: error: Detected 1 oom_kill event in StepId=9.0. Some of the step tasks have been OOM Killed.",
    "own",
    "host-memory",
  ],
  [
    "slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2026-11-15T03:17:51 DUE TO TIME LIMIT ***",
    "own",
    "scheduler",
  ],
  [
    "slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2026-11-15T03:17:51 DUE TO NODE FAILURE ***",
    "own",
    "process-gone",
  ],
  [
    "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-15T03:17:51 DUE TO PREEMPTION ***",
    "own",
    "scheduler",
  ],
  ["slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-15T03:17:51 ***", "own", "scheduler"],
  [
    "W1115 00:00:00.0 1 api.py:739] Received Signals.SIGTERM death signal, shutting down workers",
    "own",
    "scheduler",
  ],
  ["api: [WARNING] Received Signals.SIGINT death signal, shutting down", "own", "scheduler"],
  ["mpirun: Forwarding signal 15 to job", "own", "scheduler"],
  ["Warning  Evicted  pod/train-3  The node was low on resource: memory.", "own", "scheduler"],
  ["    Reason:       OOMKilled", "own", "host-memory"],
  ["[rank: 3] Received SIGTERM: 15", "echo", "scheduler"],
  ["exiting program after receiving SIGTERM.", "echo", "scheduler"],
  ["[INFO] [launch.py:316:sigkill_handler] Killing subprocess 4242", "echo", "scheduler"],
  ["srun: error: n1: task 12: Killed", "own", "process-gone"],
  ["srun: error: n1: tasks 0-7: Exited with exit code 1", "echo", "unknown"],
  ["Killed", "own", "process-gone"],
  ["run.sh: line 9:  4242 Killed                  python train.py", "own", "process-gone"],
  ["Segmentation fault (core dumped)", "own", "software-version"],
  ["Fatal Python error: Segmentation fault", "own", "software-version"],
  ["train.py: error: unrecognized arguments: --foo", "own", "user-config"],
  ["INFO: task python:280 blocked for more than 120 seconds.", "stall", "storage"],
  [
    "mlx5_core 0000:d2:00.0: poll_health:953:(pid 0): device's health compromised - reached miss count",
    "stall",
    "network-hang",
  ],
  ["W1115 00:00:00.0 1 api.py:900] Sending process 12 closing signal SIGTERM", "echo", "scheduler"],
  [
    "[W socket.cpp:1] [c10d] recvValue failed on SocketImpl(fd=5): Connection reset by peer",
    "echo",
    "process-gone",
  ],
  [
    "Deepspeed: Current loss scale already at minimum - cannot decrease scale anymore.",
    "own",
    "numerical",
  ],
];

/** Lines of healthy jobs that speak of the same things. */
const HARMLESS = [
  "  check_for_nan_in_loss_and_grad .................. True",
  " iteration 7/ 30 | lm loss: 1.6E+00 | number of skipped iterations: 0 | number of nan iterations: 0 |",
  "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
  "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com for more information.",
  "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
  "[I1115 00:41:37.5 ProcessGroupNCCL.cpp:2058] [PG ID 0 PG GUID 0 Rank 2] PGNCCL Watchdog environments: TORCH_NCCL_RETHROW_CUDA_ERRORS: 1",
  "[PG ID 0 PG GUID 0(default_pg) Rank 0] slept for 24 because we want to wait longer to verify there is indeed a watchdog hang.",
  "[I1115 00:41:37.5 socket.cpp:955] [c10d] The client socket has connected to [localhost]:30640",
  "try: import apex except ImportError: pass",
  "NCCL INFO NET/IB : No device found.",
  "using NVLink and NVLS where available",
  "signal handler for SIGTERM installed",
  "Job will stop at its time limit",
];

describe("what a text tells of the process that writes it", () => {
  it.each(EXCEPTIONS)("exception %s: %s %s", (text, role, cause) => {
    expect(classifyException(text, [])).toMatchObject({ role, cause });
  });

  it.each(LINES)("line %s: %s %s", (text, role, cause) => {
    expect(classifyLine(text)).toMatchObject({ role, cause });
    expect(couldTell(text.replace(/\d+/g, "0"))).toBe(true);
  });

  it.each(HARMLESS)("%s: nothing", (text) => {
    expect(classifyLine(text)).toBeNull();
  });

  it("is in the message where the first line says nothing particular", () => {
    const nccl =
      "torch.distributed.DistBackendError: NCCL error in: x.cpp:1727, invalid usage, NCCL version 2.19.3";
    expect(
      classifyException(nccl, ["Last error:", "Duplicate GPU detected : rank 3 and rank 0"]),
    ).toMatchObject({ signature: "nccl.duplicate-gpu", role: "own", cause: "user-config" });
  });

  it.each([
    ["torch.AcceleratorError: CUDA error: an illegal memory access was encountered", true],
    ["RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", true],
    ["RuntimeError: something below failed", true],
    ["RuntimeError: CUDA error: uncorrectable ECC error encountered", false],
    ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB.", false],
    ["RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", false],
    ["KeyError: 'input_ids'", false],
  ])("%s: may be a teardown's aftermath: %s", (text, canBeAftermath) => {
    expect(classifyException(text, []).canBeAftermath).toBe(canBeAftermath);
  });

  it("is what the record says, where it says so", () => {
    const roles = {
      end: "own",
      died: "own",
      failed: "own",
      told: "echo",
      gone: "echo",
      late: "echo",
    };
    for (const { id, tells, example } of shippedRecords()) {
      if (tells === undefined) continue;
      const role = tells === "stall" ? tells : roles[tells];
      expect(classifyLine(example), id).toMatchObject({ signature: id, role });
    }
  });
});
