/** `faultline iterations`: when a job became slow, from its logs, tables or operators. */
import { UserError } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import { readJob } from "../pipeline/diagnose.ts";
import { iterationsDocument } from "../report/iterations-document.ts";
import { renderIterationsTerminal } from "../report/iterations-terminal.ts";
import { FOUND_SOMETHING, printAnswer, remarkUnread, writeReport } from "./output.ts";
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
      "give the training log of the rank that prints iterations, or --pattern '(?<iteration>\\d+) .* (?<ms>[\\d.]+)' for your own log lines",
      3,
    );
  }
  const document = JSON.stringify(iterationsDocument(tracked, missing), null, 2);
  if (flags.out !== undefined) {
    const { renderIterationsPage } = await import("../report/html/iterations-page.ts");
    await writeReport(flags.out, document, renderIterationsPage(tracked, "Iteration times"));
  }
  printAnswer(io, flags, document, (colours, width) => {
    const text = renderIterationsTerminal(tracked, missing, colours, width);
    return flags.explain ? `${text}\n${explained(tracked)}` : text;
  });
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
      return [
        `${source}: iterations from the repeating pattern of its operators, times from its calls`,
      ];
    if (!example) return [`${source}: a table column`];
    return [`${source}, line ${example.line}: ${example.taken}`, `    ${example.text.trim()}`];
  });
  const rest = tracked.length - MOST_EXPLAINED;
  const more = rest > 0 ? [`and ${rest} more series`] : [];
  const all = ["how it was read", ...lines.map((line) => `  ${line}`), ...more];
  return all.map(harmless).join("\n");
}

const MOST_EXPLAINED = 8;
