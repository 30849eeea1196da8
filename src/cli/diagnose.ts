/** `faultline diagnose`: reads a job's files, prints the verdict, writes the report. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pico from "picocolors";
import { UserError } from "../base/errors.ts";
import { count, harmless } from "../base/text.ts";
import { diagnose } from "../pipeline.ts";
import { renderTerminal } from "../report/terminal.ts";
import { refuseKernelFolder } from "./folder-output.ts";
import { makeProgress } from "./progress.ts";

export interface DiagnoseFlags {
  readonly baseline?: readonly string[];
  readonly job?: string;
  readonly json?: boolean;
  readonly out?: string;
  readonly quiet?: boolean;
  readonly exitCode?: boolean;
}

export const FOUND_SOMETHING = 10;

/** Returns the exit status. */
export async function runDiagnose(paths: readonly string[], flags: DiagnoseFlags): Promise<number> {
  const progress = makeProgress(process.stderr, flags.quiet === true, () => performance.now());
  const env = {
    signal: new AbortController().signal,
    progress: (...at: Parameters<typeof progress.update>) => progress.update(...at),
  };
  const options = flags.job === undefined ? { paths } : { paths, jobFile: flags.job };
  const { job, verdict, unrecognised } = await diagnose(options, env).finally(() => progress.end());

  if (flags.out !== undefined) {
    const { renderHtml } = await import("../report/html/html.ts");
    await writeReport(flags.out, JSON.stringify(verdict, null, 2), renderHtml(job, verdict));
  }
  if (flags.json) {
    process.stdout.write(`${JSON.stringify(verdict, null, 2)}\n`);
  } else {
    const width = Math.min(100, Math.max(60, process.stdout.columns || 100));
    process.stdout.write(`${renderTerminal(verdict, pico.createColors(wantsColour()), width)}\n`);
    if (flags.out !== undefined)
      process.stdout.write(`report: ${harmless(join(flags.out, "report.html"))}\n`);
  }
  if (!flags.quiet && unrecognised.length > 0) {
    process.stderr.write(
      `${count(unrecognised.length, "file")} in a format that is not read, for example ${harmless(unrecognised[0]!)}\n`,
    );
  }
  const wrong = verdict.kind !== "healthy" && verdict.kind !== "undetermined";
  return flags.exitCode && wrong ? FOUND_SOMETHING : 0;
}

function wantsColour(): boolean {
  // A plain false, not undefined: picocolors takes that as leave to look for itself.
  if (!process.stdout.isTTY) return false;
  return !process.env["NO_COLOR"] && process.env["TERM"] !== "dumb";
}

async function writeReport(folder: string, json: string, html: string): Promise<void> {
  refuseKernelFolder(folder);
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "verdict.json"), `${json}\n`);
    await writeFile(join(folder, "report.html"), html);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UserError(
      `${folder}: the report cannot be written: ${why}`,
      "give --out a folder that can be written",
    );
  }
}
