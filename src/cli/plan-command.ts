/** The words of `faultline plan`. */
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
    .addHelpText("after", EXAMPLES)
    .exitOverride();

  plan
    .command("microbatches")
    .description("S2: how many micro-batches each replica takes, so that the slowest is done first")
    .requiredOption("--times <list>", "time of a micro-batch by replica: 1.0,1.0,1.7", numberList)
    .requiredOption("--total <n>", "micro-batches of the global batch", wholeNumber)
    .option(
      "--fixed <list>",
      "what an iteration takes besides, by replica (filling the pipeline)",
      numberList,
    )
    .option(
      "--multiple-of <n>",
      "every replica takes a multiple: PP for interleaved pipelines",
      wholeNumber,
    )
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html and verdict.json there")
    .option("--quiet", "no remarks on stderr")
    .option("--debug", "print the stack trace of an error")
    .exitOverride()
    .action(async (flags: MicroBatchFlags) => {
      const { runPlanMicroBatches } = await import("./plan.ts");
      setStatus(await runPlanMicroBatches(io, flags));
    });

  withJob(plan.command("topology"))
    .description("S3: which nodes change places, so that congestion and stragglers cost least")
    .option("--rebalance", "micro-batches are shared out anew afterwards (S2)")
    .option("--multiple-of <n>", "counts of micro-batches are multiples of it", wholeNumber)
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html and verdict.json there")
    .option("--quiet", "no remarks on stderr")
    .option("--debug", "print the stack trace of an error")
    .addHelpText("after", TOPOLOGY_HELP)
    .exitOverride()
    .action(async (flags: TopologyFlags) => {
      const { runPlanTopology } = await import("./plan.ts");
      setStatus(await runPlanTopology(io, flags));
    });

  withJob(
    plan
      .command("mitigation")
      .argument(
        "[path...]",
        "files of a job, as for faultline diagnose; without any: say what is known of it",
      ),
  )
    .description("S1 to S4: what to do now, what if it lasts, and which machines to leave out")
    .option("--job <file>", "job.json with what you know of the job")
    .option(
      "--overhead <list>",
      "what acting costs: S2=1s,S3=60s,S4=30m (these are the defaults)",
      overheads,
    )
    .option(
      "--spares <n>",
      "machines that stand ready for a restart (default: enough)",
      countNumber,
    )
    .option("--multiple-of <n>", "counts of micro-batches are multiples of it", wholeNumber)
    .option("--no-swap", "GPUs cannot change places")
    .option("--no-uneven", "replicas must take equal counts (expert parallelism, fully sharded)")
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html and verdict.json there")
    .option("--quiet", "no progress on stderr")
    .option("--debug", "print the stack trace of an error")
    .addHelpText("after", MITIGATION_HELP)
    .exitOverride()
    .action(async (paths: string[], flags: MitigationFlags) => {
      const { runPlanMitigation } = await import("./plan.ts");
      setStatus(await runPlanMitigation(io, paths, flags));
    });

  plan
    .command("serve")
    .description(
      "S2 live: a controller that running jobs ask for their micro-batches (docs/guides/microbatches.md)",
    )
    .requiredOption("--groups <n>", "data-parallel replicas", wholeNumber)
    .requiredOption("--total <n>", "micro-batches of the global batch", wholeNumber)
    .option(
      "--multiple-of <n>",
      "every replica takes a multiple: PP for interleaved pipelines",
      wholeNumber,
    )
    .option(
      "--bubble <n>",
      "fill and drain of the pipeline in micro-batches: (stages - 1) / chunks",
      factorFrom(0),
    )
    .option("--port <n>", "TCP port (default 7077; 0: a free one)", countNumber)
    .option("--host <address>", "address to listen on (default 127.0.0.1)")
    .option("--token-env <name>", "environment variable with a token that clients must send")
    .option("--json", "each change as a line of JSON on stdout")
    .option("--quiet", "no remarks on stderr")
    .option("--debug", "print the stack trace of an error")
    .exitOverride()
    .action(async (flags: PlanServeFlags) => {
      const { runPlanServe } = await import("./plan-serve.ts");
      setStatus(await runPlanServe(io, flags));
    });
}

/** What a job is and what is wrong with it, in words. */
function withJob(command: Command): Command {
  return command
    .option("--file <file>", "the job as JSON (docs/guides/plan.md)")
    .option("--dp <n>", "data-parallel replicas", wholeNumber)
    .option("--pp <n>", "pipeline stages", wholeNumber)
    .option("--micro-batches <n>", "of one replica in an iteration", wholeNumber)
    .option(
      "--stage-ms <list>",
      "a micro-batch's time on a stage, forward and backward; one or one a stage",
      numberList,
    )
    .option("--gradient-ms <ms>", "exchange of gradients and parameters, healthy", factorFrom(0))
    .option("--activation-ms <ms>", "activations from a stage to the next, healthy", factorFrom(0))
    .option(
      "--slow <node=factor>",
      "a node that computes slowly: node003=1.8; repeatable",
      slowNode,
    )
    .option("--slow-nic <node=factor>", "a node whose NIC is slow; repeatable", slowNode)
    .option(
      "--congested <a,b=factor>",
      "a congested way: node003,node004=4; repeatable",
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
  S2: "microBatchesMs",
  S3: "topologyMs",
  S4: "restartMs",
};

function overheads(text: string): [keyof Overheads, number][] {
  return text.split(",").map((part) => {
    const [, strategy, time] = /^(S[234])=(.+)$/.exec(part) ?? [];
    if (strategy === undefined)
      throw new InvalidArgumentError("It must be a list such as S2=1s,S3=60s,S4=30m.");
    return [OVERHEADS[strategy]!, /^0+m?s?$/.test(time!) ? 0 : 1000 * seconds(time!)];
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
Nodes are node000, node001, ... and fill the places replica by replica, stage by stage: with --dp 4 --pp 2, node005
is replica 1 of stage 1. With --file they have the names of the file.

  faultline plan topology --dp 4 --pp 4 --stage-ms 20 --gradient-ms 120 --congested node001,node002=10`;

const MITIGATION_HELP = `
Each step is due when what it would have saved equals what it costs (ski rental): cheap ones soon, a restart only when
the fault lasts.

  faultline plan mitigation /shared/job-1234/ --overhead S4=45m --spares 0
  faultline plan mitigation --dp 8 --micro-batches 16 --stage-ms 90 --slow node003=1.8`;
