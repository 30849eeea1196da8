/** Diagnoses files that were never on disk: the same path as the command from the readers on. */
import { buildJob } from "../../src/ingest/build-job.ts";
import { recognise } from "../../src/ingest/formats.ts";
import { parseJobFile } from "../../src/ingest/job-file.ts";
import { withIterations } from "../../src/methods/methods.ts";
import type { Job } from "../../src/model/job.ts";
import type { Reading } from "../../src/model/reading.ts";
import type { Verdict } from "../../src/model/verdict.ts";
import { ask } from "../../src/pipeline/diagnose.ts";
import { fuse } from "../../src/verdict/fuse.ts";

export const quietEnv = { signal: new AbortController().signal, progress: () => undefined };

export function readFiles(files: readonly { name: string; bytes: Uint8Array }[]): Reading[] {
  return files.flatMap(({ name, bytes }) => {
    const text = Buffer.from(bytes.subarray(0, 65536)).toString("latin1");
    const reader = recognise({ name, bytes: bytes.subarray(0, 65536), text });
    if (!reader) return [];
    const sink = reader.open(name);
    sink.push(bytes);
    return [sink.end()];
  });
}

/** A job.json among them is used, as the command does. */
export function jobOf(files: readonly { name: string; bytes: Uint8Array }[]): Job {
  const given = files.find(({ name }) => name === "job.json");
  const jobFile = given
    ? parseJobFile(JSON.parse(Buffer.from(given.bytes).toString("utf8")), given.name)
    : null;
  return withIterations(buildJob(readFiles(files), jobFile));
}

export async function diagnoseFiles(
  files: readonly { name: string; bytes: Uint8Array }[],
): Promise<Verdict> {
  const job = jobOf(files);
  const { findings, didNotRun } = await ask(job, quietEnv);
  return fuse(job, findings, didNotRun);
}
