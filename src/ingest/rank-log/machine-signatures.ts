/**
 * What ends a process from below: memory, GPU, storage, network, and those who kill it. Wording: CUDA and NVIDIA
 * driver messages, the Linux kernel, glibc, PyTorch's allocator and DataLoader, Slurm, Kubernetes, torchrun, Open MPI.
 */
import { orAftermath, own, stall } from "./signature.ts";
import type { Signature } from "./signature.ts";

const MEMORY: readonly Signature[] = [
  own("host-oom", "host-memory", [
    "ray.exceptions.OutOfMemoryError",
    "Memory cgroup out of memory",
  ]),
  own("cuda-oom", "gpu-memory", [
    "CUDA out of memory",
    "HIP out of memory",
    "OutOfMemoryError",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "failure 2 'out of memory'",
    "failure 'out of memory'",
  ]),
  own(
    "dataloader-oom",
    "host-memory",
    ["DataLoader worker"],
    /DataLoader worker \(pid.{0,200}?\) is killed by signal: Killed/,
  ),
  own(
    "dataloader-died",
    "dataloader",
    ["DataLoader worker"],
    /DataLoader worker \(pid.{0,200}?\) (?:is killed by signal|exited unexpectedly)/,
  ),
  own(
    "dataloader-died",
    "dataloader",
    ["encountered in worker"],
    /insufficient shared memory \(shm\)/,
  ),
  own(
    "host-oom",
    "host-memory",
    [
      "oom-kill",
      "oom_kill",
      "Out of memory: Kill",
      "OOM Kill",
      "OOM kill",
      "OOMKilled",
      "MemoryError",
      "Cannot allocate memory",
      "std::bad_alloc",
      "can't allocate memory",
      "Out Of Memory",
    ],
    /oom.kill|Out of memory: Kill|OOM ?[Kk]ill|(?<!OutOf)MemoryError|annot allocate memory|std::bad_alloc|can't allocate memory|: Out Of Memory/,
  ),
];

const GPU: readonly Signature[] = [
  own(
    "device-assert",
    "user-program",
    ["device-side assert triggered", "Assertion `"],
    /device-side assert triggered|\.cuh?:\d+.{0,400}Assertion `/,
  ),
  own(
    "gpu-ecc",
    "gpu-error",
    [
      "ECC error",
      "ECC Error",
      "correctable ECC",
      "cudaErrorECC",
      "ncontained ECC",
      "ouble Bit ECC",
      "ouble-bit ECC",
      "DBE ECC",
    ],
    /(?:[Uu]ncorrectable|[Uu]ncontained|[Dd]ouble.?[Bb]it|DBE).{0,60}ECC|ECC [Ee]rror|cudaErrorECC/,
  ),
  {
    ...own(
      "xid-cleanup",
      "gpu-error",
      ["Xid (PCI"],
      /Xid \([^)]{0,40}\): 45\b(?!.{0,200}caused by previous)/,
    ),
    role: "echo",
  },
  own("xid", "gpu-error", ["NVRM: Xid", "Xid (PCI"]),
  own("gpu-lost", "gpu-error", ["fallen off the bus", "GPU is lost"]),
  own(
    "nvlink",
    "gpu-error",
    ["NVLink", "NVLINK", "nvlink"],
    /nvlink.{0,60}(?:error|fault|inactive|is down|failure)/i,
  ),
  own(
    "fabric-manager",
    "platform",
    ["system not yet initialized", "abric Manager", "abricmanager"],
    /not yet initialized|(?:not|fail|error|stop)/,
  ),
  own("cuda-version", "software-version", [
    "CUDA driver version is insufficient",
    "no kernel image is available",
    "forward compatibility was attempted",
    "driver on your system is too old",
    "Torch not compiled with CUDA",
  ]),
  own("bad-device", "user-config", ["invalid device ordinal"]),
  own("no-gpu", "gpu-error", ["no CUDA-capable device", "No CUDA GPUs are available"]),
  orAftermath(
    own(
      "cuda-illegal-access",
      "gpu-error",
      [
        "illegal memory access",
        "misaligned address",
        "unspecified launch failure",
        "illegal instruction was encountered",
        "invalid program counter",
      ],
      /CUDA|Cuda|cuda|an illegal memory access/,
    ),
  ),
  orAftermath(
    own("cuda-error", "gpu-error", [
      "CUDA error:",
      "HIP error:",
      "CUBLAS_STATUS_",
      "CUDNN_STATUS_",
      "cuDNN error",
      "Cuda failure",
    ]),
  ),
];

const STORAGE: readonly Signature[] = [
  own(
    "shm-too-small",
    "user-config",
    ["shared memory segment", "/dev/shm"],
    /creating shared memory segment|failed to extend \/dev\/shm|No space left.{0,80}\/dev\/shm|\/dev\/shm.{0,80}No space left/,
  ),
  own("storage", "storage", [
    "No space left on device",
    "Input/output error",
    "Stale file handle",
    "Read-only file system",
    "Disk quota exceeded",
    "Transport endpoint is not connected",
    "Remote I/O error",
    "PytorchStreamWriter failed",
    "PytorchStreamReader failed",
    "unexpected pos ",
    "deserializing header",
  ]),
  stall(
    "hung-task",
    "storage",
    ["blocked for more than"],
    /task \S+ blocked for more than \d+ seconds/,
  ),
];

const NETWORK: readonly Signature[] = [
  stall(
    "nic-error",
    "network-hang",
    ["mlx5_core"],
    /health|[Tt]imeout|leak of a command|fatal|[Ll]ink down|syndrome/,
  ),
];

const ENDS: readonly Signature[] = [
  own("node-failure", "platform", ["NODE FAIL", "Node failure", "NODE_FAIL"]),
  own(
    "time-limit",
    "scheduler",
    ["DUE TO TIME LIMIT", "time limit", "Time limit"],
    /DUE TO TIME LIMIT|[Tt]ime limit (?:reached|exceeded|exhausted)/,
  ),
  own(
    "preempted",
    "scheduler",
    ["PREEMPT", "reempted"],
    /DUE TO PREEMPTION|\bPREEMPTED\b|[Pp]reempted by/,
  ),
  own(
    "evicted",
    "scheduler",
    ["Evicted", "TaintManagerEviction", "low on resource"],
    /\bEvicted\b.{0,80}\b(?:[Nn]ode|[Pp]od)|TaintManagerEviction|was low on resource: /,
  ),
  own("cancelled", "scheduler", ["CANCELLED AT", "CANCELLED DUE", "forcing job termination"]),
  own(
    "signal-to-agent",
    "scheduler",
    ["death signal", "SignalException", "Forwarding signal"],
    /Received (?:\d+|Signals\.SIG\w+) death signal|SignalException|Forwarding signal \d+ to job/,
  ),
  orAftermath(
    own("segfault", "user-program", [
      "Segmentation fault",
      "(SIGSEGV)",
      "Fatal Python error: Bus error",
      "Fatal Python error: Illegal",
    ]),
  ),
  orAftermath(own("aborted", "unknown", ["Fatal Python error: Aborted", "(SIGABRT)"])),
  orAftermath(
    own(
      "killed",
      "process-gone",
      ["Killed", "SIGKILL"],
      /^\s*Killed\s*$|\b\d+ Killed\b|tasks? [\d,-]+: Killed|\(SIGKILL\)|by SIGKILL|with signal SIGKILL/,
    ),
  ),
];

export const MACHINE_FAILURES: readonly Signature[] = [...MEMORY, ...GPU, ...STORAGE, ...NETWORK];
export { ENDS };
