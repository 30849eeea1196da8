/** The command line: words in, exit status out. Only main.ts knows the process. */
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { UserError } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import { addAgent } from "./agent.ts";
import { addDemo } from "./demo-command.ts";
import type { DiagnoseFlags } from "./diagnose.ts";
import { moment, seconds } from "./duration.ts";
import type { IterationsFlags } from "./iterations.ts";
import type { PatternFlags } from "./logs-pattern.ts";
import type { LogsFlags, StoreFlags } from "./logs.ts";
import { addPlan } from "./plan-command.ts";
import type { TrainFlags } from "./machines-train.ts";
import type { MachinesFlags } from "./machines.ts";
import type { SharedAgentsFlags } from "./simulate-agents.ts";
import type { SimulateLiveFlags } from "./simulate-live.ts";
import { addServe } from "./serve-command.ts";
import type { SimulateFlags } from "./simulate.ts";
import type { LearnFlags, TraceFlags } from "./trace.ts";
import type { Io } from "./io.ts";

const VERSION = "0.1.0";
const WRONG_WORDS = 2;

export async function main(argv: readonly string[], io: Io): Promise<number> {
  const debug = argv.includes("--debug");
  let status = 0;
  const program = new Command("faultline")
    .description(
      "Tells which GPU, machine, link or line of code makes a training job hang, crash or crawl, why, and what to do.",
    )
    .version(VERSION)
    .option("--debug", "print the stack trace of an error")
    .configureOutput({
      writeOut: (text) => io.out.write(text),
      writeErr: (text) => io.err.write(text),
      outputError: (text, write) => {
        const line = text
          .trim()
          .replace(/^error: /, "")
          .replace(/\s*\n\s*/g, " ")
          .replace(/\.$/, "");
        write(`faultline: ${harmless(line)}; faultline --help shows the words it knows\n`);
      },
    })
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
      status = await runDiagnose(io, paths, flags);
    });

  program
    .command("iterations")
    .description("when did it become slow: iteration times, change points, restarts")
    .argument(
      "<path...>",
      "training logs (Megatron-LM, DeepSpeed, NeMo, torchtitan, Transformers, Lightning, LLaMA-Factory, nanoGPT and its kin, detectron2, mmcv, fairseq, OLMo), CSV tables, flight-recorder dumps, NCCL Inspector files, operators.flop; also .gz, .tar, .tar.gz",
    )
    .option("--pattern <regex>", PATTERN)
    .option("--explain", "show which words of which line were used as what")
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html (with a plot) and verdict.json there")
    .option("--quiet", "no progress and no remarks on stderr")
    .option("--exit-code", "exit with 10 when a lasting slow-down was found")
    .option("--debug", "print the stack trace of an error")
    .addHelpText("after", ITERATIONS_EXAMPLES)
    .exitOverride()
    .action(async (paths: string[], flags: IterationsFlags) => {
      const { runIterations } = await import("./iterations.ts");
      status = await runIterations(io, paths, flags);
    });

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
    .addHelpText("after", TRACE_EXAMPLES)
    .exitOverride()
    .action(async (paths: string[], flags: TraceFlags) => {
      const { runTrace } = await import("./trace.ts");
      status = await runTrace(io, paths, flags);
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
      status = await runLearn(io, paths, command.optsWithGlobals<LearnFlags>());
    });

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
    .addHelpText("after", MACHINES_EXAMPLES)
    .exitOverride()
    .action(async (paths: string[], flags: MachinesFlags) => {
      const { runMachines } = await import("./machines.ts");
      status = await runMachines(io, paths, flags);
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
      status = await runTrain(io, paths, command.optsWithGlobals<TrainFlags>());
    });

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
    .addHelpText("after", LOGS_EXAMPLES)
    .exitOverride()
    .action(async (paths: string[], flags: LogsFlags) => {
      const { runLogs } = await import("./logs.ts");
      status = await runLogs(io, paths, flags);
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
      status = await runLogsLearn(io, paths, command.optsWithGlobals<StoreFlags>());
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
      status = await runLogsVote(io, "confirmed", what, flags);
    });
  ofLogs("dispute", "a signature was wrong: it counts for less from now on")
    .argument("<id>", "the signature's id")
    .option("--note <text>", "why, for whoever reads it later")
    .action(async (id: string, _: StoreFlags, command: Command) => {
      const { runLogsVote } = await import("./logs.ts");
      status = await runLogsVote(io, "disputed", id, command.optsWithGlobals<StoreFlags>());
    });
  ofLogs("export", "write a store for others (records, normal events, votes)")
    .argument("[file]", "where to (stdout)")
    .option("--all", "the records alone, the shipped ones among them")
    .action(async (file: string | undefined, _: StoreFlags, command: Command) => {
      const { runLogsExport } = await import("./logs.ts");
      status = await runLogsExport(
        io,
        file,
        command.optsWithGlobals<StoreFlags & { all?: boolean }>(),
      );
    });
  ofLogs("import", "take what others exported, or records of your own, into a store")
    .argument("<file>", "a store, or a list of records (see faultline logs export --all)")
    .action(async (file: string, _: StoreFlags, command: Command) => {
      const { runLogsImport } = await import("./logs.ts");
      status = await runLogsImport(io, file, command.optsWithGlobals<StoreFlags>());
    });

  const number = (text: string): number => {
    if (!/^\d+(\.\d+)?$/.test(text))
      throw new InvalidArgumentError(
        "It must be a number such as 8 (whole numbers, but for --noise and --lost).",
      );
    return Number(text);
  };
  addPlan(io, program, (result) => (status = result));
  addServe(io, program, VERSION, (value) => (status = value));
  addDemo(io, program, VERSION, (value) => (status = value));
  addAgent(io, program, (result) => (status = result));

  program
    .command("simulate")
    .description("a simulated job with faults to order, in the real formats, with its ground truth")
    .option("--out <dir>", "folder for truth.json, job.json and what --emit names")
    .option("--gpus <n>", "GPUs of the job (default: what the dimensions multiply to, 16)", number)
    .option("--tp <n>", "tensor parallel (2)", number)
    .option("--pp <n>", "pipeline stages (2)", number)
    .option("--dp <n>", "data-parallel replicas (computed from --gpus where absent)", number)
    .option("--ep <n>", "expert parallel, a divisor of dp × cp (1)", number)
    .option("--cp <n>", "context parallel (1)", number)
    .option("--micro-batches <n>", "micro-batches of an iteration (8)", number)
    .option("--schedule <name>", "1f1b, interleaved or gpipe (1f1b)")
    .option("--layers <n>", "layers of one stage (4)", number)
    .option("--iterations <n>", "iterations (20)", number)
    .option("--gpus-per-machine <n>", "GPUs of one machine (8)", number)
    .option("--fault <spec...>", "CAUSE:KEY=VALUE:…, repeatable")
    .option("--noise <level>", "0 for none, 1 as in the field (1)", number)
    .option("--lost <share>", "share of the ranks whose dump is lost or cut off (0)", number)
    .option("--seed <n>", "same seed, same bytes (1)", number)
    .option(
      "--emit <list>",
      "operators, flight-recorder, logs, metrics, kineto, by comma (flight-recorder,logs)",
    )
    .option(
      "--live <url>",
      "instead of files: play the job in real time, through agents of its own, against this service",
    )
    .option("--every <time>", "live: what a healthy iteration takes (1s)", seconds)
    .option(
      "--speed <factor>",
      "live, instead of --every: how fast the simulated clock runs",
      number,
    )
    .option(
      "--agents <n>",
      "live: so many agent processes for all machines (default: one a machine)",
      wholeNumber,
    )
    .option("--control <port>", "live: take faults over HTTP on 127.0.0.1 (0: any port)", number)
    .option("--token-file <file>", "live: what the agents show the service")
    .option("--name <job>", "live: the job's name (rehearsal)")
    .option("--for <time>", "live: end after so long (default: when it is told to)", seconds)
    .addOption(new Option("--agents-of <json>").hideHelp())
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--quiet", "no progress on stderr")
    .option("--debug", "print the stack trace of an error")
    .addHelpText("after", SIMULATE_EXAMPLES)
    .exitOverride()
    .action(async (flags: SimulateFlags & Partial<SimulateLiveFlags & SharedAgentsFlags>) => {
      if (flags.live !== undefined && flags.agentsOf !== undefined) {
        const { runSharedAgents } = await import("./simulate-agents.ts");
        const { live, agentsOf } = flags;
        status = await runSharedAgents(io, { ...flags, live, agentsOf }, VERSION);
        return;
      }
      if (flags.live !== undefined) {
        const { runSimulateLive } = await import("./simulate-live.ts");
        status = await runSimulateLive(io, { ...flags, live: flags.live });
        return;
      }
      const { runSimulate } = await import("./simulate.ts");
      status = runSimulate(io, flags);
    });

  if (argv.length === 0) {
    program.outputHelp();
    return WRONG_WORDS;
  }
  try {
    await program.parseAsync([...argv], { from: "user" });
    return status;
  } catch (error) {
    return report(io, error, debug);
  }
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
}

