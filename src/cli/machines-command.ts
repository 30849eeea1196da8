/** Options and help of `faultline machines`. */
import { Option, type Command } from "commander";
import { wholeNumber } from "./arguments.ts";
import { moment, seconds } from "./duration.ts";
import type { Io } from "./io.ts";
import type { TrainFlags } from "./machines-train.ts";
import type { MachinesFlags } from "./machines.ts";

export function addMachines(io: Io, program: Command, setStatus: (status: number) => void): void {
  const machines = program
    .command("machines")
    .description("which machine is going bad: compares the metrics of each machine with its peers")
    .argument(
      "[path...]",
      "metrics of a job's machines: OpenMetrics text, CSV or Parquet tables, saved Prometheus responses; also .gz, .tar, .tar.gz",
    )
    .option(
      "--prometheus <url>",
      "read the metrics from a Prometheus or VictoriaMetrics server instead",
    )
    .option("--match <matchers>", `label matchers that select the job's machines: 'job="train"'`)
    .option("--range <duration>", "how far back to look (default 15m)", seconds)
    .option("--end <time>", "end of that range; UTC if it has no time zone (default: now)", moment)
    .addOption(
      new Option("--via <way>", "how to read from the server (default auto)").choices([
        "auto",
        "remote-read",
        "raw",
        "query-range",
        "export",
      ]),
    )
    .option("--header <line...>", "HTTP header for the server: 'Authorization: Bearer …'")
    .option("--watch", "keep running and check at intervals")
    .option("--every <duration>", "time between checks (default 8m)", seconds)
    .option("--calls <n>", "stop after this many checks", wholeNumber)
    .option(
      "--job <file>",
      "job.json; machines of the same pipeline stage are compared with each other",
    )
    .addOption(
      new Option(
        "--method <name>",
        "peers: medians, no model (default); minder: as in the paper",
      ).choices(["peers", "minder"]),
    )
    .option("--models <file>", "models from faultline machines train, for --method minder")
    .option(
      "--priorities <file>",
      "what your labels taught: from faultline machines train --labels",
    )
    .option(
      "--explain <machine>",
      "show every metric of one machine beside its peers, its names, and what was left out and why",
    )
    .option(
      "--continuity <duration>",
      "how long one kind of evidence must last (default 4m)",
      seconds,
    )
    .option("--json", "print one JSON document on stdout, nothing else (one per line with --watch)")
    .option("--out <dir>", "write report.html (with plots) and verdict.json into this folder")
    .option("--quiet", "no progress and no remarks on stderr")
    .option("--exit-code", "exit with 10 when a machine is faulty")
    .addHelpText("after", EXAMPLES)
    .action(async (paths: string[], flags: MachinesFlags) => {
      const { runMachines } = await import("./machines.ts");
      setStatus(await runMachines(io, paths, flags));
    });
  machines
    .command("train")
    .description(
      "train Minder's models on healthy tasks, or priorities and thresholds of metrics on labels",
    )
    .argument(
      "<path...>",
      "metrics; each path is one task (healthy, unless --labels says otherwise)",
    )
    .option("--models <file>", "file to write the models to; with --labels: the models to use")
    .option("--labels <file>", "which machine was faulty or healthy, and when: CSV or JSON")
    .option("--priorities <file>", "with --labels: file to write priorities and thresholds to")
    .option("--job <file>", "job.json")
    .option("--seed <n>", "same seed, same models (default 1)", wholeNumber)
    .option("--batches <n>", "training batches per model (default 16000)", wholeNumber)
    .option("--quiet", "no progress on stderr")
    .action(async (paths: string[], _: TrainFlags, command: Command) => {
      const { runTrain } = await import("./machines-train.ts");
      // `machines` has --models and --job as well, and the first command that knows an option takes it.
      setStatus(await runTrain(io, paths, command.optsWithGlobals<TrainFlags>()));
    });
}

const EXAMPLES = `
Machines of a synchronous job do the same work, so a faulty one differs from its peers and keeps differing. One kind of
evidence must last for --continuity; two or three kinds that agree (CPU, GPUs, memory, congestion, …) need less. A
machine that stops reporting is evidence too. A deviation that does not last is listed as jitter, a value that coupled
metrics contradict as a telemetry fault. "order" shows which machine deviated first.

Metrics: Minder's 21, under their dcgm-exporter and node_exporter names. Missing ones are listed as "not recorded".
--match must select the machines of one job, on both exporters:
'cluster="a",job=~"dcgm|node"'.

Examples:
  faultline machines --prometheus http://prometheus:9090 --match 'job=~"dcgm|node"' --job job.json
  faultline machines --prometheus http://prometheus:9090 --match 'hpc_job="1234"' --watch --every 8m
  faultline machines --prometheus http://prometheus:9090 --end 2026-11-15T00:50:00Z --range 30m --out report
  faultline machines metrics.prom.gz --json | jq '.faulty[] | {machine, metric, since}'
  faultline machines train healthy-1/ healthy-2/ --models site.json
  faultline machines metrics.csv --method minder --models site.json
  faultline machines train task-1/ task-2/ --labels labels.csv --priorities site-metrics.json
  faultline machines metrics.csv --priorities site-metrics.json`;
