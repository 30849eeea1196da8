/** Options and help of `faultline demo`. */
import { Option, type Command } from "commander";
import { port } from "./arguments.ts";
import type { DemoFlags } from "./demo.ts";
import type { Io } from "./io.ts";

export function addDemo(io: Io, program: Command, setStatus: (status: number) => void): void {
  program
    .command("demo")
    .description(
      "a simulated 64-GPU job: break something on a page in your browser and watch Faultline find it",
    )
    .option("--port <n>", "port of the page (default 7077, or the next free one)", port)
    .option("--no-open", "do not open a browser")
    .option(
      "--data <dir>",
      "keep the history in this folder (default: a folder that is removed at the end)",
    )
    .option("--verbose", "print the log of the service")
    .addOption(new Option("--play <json>", "for its own child").hideHelp())
    .addHelpText("after", EXAMPLES)
    .action(async (flags: DemoFlags) => {
      const { runDemo } = await import("./demo.ts");
      setStatus(await runDemo(io, flags, program.version() ?? ""));
    });
}

const EXAMPLES = `
Only the job is simulated; service, agents, detection, verdicts and actions are real (docs/guides/demo.md). It listens on
this machine only and leaves nothing behind.

Examples:
  faultline demo
  faultline demo --port 8080 --no-open
  curl -X POST -H 'content-type: application/json' -d '{"kind":"gpu","rank":17}' http://127.0.0.1:7077/api/v1/demo`;
