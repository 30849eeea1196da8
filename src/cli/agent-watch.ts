/** `faultline agent watch`: follows the rings of this machine, and dumps when something happens to a job. */
import { join } from "node:path";
import { UserError } from "../base/errors.ts";
import { count, harmless } from "../base/text.ts";
import { defaultFolder, discover } from "../live/agent/rings/discover.ts";
import { dump } from "../live/agent/evidence/dump.ts";
import { thisMachine } from "../live/agent/process-state.ts";
import { RunWatcher, type RunProblem } from "../live/agent/run-watcher.ts";
import { summary } from "./agent-dump.ts";
import type { Io } from "./io.ts";

export interface WatchFlags {
  readonly dir?: string;
  /** Seconds, as the next three. */
  readonly keep?: number;
  readonly every?: number;
  readonly hang?: number;
  readonly for?: number;
  /** MiB. */
  readonly memory?: number;
  readonly out?: string;
  readonly most?: number;
  readonly ras?: string | true;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

const KEEP_S = 600;
const EVERY_S = 1;
const HANG_S = 30;
const MEMORY_MB = 512;
const MOST_DUMPS = 16;
/** Rings that the memory is shared among, unless there are more when it begins. */
const RINGS = 16;
const RECORD_BYTES = 64;

export async function runAgentWatch(io: Io, flags: WatchFlags): Promise<number> {
  const folder = flags.dir ?? defaultFolder(io.env);
  const out = flags.out ?? "faultline-incidents";
  const machine = thisMachine();
  const stop = stopOnSignal(flags.for);
  const watcher = new RunWatcher(folder, {
    keepNs: (flags.keep ?? KEEP_S) * 1e9,
    hangNs: (flags.hang ?? HANG_S) * 1e9,
    mostRecords: recordsOf(flags.memory ?? MEMORY_MB, ringsIn(folder, machine)),
    machine,
  });
  say(io, flags, { event: "watching", folder }, `watching ${folder}; Ctrl-C stops it`);
  let [incidents, dumps, lastTrouble] = [0, 0, ""];
  try {
    while (!stop.isStopped) {
      try {
        const tick = watcher.tick();
        for (const line of tick.troubles) say(io, flags, { event: "trouble", line }, line);
        for (const incident of tick.problems) {
          incidents++;
          say(
            io,
            flags,
            { event: incident.kind, job: incident.run.job, says: incident.says },
            incident.says,
          );
          if (dumps >= (flags.most ?? MOST_DUMPS)) continue;
          dumps++;
          await dumpOf(incident);
        }
        lastTrouble = "";
      } catch (error) {
        // A folder that is not there yet, a disk that is full: it may be fixed while we run.
        const line = error instanceof UserError ? `${error.message}; ${error.hint}` : String(error);
        if (line !== lastTrouble) say(io, flags, { event: "trouble", line }, line);
        lastTrouble = line;
      }
      await stop.wait((flags.every ?? EVERY_S) * 1000);
    }
  } finally {
    const { rings, records, lost } = watcher.totals;
    watcher.close();
    say(
      io,
      flags,
      { event: "end", rings, records, lost, incidents, dumps },
      `followed ${count(rings, "ring")}: ${count(records, "record")}, ${lost} overwritten before they were read, ${count(incidents, "incident")}, ${count(dumps, "dump")}`,
    );
  }
  return 0;

  async function dumpOf({ kind, run }: RunProblem): Promise<void> {
    const time = new Date().toISOString().replace(/[:.]/g, "-");
    const report = await dump({
      rings: run.rings,
      out: join(out, `${fileName(run.job)}-${kind}-${time}.tar.gz`),
      machine,
      stacks: true,
      flightRecorder: true,
      extend: (ring, copy) => watcher.extend(ring, copy),
      ...(flags.ras === undefined ? {} : { ras: flags.ras }),
    });
    for (const line of report.troubles) say(io, flags, { event: "trouble", line }, line);
    say(io, flags, { event: "dump", out: report.out, rings: report.rings.length }, summary(report));
  }
}

function ringsIn(folder: string, machine: ReturnType<typeof thisMachine>): number {
  try {
    const { runs } = discover(folder, machine);
    return Math.max(
      RINGS,
      runs.reduce((sum, run) => sum + run.rings.length, 0),
    );
  } catch {
    return RINGS;
  }
}

/** Of the letters that probes use (probe/RING.md): a damaged ring's job must not name a place outside the folder. */
function fileName(job: string): string {
  return job.replace(/[^A-Za-z0-9_-]/g, "_");
}

/** A power of two: each ring's share of the memory. */
function recordsOf(memoryMb: number, rings: number): number {
  return 2 ** Math.floor(Math.log2(Math.max(1, (memoryMb * 2 ** 20) / rings / RECORD_BYTES)));
}

function say(io: Io, { json, quiet }: WatchFlags, document: object, line: string): void {
  const time = new Date().toISOString();
  if (json) io.out.write(`${JSON.stringify({ time, ...document })}\n`);
  else if (!quiet) io.out.write(`${time.slice(0, 19)}Z ${harmless(line)}\n`);
}

interface Stop {
  readonly isStopped: boolean;
  /** Until the time is over, or a signal comes. */
  wait(ms: number): Promise<void>;
}

function stopOnSignal(forS: number | undefined): Stop {
  let isStopped = false;
  let wake = (): void => {};
  const stop = (): void => {
    isStopped = true;
    wake();
  };
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, stop);
  if (forS !== undefined) setTimeout(stop, forS * 1000).unref();
  return {
    get isStopped() {
      return isStopped;
    },
    async wait(ms) {
      if (isStopped) return;
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        wake = resolve;
        timer = setTimeout(resolve, ms);
      });
      clearTimeout(timer);
    },
  };
}
