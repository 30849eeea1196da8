/** `faultline machines`: which machine is going bad, from monitoring metrics. */
import { join } from "node:path";
import pico from "picocolors";
import { harmless } from "../base/text.ts";
import { machinesFromFiles, type MachinesOptions } from "../machines-pipeline.ts";
import { machinesDocument } from "../report/machines-document.ts";
import { renderMachinesTerminal } from "../report/machines-terminal.ts";
import { FOUND_SOMETHING, remarkUnread, screenWidth, wantsColour, writeReport } from "./output.ts";
import { progressEnv } from "./progress.ts";

export interface MachinesFlags {
  readonly job?: string;
  readonly method?: "peers" | "minder";
  readonly continuity?: number;
  readonly json?: boolean;
  readonly out?: string;
  readonly quiet?: boolean;
  readonly exitCode?: boolean;
}

/** Returns the exit status. */
export async function runMachines(paths: readonly string[], flags: MachinesFlags): Promise<number> {
  const { env, done } = progressEnv(flags.quiet === true);
  const options: MachinesOptions = {
    method: flags.method ?? "peers",
    ...(flags.job === undefined ? {} : { jobFile: flags.job }),
    ...(flags.continuity === undefined ? {} : { continuityS: flags.continuity }),
  };
  const { report, pictures, unrecognised } = await machinesFromFiles(paths, options, env).finally(
    done,
  );
  const document = JSON.stringify(machinesDocument(report), null, 2);
  if (flags.out !== undefined) {
    const { renderMachinesPage } = await import("../report/html/machines-page.ts");
    await writeReport(flags.out, document, renderMachinesPage(report, pictures));
  }
  if (flags.json) process.stdout.write(`${document}\n`);
  else {
    const colours = pico.createColors(wantsColour());
    process.stdout.write(`${renderMachinesTerminal(report, colours, screenWidth())}\n`);
    if (flags.out !== undefined)
      process.stdout.write(`report: ${harmless(join(flags.out, "report.html"))}\n`);
  }
  if (!flags.quiet) remarkUnread(unrecognised);
  return flags.exitCode && report.faulty.length > 0 ? FOUND_SOMETHING : 0;
}
