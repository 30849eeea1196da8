/** Jobs and failures of our own making: {n} is a number, {faulty} the host at fault, {host} some other. */
import type { HealthyScript } from "./plant-material.ts";

export const OWN_HEALTHY: readonly HealthyScript[] = [
  {
    name: "own-plain",
    everyNode: [
      "launcher: starting worker {n} of {n}",
      "NCCL INFO Bootstrap : Using eth0:10.{n}.{n}.{n}<0>",
      "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB eth0:10.{n}.{n}.{n}<0>",
      "NCCL version 2.19.4+cuda12.2",
      "driver build 535.104.05 loaded, {n} devices",
      "NCCL INFO Connected all rings",
      "loaded shard {n} of {n} in {n}.{n} s",
      "memory after setup: {n} MiB reserved",
    ],
    firstOnly: [
      "using world size: {n}, data-parallel-size: {n}",
      "loading tokenizer from /data/tokenizer.model",
      "building train dataset index",
      "number of parameters: {n}",
      "could not find a metadata file, will train from the beginning",
      "training starts",
    ],
    iteration: [
      "step {n} | loss {n}.{n} | grad norm {n}.{n} | {n} ms",
      "step {n} timers: forward {n}.{n} backward {n}.{n}",
    ],
    ending: ["training is done"],
    everyRankReports: false,
  },
  {
    name: "own-every-rank",
    everyNode: [
      "INFO setting up process group, backend nccl",
      "NCCL version 2.20.5+cuda12.4",
      "driver build 550.54.15 loaded, {n} devices",
      "INFO model sharded over {n} ranks",
      "INFO dataloader ready: {n} workers",
    ],
    firstOnly: ["INFO writing metrics to /out/metrics", "INFO starting training loop"],
    iteration: ["INFO step: {n} loss: {n}.{n} memory: {n}.{n}GiB tps: {n}"],
    ending: ["INFO training completed"],
    everyRankReports: true,
  },
];

/** Errors that mean nothing: they recover, or nobody needs what they are about. */
export const BENIGN: readonly (readonly string[])[] = [
  [
    "ERROR metrics exporter: connection refused, will retry in {n} s",
    "metrics exporter: connected",
  ],
  [
    "WARNING failed to upload profile to object store (attempt {n} of 5)",
    "upload done after {n} attempts",
  ],
  [
    "ERROR: Failed building wheel for rotary-kernels",
    "falling back to the reference implementation",
  ],
  ["NCCL WARN NET/Plugin: could not load plugin librail.so"],
  ["WARNING: dataloader worker took {n}.{n} s to start, check host load"],
  ["Error: cannot read clock speed of device {n}, skipping report", "device report written"],
  ["ERROR health probe: read of counter port_rcv_errors failed, ignored"],
  [
    "WARNING checkpoint shard write failed with EAGAIN, retry {n} of 5",
    "checkpoint shard written on retry",
  ],
  ["exception in telemetry thread: ReadTimeout, thread restarted"],
  ["WARNING gradient norm is not finite at step {n}, skipping update"],
  ["ERROR could not resolve license server, continuing without"],
];

/** Real trouble that passes: it looks like a root, on a node that is not at fault. */
export const DECOYS: readonly {
  readonly log: "own" | "kernel";
  readonly lines: readonly string[];
}[] = [
  {
    log: "kernel",
    lines: [
      "mlx5_core 0000:{n}:00.0 ens{n}f0np0: Link down",
      "mlx5_core 0000:{n}:00.0 ens{n}f0np0: Link up",
    ],
  },
  {
    log: "kernel",
    lines: [
      "NVRM: Xid (PCI:0000:{n}:00): 63, pid='<unknown>', name=<unknown>, Row remapper: recorded",
    ],
  },
  {
    log: "own",
    lines: [
      "NCCL WARN NET/IB : mlx5_{n}:1 Got async event : port error",
      "NCCL INFO NET/IB : mlx5_{n}:1 Got async event : port active",
    ],
  },
  {
    log: "own",
    lines: [
      "OSError: [Errno 116] Stale file handle: '/data/shards/{n}.bin'",
      "shard {n} opened again after remount",
    ],
  },
  {
    log: "own",
    lines: [
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.00 GiB",
      "autotune: candidate {n} does not fit, next",
    ],
  },
];

