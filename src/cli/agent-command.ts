/** The words of `faultline agent`: what runs beside a job on its machine, and speaks with the probes inside it. */
import { InvalidArgumentError, type Command } from "commander";
import { wholeNumber } from "./arguments.ts";
import type { ChosenFlags } from "./agent-chosen.ts";
import type { DumpFlags } from "./agent-dump.ts";
import type { AgentFlags } from "./agent-live.ts";
import type { ProfileFlags, StacksFlags, ValidateFlags } from "./agent-requests.ts";
import type { RingsFlags } from "./agent-rings.ts";
import type { TrapFlags } from "./agent-trap.ts";
import type { WatchFlags } from "./agent-watch.ts";
import { seconds } from "./duration.ts";
import type { Io } from "./io.ts";

export function addAgent(io: Io, program: Command, setStatus: (status: number) => void): void {
  const agent = program
    .command("agent")
    .description(
      "with --server: reports the jobs of this machine to a faultline serve; else lists, dumps, watches, holds, tests them",
    )
    .addHelpText("after", EXAMPLES)
    .exitOverride();

  // The action of the bare word: its options must not be the group's, which would take those of the other commands.
  const live = agent.command("run", { isDefault: true });
  live
    .description("the agent of this machine; `run` can be left out: faultline agent --server URL")
    .option("--server <url>", "the service: ws://HOST:PORT, wss://…, or nats://… (several: commas)")
    .option("--token-file <file>", "the token of scope agent (default: FAULTLINE_TOKEN)")
    .option("--ca <file>", "PEM of the authority that signed the service's certificate")
    .option(
      "--dir <folder...>",
      "where the rings are (default: FAULTLINE_DIR, or /dev/shm/faultline-<uid>; all users' for root)",
    )
    .option("--log <pattern...>", "logs of this machine's ranks to follow: '/logs/rank*.log'")
    .option("--job <name>", "the job that the logs belong to, where no probe runs in it")
    .option("--machine <name>", "what this machine is called (default: its host name)")
    .option("--nic <list>", "network cards, one a GPU or one for all: mlx5_0,mlx5_1", nicList)
    .option("--buffer <mb>", "kept while the service is away (default 64)", wholeNumber)
    .option("--keep <time>", "how far back operators are kept (default 10m)", seconds)
    .option("--memory <mb>", "for all that is kept together (default 512)", wholeNumber)
    .option("--json", "print one JSON document a line on stdout")
    .option("--quiet", "print nothing")
    .option("--debug", "print the stack trace of an error")
    .exitOverride()
    .action(async (flags: AgentFlags) => {
      if (flags.server === undefined) agent.outputHelp({ error: true });
      const { runAgentLive } = await import("./agent-live.ts");
      setStatus(await runAgentLive(io, flags, program.version() ?? ""));
    });

  common(agent.command("rings"))
    .description("the rings on this machine: who writes them, whether it lives, what it did last")
    .action(async (flags: RingsFlags) => {
      const { runAgentRings } = await import("./agent-rings.ts");
      setStatus(runAgentRings(io, flags));
    });

  chosen(common(agent.command("dump")))
    .description(
      "copies the rings of a job, and what else can be asked of it, for faultline diagnose",
    )
    .requiredOption("--out <path>", "a name that ends in .tar.gz, or a new folder")
    .option("--all", "earlier runs and other jobs, too")
    .option(
      "--flight-recorder [prefix]",
      "prefix of PyTorch's pipes (default: TORCH_NCCL_DEBUG_INFO_PIPE_FILE of the processes)",
    )
    .option("--no-flight-recorder", "leave PyTorch's flight recorder alone")
    .option("--ras [host:port]", "ask NCCL's RAS, too (default: NCCL_RAS_ADDR, or localhost:28028)")
    .option("--stacks", "have the processes write their Python stacks first (2 s at most)")
    .action(async (flags: DumpFlags) => {
      const { runAgentDump } = await import("./agent-dump.ts");
      setStatus(await runAgentDump(io, flags));
    });

  common(
    agent.command("watch"),
    "print one JSON document a line on stdout, one for each incident, dump and remark",
  )
    .description(
      "follows all rings, keeps the last minutes, and dumps by itself when a job hangs or dies",
    )
    .option("--keep <time>", "how much is kept (default 10m)", seconds)
    .option("--memory <mb>", "for all that is kept together (default 512)", wholeNumber)
    .option("--every <time>", "how often it looks (default 1s)", seconds)
    .option(
      "--hang <time>",
      "operators open and nothing new for so long is a hang (default 30s)",
      seconds,
    )
    .option("--out <dir>", "where dumps go (default faultline-incidents)")
    .option("--most <n>", "dumps at most, then only lines (default 16)", wholeNumber)
    .option("--for <time>", "end after so long (default: when it is told to)", seconds)
    .option("--ras [host:port]", "ask NCCL's RAS at each incident, too")
    .action(async (flags: WatchFlags) => {
      const { runAgentWatch } = await import("./agent-watch.ts");
      setStatus(await runAgentWatch(io, flags));
    });

  ranked(chosen(common(agent.command("trap"))))
    .description("holds the next communication calls for a while, and says who waits")
    .requiredOption("--for <time>", "how long; the probe's own limit is a minute", seconds)
    .action(async (flags: TrapFlags) => {
      const { runTrap } = await import("./agent-trap.ts");
      setStatus(await runTrap(io, flags));
    });

  ranked(chosen(common(agent.command("release"))))
    .description("lets held calls go on")
    .action(async (flags: ChosenFlags) => {
      const { runRelease } = await import("./agent-trap.ts");
      setStatus(runRelease(io, flags));
    });

  ranked(chosen(common(agent.command("stacks"))))
    .description("has the processes write the stacks of all their threads beside their rings")
    .option("--wait <time>", "how long to wait (default 2s)", seconds)
    .action(async (flags: StacksFlags) => {
      const { runStacks } = await import("./agent-requests.ts");
      setStatus(await runStacks(io, flags));
    });

  ranked(chosen(common(agent.command("profile"))))
    .description("has the processes profile their next steps with torch.profiler")
    .requiredOption("--steps <n>", "how many steps", wholeNumber)
    .option("--wait <time>", "how long to wait (default 10m)", seconds)
    .action(async (flags: ProfileFlags) => {
      const { runProfile } = await import("./agent-requests.ts");
      setStatus(await runProfile(io, flags));
    });

  chosen(common(agent.command("validate")))
    .description("has the job test its GPUs and links after an iteration, all ranks at once")
    .option("--at-iteration <n>", "after this one; the same number on all machines", countNumber)
    .option("--in <n>", "so many after the last one seen on this machine (default 3)", wholeNumber)
    .option("--gemm", "matrix products on each GPU")
    .option("--ring", "transfers around the ring of ranks, 2 or 3 passes")
    .option("--tree", "transfers up and down a tree of ranks, 4 passes (default: all three)")
    .option("--repeats <n>", "how often each is measured (default 3)", wholeNumber)
    .option("--mb <n>", "size of a transfer (default 16)", wholeNumber)
    .option("--wait <time>", "how long to wait (default 10m)", seconds)
    .action(async (flags: ValidateFlags) => {
      const { runValidate } = await import("./agent-requests.ts");
      setStatus(await runValidate(io, flags));
    });
}

