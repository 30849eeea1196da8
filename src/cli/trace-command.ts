/** The words of `faultline trace`. */
import type { Command } from "commander";
import type { Io } from "./io.ts";
import type { LearnFlags, TraceFlags } from "./trace.ts";

export function addTrace(io: Io, program: Command, setStatus: (status: number) => void): void {
  const trace = program
    .command("trace")
    .description("why is the code slower: kernel timelines, FLARE's five metrics, regressions")
    .argument(
      "<path...>",
      "torch.profiler traces of one run (.json, .json.gz), files or folders, one file a rank",
    )
    .option("--baseline <path...>", "traces of healthy runs; every folder or archive is a run")
    .option(
      "--store <file>",
      "healthy runs kept by faultline trace learn, of the same kind as this one",
    )
    .option("--family <name>", "the model family under which the store keeps its runs")
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html (with pictures) and verdict.json there")
    .option(
      "--perfetto <file>",
      "write all ranks as one trace for ui.perfetto.dev, clocks aligned (packed where it ends in .gz)",
    )
    .option("--quiet", "no progress and no remarks on stderr")
    .option("--exit-code", "exit with 10 when a regression was found")
    .option("--debug", "print the stack trace of an error")
    .addHelpText("after", EXAMPLES)
    .exitOverride()
    .action(async (paths: string[], flags: TraceFlags) => {
      const { runTrace } = await import("./trace.ts");
      setStatus(await runTrace(io, paths, flags));
    });
  trace
    .command("learn")
    .description("keep healthy runs, so that later ones can be compared with --store")
    .argument("<path...>", "traces of healthy runs; every folder or archive is a run")
    .option("--store <file>", "the JSON file that keeps them (made where it is not there)")
    .option("--family <name>", "the model family, where the store holds several")
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--quiet", "no progress on stderr")
    .option("--debug", "print the stack trace of an error")
    .exitOverride()
    .action(async (paths: string[], _: LearnFlags, command: Command) => {
      const { runLearn } = await import("./trace.ts");
      // The words of both: --store is known to `trace` as well, and taken by whichever comes first.
      setStatus(await runLearn(io, paths, command.optsWithGlobals<LearnFlags>()));
    });
}

const EXAMPLES = `
What the columns mean:
  V_inter       share of the step in which the GPU has nothing to run around the data loader (FLARE, eq. 1)
  V_minor       share taken by small kernels: neither matrix products nor communication (eq. 2)
  issue p50     from the launch of a kernel to its start; short means that the CPU is late, not that it is fast
  moved         how far these latencies have moved from the baseline's (Wasserstein distance)
  comm, hidden  communication a step, and how much of it computation hides
  TFLOPS        of the matrix product that takes most time
A regression is what exceeds the healthy level by more than healthy runs differ; the threshold is printed with it.
With one baseline run the halves of its steps tell how much it differs; more runs, or more steps, tell better.

Examples:
  faultline trace traces/ --baseline last-week/           why is it slower than last week?
  faultline trace traces/ --baseline last-week/ --out report --perfetto all-ranks.json.gz
  faultline trace traces/                                 the metrics; accuses only a rank that its peers contradict
  faultline trace learn --store healthy.json run1/ run2/  keep healthy runs
  faultline trace traces/ --store healthy.json --json | jq '.regressions[] | {cause, owner, ranks}'`;
