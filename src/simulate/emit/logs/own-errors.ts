/**
 * What a process says of its own end: Python tracebacks as PyTorch's excepthook prints them. Wording of the
 * errors: PyTorch (c10/cuda/CUDAException.cpp, CUDACachingAllocator.cpp), CUDA's error strings, Megatron's
 * rerun state machine (megatron/core/rerun_state_machine.py).
 */
import type { FaultSpec } from "../../cluster/fault-spec.ts";
import { hash, STREAM } from "../../cluster/noise.ts";
import type { Cause } from "../../../model/cause.ts";
import type { RankFile } from "./rank-file.ts";

const SCRIPT = "/srv/job/train.py";

/** Prints nothing where the process just disappears. */
export function writeOwnError(
  file: RankFile,
  fault: FaultSpec,
  iteration: number,
  seed: number,
  atNs: number,
): void {
  if (fault.cause === "numerical") {
    file.info(
      atNs - 2e6,
      `Unexpected result nan on rank ${file.rank} at iteration #${iteration} invocation #1 ${FOUND_NAN}`,
      "WARNING",
    );
  }
  const raised = ERRORS[fault.cause]?.(file, fault, iteration, seed);
  if (raised) traceback(file, atNs, raised);
}

const FOUND_NAN = "(message='found NaN in local forward loss calculation')";

type MakeError = (file: RankFile, fault: FaultSpec, iteration: number, seed: number) => Raised;

const ERRORS: Readonly<Partial<Record<Cause, MakeError>>> = {
  "gpu-memory": (file, _fault, _iteration, seed) => outOfMemory(file, seed),
  "gpu-error": (_file, { signature }) => cudaError(signature),
  numerical: ({ rank, host, gpu }, _fault, iteration) => ({
    frames: [
      ['pretrain_gpt.py", line 141, in loss_func', "rerun_state_machine.validate_result("],
      [
        'megatron/core/rerun_state_machine.py", line 488, in validate_result',
        "raise RuntimeError(full_message)",
      ],
    ],
    error: [
      `RuntimeError: Rank ${rank}, node ${host}, device ${gpu}, iteration ${iteration}: Unexpected result nan ${FOUND_NAN}`,
    ],
  }),
  "user-program": () => ({
    frames: [
      ['data/mixture.py", line 88, in __getitem__', "source = self.sources[self.order[index]]"],
    ],
    error: ["KeyError: 'books-v2'"],
  }),
};

interface Raised {
  /** File, line and function after `File "/srv/job/`, and the source line. */
  readonly frames: readonly (readonly [string, string])[];
  readonly error: readonly string[];
}

function traceback(file: RankFile, atNs: number, { frames, error }: Raised): void {
  // Without a line of its own with a time, readers would date the traceback by the start of training.
  file.info(atNs - 1e6, "uncaught exception, leaving", "ERROR");
  file.traceback([
    "Traceback (most recent call last):",
    `  File "${SCRIPT}", line 197, in <module>`,
    "    loss = train_step(model, optimizer, batches)",
    `  File "${SCRIPT}", line 164, in train_step`,
    "    losses = forward_backward(model, batches)",
    ...frames.flatMap(([where, source]) => [`  File "/srv/job/${where}`, `    ${source}`]),
    ...error,
  ]);
  file.plain("");
}

function outOfMemory(file: RankFile, seed: number): Raised {
  const free = 20 + (hash(seed ^ STREAM.logs, file.rank, 7, 0) % 400);
  return {
    frames: [['model/mlp.py", line 61, in forward', "hidden = self.up(x) * self.gate(x)"]],
    error: [
      `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU ${file.gpu} has a total capacity of 79.11 GiB of which ${free}.44 MiB is free. Including non-PyTorch memory, this process has 78.70 GiB memory in use. Of the allocated memory 74.16 GiB is allocated by PyTorch, and 1.97 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)`,
    ],
  };
}

/** CUDA's words and names for what broke; a fault without a signature shows as a failed kernel. */
const CUDA_ERRORS: Readonly<Record<string, readonly [text: string, name: string]>> = {
  ecc: ["uncorrectable ECC error encountered", "cudaErrorECCUncorrectable"],
  nvlink: [
    "uncorrectable NVLink error detected during the execution",
    "cudaErrorNvlinkUncorrectable",
  ],
  "card-drop": ["unknown error", "cudaErrorUnknown"],
};

function cudaError(signature: string): Raised {
  const [text, name] = CUDA_ERRORS[signature] ?? [
    "unspecified launch failure",
    "cudaErrorLaunchFailure",
  ];
  return {
    frames: [['train.py", line 181, in train_step', "torch.cuda.current_stream().synchronize()"]],
    error: [
      `torch.AcceleratorError: CUDA error: ${text}`,
      `Search for \`${name}' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.`,
      "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
      "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
      "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
    ],
  };
}
