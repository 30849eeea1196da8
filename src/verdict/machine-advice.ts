/** What to do about a machine that monitoring shows to be unlike its peers. */
import type { Cause } from "../model/cause.ts";
import type { Advice } from "./advice.ts";

const TAKE_OUT = [
  "replace-machine",
  "if its own checks confirm it, take the machine out and resume from the last checkpoint",
] as const;

export const MACHINE: Advice = {
  owner: "operations",
  is: ["is unlike its peers", "are unlike their peers"],
  actions: [
    ["check-machine", "dmesg | grep -iE 'xid|nvlink|mlx5|aer|oom' and dcgmi diag -r 2 on it"],
    TAKE_OUT,
  ],
};

export const MACHINE_ADVICE: Partial<Record<Cause, Advice>> = {
  "gpu-error": {
    owner: "operations",
    is: "has a GPU problem",
    actions: [
      [
        "check-gpu",
        "nvidia-smi -q and dmesg | grep -i xid on it: a GPU is missing or reports an Xid",
      ],
      TAKE_OUT,
    ],
  },
  "process-gone": {
    owner: "operations",
    is: ["no longer works, or does not answer", "no longer work, or do not answer"],
    actions: [
      ["check-machine", "does it answer (ssh, BMC)? dmesg, and the job's log of its ranks"],
      TAKE_OUT,
    ],
  },
  "network-slow": {
    owner: "operations",
    is: "has a network problem",
    actions: [
      [
        "check-network",
        "lspci -vv | grep LnkSta (width and speed against LnkCap), ibstat, ethtool -S: pauses and errors",
      ],
      TAKE_OUT,
    ],
  },
  platform: {
    owner: "operations",
    is: "shares a GPU with another process",
    actions: [
      ["check-gpu", "nvidia-smi pmon -c 1 and fuser -v /dev/nvidia* on it: whose process is it?"],
      ["restart-job", "end that process, or give the job another machine"],
    ],
  },
  "host-memory": {
    owner: "user",
    is: ["uses far more memory than its peers", "use far more memory than their peers"],
    actions: [["check-memory", "ps -eo rss,cmd --sort=-rss | head on it: which process grows?"]],
  },
};
