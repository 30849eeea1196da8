/** What part of its iterations a rank spends in one kind of call, and how that is said. */
import type { CallPurpose } from "../../model/probe.ts";
import type { HostTimes } from "./host-times.ts";

/** Communication is never to blame. */
export type Blamed = Exclude<CallPurpose, "communication">;

export const WORDS: Readonly<Record<Blamed, string>> = {
  "garbage-collection": "garbage collection",
  dataloader: "the data loader",
  synchronization: "synchronisation that it did not do before",
};

/** Of iterations `from` to `to` (exclusive); the first has the start of the job in it. */
export function shareOf(times: HostTimes, blamed: Blamed, from = 1, to = Infinity): number {
  const sum = (values: readonly number[]): number =>
    values.slice(from, to).reduce((total, one) => total + one, 0);
  const total = sum(times.durationMs);
  return total > 0 ? sum(times.ms[blamed]) / total : 0;
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

export function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
