/** `faultline machines`: which machine is going bad, from monitoring metrics. */
import { readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { UserError, errorText } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import {
  type MachinesAnswer,
  type MachinesOptions,
  WatchedFleet,
  askFleet,
  fleetFromServer,
  jobOfFile,
  machinesFromFiles,
} from "../pipeline/machines.ts";
import { type Server, type Way, connect, nowS } from "../ingest/prometheus/prometheus.ts";
import { readModels } from "../methods/machines/minder/model-file.ts";
import { readSiteMetrics } from "../methods/machines/site-metrics-file.ts";
import { renderExplanation } from "../report/machine-explanation.ts";
import { machinesDocument, timeText } from "../report/machines-document.ts";
import { renderMachinesTerminal } from "../report/machines-terminal.ts";
import type { Env } from "../model/job.ts";
import { FOUND_SOMETHING, printAnswer, remarkUnread, writeReport } from "./output.ts";
import { progressEnv } from "./progress.ts";
import type { Io } from "./io.ts";

export interface MachinesFlags {
  readonly prometheus?: string;
  readonly match?: string;
  readonly range?: number;
  readonly end?: number;
  readonly via?: "auto" | Way;
  readonly header?: readonly string[];
  readonly watch?: boolean;
  readonly every?: number;
  readonly calls?: number;
  readonly job?: string;
  readonly method?: "peers" | "minder";
  readonly models?: string;
  readonly priorities?: string;
  readonly continuity?: number;
  readonly explain?: string;
  readonly json?: boolean;
  readonly out?: string;
  readonly quiet?: boolean;
  readonly exitCode?: boolean;
}

/** Minder's: fifteen minutes of data, every eight minutes (§5). */
const RANGE_S = 900;
const EVERY_S = 480;

/** Returns the exit status. */
export async function runMachines(
  io: Io,
  paths: readonly string[],
  flags: MachinesFlags,
): Promise<number> {
  checkWords(paths, flags);
  const options = await optionsOf(flags);
  if (flags.watch) return await watch(io, flags, options);
  const { env, done } = progressEnv(io, flags.quiet === true);
  const answer = await (
    flags.prometheus === undefined
      ? machinesFromFiles(paths, options, env)
      : fromServer(await serverOf(flags, env), flags, options, env)
  ).finally(done);
  await show(io, answer, flags);
  if (!flags.quiet) remarkUnread(io, answer.unrecognised);
  return flags.exitCode && answer.report.faulty.length > 0 ? FOUND_SOMETHING : 0;
}

function checkWords(paths: readonly string[], flags: MachinesFlags): void {
  const wrong = (what: string, hint: string): never => {
    throw new UserError(what, hint, 2);
  };
  if (flags.prometheus === undefined) {
    if (paths.length === 0)
      wrong(
        "no files and no server given",
        "give files or folders with metrics, or --prometheus URL",
      );
    const only = ["match", "range", "end", "via", "watch", "every", "calls", "header"] as const;
    const given = only.find((word) => flags[word] !== undefined);
    if (given) wrong(`--${given} needs a server`, "add --prometheus URL");
  } else if (paths.length > 0) {
    wrong("both files and a server given", "give files or --prometheus URL, not both");
  }
  if (flags.models !== undefined && flags.method !== "minder")
    wrong("--models needs --method minder", "add --method minder, or leave --models out");
  if (!flags.watch && (flags.every !== undefined || flags.calls !== undefined))
    wrong("--every and --calls need --watch", "add --watch");
  if (flags.watch && flags.end !== undefined)
    wrong("--watch and --end cannot be used together", "leave one of them out");
}

async function optionsOf(flags: MachinesFlags): Promise<MachinesOptions> {
  const { job, continuity, models, priorities, explain, method = "peers" } = flags;
  const read = (file: string | undefined): Promise<string> | null =>
    file === undefined ? null : readFile(file, "utf8").catch(cannotRead(file));
  const [text, learnt] = [await read(models), await read(priorities)];
  return {
    method,
    ...(job === undefined ? {} : { jobFile: job }),
    ...(continuity === undefined ? {} : { continuityS: continuity }),
    ...(explain === undefined ? {} : { explain }),
    ...(text === null ? {} : { models: readModels(text, models!) }),
    ...(learnt === null ? {} : { site: readSiteMetrics(learnt, priorities!) }),
  };
}

function cannotRead(path: string): (error: unknown) => never {
  return (error) => {
    throw new UserError(
      `cannot read ${path}: ${errorText(error)}`,
      "give a file written by faultline machines train",
      3,
    );
  };
}

async function serverOf(flags: MachinesFlags, env: Env): Promise<Server> {
  const headers = Object.fromEntries(
    (flags.header ?? []).map((line) => {
      const colon = line.indexOf(":");
      if (colon < 1)
        throw new UserError(
          `--header ${line} has no colon`,
          "write it as 'Authorization: Bearer …'",
          2,
        );
      return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  return await connect({ url: flags.prometheus!, headers, signal: env.signal });
}

async function fromServer(
  server: Server,
  flags: MachinesFlags,
  options: MachinesOptions,
  env: Env,
): Promise<MachinesAnswer> {
  const endS = flags.end ?? nowS(server);
  const startS = endS - (flags.range ?? RANGE_S);
  const query = { ...queryOf(flags), startS, endS, job: await jobOfFile(flags.job) };
  const fleet = await fleetFromServer(server, query, env);
  return { ...(await askFleet(fleet, options)), unrecognised: [] };
}

function queryOf({ match = "", via = "auto" }: MachinesFlags): {
  match: string;
  via: "auto" | Way;
} {
  return { match, via };
}

async function show(
  io: Io,
  { report, pictures, explanation, first }: MachinesAnswer,
  flags: MachinesFlags,
): Promise<void> {
  const document = {
    ...machinesDocument(report, first),
    ...(explanation ? { explanation } : {}),
  };
  if (flags.out !== undefined) {
    const { renderMachinesPage } = await import("../report/html/machines-page.ts");
    const page = renderMachinesPage(report, pictures);
    await writeReport(flags.out, JSON.stringify(document, null, 2), page);
  }
  // A line each where there are several.
  const text = JSON.stringify(document, null, flags.watch ? 0 : 2);
  printAnswer(io, flags, text, (colours, width) => {
    const words = renderMachinesTerminal(report, colours, width, first);
    return explanation ? `${renderExplanation(explanation, colours, width)}\n\n${words}` : words;
  });
}

/** Checks at intervals. A failed check is reported and the next one made: the server may come back. */
async function watch(io: Io, flags: MachinesFlags, options: MachinesOptions): Promise<number> {
  const { env, done } = progressEnv(io, true);
  const everyS = flags.every ?? EVERY_S;
  const job = await jobOfFile(flags.job);
  let server: Server | null = null;
  let watched: WatchedFleet | null = null;
  let before: string | null = null;
  let found = false;
  for (let call = 1; ; call++) {
    const startedMs = performance.now();
    try {
      server ??= await serverOf(flags, env);
      watched ??= new WatchedFleet(server, { ...queryOf(flags), job }, flags.range ?? RANGE_S);
      const answer = await askFleet(await watched.at(nowS(server), env), options);
      // A deviation that has ended is news as well.
      const now = answer.report.faulty
        .map(({ machine, untilS }) => (untilS === null ? machine : `${machine} (ended)`))
        .join(", ");
      found ||= now !== "";
      if (flags.json || now !== before) await show(io, { ...answer, unrecognised: [] }, flags);
      else if (!flags.quiet) stillSo(io, answer.report.toS, now, performance.now() - startedMs);
      before = now;
    } catch (error) {
      if (!(error instanceof UserError) || error.exitCode === 2 || call === 1) throw error;
      io.err.write(`faultline: ${harmless(error.message)}; next check in ${everyS} s\n`);
    }
    if (call === flags.calls) break;
    const leftMs = 1000 * everyS - (performance.now() - startedMs);
    await pause(Math.max(0, leftMs));
  }
  done();
  return flags.exitCode && found ? FOUND_SOMETHING : 0;
}

function stillSo(io: Io, atS: number, faulty: string, tookMs: number): void {
  const what = faulty === "" ? "no machine is unlike its peers" : `still ${harmless(faulty)}`;
  io.err.write(`${timeText(atS).slice(0, 19)}Z ${what} (${(tookMs / 1000).toFixed(1)} s)\n`);
}
