/** Options and help of `faultline plan`. */
import { InvalidArgumentError, type Command } from "commander";
import { wholeNumber } from "./arguments.ts";
import type { Overheads } from "../mitigate/remedies.ts";
import { seconds } from "./duration.ts";
import type { MicroBatchFlags, MitigationFlags, TopologyFlags } from "./plan.ts";
import type { PlanServeFlags } from "./plan-serve.ts";
import type { Io } from "./io.ts";

export function addPlan(io: Io, program: Command, setStatus: (status: number) => void): void {
  const plan = program
    .command("plan")
    .description("what to do about it: micro-batches, topology, and when to restart")
    .addHelpText("after", EXAMPLES);

  plan
    .command("microbatches")
    .description("how many micro-batches each replica should take, for the shortest iteration")
    .requiredOption("--times <list>", "time of a micro-batch, per replica: 1.0,1.0,1.7", numberList)
    .requiredOption("--total <n>", "micro-batches in the global batch", wholeNumber)
    .option(
      "--fixed <list>",
      "fixed time per iteration and replica, such as filling the pipeline",
      numberList,
    )
    .option(
      "--multiple-of <n>",
      "every replica takes a multiple of this: PP for interleaved pipelines",
      wholeNumber,
    )
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html and verdict.json there")
    .option("--quiet", "no remarks on stderr")
    .action(async (flags: MicroBatchFlags) => {
      const { runPlanMicroBatches } = await import("./plan.ts");
      setStatus(await runPlanMicroBatches(io, flags));
    });

  withJob(plan.command("topology"))
    .description("which nodes to swap, so that congestion and stragglers cost least")
    .option("--rebalance", "also redistribute micro-batches afterwards")
    .option("--multiple-of <n>", "micro-batch counts must be multiples of this", wholeNumber)
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html and verdict.json there")
    .option("--quiet", "no remarks on stderr")
    .addHelpText("after", TOPOLOGY_HELP)
    .action(async (flags: TopologyFlags) => {
      const { runPlanTopology } = await import("./plan.ts");
      setStatus(await runPlanTopology(io, flags));
    });

  withJob(
    plan
      .command("mitigation")
      .argument(
        "[path...]",
        "files of a job, as for faultline diagnose; without files, describe the job with the options below",
      ),
  )
    .description("what to do now, what to do if it lasts, and which machines to leave out")
    .option("--job <file>", "job.json: what you know about the job")
    .option(
      "--overhead <list>",
      "what each step costs (default: micro-batches=1s,swap=60s,restart=30m)",
      overheads,
    )
    .option("--spares <n>", "spare machines for a restart (default: enough)", countNumber)
    .option("--multiple-of <n>", "micro-batch counts must be multiples of this", wholeNumber)
    .option("--no-swap", "GPUs cannot be swapped")
    .option(
      "--no-uneven",
      "all replicas must take equal counts (expert parallelism, fully sharded parameters)",
    )
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html and verdict.json there")
    .option("--quiet", "no progress on stderr")
    .addHelpText("after", MITIGATION_HELP)
    .action(async (paths: string[], flags: MitigationFlags) => {
      const { runPlanMitigation } = await import("./plan.ts");
      setStatus(await runPlanMitigation(io, paths, flags));
    });

  plan
    .command("serve")
    .description(
      "live: a controller that tells running jobs their micro-batch counts (docs/guides/microbatches.md)",
    )
    .requiredOption("--groups <n>", "data-parallel replicas", wholeNumber)
    .requiredOption("--total <n>", "micro-batches in the global batch", wholeNumber)
    .option(
      "--multiple-of <n>",
      "every replica takes a multiple of this: PP for interleaved pipelines",
      wholeNumber,
    )
    .option(
      "--bubble <n>",
      "pipeline fill and drain, in micro-batches: (stages - 1) / chunks",
      factorFrom(0),
    )
    .option("--port <n>", "TCP port (default 7078; 0: a free one)", countNumber)
    .option("--host <address>", "address to listen on (default 127.0.0.1)")
    .option("--token-env <name>", "environment variable with the token that clients must send")
    .option("--json", "print each change as one line of JSON on stdout")
    .option("--quiet", "no remarks on stderr")
    .action(async (flags: PlanServeFlags) => {
      const { runPlanServe } = await import("./plan-serve.ts");
      setStatus(await runPlanServe(io, flags));
    });
}

