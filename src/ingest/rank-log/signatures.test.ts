import { describe, expect, it } from "vitest";
import { SHORTEST_NEEDLE } from "../needles.ts";
import { classifyException, classifyLine, LINE_NEEDLES } from "./signatures.ts";

const EXCEPTIONS: readonly (readonly [
  text: string,
  role: string,
  cause: string,
  signature: string,
])[] = [
  [
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB.",
    "own",
    "gpu-memory",
    "cuda-oom",
  ],
  ["RuntimeError: CUDA error: out of memory", "own", "gpu-memory", "cuda-oom"],
  ["MemoryError", "own", "host-memory", "host-oom"],
  ["OSError: [Errno 12] Cannot allocate memory", "own", "host-memory", "host-oom"],
  [
    "RuntimeError: DataLoader worker (pid 9) is killed by signal: Killed.",
    "own",
    "host-memory",
    "dataloader-oom",
  ],
  [
    "RuntimeError: DataLoader worker (pid(s) 9, 10) exited unexpectedly",
    "own",
    "dataloader",
    "dataloader-died",
  ],
  [
    "RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error. It is possible",
    "own",
    "dataloader",
    "dataloader-died",
  ],
  [
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    "own",
    "gpu-error",
    "cuda-illegal-access",
  ],
  [
    "RuntimeError: CUDA error: device-side assert triggered",
    "own",
    "user-program",
    "device-assert",
  ],
  ["RuntimeError: CUDA error: uncorrectable ECC error encountered", "own", "gpu-error", "gpu-ecc"],
  [
    "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution",
    "own",
    "gpu-error",
    "nvlink",
  ],
  [
    "RuntimeError: CUDA error: MPS client failed to connect to the MPS control daemon",
    "echo",
    "gpu-error",
    "cuda-mps",
  ],
  ["RuntimeError: CUDA error: invalid device ordinal", "own", "user-config", "bad-device"],
  [
    "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "own",
    "software-version",
    "cuda-version",
  ],
  ["RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "own", "gpu-error", "cuda-error"],
  ["RuntimeError: loss is NaN", "own", "numerical", "nan"],
  [
    "ValueError: Rank 3, node a, device 2, iteration 10: Unexpected result nan (message='found NaN in local forward loss calculation')",
    "own",
    "numerical",
    "nan",
  ],
  ["OSError: [Errno 28] No space left on device: '/ckpt/iter_10'", "own", "storage", "storage"],
  [
    "OSError: [Errno 28] No space left on device: '/dev/shm/x'",
    "own",
    "user-config",
    "shm-too-small",
  ],
  ["OSError: [Errno 116] Stale file handle", "own", "storage", "storage"],
  [
    "RuntimeError: PytorchStreamWriter failed writing file data/12: file write failed",
    "own",
    "storage",
    "storage",
  ],
  ["ModuleNotFoundError: No module named 'apex'", "own", "software-version", "import"],
  ["ImportError: /x/flash_attn.so: undefined symbol: _ZN3c10", "own", "software-version", "import"],
  [
    "FileNotFoundError: [Errno 2] No such file or directory: 'conf/train.yaml'",
    "own",
    "user-config",
    "config",
  ],
  [
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/shard_3.bin'",
    "own",
    "user-program",
    "python-exception",
  ],
  [
    "AssertionError: global batch size (100) is not divisible by micro batch size (3)",
    "own",
    "user-config",
    "config",
  ],
  ["AssertionError", "own", "user-program", "python-exception"],
  ["KeyError: 'input_ids'", "own", "user-program", "python-exception"],
  [
    "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network error",
    "echo",
    "process-gone",
    "nccl-remote-error",
  ],
  [
    "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error",
    "echo",
    "unknown",
    "nccl-error",
  ],
  ["torch.distributed.DistStoreError: Socket Timeout", "echo", "process-gone", "tcpstore-lost"],
  [
    "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:99",
    "echo",
    "process-gone",
    "gloo-peer-lost",
  ],
  [
    "ConnectionResetError: [Errno 104] Connection reset by peer",
    "echo",
    "process-gone",
    "peer-closed",
  ],
  [
    "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running",
    "echo",
    "collective-mismatch",
    "collective-mismatch-detected",
  ],
  ["KeyboardInterrupt", "echo", "scheduler", "interrupted"],
  [
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 9 got signal: 15",
    "own",
    "scheduler",
    "signal-to-agent",
  ],
  [
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "echo",
    "unknown",
    "launcher-report",
  ],
  ["torch.multiprocessing.spawn.ProcessRaisedException: ", "echo", "unknown", "launcher-report"],
  [
    "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with exit code 1",
    "echo",
    "unknown",
    "launcher-report",
  ],
  [
    "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGKILL",
    "own",
    "process-gone",
    "killed",
  ],
  [
    "subprocess.CalledProcessError: Command '['/usr/bin/python', 'train.py']' returned non-zero exit status 1.",
    "echo",
    "unknown",
    "launcher-report",
  ],
  [
    "subprocess.CalledProcessError: Command '['tokenize', 'a.txt']' returned non-zero exit status 1.",
    "own",
    "user-program",
    "python-exception",
  ],
  [
    "lightning.pytorch.utilities.exceptions.SIGTERMException",
    "echo",
    "scheduler",
    "signal-received",
  ],
  [
    "RuntimeError: DataLoader worker (pid 9) is killed by signal: Terminated. ",
    "echo",
    "scheduler",
    "signal-received",
  ],
  [
    "RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete",
    "echo",
    "unknown",
    "gloo-timeout",
  ],
];

const LINES: readonly (readonly [text: string, role: string, cause: string, signature: string])[] =
  [
    [
      "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
      "own",
      "gpu-error",
      "xid",
    ],
    [
      "kernel: NVRM: Xid (PCI:0000:3b:00): 45, pid=1, Ch 00000008",
      "echo",
      "gpu-error",
      "xid-cleanup",
    ],
    ["Out of memory: Killed process 4242 (python) total-vm:1kB", "own", "host-memory", "host-oom"],
    [
      "slurmstepd: error: Detected 1 oom_kill event in StepId=9.0. Some of the step tasks have been OOM Killed.",
      "own",
      "host-memory",
      "host-oom",
    ],
    [
      "slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2026-11-15T03:17:51 DUE TO TIME LIMIT ***",
      "own",
      "scheduler",
      "time-limit",
    ],
    [
      "slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2026-11-15T03:17:51 DUE TO NODE FAILURE ***",
      "own",
      "platform",
      "node-failure",
    ],
    [
      "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-15T03:17:51 DUE TO PREEMPTION ***",
      "own",
      "scheduler",
      "preempted",
    ],
    [
      "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-15T03:17:51 ***",
      "own",
      "scheduler",
      "cancelled",
    ],
    [
      "W1115 00:00:00.0 1 api.py:739] Received Signals.SIGTERM death signal, shutting down workers",
      "own",
      "scheduler",
      "signal-to-agent",
    ],
    ["mpirun: Forwarding signal 15 to job", "own", "scheduler", "signal-to-agent"],
    [
      "Warning  Evicted  pod/train-3  The node was low on resource: memory.",
      "own",
      "scheduler",
      "evicted",
    ],
    ["    Reason:       OOMKilled", "own", "host-memory", "host-oom"],
    ["[rank: 3] Received SIGTERM: 15", "echo", "scheduler", "signal-received"],
    ["exiting program after receiving SIGTERM.", "echo", "scheduler", "signal-received"],
    [
      "[INFO] [launch.py:316:sigkill_handler] Killing subprocess 4242",
      "echo",
      "scheduler",
      "launcher-closing",
    ],
    ["srun: error: n1: task 12: Killed", "own", "process-gone", "killed"],
    ["srun: error: n1: tasks 0-7: Exited with exit code 1", "echo", "unknown", "task-exited"],
    ["Killed", "own", "process-gone", "killed"],
    [
      "run.sh: line 9:  4242 Killed                  python train.py",
      "own",
      "process-gone",
      "killed",
    ],
    ["Segmentation fault (core dumped)", "own", "user-program", "segfault"],
    ["Fatal Python error: Segmentation fault", "own", "user-program", "segfault"],
    ["train.py: error: unrecognized arguments: --foo", "own", "user-config", "arguments"],
    ["INFO: task python:280 blocked for more than 120 seconds.", "stall", "storage", "hung-task"],
    [
      "mlx5_core 0000:d2:00.0: poll_health:953:(pid 0): device's health compromised - reached miss count",
      "stall",
      "network-hang",
      "nic-error",
    ],
    [
      "W1115 00:00:00.0 1 api.py:900] Sending process 12 closing signal SIGTERM",
      "echo",
      "scheduler",
      "launcher-closing",
    ],
    [
      "[W socket.cpp:1] [c10d] recvValue failed on SocketImpl(fd=5): Connection reset by peer",
      "echo",
      "process-gone",
      "tcpstore-lost",
    ],
    [
      "Deepspeed: Current loss scale already at minimum - cannot decrease scale anymore.",
      "own",
      "numerical",
      "loss-scale",
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

describe("signatures", () => {
  it.each(EXCEPTIONS)("exception %s: %s %s", (text, role, cause, signature) => {
    expect(classifyException(text, [])).toMatchObject({ role, cause, signature });
  });

  it.each(LINES)("line %s: %s %s", (text, role, cause, signature) => {
    expect(classifyLine(text)).toMatchObject({ role, cause, signature });
    expect(LINE_NEEDLES.some((needle) => text.includes(needle))).toBe(true);
  });

  it.each(HARMLESS)("%s: nothing", (text) => {
    expect(classifyLine(text)).toBeNull();
  });

  it("looks into the message where the first line says nothing particular", () => {
    const nccl =
      "torch.distributed.DistBackendError: NCCL error in: x.cpp:1727, invalid usage, NCCL version 2.19.3";
    expect(
      classifyException(nccl, ["Last error:", "Duplicate GPU detected : rank 3 and rank 0"]),
    ).toMatchObject({
      signature: "nccl-config",
      cause: "user-config",
    });
  });

  it("has no needle that the scanner could miss", () => {
    for (const needle of LINE_NEEDLES)
      expect(needle.length).toBeGreaterThanOrEqual(SHORTEST_NEEDLE);
  });
});
