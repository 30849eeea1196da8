/**
 * Has PyTorch's flight recorder write what it holds, from outside: whatever is written into the named pipe
 * TORCH_NCCL_DEBUG_INFO_PIPE_FILE<rank>.pipe makes the rank dump to TORCH_FR_DUMP_TEMP_FILE<rank>, once its monitoring
 * thread looks (a second or so; pytorch: ProcessGroupNCCL.cpp, FlightRecorder). The training goes on meanwhile.
 */
import { constants } from "node:fs";
import { lstat, open, readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pathOfProcess, pythonProcesses, readEnvironment } from "../process-state.ts";
import type { SlowStorage } from "./slow-storage.ts";

/** Until the dump appears: the monitor looks at its pipe about once a second, later where it is busy. */
const APPEAR_MS = 10_000;
/** Until it stops growing. */
const GROW_MS = 60_000;
/** A file that has not changed for so long is complete: PyTorch writes it in one go. */
const STILL_MS = 500;
const LOOK_MS = 100;
const MOST_PIPES = 1024;
const PIPES = ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DEBUG_INFO_PIPE_FILE"];

export interface Recorder {
  readonly pipe: string;
  readonly rank: number;
  /** Where its dump may appear: the first that changes is it. */
  readonly dumps: readonly string[];
}

export interface Collected {
  readonly files: readonly string[];
  readonly troubles: readonly string[];
}

/**
 * Pipes of the processes given; where there are none, of all Python processes of ours (a job without our probe).
 * `prefix` adds pipes that nobody's environment names.
 */
export async function findRecorders(
  pids: readonly number[],
  prefix: string | undefined,
  storage: SlowStorage,
  proc = "/proc",
): Promise<{ recorders: Recorder[]; troubles: string[] }> {
  const found = new Map<string, Recorder>();
  const dumpPrefixes = new Set<string>();
  const troubles: string[] = [];
  for (const pid of pids.length > 0 ? new Set(pids) : pythonProcesses(proc)) {
    const environment = await readEnvironment(pid, storage, proc);
    if (environment === null) {
      if (pids.length > 0 && prefix === undefined)
        troubles.push(`process ${pid}: its environment cannot be read, so its pipe is unknown`);
      continue;
    }
    const stem = PIPES.map((name) => environment.get(name)).find((value) => value) ?? "";
    if (stem === "" && prefix === undefined) continue;
    const dumps = dumpStems(environment).map((path) => pathOfProcess(pid, path, proc));
    for (const path of dumps) dumpPrefixes.add(path);
    if (stem === "") continue;
    for (const recorder of await pipesAt(pathOfProcess(pid, stem, proc), dumps, storage))
      found.set(recorder.pipe, recorder);
  }
  if (prefix !== undefined) {
    const own = new Map(Object.entries(process.env).map(([word, value]) => [word, value ?? ""]));
    const dumps = dumpPrefixes.size > 0 ? [...dumpPrefixes] : dumpStems(own);
    // Where no process names the files, they may lie beside the pipes.
    const pipes = await pipesAt(prefix, [...dumps, prefix], storage);
    if (pipes.length === 0) troubles.push(`${prefix}*.pipe: there is no such pipe`);
    for (const recorder of pipes) if (!found.has(recorder.pipe)) found.set(recorder.pipe, recorder);
  }
  return { recorders: [...found.values()], troubles };
}

/** Writes into each pipe and waits for the dumps, all at once. */
export async function collectDumps(
  recorders: readonly Recorder[],
  storage: SlowStorage,
  limits: { readonly appearMs?: number; readonly growMs?: number } = {},
): Promise<Collected> {
  const files: string[] = [];
  const troubles: string[] = [];
  await Promise.all(
    recorders.slice(0, MOST_PIPES).map(async (recorder) => {
      const before: Look[] = [];
      for (const path of recorder.dumps) before.push(await lookOf(path, storage));
      const refused = await trigger(recorder.pipe, storage);
      if (refused !== null) {
        troubles.push(`${recorder.pipe}: ${refused}`);
        return;
      }
      const dump = await appeared(recorder.dumps, before, storage, limits);
      if (dump === null)
        troubles.push(
          `rank ${recorder.rank}: its flight recorder was asked and wrote nothing; is TORCH_NCCL_TRACE_BUFFER_SIZE above 0, and its process not stopped?`,
        );
      else files.push(dump);
    }),
  );
  return { files: [...new Set(files)].sort(), troubles };
}

