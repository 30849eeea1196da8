/** `faultline iterations`: when a job became slow, from its logs, tables or operators. */
import { join } from "node:path";
import pico from "picocolors";
import { UserError } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import { readJob } from "../pipeline/diagnose.ts";
import { iterationsDocument } from "../report/iterations-document.ts";
import { renderIterationsTerminal } from "../report/iterations-terminal.ts";
import { FOUND_SOMETHING, remarkUnread, screenWidth, wantsColour, writeReport } from "./output.ts";
import type { TrackedSeries } from "../model/series.ts";
import { progressEnv } from "./progress.ts";
import type { Io } from "./io.ts";

export interface IterationsFlags {
  readonly pattern?: string;
  readonly explain?: boolean;
  readonly json?: boolean;
  readonly out?: string;
  readonly quiet?: boolean;
  readonly exitCode?: boolean;
}

/** Returns the exit status. */
export async function runIterations(
  io: Io,
  paths: readonly string[],
  flags: IterationsFlags,
): Promise<number> {
  const { env, done } = progressEnv(io, flags.quiet === true);
  const options = flags.pattern === undefined ? { paths } : { paths, pattern: flags.pattern };
  const { job, unrecognised } = await readJob(options, env).finally(done);
  const { iterations: tracked, missing } = job;
  if (tracked.length === 0) {
    throw new UserError(
      `no iteration times in ${harmless(paths.join(" "))}${missing[0] === undefined ? "" : ` (${missing[0]})`}`,
      "give it the training log of the rank that prints iterations, or --pattern '(?<iteration>\\d+) .* (?<ms>[\\d.]+)' for lines of your own",
      3,
    );
  }
  const document = JSON.stringify(iterationsDocument(tracked, missing), null, 2);
  if (flags.out !== undefined) {
    const { renderIterationsPage } = await import("../report/html/iterations-page.ts");
    await writeReport(flags.out, document, renderIterationsPage(tracked, "Iteration times"));
  }
  if (flags.json) io.out.write(`${document}\n`);
  else {
    const colours = pico.createColors(wantsColour(io));
    const text = renderIterationsTerminal(tracked, missing, colours, screenWidth(io));
    io.out.write(`${text}\n`);
    if (flags.explain) io.out.write(explained(tracked));
    if (flags.out !== undefined)
      io.out.write(`report: ${harmless(join(flags.out, "report.html"))}\n`);
  }
  if (!flags.quiet) remarkUnread(io, unrecognised);
  const isSlow = tracked.some(({ episodes }) =>
    episodes.some(({ type }) => type === "degradation"),
  );
  return flags.exitCode && isSlow ? FOUND_SOMETHING : 0;
}

/** Of each series a line, and what of it was used as what. */
function explained(tracked: readonly TrackedSeries[]): string {
  const lines = tracked.slice(0, MOST_EXPLAINED).flatMap(({ series }) => {
    const { source, basis, example } = series;
    if (basis === "operators")
      return [`${source}: iterations from what repeats in its operators, times from its calls`];
    if (!example) return [`${source}: a column of a table`];
    return [`${source}, line ${example.line}: ${example.taken}`, `    ${example.text.trim()}`];
  });
  const rest = tracked.length - MOST_EXPLAINED;
  const more = rest > 0 ? [`and ${rest} more series`] : [];
  const all = ["how it was read", ...lines.map((line) => `  ${line}`), ...more];
  return `${all.map(harmless).join("\n")}\n`;
}

const MOST_EXPLAINED = 8;
