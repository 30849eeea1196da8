/** Options and help of `faultline agent`. */
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
      "with --server: reports the jobs of this machine to faultline serve; otherwise lists, dumps, watches, pauses or tests them",
    )
    .addHelpText("after", EXAMPLES);

  // `faultline agent` alone: options of the group would take those of the other commands, so this is a command of its own.
  const live = agent.command("run", { isDefault: true });
  live
    .description("the agent of this machine; `run` is optional: faultline agent --server URL")
    .option(
      "--server <url>",
      "the service: ws://HOST:PORT, wss://… or nats://… (several: comma-separated)",
    )
    .option("--token-file <file>", "file with a token of scope agent (default: FAULTLINE_TOKEN)")
    .option("--ca <file>", "PEM of the CA that signed the service's certificate")
    .option(
      "--dir <folder...>",
      "where the rings are (default: FAULTLINE_DIR, or /dev/shm/faultline-<uid>; for root, those of all users)",
    )
    .option("--log <pattern...>", "follow the logs of this machine's ranks: '/logs/rank*.log'")
    .option("--job <name>", "the job that the logs belong to, if it runs without a probe")
    .option("--machine <name>", "name of this machine (default: its host name)")
    .option("--nic <list>", "NICs, one per GPU or one for all: mlx5_0,mlx5_1", nicList)
    .option(
      "--buffer <mb>",
      "reports to keep while the service is away, in MB (default 64)",
      wholeNumber,
    )
    .option("--keep <time>", "how long to keep operators (default 10m)", seconds)
    .option("--memory <mb>", "memory limit for everything kept, in MB (default 512)", wholeNumber)
    .option("--json", "print one JSON document per line on stdout")
    .option("--quiet", "print nothing")
    .action(async (flags: AgentFlags) => {
      if (flags.server === undefined) agent.outputHelp({ error: true });
      const { runAgentLive } = await import("./agent-live.ts");
      setStatus(await runAgentLive(io, flags, program.version() ?? ""));
    });

  common(agent.command("rings"))
    .description(
      "list the rings on this machine: who writes them, whether the process is alive, what it did last",
    )
    .action(async (flags: RingsFlags) => {
      const { runAgentRings } = await import("./agent-rings.ts");
      setStatus(runAgentRings(io, flags));
    });

  chosen(common(agent.command("dump")))
    .description("copy the rings of a job, and whatever else it can give, for faultline diagnose")
    .requiredOption("--out <path>", "file name that ends in .tar.gz, or a new folder")
    .option("--all", "include earlier runs and other jobs")
    .option(
      "--flight-recorder [prefix]",
      "prefix of PyTorch's pipes (default: TORCH_NCCL_DEBUG_INFO_PIPE_FILE of the processes)",
    )
    .option("--no-flight-recorder", "do not ask PyTorch's flight recorder")
    .option("--ras [host:port]", "also ask NCCL's RAS (default: NCCL_RAS_ADDR, or localhost:28028)")
    .option("--stacks", "first have the processes write their Python stacks (2 s at most)")
    .action(async (flags: DumpFlags) => {
      const { runAgentDump } = await import("./agent-dump.ts");
      setStatus(await runAgentDump(io, flags));
    });

  common(
    agent.command("watch"),
    "print one JSON document per line on stdout, one for each incident, dump and remark",
  )
    .description(
      "follow all rings, keep the last minutes, and dump automatically when a job hangs or dies",
    )
    .option("--keep <time>", "how long to keep records (default 10m)", seconds)
    .option("--memory <mb>", "memory limit for everything kept, in MB (default 512)", wholeNumber)
    .option("--every <time>", "how often to look (default 1s)", seconds)
    .option(
      "--hang <time>",
      "open operators and nothing new for this long is a hang (default 30s)",
      seconds,
    )
    .option("--out <dir>", "where dumps go (default faultline-incidents)")
    .option(
      "--most <n>",
      "write at most this many dumps, then only report (default 16)",
      wholeNumber,
    )
    .option("--for <time>", "stop after this long (default: run until stopped)", seconds)
    .option("--ras [host:port]", "also ask NCCL's RAS at each incident")
    .action(async (flags: WatchFlags) => {
      const { runAgentWatch } = await import("./agent-watch.ts");
      setStatus(await runAgentWatch(io, flags));
    });

  ranked(chosen(common(agent.command("trap"))))
    .description("hold the next communication calls for a while and show who waits")
    .requiredOption("--for <time>", "how long; the probe itself allows one minute", seconds)
    .action(async (flags: TrapFlags) => {
      const { runTrap } = await import("./agent-trap.ts");
      setStatus(await runTrap(io, flags));
    });

  ranked(chosen(common(agent.command("release"))))
    .description("let held calls continue")
    .action(async (flags: ChosenFlags) => {
      const { runRelease } = await import("./agent-trap.ts");
      setStatus(runRelease(io, flags));
    });

  ranked(chosen(common(agent.command("stacks"))))
    .description("have the processes write the stacks of all their threads beside their rings")
    .option("--wait <time>", "how long to wait (default 2s)", seconds)
    .action(async (flags: StacksFlags) => {
      const { runStacks } = await import("./agent-requests.ts");
      setStatus(await runStacks(io, flags));
    });

  ranked(chosen(common(agent.command("profile"))))
    .description("have the processes profile their next steps with torch.profiler")
    .requiredOption("--steps <n>", "how many steps", wholeNumber)
    .option("--wait <time>", "how long to wait (default 10m)", seconds)
    .action(async (flags: ProfileFlags) => {
      const { runProfile } = await import("./agent-requests.ts");
      setStatus(await runProfile(io, flags));
    });

  chosen(common(agent.command("validate")))
    .description("have the job test its GPUs and links after an iteration, all ranks at once")
    .option(
      "--at-iteration <n>",
      "test after this iteration; give the same number on all machines",
      countNumber,
    )
    .option(
      "--in <n>",
      "test this many iterations after the last one seen on this machine (default 3)",
      wholeNumber,
    )
    .option("--gemm", "test matrix products on each GPU")
    .option("--ring", "test transfers around the ring of ranks, 2 or 3 passes")
    .option(
      "--tree",
      "test transfers up and down a tree of ranks, 4 passes (default: all three tests)",
    )
    .option("--repeats <n>", "measurements of each (default 3)", wholeNumber)
    .option("--mb <n>", "size of a transfer in MB (default 16)", wholeNumber)
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
    .option("--quiet", "no remarks on stderr");
}

/** Which job, if there are several. */
function chosen(command: Command): Command {
  return command
    .option("--job <name>", "the job with this name")
    .option("--pid <n>", "the job that this process belongs to", wholeNumber)
    .option("--newest", "the run that started last, if several match");
}

function ranked(command: Command): Command {
  return command.option("--rank <list>", "only these ranks: 3 or 0,2,5", rankList);
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
  faultline agent rings                                   who writes, who is alive
  faultline agent dump --out incident.tar.gz --stacks --ras && faultline diagnose incident.tar.gz
  faultline agent watch --out /var/lib/faultline          dump automatically when something happens
  faultline agent trap --for 2s                           hold all calls: who does not arrive?
  faultline agent validate --in 5                         test GPUs and links five iterations from now`;
