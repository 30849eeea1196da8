/**
 * What the logs say, against known truth:
 *
 *   npm run eval -- logs [--quick] [--only failures|normal|parsing|planting] [--seed S] [--jobs N]
 *
 * Real failures with labels, templates of ten sets of logs, and failures planted into logs of many nodes. Prints
 * Markdown; what was wrong goes to stderr. Third-party data is read from ../shared where it lies.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { logsFromFiles } from "../../src/pipeline/logs.ts";
import type { Env } from "../../src/model/job.ts";
import type { LogReport } from "../../src/model/log-report.ts";
import type { Verdict } from "../../src/model/verdict.ts";
import { diagnose } from "../../src/pipeline/diagnose.ts";
import { unpacked } from "../unpacked.ts";
import { failureCases, runFailures, runNormal } from "./failures.ts";
import { runParsing } from "./parsing.ts";
import { runPlanting } from "./planting.ts";

const { values: given } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    seed: { type: "string", default: "20000" },
    jobs: { type: "string" },
  },
});
const env: Env = { signal: new AbortController().signal, progress: () => undefined };
const analyse = async (
  paths: readonly string[],
  baseline: readonly string[] = [],
): Promise<LogReport> => await logsFromFiles(paths, { workers: 0, baseline }, env);
const verdictOf = async (paths: readonly string[]): Promise<Verdict | null> =>
  await diagnose({ paths }, env).then(
    ({ verdict }) => verdict,
    () => null,
  );
const shared = (name: string): string =>
  fileURLToPath(new URL(`../../../shared/thirdparty/${name}.tar.gz`, import.meta.url));
const wants = (part: string): boolean => given.only === undefined || given.only === part;

if (wants("failures")) {
  const archive = shared("logs-failures");
  if (existsSync(archive))
    console.log(
      await unpacked(
        archive,
        async (folder) => await runFailures(failureCases(folder), analyse, verdictOf),
      ),
    );
  else console.log("No third-party failures here (../shared/thirdparty/logs-failures.tar.gz).\n");
}
if (wants("normal")) {
  const archive = shared("logs-normal");
  const filesIn = (folder: string): string[] =>
    readdirSync(folder)
      .sort()
      .map((name) => join(folder, name));
  if (existsSync(archive))
    console.log(
      await unpacked(
        archive,
        async (folder) => await runNormal(filesIn(folder), analyse, verdictOf),
      ),
    );
}
if (wants("parsing")) console.log(await runParsing());
if (wants("planting")) {
  const jobs = Number(given.jobs ?? (given.quick ? 24 : 200));
  console.log(await runPlanting({ seed: Number(given.seed), jobs, analyse, quick: given.quick }));
}
