/** The words of `faultline simulate`. */
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
    .addHelpText("after", EXAMPLES)
    .exitOverride()
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
      "It must be a number such as 8 (whole numbers, but for --noise and --lost).",
    );
  return Number(text);
}

const EXAMPLES = `
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
