/**
 * Reads everything under the given paths. Each file goes to the reader that recognises it; what none
 * recognises is counted, not guessed at. Large inputs are spread over worker threads, a file each.
 */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { BUILT } from "../base/built.ts";
import { errorText, UserError } from "../base/errors.ts";
import { readOwn } from "../base/own-files.ts";
import type { Env } from "../model/job.ts";
import type { LogDigest } from "../model/log-digest.ts";
import type { Defect, Reading } from "../model/reading.ts";
import { readersFor, recognise } from "./formats.ts";
import type { ReadOptions } from "./iteration-pattern.ts";
import type { Reader } from "./reader.ts";
import { digestOf, type FileDigest } from "./logs/file-digests.ts";
import type { FormReader } from "./logs/form-reader.ts";
import { logForms } from "./log-engine.ts";
import { findFiles, openFile, type FoundFile, type SourceFile } from "./sources.ts";

interface Ingested {
  readonly readings: readonly Reading[];
  /** Paths of files that no reader recognised. */
  readonly unrecognised: readonly string[];
  /** All that the logs among them say; undefined where there are none. */
  readonly logDigest?: LogDigest;
}

/** What one thread has read. */
interface Share extends Omit<Ingested, "logDigest"> {
  readonly digests: readonly FileDigest[];
}

/** Below this a worker costs more than it saves. */
const BYTES_WORTH_A_WORKER = 24 * 1024 * 1024;
const MAX_WORKERS = 8;
const FILES_AT_ONCE = 4;

export async function ingest(
  paths: readonly string[],
  env: Env,
  options: ReadOptions = {},
): Promise<Ingested> {
  readersFor(options); // What is wrong with the options is said before anything is read.
  const files = await findFiles(paths);
  const totalBytes = files.reduce((sum, file) => sum + workBytes(file), 0);
  const worth = Math.floor(totalBytes / BYTES_WORTH_A_WORKER);
  const usual = Math.min(availableParallelism(), MAX_WORKERS, worth);
  const workers = Math.min(options.workers ?? usual, files.length);
  // What comes through a pipe is read here: threads have no standard input of their own.
  const [pipes, others] = [files.filter(isPipe), files.filter((file) => !isPipe(file))];
  const parts =
    workers > 1 && isCompiled
      ? [
          ...(pipes.length > 0 ? [await readHere(pipes, env, options)] : []),
          ...(await readInWorkers(others, workers, env, options)),
        ]
      : [await readHere(files, env, options)];
  const readings = parts.flatMap((part) => part.readings);
  const unrecognised = parts.flatMap((part) => part.unrecognised);
  if (files.length === 0) {
    throw new UserError(`${paths.join(", ")}: contains no file`, WHAT_WE_READ, 3);
  }
  if (readings.length === 0) {
    const what =
      files.length === 1 ? `${files[0]!.path} is not` : `none of the ${files.length} files is`;
    throw new UserError(`${what} in a format that Faultline reads`, WHAT_WE_READ, 3);
  }
  const digests = parts.flatMap((part) => part.digests).sort(order);
  const isLogged = digests.some(({ digest }) => digest.parts.some(({ lines }) => lines > 0));
  if (!isLogged && !readings.some(holdsSomething)) {
    const defect = readings.flatMap((reading) => reading.defects)[0];
    const what = defect
      ? `${defect.file}: ${defect.what}`
      : `${readings[0]!.file}: contains nothing that Faultline uses`;
    throw new UserError(what, WHAT_WE_READ, 3);
  }
  return {
    readings: readings.sort(order),
    unrecognised: unrecognised.sort(),
    ...(digests.length > 0 ? { logDigest: digestOf(digests) } : {}),
  };
}

function isPipe(file: FoundFile): boolean {
  return file.isPipe === true;
}

function order(a: { readonly file: string }, b: { readonly file: string }): number {
  return a.file < b.file ? -1 : a.file > b.file ? 1 : 0;
}

/** Traces and dumps shrink to an eighth and less. */
const UNPACKS_TO = 8;

/** What there is to read, as far as it shows from outside; a file's extension decides nothing else. */
function workBytes({ path, sizeBytes }: FoundFile): number {
  return /\.t?gz$/.test(path) ? UNPACKS_TO * sizeBytes : sizeBytes;
}

/** Fields that say something of the file and hold nothing of the job. */
const OF_THE_FILE: ReadonlySet<string> = new Set([
  "file",
  "format",
  "rank",
  "records",
  "defects",
  "worldSize",
  "logGroups",
] satisfies (keyof Reading)[]);

/** Whether any kind of data is in it, kinds that will be added later among them. */
function holdsSomething(reading: Reading): boolean {
  return Object.entries(reading).some(
    ([key, value]: [string, unknown]) =>
      !OF_THE_FILE.has(key) && (Array.isArray(value) ? value.length > 0 : value !== undefined),
  );
}

const WHAT_WE_READ =
  "give it rings of the probe, flight-recorder dumps, logs, Python stacks, profiler traces, ncclras output, NCCL_DEBUG logs, monitoring metrics or tables of iteration times";