const MACHINES_EXAMPLES = `
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

const LOGS_EXAMPLES = `
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

const PATTERN =
  "your own iteration lines: a regular expression with (?<iteration>…) and (?<ms>…) or (?<s>…); (?<iteration>…) alone where lines carry times";

const ITERATIONS_EXAMPLES = `
A change counts when the level moves by 10 % or more, stands out from the job's own noise and lasts; warm-up,
restarts, checkpoints, evaluation and new batch sizes do not. "known at" is the iteration at which somebody
who reads along would have been told.

Examples:
  faultline iterations train.log                    changes, spikes, fluctuations, time wasted
  faultline iterations dumps/ --out report          from flight-recorder dumps alone, with a plot
  faultline iterations my.log --pattern 'it (?<iteration>\\d+) took (?<s>[\\d.]+)s'
  faultline iterations train.log --json | jq '.series[].changePoints'`;

const TRACE_EXAMPLES = `
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

const EXAMPLES = `
Examples:
  faultline diagnose /shared/job-1234/             everything a job left behind
  faultline diagnose dumps/ logs/ --out report     and a report.html to share, a ticket.md to paste
  faultline diagnose new/ --baseline healthy/      is the code slower than in a healthy run? (profiler traces)
  faultline diagnose incident.tar.gz --json | jq .suspects

