/** The words of `faultline logs`. */
import type { Command } from "commander";
import { wholeNumber } from "./arguments.ts";
import type { Io } from "./io.ts";
import type { PatternFlags } from "./logs-pattern.ts";
import type { LogsFlags, StoreFlags } from "./logs.ts";

export function addLogs(io: Io, program: Command, setStatus: (status: number) => void): void {
  const logs = program
    .command("logs")
    .description("what do the logs say: failure-indicating lines, nodes, stage, iteration, cause")
    .argument(
      "<path...>",
      "logs of one job, any mix of files and folders: one file a rank or merged, dmesg, scheduler output; also .gz",
    )
    .option(
      "--baseline <path...>",
      "logs of healthy jobs, every path is one: what they say, too, is normal",
    )
    .option("--store <file>", "what faultline logs learn, confirm and import keep")
    .option(
      "--workers <n>",
      "threads that read (as many as there are cores, 16 at most)",
      wholeNumber,
    )
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html (with a timeline) and verdict.json there")
    .option("--quiet", "no progress and no remarks on stderr")
    .option("--exit-code", "exit with 10 when something tells of a failure")
    .option("--debug", "print the stack trace of an error")
    .addHelpText("after", EXAMPLES)
    .exitOverride()
    .action(async (paths: string[], flags: LogsFlags) => {
      const { runLogs } = await import("./logs.ts");
      setStatus(await runLogs(io, paths, flags));
    });
  // --store and others are known to `logs` as well, and taken by whichever comes first.
  const ofLogs = (name: string, description: string): Command =>
    logs
      .command(name)
      .description(description)
      .option("--store <file>", "the JSON file that keeps it (made where it is not there)")
      .option("--json", "print one JSON document on stdout, nothing else")
      .option("--quiet", "no progress on stderr")
      .option("--debug", "print the stack trace of an error")
      .exitOverride();
  ofLogs("learn", "remember what healthy jobs say, so that it is not held against others")
    .argument("<path...>", "logs of healthy jobs; every path is a job")
    .action(async (paths: string[], _: StoreFlags, command: Command) => {
      const { runLogsLearn } = await import("./logs.ts");
      setStatus(await runLogsLearn(io, paths, command.optsWithGlobals<StoreFlags>()));
    });
  ofLogs("confirm", "a signature was right; or keep the pattern of a report as a new one")
    .argument("<what>", "a signature's id, or the verdict.json of faultline logs --out")
    .option("--note <text>", "why, for whoever reads it later")
    .option("--line <n>", "of a report: which of its indicating lines (1)", wholeNumber)
    .option("--category <name>", "of a new pattern: hardware.network, user.config, …")
    .option("--title <text>", "of a new pattern: what it is")
    .option("--action <text>", "of a new pattern: what to do")
    .option(
      "--owner <name>",
      "of a new pattern: user, framework, network, hardware, storage, platform",
    )
    .option("--id <id>", "of a new pattern (site.… by its title)")
    .action(async (what: string, _: StoreFlags, command: Command) => {
      const { runLogsVote } = await import("./logs.ts");
      const flags = command.optsWithGlobals<StoreFlags & PatternFlags>();
      setStatus(await runLogsVote(io, "confirmed", what, flags));
    });
  ofLogs("dispute", "a signature was wrong: it counts for less from now on")
    .argument("<id>", "the signature's id")
    .option("--note <text>", "why, for whoever reads it later")
    .action(async (id: string, _: StoreFlags, command: Command) => {
      const { runLogsVote } = await import("./logs.ts");
      setStatus(await runLogsVote(io, "disputed", id, command.optsWithGlobals<StoreFlags>()));
    });
  ofLogs("export", "write a store for others (records, normal events, votes)")
    .argument("[file]", "where to (stdout)")
    .option("--all", "the records alone, the shipped ones among them")
    .action(async (file: string | undefined, _: StoreFlags, command: Command) => {
      const { runLogsExport } = await import("./logs.ts");
      setStatus(
        await runLogsExport(io, file, command.optsWithGlobals<StoreFlags & { all?: boolean }>()),
      );
    });
  ofLogs("import", "take what others exported, or records of your own, into a store")
    .argument("<file>", "a store, or a list of records (see faultline logs export --all)")
    .action(async (file: string, _: StoreFlags, command: Command) => {
      const { runLogsImport } = await import("./logs.ts");
      setStatus(await runLogsImport(io, file, command.optsWithGlobals<StoreFlags>()));
    });
}

const EXAMPLES = `
Lines are told apart from noise in four ways, named in "why": library (a known signature, with its causal role: root,
cascade, confirmation), cross-job (healthy jobs do not say it), spatial (other nodes do not say it, or say what this one
does not), temporal (earlier iterations did not). A watchdog's timeout names whoever waits; it is a cascade, never a root.

Examples:
  faultline logs job-1234/                                 the cause, the lines that say so, nodes, stage
  faultline logs job-1234/ --baseline job-1230/ job-1231/  against healthy jobs
  faultline logs learn --store site.json job-1230/ job-1231/
  faultline logs job-1234/ --store site.json --out report
  faultline logs confirm report/verdict.json --store site.json --category hardware.network \\
    --title "leaf 3 flaps" --action "drain the nodes of leaf 3"
  faultline logs dispute nvidia.xid.13 --store site.json --note "always the kernel of team A"
  faultline logs job-1234/ --json | jq '.cause, .nodes[:3]'`;
