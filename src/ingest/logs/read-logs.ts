/** From paths to the digest of a job's logs, with as many threads as are asked for. */
import { availableParallelism } from "node:os";
import type { Worker } from "node:worker_threads";
import { FaultMatchers } from "../../library/matcher.ts";
import { shippedRecords } from "../../library/shipped.ts";
import type { FaultRecord } from "../../model/fault-record.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { WorkerReply } from "./logs-worker.ts";
import { DigestMerger } from "./merge-digests.ts";
import type { PartialDigest } from "./partial-digest.ts";
import { type Plan, planParts } from "./plan-parts.ts";
import { readTask } from "./read-part.ts";
import { startWorker } from "./start-worker.ts";

export interface ReadLogsOptions {
  /** Records beside the shipped ones. */
  readonly userRecords?: readonly FaultRecord[];
  /** Instead of the records: cannot cross to other threads, so everything is read by this one. */
  readonly isTelling?: (text: string) => boolean;
  /** Threads; by default as many as there are cores, and none where there is little to read. */
  readonly workers?: number;
  /** Bytes read so far, of how many. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
  /** For tests: how much is read in one go. */
  readonly taskBytes?: number;
}

/** Starting a thread takes longer than reading this much. */
const WORTH_A_THREAD = 64 << 20;
const MOST_WORKERS = 16;

export async function readLogs(
  paths: readonly string[],
  options: ReadLogsOptions = {},
): Promise<LogDigest> {
  const plan = await planParts(paths, options.taskBytes);
  const merger = new DigestMerger(paths);
  for (const { file, what } of plan.defects) merger.defect(file, what);
  const usual = plan.bytes < WORTH_A_THREAD ? 0 : Math.min(MOST_WORKERS, availableParallelism());
  const wanted = options.isTelling ? 0 : (options.workers ?? usual);
  const workers = Math.min(wanted, plan.tasks.length);
  let done = 0;
  const onBytes = (bytes: number): void => {
    options.onProgress?.(Math.min(plan.bytes, (done += bytes)), plan.bytes);
  };
  options.signal?.throwIfAborted();
  if (workers > 0) await readThere(plan, merger, workers, options, onBytes);
  else await readHere(plan, merger, options, onBytes);
  return merger.end();
}

async function readHere(
  { tasks }: Plan,
  merger: DigestMerger,
  { isTelling: given, userRecords = [], signal }: ReadLogsOptions,
  onBytes: (bytes: number) => void,
): Promise<void> {
  let isTelling = given;
  if (!isTelling) {
    const matchers = new FaultMatchers([...shippedRecords(), ...userRecords]);
    isTelling = (text) => matchers.couldMatch(text);
  }
  const onPart = (bytes: number): void => {
    signal?.throwIfAborted();
    onBytes(bytes);
  };
  for (const parts of tasks) {
    merger.add(await readTask(parts, { isTelling }, onPart));
    signal?.throwIfAborted();
  }
}

/** Threads take tasks in order; digests are added in order, too, whoever is first. */
async function readThere(
  { tasks }: Plan,
  merger: DigestMerger,
  count: number,
  { userRecords = [], signal }: ReadLogsOptions,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const waiting = new Map<number, PartialDigest>();
  const workers: Worker[] = [];
  let next = 0;
  let added = 0;
  const give = (worker: Worker): void => {
    if (next < tasks.length) worker.postMessage({ index: next, parts: tasks[next++] });
  };
  let abort = (): void => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      abort = () => reject(signal?.reason as Error);
      signal?.addEventListener("abort", abort, { once: true });
      for (let i = 0; i < count; i++) {
        const worker = startWorker(userRecords);
        workers.push(worker);
        worker.on("error", reject);
        worker.on("message", (reply: WorkerReply) => {
          if ("bytes" in reply) {
            onBytes(reply.bytes);
            return;
          }
          give(worker);
          waiting.set(reply.index, reply.digest);
          for (let digest; (digest = waiting.get(added)); added++) {
            waiting.delete(added);
            merger.add(digest);
          }
          if (added === tasks.length) resolve();
        });
        give(worker);
      }
    });
  } finally {
    signal?.removeEventListener("abort", abort);
    await Promise.all(workers.map(async (worker) => await worker.terminate()));
  }
}
