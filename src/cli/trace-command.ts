/** Options and help of `faultline trace`. */
import type { Command } from "commander";
import type { Io } from "./io.ts";
import type { LearnFlags, TraceFlags } from "./trace.ts";

export function addTrace(io: Io, program: Command, setStatus: (status: number) => void): void {
  const trace = program
    .command("trace")
    .description("why is the code slower: kernel timelines, FLARE's five metrics, regressions")
    .argument(
      "<path...>",
      "torch.profiler traces of one run (.json, .json.gz), files or folders, one file per rank",
    )
    .option("--baseline <path...>", "traces of healthy runs; each folder or archive is one run")
    .option(
      "--store <file>",
      "compare with healthy runs of the same kind, kept by faultline trace learn",
    )
    .option("--family <name>", "model family of the runs in the store")
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html (with pictures) and verdict.json into this folder")
    .option(
      "--perfetto <file>",
      "write all ranks as one trace for ui.perfetto.dev, clocks aligned (compressed if the name ends in .gz)",
    )
    .option("--quiet", "no progress and no remarks on stderr")
    .option("--exit-code", "exit with 10 when a regression was found")
    .addHelpText("after", EXAMPLES)
    .action(async (paths: string[], flags: TraceFlags) => {
      const { runTrace } = await import("./trace.ts");
      setStatus(await runTrace(io, paths, flags));
    });
  trace
    .command("learn")
    .description("keep healthy runs, to compare later runs with (--store)")
    .argument("<path...>", "traces of healthy runs; each folder or archive is one run")
    .option("--store <file>", "JSON file that keeps them (created if missing)")
    .option("--family <name>", "model family, if the store holds several")
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--quiet", "no progress on stderr")
    .action(async (paths: string[], _: LearnFlags, command: Command) => {
      const { runLearn } = await import("./trace.ts");
      // Options of both: `trace` has --store as well, and the first command that knows an option takes it.
      setStatus(await runLearn(io, paths, command.optsWithGlobals<LearnFlags>()));
    });
}

const EXAMPLES = `
What the columns mean:
  V_inter       share of the step in which the GPU is idle around the data loader (FLARE, eq. 1)
  V_minor       share of the step in small kernels: neither matrix products nor communication (eq. 2)
  issue p50     from the launch of a kernel to its start; a short time means that the CPU is late, not that it is fast
  moved         how far these latencies are from the baseline's (Wasserstein distance)
  comm, hidden  communication per step, and how much of it overlaps with computation
  TFLOPS        of the matrix product that takes the most time
A regression exceeds the healthy level by more than healthy runs differ from each other; the threshold is printed with
it. With a single baseline run, the two halves of its steps are compared instead; more runs or steps are better.

Examples:
  faultline trace traces/ --baseline last-week/           why is it slower than last week?
  faultline trace traces/ --baseline last-week/ --out report --perfetto all-ranks.json.gz
  faultline trace traces/                                 the metrics; only a rank that differs from its peers is a suspect
  faultline trace learn --store healthy.json run1/ run2/  keep healthy runs
  faultline trace traces/ --store healthy.json --json | jq '.regressions[] | {cause, owner, ranks}'`;
