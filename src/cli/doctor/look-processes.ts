/** Processes of this machine that train, and agents that run. */
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
} from "node:fs";
import { join } from "node:path";
import type { FoundRing } from "../../live/agent/rings/discover.ts";
import {
  environmentOf,
  parentOf,
  pathOfProcess,
  pythonProcesses,
} from "../../live/agent/process-state.ts";
import type { TrainingProcess } from "./jobs.ts";

const RANK = ["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"];
const WORLD = ["WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

/** `hidden`: Python processes of which nothing is known. */
export function lookAtTraining(
  proc: string,
  rings: readonly FoundRing[],
): { readonly processes: readonly TrainingProcess[]; readonly hidden: number } {
  const training = new Map<number, ReadonlyMap<string, string>>();
  let hidden = 0;
  for (const pid of pythonProcesses(proc)) {
    const environment = environmentOf(pid, proc);
    if (environment === null) hidden++;
    else if (isRank(environment)) training.set(pid, environment);
  }
  const processes = [...training]
    // Loader workers and other children inherit their rank's environment.
    .filter(([pid]) => !training.has(parentOf(pid, proc)))
    .map(([pid, environment]) => lookAt(pid, environment, proc, rings))
    .sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0) || a.pid - b.pid);
  return { processes, hidden };
}

function isRank(environment: ReadonlyMap<string, string>): boolean {
  const has = (names: readonly string[]): boolean =>
    names.some((name) => /^\d+$/.test(environment.get(name) ?? ""));
  return has(RANK) && has(WORLD);
}

function lookAt(
  pid: number,
  environment: ReadonlyMap<string, string>,
  proc: string,
  rings: readonly FoundRing[],
): TrainingProcess {
  const rank = RANK.map((name) => environment.get(name)).find((text) => /^\d+$/.test(text ?? ""));
  const plugin = environment.get("NCCL_PROFILER_PLUGIN") || null;
  // A name without a folder is looked for where the loader looks, which cannot be told from here.
  const path = plugin?.includes("/") ? pathOfProcess(pid, plugin, proc) : null;
  return {
    pid,
    rank: rank === undefined ? null : Number(rank),
    hasProbe: environment.get("FAULTLINE_PROBE") === "1",
    isSwitchedOff: environment.get("FAULTLINE") === "0",
    plugin,
    pluginDefect: path === null ? null : libraryDefect(path),
    writers: rings.filter((ring) => ring.process.pid === pid).map(({ header }) => header.writer),
  };
}

/** e_machine of elf(5). */
const MACHINES: Readonly<Record<string, number>> = { x64: 62, arm64: 183 };
const MOST_BYTES = 64 << 20;
/** What NCCL looks up in it: ncclProfiler_v1 … (ext-profiler of NCCL). */
const SYMBOL = "ncclProfiler_v";

/** Why a file cannot be NCCL's profiler plug-in, by its bytes, without loading it; null where nothing is seen. */
function libraryDefect(path: string): string | null {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return "there is no such file";
    return code === "EACCES" ? "the file may not be read" : "the file cannot be opened";
  }
  try {
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, MOST_BYTES));
    const have = readSync(fd, bytes, 0, bytes.length, 0);
    if (have < 64 || bytes.toString("latin1", 0, 4) !== "\x7fELF") return "it is not a library";
    const wanted = MACHINES[process.arch];
    if (wanted !== undefined && bytes.readUInt16LE(18) !== wanted)
      return "it is built for another processor";
    return bytes.includes(SYMBOL) ? null : "it is not a profiler plug-in of NCCL";
  } catch {
    return "the file cannot be read";
  } finally {
    closeSync(fd);
  }
}

export interface RunningAgent {
  readonly pid: number;
  /** Of its --server; null where it is in its settings. */
  readonly server: string | null;
}

/** `faultline agent …` with options, or `faultline agent run`: not those that list, dump or watch. */
const AGENT = /(?:^|[/\0])(?:faultline|main\.[jt]s)\0agent\0(?:run\0|--)/;

export function lookForAgents(proc: string): RunningAgent[] {
  return namesIn(proc)
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const line = commandLine(join(proc, name, "cmdline"));
      if (!AGENT.test(line)) return [];
      const [, server = null] = /\0--server[\0=]([^\0]+)/.exec(line) ?? [];
      return [{ pid: Number(name), server }];
    });
}

/** Only Linux has such a folder. */
function namesIn(proc: string): string[] {
  try {
    return readdirSync(proc);
  } catch {
    return [];
  }
}

function commandLine(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
