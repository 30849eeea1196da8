/**
 * What a process says when somebody else is late or gone. None of these accuses the process that prints it.
 * Wording: pytorch/pytorch torch/csrc/distributed/c10d (ProcessGroupNCCL, TCPStore, socket, TraceUtils),
 * torch/distributed/elastic, torch/multiprocessing/spawn.py; facebookincubator/gloo; Ray; Slurm; DeepSpeed
 * (launcher/launch.py); Accelerate (commands/launch.py); Lightning (strategies/launchers); Open MPI.
 */
import type { Cause } from "../../model/cause.ts";
import type { Signature } from "./signature.ts";

function echo(
  signature: string,
  cause: Cause,
  needles: readonly string[],
  pattern?: RegExp,
): Signature {
  return { signature, role: "echo", cause, needles, alone: true, ...(pattern ? { pattern } : {}) };
}

export const ECHOES: readonly Signature[] = [
  echo("nccl-watchdog", "unknown", ["Watchdog caught collective operation timeout"]),
  echo("nccl-dump-signal", "unknown", [
    "Received a dump signal due to a collective timeout",
    "Observed flight recorder dump signal",
  ]),
  echo("nccl-watchdog-stuck", "unknown", ["watchdog got stuck for", "Heartbeat monitor timed out"]),
  echo("nccl-abort", "unknown", [
    "process after attempting to dump debug info",
    "processGroupNCCL after attempting to dump",
    "taking the entire process down",
    "Some NCCL operations have failed or timed out",
  ]),
  echo(
    "desync-report",
    "unknown",
    ["collective #", "are the lagging ranks that caused"],
    /didn't (?:join|finish) collective #|are the lagging ranks that caused/,
  ),
  echo("collective-mismatch-detected", "collective-mismatch", [
    "Detected mismatch between collectives on ranks",
  ]),
  echo(
    "monitored-barrier",
    "unknown",
    ["monitoredBarrier"],
    /failed to pass monitoredBarrier|reach monitoredBarrier/,
  ),
  echo("nccl-remote-error", "process-gone", [
    "ncclRemoteError",
    "remote process exited or there was a network error",
    "Connection closed by remote peer",
  ]),
  echo(
    "gloo-timeout",
    "unknown",
    ["gloo/transport", "gloo/common", "gloo::"],
    /[Tt]imed out waiting/,
  ),
  echo(
    "gloo-peer-lost",
    "process-gone",
    ["gloo/transport", "gloo/rendezvous", "gloo/common", "Gloo connect", "gloo::"],
    /Connection (?:closed|reset) by peer|Read error|Broken pipe|[Tt]imed? ?out|connectFullMesh failed/,
  ),
  echo(
    "rendezvous-failed",
    "network-hang",
    [
      "The client socket has",
      "RendezvousConnectionError",
      "RendezvousTimeoutError",
      "connect() timed out",
    ],
    /has timed out|has failed to connect|RendezvousConnection|RendezvousTimeout|connect\(\) timed out/,
  ),
  echo(
    "tcpstore-lost",
    "process-gone",
    [
      "TCPStore",
      "recvValue",
      "sendBytes",
      "recvBytes",
      "Socket Timeout",
      "DistNetworkError",
      "DistStoreError",
    ],
    /recvValue|recvBytes|sendBytes|Failed to recv|Socket Timeout|Broken pipe|Connection (?:reset|refused|was likely)|DistNetworkError|DistStoreError|wait timeout/,
  ),
  echo("peer-closed", "process-gone", [
    "ConnectionResetError",
    "BrokenPipeError",
    "ConnectionAbortedError",
    "ConnectionRefusedError",
  ]),
  echo("actor-died", "process-gone", [
    "ActorDiedError",
    "RayActorError",
    "WorkerCrashedError",
    "NodeDiedError",
  ]),
  echo("launcher-closing", "scheduler", [
    "closing signal SIG",
    "Killing subprocess ",
    "Forcefully terminating all other",
  ]),
  // Launchers tell that a child has failed; of what, the child's own lines say.
  echo(
    "launcher-report",
    "unknown",
    [
      "ChildFailedError",
      "ProcessRaisedException",
      "ProcessExitedException",
      "CalledProcessError",
      "MPI_ABORT was invoked",
    ],
    /ChildFailedError|ProcessRaisedException|ProcessExitedException(?!.*SIGKILL)|CalledProcessError: Command .{0,4000}(?:python|torchrun|deepspeed|accelerate|mpirun)|MPI_ABORT was invoked/,
  ),
  echo("interrupted", "scheduler", ["KeyboardInterrupt"], /^(?:Detected )?KeyboardInterrupt/),
  echo(
    "signal-received",
    "scheduler",
    ["SIGTERM", "signal: Terminated"],
    /[Rr]eceiv(?:ed|ing) (?:signal )?SIGTERM|SIGTERM (?:signal )?received|[Cc]aught (?:signal )?SIGTERM|SIGTERMException|killed by signal: Terminated/,
  ),
  echo(
    "task-exited",
    "unknown",
    ["srun: error: ", "srun: Job step aborted", "srun: Terminating"],
    /tasks? [\d,-]+: (?:Exited with exit code|Aborted|Terminated|Out Of Memory \(subsequent)|Job step aborted|Terminating/,
  ),
  // A client of CUDA MPS dies with the others when one of them faults; the GPU is not at fault here.
  {
    ...echo(
      "cuda-mps",
      "gpu-error",
      ["MPS client", "MPS server", "MPS control", "MPS daemon", "CUDA_ERROR_MPS", "cudaErrorMps"],
      /(?:CUDA|Cuda|cuda)[^\n]{0,200}\bMPS\b|CUDA_ERROR_MPS|cudaErrorMps/,
    ),
    canBeAftermath: true,
  },
];

/** The last resort for errors out of NCCL that nothing above or among the own failures explains. */
export const NCCL_ERROR: Signature = echo("nccl-error", "unknown", [
  "DistBackendError",
  "NCCL error in:",
  "NCCL error:",
  "NCCL communicator was aborted",
  "NCCL watchdog thread terminated with exception",
  "watchdog thread terminated with exception",
]);
