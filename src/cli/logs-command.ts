/** Options and help of `faultline logs`. */
import type { Command } from "commander";
import { wholeNumber } from "./arguments.ts";
import type { Io } from "./io.ts";
import type { ExportFlags, LogsFlags, PatternFlags, StoreFlags } from "./logs.ts";

export function addLogs(io: Io, program: Command, setStatus: (status: number) => void): void {
  const logs = program
    .command("logs")
    .description("what do the logs say: failure-indicating lines, nodes, stage, iteration, cause")
    .argument(
      "<path...>",
      "logs of one job, any mix of files and folders: one file per rank or merged, dmesg, scheduler output; also .gz",
    )
    .option(
      "--baseline <path...>",
      "logs of healthy jobs, one per path; lines that appear there too are normal",
    )
    .option("--store <file>", "file that faultline logs learn, confirm and import have written")
    .option("--workers <n>", "threads that read (default: one per core, 16 at most)", wholeNumber)
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html (with a timeline) and verdict.json into this folder")
    .option("--quiet", "no progress and no remarks on stderr")
    .option("--exit-code", "exit with 10 when a line indicates a failure")
    .addHelpText("after", EXAMPLES)
    .action(async (paths: string[], flags: LogsFlags) => {
      const { runLogs } = await import("./logs.ts");
      setStatus(await runLogs(io, paths, flags));
    });
  // `logs` has --store and others as well, and the first command that knows an option takes it.
  const ofLogs = (name: string, description: string): Command =>
    logs
      .command(name)
      .description(description)
      .option("--store <file>", "JSON file to keep it in (created if missing)")
      .option("--json", "print one JSON document on stdout, nothing else")
      .option("--quiet", "no progress on stderr");
  ofLogs(
    "learn",
    "remember what healthy jobs log, so that the same lines elsewhere count as normal",
  )
    .argument("<path...>", "logs of healthy jobs; each path is one job")
    .action(async (paths: string[], _: StoreFlags, command: Command) => {
      const { runLogsLearn } = await import("./logs.ts");
      setStatus(await runLogsLearn(io, paths, command.optsWithGlobals<StoreFlags>()));
    });
  ofLogs(
    "confirm",
    "record that a signature was right, or keep a line of a report as a new signature",
  )
    .argument("<what>", "a signature's id, or the verdict.json of faultline logs --out")
    .option("--note <text>", "why, for later readers")
    .option("--line <n>", "report: which of its indicating lines (default 1)", wholeNumber)
    .option("--category <name>", "new signature: category such as hardware.network or user.config")
    .option("--title <text>", "new signature: what it is")
    .option("--action <text>", "new signature: what to do")
    .option(
      "--owner <name>",
      "new signature: user, framework, network, hardware, storage or platform",
    )
    .option("--id <id>", "new signature: its id (default: site. and the title)")
    .action(async (what: string, _: StoreFlags, command: Command) => {
      const { runLogsVote } = await import("./logs.ts");
      const flags = command.optsWithGlobals<StoreFlags & PatternFlags>();
      setStatus(await runLogsVote(io, "confirmed", what, flags));
    });
  ofLogs("dispute", "record that a signature was wrong; it counts for less from now on")
    .argument("<id>", "the signature's id")
    .option("--note <text>", "why, for later readers")
    .action(async (id: string, _: StoreFlags, command: Command) => {
      const { runLogsVote } = await import("./logs.ts");
      setStatus(await runLogsVote(io, "disputed", id, command.optsWithGlobals<StoreFlags>()));
    });
  ofLogs(
    "export",
    "write a store to a file for other sites: patterns of its records, and votes on them",
  )
    .argument("[file]", "output file (default: stdout)")
    .option(
      "--texts",
      "also what healthy jobs log and what people wrote of records, masked as well as can be",
    )
    .option("--unmasked", "as it is, for this site: names, paths and notes stay in it")
    .option("--all", "only the records, including those that come with Faultline")
    .action(async (file: string | undefined, _: StoreFlags, command: Command) => {
      const { runLogsExport } = await import("./logs.ts");
      setStatus(await runLogsExport(io, file, command.optsWithGlobals<ExportFlags>()));
    });
  ofLogs("import", "add an exported store, or records of your own, to a store")
    .argument("<file>", "a store, or a list of records (see faultline logs export --all)")
    .action(async (file: string, _: StoreFlags, command: Command) => {
      const { runLogsImport } = await import("./logs.ts");
      setStatus(await runLogsImport(io, file, command.optsWithGlobals<StoreFlags>()));
    });
  ofLogs("forget", "take back a job that was learnt, or an import, with all that came of it")
    .argument("<what>", "the job's path, or the imported file (or its id in the store)")
    .action(async (what: string, _: StoreFlags, command: Command) => {
      const { runLogsForget } = await import("./logs.ts");
      setStatus(await runLogsForget(io, what, command.optsWithGlobals<StoreFlags>()));
    });
}

const EXAMPLES = `
Four methods separate telling lines from noise; "why" names them: library (a known signature, with its causal role:
root, cascade or confirmation), cross-job (healthy jobs do not log it), spatial (other nodes do not log it, or log what
this one does not), temporal (earlier iterations did not log it). A watchdog's timeout is reported by the ranks that wait;
it is a cascade, never a root.

Examples:
  faultline logs job-1234/                                 the cause, the lines that say so, nodes, stage
  faultline logs job-1234/ --baseline job-1230/ job-1231/  compared with healthy jobs
  faultline logs learn --store site.json job-1230/ job-1231/
  faultline logs job-1234/ --store site.json --out report
  faultline logs confirm report/verdict.json --store site.json --category hardware.network \\
    --title "leaf 3 flaps" --action "drain the nodes of leaf 3"
  faultline logs dispute nvidia.xid.13 --store site.json --note "always the kernel of team A"
  faultline logs job-1234/ --json | jq '.cause, .nodes[:3]'`;
