/** Options and help of `faultline eval`. */
import type { Command } from "commander";
import type { EvalSiteFlags } from "./eval-site.ts";
import type { Io } from "./io.ts";

export function addEval(io: Io, program: Command, setStatus: (status: number) => void): void {
  const group = program
    .command("eval")
    .description("how right the verdicts were, by what people said of them");
  group
    .command("site")
    .description("judged verdicts of a service: right or wrong, by kind and by confidence")
    .option("--service <url>", "a running service")
    .option("--token-file <file>", "file with a token of scope read (default: FAULTLINE_TOKEN)")
    .option("--data <dir>", "data folder of a service that is stopped")
    .option("--labels <file>", "write judged incidents as labels for machines train --labels")
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--quiet", "no remarks on stderr")
    .addHelpText("after", EXAMPLES)
    .action(async (flags: EvalSiteFlags) => {
      const { runEvalSite } = await import("./eval-site.ts");
      setStatus(await runEvalSite(io, flags));
    });
}

const EXAMPLES = `
People say on an incident's page whether its verdict was right. The last word on each incident counts.

Examples:
  faultline eval site --service http://127.0.0.1:7077
  faultline eval site --data ~/.local/share/faultline --json | jq '.kinds'
  faultline eval site --service http://127.0.0.1:7077 --labels labels.json`;
