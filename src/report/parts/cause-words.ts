/** What a cause's word means, for people who see it for the first time. */
import type { Cause } from "../../model/cause.ts";

const WORDS: Readonly<Record<Cause, string>> = {
  "cpu-stall": "Its CPU is stuck or slow",
  "gpu-slow": "Its GPU computes slower than it should",
  "gpu-hang": "Its GPU does not finish its work",
  "gpu-error": "Its GPU reports an error",
  "gpu-memory": "GPU memory ran out",
  "host-memory": "The machine's memory ran out",
  "process-gone": "The process is gone",
  "process-stopped": "The process is stopped, but not gone",
  "network-slow": "The network is slower than it should be",
  "network-hang": "The network does not deliver",
  "collective-mismatch": "Ranks call different operations",
  dataloader: "It waits for its input data",
  "garbage-collection": "Python's garbage collection stops it",
  synchronization: "The CPU waits for the GPU unnecessarily",
  "minority-kernels": "Small kernels take too much time",
  "slow-kernel": "One kernel is slower than it was",
  "gemm-layout": "Matrices have a shape that GPUs multiply slowly",
  "memory-management": "Allocating GPU memory slows it down",
  "stage-imbalance": "Pipeline stages have unequal work",
  "data-imbalance": "Ranks have unequal amounts of data",
  storage: "Storage is slow or full",
  numerical: "Numbers went wrong (NaN or overflow)",
  "user-program": "The program has a mistake",
  "user-config": "The configuration has a mistake",
  "software-version": "Software versions do not match",
  scheduler: "The scheduler ended or moved the job",
  platform: "The platform under the job failed",
  telemetry: "Only the monitoring is at fault, not the machine",
  unknown: "The cause is unknown",
};

export function causeWords(cause: string): string {
  return Object.hasOwn(WORDS, cause) ? WORDS[cause as Cause] : WORDS.unknown;
}
