/** Options and help of `faultline simulate`. */
import { InvalidArgumentError, Option, type Command } from "commander";
import { wholeNumber } from "./arguments.ts";
import { seconds } from "./duration.ts";
import type { Io } from "./io.ts";
import type { SharedAgentsFlags } from "./simulate-agents.ts";
import type { SimulateLiveFlags } from "./simulate-live.ts";
import type { SimulateFlags } from "./simulate.ts";

export function addSimulate(io: Io, program: Command, setStatus: (status: number) => void): void {
  program
    .command("simulate")
    .description(
      "simulate a job with the faults you choose; writes the real file formats and the ground truth",
    )
    .option("--out <dir>", "folder for truth.json, job.json and the files that --emit names")
    .option("--gpus <n>", "GPUs of the job (default: the product of the dimensions, 16)", number)
    .option("--tp <n>", "tensor parallel size (default 2)", number)
    .option("--pp <n>", "pipeline stages (default 2)", number)
    .option("--dp <n>", "data-parallel replicas (default: computed from --gpus)", number)
    .option("--ep <n>", "expert parallel size, a divisor of dp × cp (default 1)", number)
    .option("--cp <n>", "context parallel size (default 1)", number)
    .option("--micro-batches <n>", "micro-batches per iteration (default 8)", number)
    .option("--schedule <name>", "1f1b, interleaved or gpipe (default 1f1b)")
    .option("--layers <n>", "layers per stage (default 4)", number)
    .option("--iterations <n>", "iterations (default 20)", number)
    .option("--gpus-per-machine <n>", "GPUs per machine (default 8)", number)
    .option("--fault <spec...>", "CAUSE:KEY=VALUE:…, repeatable")
    .option("--noise <level>", "0 for none, 1 as in real clusters (default 1)", number)
    .option(
      "--lost <share>",
      "share of the ranks whose dump is lost or cut off (default 0)",
      number,
    )
    .option("--seed <n>", "same seed, same bytes (default 1)", number)
    .option(
      "--emit <list>",
      "comma-separated: operators, flight-recorder, logs, metrics, kineto (default flight-recorder,logs)",
    )
    .option(
      "--live <url>",
      "instead of writing files: play the job in real time against this service, with its own agents",
    )
    .option("--every <time>", "live: duration of a healthy iteration (default 1s)", seconds)
    .option(
      "--speed <factor>",
      "live, instead of --every: how fast the simulated clock runs",
      number,
    )
    .option(
      "--agents <n>",
      "live: number of agent processes for all machines (default: one per machine)",
      wholeNumber,
    )
    .option(
      "--control <port>",
      "live: accept faults over HTTP on this port of 127.0.0.1 (0: any port)",
      number,
    )
    .option("--token-file <file>", "live: token of the agents for the service")
    .option("--name <job>", "live: name of the job (default rehearsal)")
    .option("--for <time>", "live: stop after this long (default: run until stopped)", seconds)
    .addOption(new Option("--agents-of <json>").hideHelp())
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--quiet", "no progress on stderr")
    .addHelpText("after", EXAMPLES)
    .action(async (flags: SimulateFlags & Partial<SimulateLiveFlags & SharedAgentsFlags>) => {
      if (flags.live !== undefined && flags.agentsOf !== undefined) {
        const { runSharedAgents } = await import("./simulate-agents.ts");
        const { live, agentsOf } = flags;
        setStatus(await runSharedAgents(io, { ...flags, live, agentsOf }, program.version() ?? ""));
        return;
      }
      if (flags.live !== undefined) {
        const { runSimulateLive } = await import("./simulate-live.ts");
        setStatus(await runSimulateLive(io, { ...flags, live: flags.live }));
        return;
      }
      const { runSimulate } = await import("./simulate.ts");
      setStatus(runSimulate(io, flags));
    });
}

function number(text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text))
    throw new InvalidArgumentError(
      "It must be a number such as 8 (--noise and --lost also take fractions).",
    );
  return Number(text);
}

const EXAMPLES = `
Faults: CAUSE is one of gpu-slow, cpu-stall, network-slow, network-hang, gpu-hang, gpu-error, gpu-memory,
process-gone, process-stopped, dataloader, garbage-collection, synchronization, minority-kernels,
gemm-layout, memory-management, slow-kernel, numerical, user-program. Keys: rank=N[,N], machine=node003, link=3-7,
link=node003-node004 (all traffic between two machines) or link=node003-leaf0, switch=leaf0|spine1, from=N,
to=N|drawn (iterations as the log prints them; drawn from Greyhound's durations), severity=F
(a factor; cpu-stall:severity=inf never resumes), shape=steady|spike|fluctuation|ramp,
signature=ecc|pcie|nic-drop|card-drop|nvlink. Code regressions come in forms: how=layer|micro-batch
(synchronization, memory-management), now-and-then (garbage-collection), package-check (user-program), mask
(dataloader), pe|pe-act|pe-act-norm (minority-kernels), and take cost=0.0266 in place of severity: a step
takes 2.66 % longer.

Examples:
  faultline simulate --out /tmp/job --gpus 64 --tp 4 --pp 4 --fault gpu-slow:rank=17:from=6:severity=2
  faultline simulate --out /tmp/hang --fault gpu-hang:rank=5:from=12 && faultline diagnose /tmp/hang
  faultline simulate --live http://127.0.0.1:7077 --gpus 64 --control 0     then type gpu-slow:rank=17:severity=2`;
