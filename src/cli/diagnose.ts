/** `faultline diagnose`: reads a job's files, prints the verdict, writes the report. */
import { parseLogStore, readLogStore } from "../history/log-store-file.ts";
import { logKnowledge } from "../pipeline/logs.ts";
import type { Env, Job } from "../model/job.ts";
import { EMPTY_STORE, type LogStore } from "../model/log-store.ts";
import { machinesOfJob } from "../pipeline/machines.ts";
import { ownWords, pictureJson, pictureOfJob } from "../pipeline/picture.ts";
import { type DiagnoseOptions, diagnose } from "../pipeline/diagnose.ts";
import type { MachineAnswer } from "../report/html/machines-section.ts";
import type { TracePictures } from "../report/html/trace-section.ts";
import { incidentMarkdown } from "../report/markdown.ts";
import { renderTerminal } from "../report/terminal.ts";
import { judge as judgeTraces } from "../methods/traces/regression-method.ts";
import { profileRun } from "../methods/traces/profile-run.ts";
import { timelinePicture } from "../methods/traces/pictures/timeline.ts";
import { FOUND_SOMETHING, printAnswer, remarkUnread, writeReport } from "./output.ts";
import { progressEnv } from "./progress.ts";
import type { Io } from "./io.ts";

export interface DiagnoseFlags {
  readonly baseline?: readonly string[];
  readonly store?: string;
  readonly tokenFile?: string;
  readonly logBaseline?: readonly string[];
  readonly job?: string;
  readonly pattern?: string;
  readonly json?: boolean;
  /** Instead of the terminal's form; not together with `json` (main.ts). */
  readonly markdown?: boolean;
  readonly out?: string;
  readonly quiet?: boolean;
  readonly exitCode?: boolean;
}

/** Returns the exit status. */
export async function runDiagnose(
  io: Io,
  paths: readonly string[],
  flags: DiagnoseFlags,
): Promise<number> {
  const { env, done } = progressEnv(io, flags.quiet === true);
  const { job: jobFile, pattern } = flags;
  const options = {
    paths,
    ...(await siteOptions(io, flags, env)),
    ...(flags.baseline === undefined ? {} : { baseline: flags.baseline }),
    ...(jobFile === undefined ? {} : { jobFile }),
    ...(pattern === undefined ? {} : { pattern }),
  };
  const { job, verdict, unrecognised } = await diagnose(options, env).finally(done);
  const document = JSON.stringify(verdict, null, 2);

  let ticket = "";
  if (flags.out !== undefined || flags.markdown) {
    const [traces, machines] = [tracePictures(job), await machinesOf(job)];
    const picture = await pictureOfJob(job, verdict, env, {
      machines: machines?.pictures ?? [],
      timeline: traces?.timeline ?? null,
    }).finally(done);
    ticket = incidentMarkdown({ job: job.name, verdict, picture });
    if (flags.out !== undefined) {
      const { renderHtml } = await import("../report/html/html.ts");
      const page = renderHtml(job, verdict, traces, machines, picture);
      await writeReport(flags.out, document, page, {
        "picture.json": `${pictureJson(picture)}\n`,
        "ticket.md": ticket,
      });
    }
  }
  if (flags.markdown) io.out.write(ticket);
  else
    printAnswer(io, flags, document, (colours, width) =>
      renderTerminal(verdict, colours, width, ownWords(job, verdict)),
    );
  if (!flags.quiet) remarkUnread(io, unrecognised);
  const wrong = verdict.kind !== "healthy" && verdict.kind !== "undetermined";
  return flags.exitCode && wrong ? FOUND_SOMETHING : 0;
}

/** What the site learnt of logs (`faultline logs learn`), and healthy jobs' logs beside these. */
async function siteOptions(
  io: Io,
  { store: file, tokenFile, logBaseline: baseline = [] }: DiagnoseFlags,
  env: Env,
): Promise<Pick<DiagnoseOptions, "records" | "logKnowledge">> {
  if (file === undefined && baseline.length === 0) return {};
  const store = file === undefined ? EMPTY_STORE : await storeOf(io, file, tokenFile);
  const known = await logKnowledge({ store, baseline }, env);
  return { records: store.records, logKnowledge: known };
}

/** Of a file, or of a running service. */
async function storeOf(io: Io, from: string, tokenFile: string | undefined): Promise<LogStore> {
  if (!/^https?:\/\//.test(from)) return await readLogStore(from, true);
  const { askService } = await import("./ask-service.ts");
  const path = "/api/v1/site/export?texts=true";
  const document = await askService(io, from, path, "faultline.logs-store/1", tokenFile);
  return parseLogStore(JSON.stringify(document), from);
}

/** What the monitoring shows, drawn; null where there is none. */
async function machinesOf(job: Job): Promise<MachineAnswer | null> {
  return (job.metrics?.length ?? 0) > 0 ? await machinesOfJob(job) : null;
}

function tracePictures({ kernels = [], traceBaseline: healthy = [] }: Job): TracePictures | null {
  const run = profileRun(kernels, "");
  if (!run) return null;
  const { regressions, distanceMs } = judgeTraces(run, healthy);
  return { run, healthy, distanceMs, timeline: timelinePicture(kernels, run, regressions) };
}
