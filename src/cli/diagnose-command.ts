/** The words of `faultline diagnose`. */
import { Option, type Command } from "commander";
import { PATTERN } from "./arguments.ts";
import type { DiagnoseFlags } from "./diagnose.ts";
import type { Io } from "./io.ts";

export function addDiagnose(io: Io, program: Command, setStatus: (status: number) => void): void {
  program
    .command("diagnose")
    .description("one verdict from any mix of files and folders of a job")
    .argument(
      "<path...>",
      "files and folders: flight-recorder dumps, rank logs, Python stacks, ncclras output, NCCL_DEBUG logs; also .gz, .tar, .tar.gz",
    )
    .option(
      "--baseline <path...>",
      "profiler traces of healthy runs of the same job: what is slower than in them is a regression",
    )
    .option("--store <file>", "what the site learnt of its logs (see faultline logs learn)")
    .option("--log-baseline <path...>", "logs of healthy jobs: what they say, too, is no failure")
    .option("--job <file>", "job.json with what you know of the job: world size, machines")
    .option("--pattern <regex>", PATTERN)
    .option("--json", "print one JSON document on stdout, nothing else")
    .addOption(
      new Option("--markdown", "print the verdict as Markdown for a ticket").conflicts("json"),
    )
    .option("--out <dir>", "write report.html, verdict.json and ticket.md (Markdown) there")
    .option("--quiet", "no progress and no remarks on stderr")
    .option("--exit-code", "exit with 10 when something is wrong")
    .option("--debug", "print the stack trace of an error")
    .addHelpText("after", EXAMPLES)
    .exitOverride()
    .action(async (paths: string[], flags: DiagnoseFlags) => {
      const { runDiagnose } = await import("./diagnose.ts");
      setStatus(await runDiagnose(io, paths, flags));
    });
}

const EXAMPLES = `
Examples:
  faultline diagnose /shared/job-1234/             everything a job left behind
  faultline diagnose dumps/ logs/ --out report     and a report.html to share, a ticket.md to paste
  faultline diagnose new/ --baseline healthy/      is the code slower than in a healthy run? (profiler traces)
  faultline diagnose incident.tar.gz --json | jq .suspects

Exit status: 0 the analysis ran, 10 with --exit-code when something is wrong,
2 wrong words on the command line, 3 no input could be read, 1 anything else.`;
