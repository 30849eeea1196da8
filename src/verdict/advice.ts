/** What to do about each cause, and whose it is (FLARE routes by cause: §5.1, Table 1). */
import type { Cause, Owner } from "../model/cause.ts";
import type { VerdictKind } from "../model/finding.ts";
import { isSlow } from "./case.ts";
import { MACHINE, MACHINE_ADVICE } from "./machine-advice.ts";
import { REGRESSION_ADVICE } from "./regression-advice.ts";
import { SLOW_ADVICE } from "./slow-advice.ts";

export type OneOrMany = string | readonly [one: string, many: string];

export interface Advice {
  readonly owner: Owner;
  /** What is wrong, in a few words after "rank 3", and after "ranks 3 and 5" where that reads differently. */
  readonly is: OneOrMany;
  /** The same of a process that ended, where that reads differently. */
  readonly crashed?: OneOrMany;
  /** The same of the GPU itself, after "GPU 5 of node002 (rank 13)". */
  readonly device?: string;
  readonly actions: Steps;
}

/** By action, in order: what to do; with a command, where there is one. */
export type Steps = Readonly<Record<string, string | Step>>;

export interface Step {
  readonly why: string;
  /** For commandFor (command.ts), which fills in machine, GPU, process and NIC; within `why` it would be pasted without its machine. */
  readonly command?: string;
  /** Where the action's own words do not fit (report/action-words.ts). */
  readonly title?: string;
}

/** Not needed where the stack is among the inputs. */
export const DUMP_STACKS = "dump-stacks";

const XID = "nvidia-smi{gpu} -q; dmesg -T | grep -i xid";
const RESTART = {
  "restart-job": "restart it when that is done: the other ranks only wait and need no repair",
};

