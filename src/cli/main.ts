/** The command line: words in, exit status out. Nothing else in the project touches the process. */
import { Command, CommanderError } from "commander";
import { UserError } from "../base/errors.ts";
import type { DiagnoseFlags } from "./diagnose.ts";

const VERSION = "0.1.0";
const WRONG_WORDS = 2;

async function main(argv: readonly string[]): Promise<number> {
  const debug = argv.includes("--debug");
  let status = 0;
  const program = new Command("faultline")
    .description(
      "Tells which GPU, machine, link or line of code makes a training job hang, crash or crawl, why, and what to do.",
    )
    .version(VERSION)
    .option("--debug", "print the stack trace of an error")
    .showHelpAfterError("(faultline --help shows the words it knows)")
    .exitOverride();

  program
    .command("diagnose")
    .description("one verdict from any mix of files and folders of a job")
    .argument(
      "<path...>",
      "files and folders: flight-recorder dumps, rank logs, Python stacks, ncclras output, NCCL_DEBUG logs; also .gz, .tar, .tar.gz",
    )
    .option(
      "--baseline <path...>",
      "files of a healthy run of the same job (not used by the hang and crash methods)",
    )
    .option("--job <file>", "job.json with what you know of the job: world size, machines")
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html and verdict.json there")
    .option("--quiet", "no progress and no remarks on stderr")
    .option("--exit-code", "exit with 10 when something is wrong")
    .option("--debug", "print the stack trace of an error")
    .addHelpText("after", EXAMPLES)
    .exitOverride()
    .action(async (paths: string[], flags: DiagnoseFlags) => {
      const { runDiagnose } = await import("./diagnose.ts");
      status = await runDiagnose(paths, flags);
    });

  if (argv.length === 0) {
    program.outputHelp();
    return WRONG_WORDS;
  }
  try {
    await program.parseAsync([...argv], { from: "user" });
    return status;
  } catch (error) {
    return report(error, debug);
  }
}

const EXAMPLES = `
Examples:
  faultline diagnose /shared/job-1234/             everything a job left behind
  faultline diagnose dumps/ logs/ --out report     and a report.html to share
  faultline diagnose incident.tar.gz --json | jq .suspects

Exit status: 0 the analysis ran, 10 with --exit-code when something is wrong,
2 wrong words on the command line, 3 no input could be read, 1 anything else.`;

/** One line on stderr that says what is wrong and what to do. */
function report(error: unknown, debug: boolean): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_WORDS;
  if (debug && error instanceof Error) process.stderr.write(`${error.stack ?? error.message}\n`);
  if (error instanceof UserError) {
    process.stderr.write(`faultline: ${error.message}; ${error.hint}\n`);
    return error.exitCode;
  }
  const why = error instanceof Error ? error.message : String(error);
  process.stderr.write(
    `faultline: ${why.replaceAll("\n", " ")}; run again with --debug and report it\n`,
  );
  return 1;
}

// A reader that goes away (| head) is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
});
process.exitCode = await main(process.argv.slice(2));
