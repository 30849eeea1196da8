/** The words of `faultline iterations`. */
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
      "training logs (Megatron-LM, DeepSpeed, NeMo, torchtitan, Transformers, Lightning, LLaMA-Factory, nanoGPT and its kin, detectron2, mmcv, fairseq, OLMo), CSV tables, flight-recorder dumps, NCCL Inspector files, operators.flop; also .gz, .tar, .tar.gz",
    )
    .option("--pattern <regex>", PATTERN)
    .option("--explain", "show which words of which line were used as what")
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--out <dir>", "write report.html (with a plot) and verdict.json there")
    .option("--quiet", "no progress and no remarks on stderr")
    .option("--exit-code", "exit with 10 when a lasting slow-down was found")
    .option("--debug", "print the stack trace of an error")
    .addHelpText("after", EXAMPLES)
    .exitOverride()
    .action(async (paths: string[], flags: IterationsFlags) => {
      const { runIterations } = await import("./iterations.ts");
      setStatus(await runIterations(io, paths, flags));
    });
}

const EXAMPLES = `
A change counts when the level moves by 10 % or more, stands out from the job's own noise and lasts; warm-up,
restarts, checkpoints, evaluation and new batch sizes do not. "known at" is the iteration at which somebody
who reads along would have been told.

Examples:
  faultline iterations train.log                    changes, spikes, fluctuations, time wasted
  faultline iterations dumps/ --out report          from flight-recorder dumps alone, with a plot
  faultline iterations my.log --pattern 'it (?<iteration>\\d+) took (?<s>[\\d.]+)s'
  faultline iterations train.log --json | jq '.series[].changePoints'`;
