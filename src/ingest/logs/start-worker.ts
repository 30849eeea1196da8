/** Starts logs-worker: the compiled one, or its source with the loader for TypeScript (development, tests). */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import type { FaultRecord } from "../../model/fault-record.ts";

export function startWorker(userRecords: readonly FaultRecord[]): Worker {
  const workerData = { userRecords };
  if (!import.meta.url.endsWith(".ts"))
    return new Worker(new URL("./logs-worker.js", import.meta.url), { workerData });
  // Node 20 does not hand loaders given by --import to threads.
  const loader = createRequire(import.meta.url)
    .resolve("tsx/esm/api")
    .replace(/cjs$/, "mjs");
  const script = new URL("./logs-worker.ts", import.meta.url);
  const code =
    `import(${JSON.stringify(pathToFileURL(loader).href)})` +
    `.then(({ register }) => { register(); return import(${JSON.stringify(script.href)}); });`;
  return new Worker(code, { eval: true, workerData });
}
