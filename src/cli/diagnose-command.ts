/** Options and help of `faultline diagnose`. */
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
      "files and folders: flight-recorder dumps, rank logs, Python stacks, ncclras output, NCCL_DEBUG logs; also .gz, .tar, .tar.gz, pipes, and - for standard input",
    )
    .option(
      "--baseline <path...>",
      "profiler traces of healthy runs of the same job: anything slower than in them is a regression",
    )
    .option(
      "--store <file or URL>",
      "what your site has learnt from its logs: a file (see faultline logs learn), or a running service",
    )
    .option("--token-file <file>", "token for --store URL (default: FAULTLINE_TOKEN)")
    .option(
      "--log-baseline <path...>",
      "logs of healthy jobs; lines that appear there too are not failures",
    )
    .option(
      "--job <file>",
      "job.json: what you know about the job, such as world size and machines",
    )
    .option("--pattern <regex>", PATTERN)
    .option("--json", "print one JSON document on stdout, nothing else")
    .addOption(
      new Option("--markdown", "print the verdict as Markdown for a ticket").conflicts("json"),
    )
    .option(
      "--out <dir>",
      "write report.html, verdict.json and ticket.md (Markdown) into this folder",
    )
    .option("--quiet", "no progress and no remarks on stderr")
    .option("--exit-code", "exit with 10 when something is wrong")
    .addHelpText("after", EXAMPLES)
    .action(async (paths: string[], flags: DiagnoseFlags) => {
      const { runDiagnose } = await import("./diagnose.ts");
      setStatus(await runDiagnose(io, paths, flags));
    });
}

const EXAMPLES = `
Examples:
  faultline diagnose /shared/job-1234/             everything that a job left behind
  faultline diagnose dumps/ logs/ --out report     plus report.html to share and ticket.md to paste
  faultline diagnose new/ --baseline healthy/      is the code slower than in a healthy run? (profiler traces)
  ssh node7 tar cz /dumps | faultline diagnose -   from another machine, an archive or a single file
  faultline diagnose incident.tar.gz --json | jq .suspects

Exit status: 0 the analysis ran, 10 with --exit-code when something is wrong,
2 wrong command line, 3 no input could be read, 1 anything else.`;