/** The job and its faults, as options. */
function withJob(command: Command): Command {
  return command
    .option("--file <file>", "the job as JSON (docs/guides/plan.md)")
    .option("--dp <n>", "data-parallel replicas", wholeNumber)
    .option("--pp <n>", "pipeline stages", wholeNumber)
    .option("--micro-batches <n>", "micro-batches per replica and iteration", wholeNumber)
    .option(
      "--stage-ms <list>",
      "time of a micro-batch on a stage, forward and backward; one value, or one per stage",
      numberList,
    )
    .option(
      "--gradient-ms <ms>",
      "time to exchange gradients and parameters when healthy",
      factorFrom(0),
    )
    .option(
      "--activation-ms <ms>",
      "time to send activations to the next stage when healthy",
      factorFrom(0),
    )
    .option(
      "--slow <node=factor>",
      "a node that computes slowly: node003=1.8; repeatable",
      slowNode,
    )
    .option("--slow-nic <node=factor>", "a node whose NIC is slow; repeatable", slowNode)
    .option(
      "--congested <a,b=factor>",
      "a congested link: node003,node004=4; repeatable",
      congestedWay,
    );
}

function slowNode(
  text: string,
  before: readonly (readonly [string, number])[] = [],
): [string, number][] {
  const match = /^(.+)=([\d.e+]+)$/i.exec(text);
  if (!match) throw new InvalidArgumentError("It must be NODE=FACTOR, such as node003=1.8.");
  return [
    ...before.map(([a, b]): [string, number] => [a, b]),
    [match[1]!, factorFrom(1)(match[2]!)],
  ];
}

function congestedWay(
  text: string,
  before: readonly (readonly [string, string, number])[] = [],
): (readonly [string, string, number])[] {
  const match = /^([^,]+),([^,]+)=([\d.e+]+)$/i.exec(text);
  if (!match)
    throw new InvalidArgumentError("It must be NODE,NODE=FACTOR, such as node003,node004=4.");
  return [...before, [match[1]!, match[2]!, factorFrom(1)(match[3]!)]];
}

const OVERHEADS: Readonly<Record<string, keyof Overheads>> = {
  "micro-batches": "microBatchesMs",
  swap: "topologyMs",
  restart: "restartMs",
  // Greyhound's names (§5.1).
  S2: "microBatchesMs",
  S3: "topologyMs",
  S4: "restartMs",
};

function overheads(text: string): [keyof Overheads, number][] {
  return text.split(",").map((part) => {
    const [, step = "", time = ""] = /^([^=]+)=(.+)$/.exec(part) ?? [];
    const overhead = Object.hasOwn(OVERHEADS, step) ? OVERHEADS[step] : undefined;
    if (overhead === undefined)
      throw new InvalidArgumentError(
        "It must be a list such as micro-batches=1s,swap=60s,restart=30m.",
      );
    return [overhead, /^0+m?s?$/.test(time) ? 0 : 1000 * seconds(time)];
  });
}

function numberList(text: string): number[] {
  return text.split(",").map((part) => {
    if (!/^\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*$/i.test(part))
      throw new InvalidArgumentError(`"${part}" is not a number; give a list such as 1.0,1.0,1.7.`);
    return Number(part);
  });
}

function factorFrom(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !(value >= least && value < Infinity))
      throw new InvalidArgumentError(`It must be a number from ${least} to 1e308.`);
    return value;
  };
}

function countNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("It must be a whole number from 0.");
  return Number(text);
}

const EXAMPLES = `
Examples:
  faultline plan microbatches --times 1.0,1.0,1.7 --total 48
  faultline plan topology --dp 16 --pp 2 --gradient-ms 200 --congested node003,node004=6
  faultline plan mitigation /shared/job-1234/ --micro-batches 16
  faultline plan serve --groups 16 --total 256`;

const TOPOLOGY_HELP = `
Nodes are called node000, node001, ... and are assigned stage by stage, within a stage replica by replica: with
--dp 4 --pp 2, node005 is replica 1 of stage 1. With --file they have the names in the file.

  faultline plan topology --dp 4 --pp 4 --stage-ms 20 --gradient-ms 120 --congested node001,node002=10`;

const MITIGATION_HELP = `
A step is due once it would have saved as much as it costs (ski rental): cheap steps soon, a restart only if the fault
lasts.

  faultline plan mitigation /shared/job-1234/ --overhead restart=45m --spares 0
  faultline plan mitigation --dp 8 --micro-batches 16 --stage-ms 90 --slow node003=1.8`;
