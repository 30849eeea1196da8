/** The words of `faultline machines`. */
import { Option, type Command } from "commander";
import { wholeNumber } from "./arguments.ts";
import { moment, seconds } from "./duration.ts";
import type { Io } from "./io.ts";
import type { TrainFlags } from "./machines-train.ts";
import type { MachinesFlags } from "./machines.ts";

export function addMachines(io: Io, program: Command, setStatus: (status: number) => void): void {
  const machines = program
    .command("machines")
    .description("which machine is going bad: monitoring metrics, each machine against its peers")
    .argument(
      "[path...]",
      "metrics of a job's machines: OpenMetrics text, CSV or Parquet tables, saved Prometheus answers; also .gz, .tar, .tar.gz",
    )
    .option("--prometheus <url>", "pull them from a Prometheus or VictoriaMetrics server instead")
    .option("--match <matchers>", `label matchers that select the job's machines: 'job="train"'`)
    .option("--range <duration>", "how much to look at (15m)", seconds)
    .option("--end <time>", "up to when, UTC where it names no zone (now)", moment)
    .addOption(
      new Option("--via <way>", "how to pull").choices([
        "auto",
        "remote-read",
        "raw",
        "query-range",
        "export",
      ]),
    )
    .option("--header <line...>", "for the server: 'Authorization: Bearer …'")
    .option("--watch", "go on, call after call")
    .option("--every <duration>", "time from call to call (8m)", seconds)
    .option("--calls <n>", "stop after so many calls", wholeNumber)
    .option("--job <file>", "job.json: machines of one pipeline stage are compared with each other")
    .addOption(
      new Option(
        "--method <name>",
        "peers: medians, no model (default); minder: the paper's",
      ).choices(["peers", "minder"]),
    )
    .option("--models <file>", "of faultline machines train, for --method minder")
    .option(
      "--explain <machine>",
      "show every metric of a machine beside its peers, its names, and what was left out and why",
    )
    .option("--continuity <duration>", "how long one kind of evidence must last (4m)", seconds)
    .option("--json", "print one JSON document on stdout, nothing else (a line each with --watch)")
    .option("--out <dir>", "write report.html (with plots) and verdict.json there")
    .option("--quiet", "no progress and no remarks on stderr")
    .option("--exit-code", "exit with 10 when a machine is faulty")
    .option("--debug", "print the stack trace of an error")
    .addHelpText("after", EXAMPLES)
    .exitOverride()
    .action(async (paths: string[], flags: MachinesFlags) => {
      const { runMachines } = await import("./machines.ts");
      setStatus(await runMachines(io, paths, flags));
    });
  machines
    .command("train")
    .description("train Minder's models on healthy tasks of your own")
    .argument("<path...>", "metrics of healthy tasks; every path is a task")
    .option("--models <file>", "the file that is written")
    .option("--job <file>", "job.json")
    .option("--seed <n>", "same seed, same models (1)", wholeNumber)
    .option("--batches <n>", "of the training of each model (16000)", wholeNumber)
    .option("--quiet", "no progress on stderr")
    .option("--debug", "print the stack trace of an error")
    .exitOverride()
    .action(async (paths: string[], _: TrainFlags, command: Command) => {
      const { runTrain } = await import("./machines-train.ts");
      // --models and --job are known to `machines` as well, and taken by whichever comes first.
      setStatus(await runTrain(io, paths, command.optsWithGlobals<TrainFlags>()));
    });
}

const EXAMPLES = `
Machines of a synchronous job do the same work, so a faulty one is unlike its peers and stays so. One kind of evidence
must last for --continuity, two or three kinds that agree (CPU, GPUs, memory, congestion, …) for less; a
machine that stops reporting is evidence itself. What does not last is listed as jitter, what the coupled metrics
contradict as a telemetry fault. "order" tells who deviated first.

Metrics: Minder's 21 under the names that dcgm-exporter and node_exporter give them, as far as they are there; what is
not is listed as "not recorded". --match must select the machines of one job, on both exporters:
'cluster="a",job=~"dcgm|node"'.

Examples:
  faultline machines --prometheus http://prometheus:9090 --match 'job=~"dcgm|node"' --job job.json
  faultline machines --prometheus http://prometheus:9090 --match 'hpc_job="1234"' --watch --every 8m
  faultline machines --prometheus http://prometheus:9090 --end 2026-11-15T00:50:00Z --range 30m --out report
  faultline machines metrics.prom.gz --json | jq '.faulty[] | {machine, metric, since}'
  faultline machines train healthy-1/ healthy-2/ --models site.json
  faultline machines metrics.csv --method minder --models site.json`;