Exit status: 0 the analysis ran, 10 with --exit-code when something is wrong,
2 wrong words on the command line, 3 no input could be read, 1 anything else.`;

const SIMULATE_EXAMPLES = `
Faults: CAUSE is one of gpu-slow, cpu-stall, network-slow, network-hang, gpu-hang, gpu-error, gpu-memory,
process-gone, process-stopped, dataloader, garbage-collection, synchronization, minority-kernels,
gemm-layout, memory-management, slow-kernel, numerical, user-program. Keys: rank=N[,N], machine=node003, link=3-7,
link=node003-node004 (all that runs between two machines) or link=node003-leaf0, switch=leaf0|spine1, from=N,
to=N|drawn (iterations as the log prints them; drawn from Greyhound's durations), severity=F
(a factor; cpu-stall:severity=inf never goes on), shape=steady|spike|fluctuation|ramp,
signature=ecc|pcie|nic-drop|card-drop|nvlink. Regressions of the code have forms, how=layer|micro-batch
(synchronization, memory-management), now-and-then (garbage-collection), package-check (user-program), mask
(dataloader), pe|pe-act|pe-act-norm (minority-kernels), and cost=0.0266 in place of severity: a step takes so
much longer.

Examples:
  faultline simulate --out /tmp/job --gpus 64 --tp 4 --pp 4 --fault gpu-slow:rank=17:from=6:severity=2
  faultline simulate --out /tmp/hang --fault gpu-hang:rank=5:from=12 && faultline diagnose /tmp/hang
  faultline simulate --live http://127.0.0.1:7077 --gpus 64 --control 0     then type gpu-slow:rank=17:severity=2`;

/** One line on stderr that says what is wrong and what to do. */
function report(io: Io, error: unknown, debug: boolean): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_WORDS;
  if (debug && error instanceof Error) io.err.write(`${error.stack ?? error.message}\n`);
  if (error instanceof UserError) {
    io.err.write(`faultline: ${harmless(error.message)}; ${harmless(error.hint)}\n`);
    return error.exitCode;
  }
  const why = error instanceof Error ? error.message : String(error);
  io.err.write(`faultline: ${harmless(why)}; run again with --debug and report it\n`);
  return 1;
}
