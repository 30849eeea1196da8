/** The command line: arguments in, exit status out. Only main.ts knows the process. */
import { Command, CommanderError } from "commander";
import { BUILT } from "../base/built.ts";
import { errorText, UserError } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import { addAgent } from "./agent-command.ts";
import { addBackup, addRestore } from "./backup-command.ts";
import { addCollect } from "./collect-command.ts";
import { addCompletion } from "./completion-command.ts";
import { addDemo } from "./demo-command.ts";
import { addDiagnose } from "./diagnose-command.ts";
import { addDoctor } from "./doctor-command.ts";
import { addEval } from "./eval-command.ts";
import type { Io } from "./io.ts";
import { addIterations } from "./iterations-command.ts";
import { addLogs } from "./logs-command.ts";
import { addMachines } from "./machines-command.ts";
import { addPlan } from "./plan-command.ts";
import { addServe } from "./serve-command.ts";
import { addSimulate } from "./simulate-command.ts";
import { applySettings, commandsOf } from "./settings.ts";
import { addTrace } from "./trace-command.ts";

const USAGE_ERROR = 2;

/** In the order of the help. Each file holds options and help; what the command does is imported when it is called. */
const COMMANDS = [
  addDiagnose,
  addIterations,
  addTrace,
  addMachines,
  addLogs,
  addPlan,
  addCollect,
  addServe,
  addBackup,
  addRestore,
  addDemo,
  addAgent,
  addEval,
  addSimulate,
  addDoctor,
  addCompletion,
];

export async function main(argv: readonly string[], io: Io): Promise<number> {
  let status = 0;
  const program = new Command("faultline")
    .description(
      "Finds which GPU, machine, link or line of code makes a training job hang, crash or crawl, why, and what to do.",
    )
    .version(BUILT.version, "-V, --version", "version, commit and the formats it reads")
    .configureOutput({
      writeOut: (text) => io.out.write(text),
      writeErr: (text) => io.err.write(text),
      outputError: (text, write) => write(`faultline: ${oneLine(text)}; ${SEE_HELP}\n`),
    })
    .exitOverride();
  for (const add of COMMANDS) add(io, program, (result) => (status = result));
  for (const command of [program, ...commandsOf(program).values()])
    command.option("--debug", "print the stack trace of an error");

  if (argv.length === 0) {
    program.outputHelp();
    return USAGE_ERROR;
  }
  try {
    if (argv[0] === "--version" || argv[0] === "-V") {
      const { printVersion } = await import("./version.ts");
      printVersion(io, argv.includes("--json"));
      return 0;
    }
    // The doctor names what is wrong with settings, and goes on.
    if (argv[0] !== "doctor") applySettings(program, io.env);
    await program.parseAsync([...argv], { from: "user" });
    return status;
  } catch (error) {
    return report(io, error, argv.includes("--debug"));
  }
}

const SEE_HELP = "faultline --help lists commands and options";

function oneLine(text: string): string {
  const line = text.trim().replace(/^error: /, "");
  return harmless(line.replace(/\s*\n\s*/g, " ").replace(/\.$/, ""));
}

/** One line on stderr that says what is wrong and what to do. */
function report(io: Io, error: unknown, debug: boolean): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_ERROR;
  if (debug && error instanceof Error) io.err.write(`${error.stack ?? error.message}\n`);
  if (error instanceof UserError) {
    io.err.write(`faultline: ${harmless(error.message)}; ${harmless(error.hint)}\n`);
    return error.exitCode;
  }
  io.err.write(`faultline: ${harmless(errorText(error))}; run again with --debug and report it\n`);
  return 1;
}