export interface FailureKind {
  readonly name: string;
  readonly category: string;
  /** node: one node breaks. rank: one process, no hardware. all: every rank says it. */
  readonly where: "node" | "rank" | "all";
  /** Where its lines go. */
  readonly log: "own" | "kernel" | "scheduler";
  readonly root: readonly string[];
  /** Labelled lines that another node writes. */
  readonly byPeer?: readonly string[];
  /** Unlabelled lines that come with it. */
  readonly beside?: readonly string[];
  /** What the peers see: closed connections within seconds, a timeout after ten minutes, nothing. */
  readonly cascade: "closed" | "timeout" | "completion" | "none";
  /** Whether the culprit writes no more after its root lines: neither cascade nor teardown. */
  readonly isGone: boolean;
  readonly atLaunch?: true;
  /** Replaces a line of the start on the faulty node: a difference that no word marks as an error. */
  readonly instead?: { readonly of: string; readonly by: string };
}

export const OWN_FAILURES: readonly FailureKind[] = [
  {
    name: "gpu-off-bus",
    category: "hardware.accelerator",
    where: "node",
    log: "kernel",
    root: [
      "NVRM: Xid (PCI:0000:{n}:00): 79, pid={n}, name=python, GPU has fallen off the bus.",
      "NVRM: GPU 0000:{n}:00.0: GPU has fallen off the bus.",
    ],
    cascade: "timeout",
    isGone: false,
  },
  {
    name: "ecc",
    category: "hardware.accelerator",
    where: "node",
    log: "own",
    root: ["RuntimeError: CUDA error: uncorrectable ECC error encountered"],
    beside: [
      "Traceback (most recent call last):",
      '  File "/job/train.py", line {n}, in step',
      "    loss.backward()",
    ],
    cascade: "closed",
    isGone: false,
  },
  {
    name: "ib-port",
    category: "hardware.network",
    where: "node",
    log: "own",
    root: ["NCCL WARN NET/IB : mlx5_{n}:1 Got async event : port error"],
    cascade: "timeout",
    isGone: false,
  },
  {
    name: "bad-cable",
    category: "hardware.network",
    where: "node",
    log: "own",
    root: ["NCCL WARN NET/IB : mlx5_{n}:1 Got async event : local catastrophic error"],
    cascade: "completion",
    isGone: false,
  },
  {
    name: "quiet-link",
    category: "hardware.network",
    where: "node",
    log: "own",
    root: [],
    cascade: "completion",
    isGone: false,
  },
  {
    name: "vendor-word",
    category: "hardware.accelerator",
    where: "node",
    log: "own",
    root: [
      "accelerator {n}: state changed RUN -> E7, queue {n} drained",
      "accelerator {n}: lane map 0xf0 -> 0x30",
    ],
    cascade: "timeout",
    isGone: false,
  },
  {
    name: "vendor-info",
    category: "hardware.network",
    where: "node",
    log: "own",
    root: ["INFO fabric agent: port {n} width 4x -> 1x"],
    cascade: "timeout",
    isGone: false,
  },
  {
    name: "link-retries",
    category: "hardware.network",
    where: "node",
    log: "kernel",
    root: [
      "mlx5_core 0000:{n}:00.0 ens{n}f0np0: Link down",
      "mlx5_core 0000:{n}:00.0: Port module event: cable unplugged",
    ],
    cascade: "closed",
    isGone: false,
  },
  {
    name: "node-dead",
    category: "hardware.node",
    where: "node",
    log: "scheduler",
    root: ["srun: error: Node failure on {faulty}"],
    beside: ["srun: Job step aborted: Waiting up to {n} seconds for job step to finish."],
    cascade: "closed",
    isGone: true,
  },
  {
    name: "node-silent",
    category: "hardware.node",
    where: "node",
    log: "own",
    root: [],
    cascade: "timeout",
    isGone: true,
  },
  {
    name: "node-silent-quick",
    category: "hardware.node",
    where: "node",
    log: "own",
    root: [],
    cascade: "closed",
    isGone: true,
  },
  {
    name: "version",
    category: "user.software",
    where: "node",
    log: "own",
    root: [],
    instead: { of: "NCCL version", by: "NCCL version 2.18.3+cuda11.8" },
    cascade: "timeout",
    isGone: false,
    atLaunch: true,
  },
  {
    name: "driver-word",
    category: "user.software",
    where: "node",
    log: "own",
    root: [],
    instead: {
      of: "driver build",
      by: "driver build 550.90.07-open loaded, {n} devices, compat mode",
    },
    cascade: "timeout",
    isGone: false,
    atLaunch: true,
  },
  {
    name: "stale-mount",
    category: "hardware.storage",
    where: "node",
    log: "own",
    root: ["OSError: [Errno 116] Stale file handle: '/data/shards/{n}.bin'"],
    beside: [
      "Traceback (most recent call last):",
      '  File "/job/data.py", line {n}, in __getitem__',
    ],
    cascade: "closed",
    isGone: false,
  },
  {
    name: "key-error",
    category: "user.program",
    where: "rank",
    log: "own",
    root: ["KeyError: 'position_ids'"],
    beside: ["Traceback (most recent call last):", '  File "/job/train.py", line {n}, in collate'],
    cascade: "closed",
    isGone: false,
  },
  {
    name: "shape",
    category: "user.program",
    where: "all",
    log: "own",
    root: [
      "RuntimeError: The size of tensor a ({n}) must match the size of tensor b ({n}) at non-singleton dimension 1",
    ],
    beside: ["Traceback (most recent call last):", '  File "/job/model.py", line {n}, in forward'],
    cascade: "none",
    isGone: false,
  },
];