/** As DebugInfoWriter::getWriter of several versions looks for it; the default has moved twice. */
function dumpStems(environment: ReadonlyMap<string, string>): string[] {
  const named =
    environment.get("TORCH_FR_DUMP_TEMP_FILE") ??
    environment.get("TORCH_NCCL_DEBUG_INFO_TEMP_FILE");
  if (named) return [named];
  const home = environment.get("HOME") ?? "/tmp";
  const cache = environment.get("XDG_CACHE_HOME") ?? join(home, ".cache");
  return [
    join(cache, "torch", "comm_lib_trace_rank_"),
    join(home, ".cache", "torch", "comm_lib_trace_rank_"),
    join(home, ".cache", "torch", "nccl_trace_rank_"),
    "/tmp/nccl_trace_rank_",
  ];
}

async function pipesAt(
  stem: string,
  dumps: readonly string[],
  storage: SlowStorage,
): Promise<Recorder[]> {
  const [folder, start] = stem.endsWith("/") ? [stem, ""] : [dirname(stem), basename(stem)];
  let names: string[] = [];
  try {
    names = await storage.read(folder, () => readdir(folder));
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    if (!name.startsWith(start)) return [];
    const rank = /^(\d{1,6})\.pipe$/.exec(name.slice(start.length))?.[1];
    if (rank === undefined) return [];
    return [
      {
        pipe: join(folder, name),
        rank: Number(rank),
        dumps: dumps.map((path) => `${path}${Number(rank)}`),
      },
    ];
  });
}

/** Null where it worked. Opened without waiting: a pipe that nobody reads answers ENXIO. */
async function trigger(pipe: string, storage: SlowStorage): Promise<string | null> {
  try {
    return await storage.read(pipe, () => writeTo(pipe));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENXIO") return "nothing listens; its process is gone or runs on another machine";
    // Full: requests lie there that nobody took; the dump comes when it does.
    return code === "EAGAIN" ? null : message;
  }
}

async function writeTo(pipe: string): Promise<string | null> {
  if (!(await lstat(pipe)).isFIFO()) return "is not a pipe";
  const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
  const file = await open(pipe, flags);
  try {
    if (!(await file.stat()).isFIFO()) return "is not a pipe";
    await file.write("1");
    return null;
  } finally {
    await file.close();
  }
}

interface Look {
  readonly changed: string;
  readonly sizeBytes: number;
}

async function lookOf(path: string, storage: SlowStorage): Promise<Look> {
  try {
    const info = await storage.read(path, () => stat(path, { bigint: true }));
    return { changed: `${info.ino} ${info.mtimeNs} ${info.size}`, sizeBytes: Number(info.size) };
  } catch {
    return { changed: "", sizeBytes: 0 };
  }
}

async function appeared(
  paths: readonly string[],
  before: readonly Look[],
  storage: SlowStorage,
  {
    appearMs = APPEAR_MS,
    growMs = GROW_MS,
  }: { readonly appearMs?: number; readonly growMs?: number },
): Promise<string | null> {
  const asked = performance.now();
  let [at, last, since] = [-1, "", asked];
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    const now = performance.now();
    if (at < 0) {
      for (const [i, path] of paths.entries()) {
        const look = await lookOf(path, storage);
        if (look.sizeBytes > 0 && look.changed !== before[i]!.changed) at = i;
        if (at >= 0) break;
      }
      if (at < 0 && now - asked > appearMs) return null;
    }
    if (at < 0) continue;
    const { changed } = await lookOf(paths[at]!, storage);
    if (changed !== last) [last, since] = [changed, now];
    // One that still grows after all this time is taken as it is: half a dump tells more than none.
    if (now - since >= STILL_MS || now - asked > appearMs + growMs) return paths[at]!;
  }
}
