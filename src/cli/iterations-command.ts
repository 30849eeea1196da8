/** Options and help of `faultline iterations`. */
import type { Command } from "commander";
import { PATTERN } from "./arguments.ts";
import type { Io } from "./io.ts";
import type { IterationsFlags } from "./iterations.ts";

export function addIterations(io: Io, program: Command, setStatus: (status: number) => void): void {
  program
    .command("iterations")
    .description("when did it become slow: iteration times, change points, restarts")
    .argument(
      "<path...>",
      "training logs (Megatron-LM, DeepSpeed, NeMo, torchtitan, Transformers, Lightning, LLaMA-Factory, nanoGPT and similar, detectron2, mmcv, fairseq, OLMo), CSV tables, flight-recorder dumps, NCCL Inspector files, operators.flop; also .gz, .tar, .tar.gz",
    )
    .option("--pattern <regex>", PATTERN)
    .option("--explain", "show which part of which log line was read as what")
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html (with a plot) and verdict.json into this folder")
    .option("--quiet", "no progress and no remarks on stderr")
    .option("--exit-code", "exit with 10 when a lasting slowdown was found")
    .addHelpText("after", EXAMPLES)
    .action(async (paths: string[], flags: IterationsFlags) => {
      const { runIterations } = await import("./iterations.ts");
      setStatus(await runIterations(io, paths, flags));
    });
}

const EXAMPLES = `
A change counts if iteration times move by 10 % or more, the change stands out from the job's own noise, and it lasts.
Warm-up, restarts, checkpoints, evaluation and new batch sizes do not count. "known at" is the iteration at which
a live reader of the log would have known.

Examples:
  faultline iterations train.log                    changes, spikes, fluctuations, time wasted
  faultline iterations dumps/ --out report          from flight-recorder dumps alone, with a plot
  faultline iterations my.log --pattern 'it (?<iteration>\\d+) took (?<s>[\\d.]+)s'
  faultline iterations train.log --json | jq '.series[].changePoints'`;