/** What peers write of a failure that is not theirs: the first list counts as indicating, the second does not. */
export const CASCADES: Readonly<
  Record<
    FailureKind["cascade"],
    { readonly direct: readonly string[]; readonly after: readonly string[] }
  >
> = {
  timeout: {
    direct: [
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={n}, OpType=ALLREDUCE, NumelIn={n}, Timeout(ms)=600000) ran for 600{n} milliseconds before timing out.",
    ],
    after: [
      "Some operations have failed or timed out; to avoid data inconsistency the whole process is taken down.",
      "terminate called after throwing an instance of 'c10::DistBackendError'",
      "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x57 (0x{n} in libc10.so)",
      "frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout + 0x1d2 (0x{n} in libtorch_cuda.so)",
    ],
  },
  closed: {
    direct: [
      "NCCL WARN socketProgress: Connection closed by remote peer {peer}<{n}>",
      "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error, NCCL version 2.19.4",
    ],
    after: [
      "Traceback (most recent call last):",
      '  File "/job/train.py", line {n}, in step',
      "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
    ],
  },
  // Neighbours alone; the others wait.
  completion: {
    direct: [
      "NCCL WARN NET/IB: Got completion from peer {peer}<{n}> with status=12 opcode=0 len={n} vendor err 129 (Recv)",
    ],
    after: ["NCCL INFO transport/net.cc:{n} -> 6", "NCCL INFO proxy.cc:{n} -> 6 [Progress Thread]"],
  },
  none: { direct: [], after: [] },
};

/** By every node's launcher, at the end. */
export const TEARDOWN: readonly string[] = [
  "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process {n} closing signal SIGTERM",
  "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -6) local_rank: {n} (pid: {n}) of binary: /usr/bin/python",
  "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
];
export const TEARDOWN_SCHEDULER = ["srun: error: {host}: task {n}: Exited with exit code 1"];
