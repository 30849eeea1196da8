/** What to do about a machine that monitoring shows to be unlike its peers. */
import type { Cause } from "../model/cause.ts";
import type { Advice, Steps } from "./advice.ts";

const TAKE_OUT = {
  "replace-machine":
    "if its own checks confirm it, take the machine out and resume from the last checkpoint",
};

export const MACHINE: Advice = {
  owner: "operations",
  is: ["is unlike its peers", "are unlike their peers"],
  actions: {
    "check-machine": {
      why: "look for errors in the kernel's log; then test its GPUs (dcgmi diag -r 2)",
      command: 'dmesg -T | grep -iE "xid|nvlink|mlx5|aer|oom"',
    },
    ...TAKE_OUT,
  },
};

/** All processes of a machine are gone at once: it may be without power, and then no shell answers on it. */
export const MACHINE_GONE: Steps = {
  "check-machine": {
    why: "look whether it answers at all; where it does not, ask its management controller for power and console (ipmitool -H <bmc> chassis power status; sol activate); where it does, look for the OOM killer and Xids in the kernel's log, then at the scheduler's log",
    command: "ping -c 3 {machine}",
  },
  "replace-machine": "if the machine is unhealthy, restart the job without it",
};

export const MACHINE_ADVICE: Partial<Record<Cause, Advice>> = {
  "gpu-error": {
    owner: "operations",
    is: "has a GPU problem",
    actions: {
      "check-gpu": {
        why: "look whether a GPU is missing or reports an Xid",
        command: "nvidia-smi{gpu} -q; dmesg -T | grep -i xid",
      },
      ...TAKE_OUT,
    },
  },
  "process-gone": {
    owner: "operations",
    is: ["no longer works, or does not answer", "no longer work, or do not answer"],
    actions: {
      "check-machine": {
        why: "look whether it answers (ssh, BMC); then at the job's log of its ranks",
        command: "dmesg -T | tail -n 100",
      },
      ...TAKE_OUT,
    },
  },
  "network-slow": {
    owner: "operations",
    is: "has a network problem",
    actions: {
      "check-network": {
        why: "look at link state, width and speed (lspci -vv: LnkSta against LnkCap), pauses and errors (ethtool -S)",
        command: "ibstat{nic}",
      },
      ...TAKE_OUT,
    },
  },
  platform: {
    owner: "operations",
    is: "shares a GPU with another process",
    actions: {
      "check-gpu": {
        why: "look whose process shares the GPU",
        command: "nvidia-smi{gpu} pmon -c 1",
      },
      "restart-job": "end that process, or give the job another machine",
    },
  },
  "host-memory": {
    owner: "user",
    is: ["uses far more memory than its peers", "use far more memory than their peers"],
    actions: {
      "check-memory": {
        why: "look which process grows",
        command: "ps -eo rss,cmd --sort=-rss | head",
      },
    },
  },
};
