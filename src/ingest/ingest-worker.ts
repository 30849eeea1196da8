/** One thread of a large ingest: reads its share of the files and hands the columns over uncopied. */
import { parentPort, workerData } from "node:worker_threads";
import type { Env } from "../model/job.ts";
import { readHere } from "./ingest.ts";
import type { ReadOptions } from "./iteration-pattern.ts";
import type { FoundFile } from "./sources.ts";

let reported = 0;
const env: Env = {
  signal: new AbortController().signal,
  progress(_what, done) {
    if (done - reported < 16) return;
    parentPort?.postMessage(done - reported);
    reported = done;
  },
};

const { files, options } = workerData as {
  readonly files: readonly FoundFile[];
  readonly options: ReadOptions;
};
// No top-level await: the single executable is CommonJS. What fails ends the thread with an error, which its parent sees.
void read();

async function read(): Promise<void> {
  const ingested = await readHere(files, env, options);
  parentPort?.postMessage(files.length - reported);
  const columns = new Set<ArrayBuffer>();
  for (const reading of ingested.readings) {
    const { dumps = [], operators = [], series = [], kernels = [] } = reading;
    const { probes = [] } = reading;
    const tables = [
      ...[...dumps, ...operators].map(({ ops }) => ops),
      ...series,
      ...probes.flatMap(({ calls, connections }) => [calls, connections]),
      ...kernels.flatMap(({ gpu, calls, hostEvents, steps, matrixOps, collectives }) => [
        gpu,
        calls,
        hostEvents,
        steps,
        matrixOps,
        collectives,
      ]),
    ];
    for (const table of tables) {
      for (const column of Object.values(table)) {
        if (ArrayBuffer.isView(column)) columns.add(column.buffer as ArrayBuffer);
      }
    }
  }
  parentPort?.postMessage(ingested, [...columns]);
}