function common(
  command: Command,
  json = "print one JSON document on stdout, nothing else",
): Command {
  return command
    .option(
      "--dir <folder>",
      "where the rings are (default: FAULTLINE_DIR, or /dev/shm/faultline-<uid>)",
    )
    .option("--json", json)
    .option("--quiet", "no remarks on stderr")
    .option("--debug", "print the stack trace of an error")
    .exitOverride();
}

/** Which job, where there are several. */
function chosen(command: Command): Command {
  return command
    .option("--job <name>", "the job of this name")
    .option("--pid <n>", "the job that this process belongs to", wholeNumber)
    .option("--newest", "the one that was started last, where several fit");
}

function ranked(command: Command): Command {
  return command.option("--rank <list>", "these ranks only: 3 or 0,2,5", rankList);
}

function nicList(text: string): string[] {
  const names = text.split(",");
  if (!names.every((name) => /^[\w.:/-]{1,64}$/.test(name)))
    throw new InvalidArgumentError("It must be a list of devices such as mlx5_0,mlx5_1.");
  return names;
}

function rankList(text: string): number[] {
  return text.split(",").map((part) => {
    if (!/^\d{1,7}$/.test(part))
      throw new InvalidArgumentError("It must be a list of ranks such as 0,2,5.");
    return Number(part);
  });
}

function countNumber(text: string): number {
  if (!/^\d{1,12}$/.test(text)) throw new InvalidArgumentError("It must be a whole number from 0.");
  return Number(text);
}

const EXAMPLES = `
Examples:
  faultline agent --server wss://faultline.example:7411 --token-file /etc/faultline/token --log '/logs/rank*.log'
  faultline agent rings                                   who writes, who lives
  faultline agent dump --out incident.tar.gz --stacks --ras && faultline diagnose incident.tar.gz
  faultline agent watch --out /var/lib/faultline          dump by itself when something happens
  faultline agent trap --for 2s                           hold all calls: who does not arrive?
  faultline agent validate --in 5                         test GPUs and links after the fifth iteration from now`;
