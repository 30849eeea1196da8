import { hasRecordEvent, type NormalPool } from "../../src/methods/logs/cross-job.ts";

/** A pool of texts at hand. */
export function poolOf(jobs: readonly Iterable<string>[]): NormalPool {
  const texts = new Set<string>();
  for (const job of jobs) for (const text of job) texts.add(text);
  return {
    jobs: jobs.length,
    has: (text) => texts.has(text),
    hasRecord: (id, isSettled) => hasRecordEvent(texts, id, isSettled),
  };
}
