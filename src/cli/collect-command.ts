/** Options and help of `faultline collect`. */
import { Option, type Command } from "commander";
import { wholeNumber } from "./arguments.ts";
import type { CollectFlags } from "./collect.ts";
import { seconds } from "./duration.ts";
import type { Io } from "./io.ts";

export function addCollect(io: Io, program: Command, setStatus: (status: number) => void): void {
  program
    .command("collect")
    .description("gather what diagnose reads from all machines of a job that still runs")
    .option("--host <list...>", "machines, by ssh: node1,node2 or user@node1")
    .option("--hostfile <file>", "file with a machine per line, by ssh")
    .addOption(
      new Option("--slurm <job>", "the machines of a Slurm job, by srun").conflicts([
        "host",
        "pods",
      ]),
    )
    .addOption(
      new Option("--pods <selector>", "pods with this label, by kubectl: job-name=train").conflicts(
        "host",
      ),
    )
    .option("--namespace <name>", "namespace of the pods")
    .option("--container <name>", "container of the pods (default: their first)")
    .option("--ssh <command>", "the ssh command, with its options", "ssh")
    .option("--limit <time>", "time limit for each machine", seconds, 180)
    .option("--at-once <n>", "machines at the same time", wholeNumber, 32)
    .requiredOption("--out <path>", "file name that ends in .tar.gz, or a new folder")
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--quiet", "no remarks on stderr")
    .addHelpText("after", EXAMPLES)
    .action(async (flags: CollectFlags) => {
      const { runCollect } = await import("./collect.ts");
      setStatus(await runCollect(io, flags));
    });
}

const EXAMPLES = `
Without --host, --hostfile, --slurm and --pods it collects on this machine. The other machines need sh, tar and
gzip; py-spy for stacks. It takes stacks, rings of the probe, flight-recorder dumps, NCCL's RAS report, the ends
of logs, and kernel messages. No process is ended; py-spy stops one for a fraction of a second.

Examples:
  faultline collect --slurm 1234 --out job-1234.tar.gz
  faultline collect --hostfile hosts.txt --out job-1234.tar.gz
  faultline collect --pods job-name=train --namespace ml --out job-1234.tar.gz
  faultline diagnose job-1234.tar.gz`;
