/** What to do about what makes a job slow rather than stop. */
import type { Cause } from "../model/cause.ts";
import type { Advice } from "./advice.ts";

const TAKE_OUT = { "replace-machine": "if it stays slow, take the machine out" };

export const SLOW_ADVICE: Partial<Record<Cause, Advice>> = {
  "gpu-slow": {
    owner: "operations",
    is: ["computes slowly", "compute slowly"],
    device: "computes slowly",
    actions: {
      "check-gpu": {
        why: "look at its clocks, its temperature and why it throttles, and for other processes on it",
        command: "nvidia-smi{gpu} -q -d CLOCK,TEMPERATURE,POWER,PERFORMANCE",
      },
      ...TAKE_OUT,
    },
  },
  "cpu-stall": {
    owner: "operations",
    is: [
      "is held up by its CPU, which issues work late",
      "are held up by their CPUs, which issue work late",
    ],
    actions: {
      "check-cpu": {
        why: "look at what its Python does; then at other load and CPU pinning on its machine",
        command: "py-spy dump --pid {pid}",
      },
      ...TAKE_OUT,
    },
  },
  dataloader: {
    owner: "user",
    is: ["waits for its data loader", "wait for their data loaders"],
    actions: {
      "check-storage": {
        why: "look at its loader workers and at prefetching; if these are as they should be, at the file system that it reads, with those who run it",
        command: "py-spy dump --pid {pid}; iostat -x 1 3",
        title: "Check the data loader",
      },
    },
  },
  "garbage-collection": {
    owner: "algorithm",
    is: ["stops for Python's garbage collection", "stop for Python's garbage collection"],
    actions: {
      "fix-code": "call gc.disable(), and gc.collect() every N iterations on all ranks at once",
      "check-heap":
        "if the heap grows, look for lists and caches that keep objects of every iteration",
    },
  },
  synchronization: {
    owner: "algorithm",
    is: ["waits for the GPU unnecessarily", "wait for the GPU unnecessarily"],
    actions: {
      "fix-code": "take {call} out of the step, or call it only every N steps",
    },
  },
  "network-slow": {
    owner: "operations",
    is: ["communicates slowly", "communicate slowly"],
    actions: {
      "check-network": {
        why: "look at link state, error and congestion counters of the NIC and of the switch ports on the way; run it twice, a minute apart, to see which grow",
        command: "ibstat{nic}; rdma statistic show",
      },
      "replace-link":
        "if errors grow, replace the cable, then the transceiver, then the NIC, until they no longer do; meanwhile keep heavy traffic off it",
    },
  },
};