const ADVICE: Partial<Record<Cause, Advice>> = {
  "cpu-stall": {
    owner: "operations",
    is: ["stopped issuing work: its CPU is stuck", "stopped issuing work: their CPUs are stuck"],
    actions: {
      [DUMP_STACKS]: {
        why: "dump its Python stack, which shows the line it is stuck in",
        command: "py-spy dump --pid {pid}",
      },
      "restart-job":
        "if the stack is in your code, fix that first; otherwise restart without this machine",
    },
  },
  dataloader: {
    owner: "user",
    is: ["is stuck in its data loader", "are stuck in their data loaders"],
    crashed: ["died in its data loader", "died in their data loaders"],
    actions: {
      "check-storage": {
        why: "look at the file system and the loader's workers: the data loader waits for its input",
        title: "Check the data loader",
      },
      ...RESTART,
    },
  },
  storage: {
    owner: "operations",
    is: ["is stuck in, or failed at, storage", "are stuck in, or failed at, storage"],
    crashed: "died of a storage error",
    actions: {
      "check-storage": "look at free space, quota and health of the file system in the message",
      ...RESTART,
    },
  },
  "gpu-hang": {
    owner: "operations",
    is: ["has a GPU that stopped working", "have GPUs that stopped working"],
    device: "stopped working: it does not finish what was issued to it",
    actions: {
      "check-gpu": {
        why: "look at its state, and for errors (Xid) in the kernel's log",
        command: XID,
      },
      "replace-machine":
        "if it has an Xid or does not answer, take the machine out and restart the job without it; if the check finds nothing, restart the job, and take the machine out if it happens again",
    },
  },
  "gpu-error": {
    owner: "operations",
    is: "hit a GPU error",
    device: "reports an error",
    actions: {
      "check-gpu": {
        why: "look at its state, and for errors (Xid) in the kernel's log",
        command: XID,
      },
      "rerun-blocking": "if there is no Xid, rerun with CUDA_LAUNCH_BLOCKING=1 to find the kernel",
    },
  },
  "gpu-memory": {
    owner: "user",
    is: "ran out of GPU memory",
    actions: {
      "reduce-memory":
        "use a smaller micro-batch or sequence, or activation checkpointing; or look for a leak on this rank",
      ...RESTART,
    },
  },
  "host-memory": {
    owner: "user",
    is: "ran out of host memory",
    actions: {
      "reduce-memory":
        "use fewer data-loader workers, a smaller prefetch, or more memory per process",
      ...RESTART,
    },
  },
  "process-gone": {
    owner: "operations",
    is: [
      "is gone: its process died without an error message",
      "are gone: their processes died without an error message",
    ],
    crashed: ["died without an error message", "died without an error message"],
    actions: {
      "check-machine": {
        why: "look for the OOM killer and Xids in the kernel's log; then at the scheduler's log and the machine's health",
        command: "dmesg -T | tail -n 100",
      },
      "replace-machine": "if the machine is unhealthy, restart the job without it",
    },
  },
  "process-stopped": {
    owner: "operations",
    is: [
      "does not answer: its process is stopped or its machine frozen",
      "do not answer: their processes are stopped or their machines frozen",
    ],
    actions: {
      "check-machine": {
        why: "look at the state of its process: T means that it is stopped; D, that it waits in the kernel for hung storage or a driver: WCHAN and the kernel's log say for which",
        command: "ps -o stat,wchan -p {pid}; dmesg -T | tail -n 20",
      },
      "continue-process": {
        why: "if the state is T: this, on its machine, lets it go on; find out who stopped it",
        command: "kill -CONT {pid}",
      },
      "replace-machine":
        "if the state stays D, or the machine does not answer: take the machine out and restart the job without it",
    },
  },
  "network-hang": {
    owner: "operations",
    is: "cannot communicate",
    actions: {
      "check-network": {
        why: "look at link state and error counters of the NICs of these ranks; run an NCCL test between them",
        command: "ibstat{nic}",
      },
      ...RESTART,
    },
  },
  "collective-mismatch": {
    owner: "algorithm",
    is: [
      "called a different collective than its peers",
      "called a different collective than their peers",
    ],
    actions: {
      "fix-code":
        "look at {step}: the ranks of a group must call the same collectives in the same order, with the same sizes",
    },
  },
  numerical: {
    owner: "algorithm",
    is: "got a loss that is not a number",
    actions: {
      "check-data":
        "look at the batch of this iteration on this rank; lower the learning rate or skip the batch",
      "check-gpu": "if the same rank repeats it, test its GPU for silent errors",
    },
  },
  "user-program": {
    owner: "user",
    is: "died of an error in the program",
    actions: {
      "fix-code": "correct {line}; the traceback is in the proof",
    },
  },
  "user-config": {
    owner: "user",
    is: "died of a configuration error",
    actions: {
      "fix-config": "correct the setting that the message names",
    },
  },
  "software-version": {
    owner: "infrastructure",
    is: "died because software versions do not match",
    actions: {
      "fix-environment": "make the versions equal on all machines",
    },
  },
  scheduler: {
    owner: "operations",
    is: "was ended from outside, by the scheduler or a person",
    actions: {
      "resume-job": "resume from the last checkpoint; ask for more time if it was a limit",
    },
  },
  platform: {
    owner: "infrastructure",
    is: "was ended by the platform",
    actions: {
      "check-platform": "look at the service that the message names",
    },
  },
};

const UNKNOWN: Advice = {
  owner: "operations",
  is: ["is where the problem starts", "are where the problem starts"],
  actions: {
    "look-closer": "the evidence does not show the cause: see what would help",
  },
};

/** A cause that stops a job in one case slows it in another: then other words and other steps fit. */
export function adviceFor(cause: Cause, kind: VerdictKind): Advice {
  if (kind === "faulty-machine") return MACHINE_ADVICE[cause] ?? SLOW_ADVICE[cause] ?? MACHINE;
  const code = kind === "regression" ? REGRESSION_ADVICE[cause] : undefined;
  const slow = isSlow({ kind }) ? SLOW_ADVICE[cause] : undefined;
  return code ?? slow ?? ADVICE[cause] ?? UNKNOWN;
}