/** Workers need plain JavaScript; under a TypeScript loader (tests) everything is read here. */
const isCompiled = import.meta.url.endsWith(".js");

export async function readHere(
  files: readonly FoundFile[],
  env: Env,
  options: ReadOptions,
): Promise<Share> {
  const read: Reads = {
    readers: readersFor(options),
    readings: [],
    unrecognised: [],
    digests: [],
    forms: logForms(options.records),
    log: Promise.resolve(),
  };
  // Several at once: with thousands of small files most of the time is spent waiting for the disk.
  let next = 0;
  let done = 0;
  const lane = async (): Promise<void> => {
    while (next < files.length && !env.signal.aborted) {
      await readFile(files[next++]!, read);
      env.progress("reading", ++done, files.length);
    }
  };
  await Promise.all(Array.from({ length: Math.min(FILES_AT_ONCE, files.length) }, lane));
  const { readings, unrecognised, digests } = read;
  return { readings, unrecognised, digests };
}

/** What a thread knows and has read. */
interface Reads {
  readonly readers: readonly Reader[];
  readonly readings: Reading[];
  readonly unrecognised: string[];
  readonly digests: FileDigest[];
  readonly forms: () => FormReader;
  /** Done when the last log is: one at a time uses the forms that are known of all before. */
  log: Promise<void>;
}

async function readFile(found: FoundFile, read: Reads): Promise<void> {
  const { path, isGiven, sizeBytes } = found;
  const { readers, readings, unrecognised } = read;
  const wrapping: Defect[] = [];
  await openFile(
    path,
    async (file) => {
      const head = { ...file.head, isGiven: isGiven && path.startsWith(file.path) };
      const reader = recognise(head, readers);
      if (!reader) {
        if (file.head.bytes.length > 0) unrecognised.push(file.path);
        else if (wrapping.length === 0 && !isEmptyAtFirst(file.path))
          readings.push(emptyFile(file.path));
        return;
      }
      // What lies in an archive may be years older than that is.
      const isMember = file.path.startsWith(`${path}/`);
      const latestMs = isMember ? file.modifiedMs : found.modifiedMs;
      readings.push(await readWith(reader, file, read, latestMs));
    },
    (defect) => wrapping.push(defect),
    found.isPipe ? Infinity : sizeBytes,
  );
  for (const defect of wrapping) {
    readings.push({
      file: defect.file,
      format: "archive",
      rank: null,
      records: 0,
      defects: [defect],
    });
  }
}

/** A reader does not throw; should one do so all the same, the other files are still read. */
async function readWith(
  reader: Reader,
  file: SourceFile,
  read: Reads,
  latestMs: number | undefined,
): Promise<Reading> {
  const before = read.log;
  let done = (): void => undefined;
  if (reader.isLog) {
    read.log = new Promise((resolve) => (done = resolve));
    await before;
  }
  try {
    const known = latestMs === undefined ? {} : { latestMs };
    const sink = reader.open(file.path, { forms: read.forms, ...known });
    for await (const chunk of file.chunks) sink.push(chunk);
    const reading = sink.end();
    if (sink.digest) read.digests.push({ file: file.path, digest: sink.digest });
    return reading;
  } catch (error) {
    const why = errorText(error);
    const defect = { file: file.path, what: `the reader of ${reader.format} failed: ${why}` };
    return { file: file.path, format: reader.format, rank: null, records: 0, defects: [defect] };
  } finally {
    done();
  }
}

/** A probe opens the file for its stacks when it starts, and most never write one. */
function isEmptyAtFirst(file: string): boolean {
  return file.endsWith(".ring.stacks");
}

/** An empty file says something too: the rank opened its dump or log and wrote nothing. */
function emptyFile(file: string): Reading {
  return { file, format: "empty", rank: null, records: 0, defects: [{ file, what: "is empty" }] };
}

async function readInWorkers(
  files: readonly FoundFile[],
  count: number,
  env: Env,
  options: ReadOptions,
): Promise<Share[]> {
  // Round robin over files sorted by size: parts of about equal bytes.
  const bySize = [...files].sort((a, b) => workBytes(b) - workBytes(a));
  const parts = Array.from({ length: count }, (_, part) =>
    bySize.filter((_, index) => index % count === part),
  );
  let done = 0;
  return await Promise.all(
    parts.map(
      async (part) =>
        await new Promise<Share>((resolve, reject) => {
          const place = new URL("./ingest-worker.js", import.meta.url);
          const workerData = { files: part, options };
          const worker = BUILT.isSingle
            ? new Worker(readOwn(place).toString(), { eval: true, workerData })
            : new Worker(place, { workerData });
          worker.on("message", (message: Share | number) => {
            if (typeof message === "number") {
              done += message;
              env.progress("reading", done, files.length);
            } else {
              resolve(message);
              void worker.terminate();
            }
          });
          worker.on("error", reject);
          // Nothing more comes of a thread that was ended early.
          worker.on("exit", () => reject(new Error("reading was ended early")));
          env.signal.addEventListener("abort", () => void worker.terminate(), { once: true });
        }),
    ),
  );
}
