/** Options and help of `faultline completion`. */
import { Argument, type Command } from "commander";
import type { Shell } from "./completion.ts";
import type { Io } from "./io.ts";

export function addCompletion(io: Io, program: Command, setStatus: (status: number) => void): void {
  program
    .command("completion")
    .description("print a completion script for your shell")
    .addArgument(new Argument("<shell>").choices(["bash", "zsh", "fish"]))
    .addHelpText("after", EXAMPLES)
    .action(async (shell: Shell) => {
      const { completionScript } = await import("./completion.ts");
      io.out.write(completionScript(program, shell));
      setStatus(0);
    });
}

const EXAMPLES = `
Examples:
  source <(faultline completion bash)        in ~/.bashrc
  source <(faultline completion zsh)         in ~/.zshrc, behind compinit
  faultline completion fish > ~/.config/fish/completions/faultline.fish`;
