/** One thread of many: reads tasks as they are given to it and hands the columns over uncopied. */
import { parentPort, workerData } from "node:worker_threads";
import { FaultMatchers } from "../../library/matcher.ts";
import { shippedRecords } from "../../library/shipped.ts";
import type { FaultRecord } from "../../model/fault-record.ts";
import type { PartialDigest } from "./partial-digest.ts";
import type { Part } from "./plan-parts.ts";
import { readTask } from "./read-part.ts";

export interface WorkerTask {
  readonly index: number;
  readonly parts: readonly Part[];
}

export type WorkerReply =
  | { readonly bytes: number }
  | { readonly index: number; readonly digest: PartialDigest };

const { userRecords } = workerData as { readonly userRecords: readonly FaultRecord[] };
const matchers = new FaultMatchers([...shippedRecords(), ...userRecords]);
const isTelling = (text: string): boolean => matchers.couldMatch(text);

parentPort?.on("message", ({ index, parts }: WorkerTask) => {
  void readTask(parts, { isTelling }, (bytes) => parentPort?.postMessage({ bytes })).then(
    (digest) => parentPort?.postMessage({ index, digest } satisfies WorkerReply, columnsOf(digest)),
  );
});

function columnsOf({ streams, shapes, cells, kept, iterations }: PartialDigest): ArrayBuffer[] {
  const columns = new Set<ArrayBuffer>();
  for (const table of [streams, shapes, cells, kept, iterations]) {
    for (const column of Object.values(table) as unknown[])
      if (ArrayBuffer.isView(column)) columns.add(column.buffer as ArrayBuffer);
  }
  return [...columns];
}
