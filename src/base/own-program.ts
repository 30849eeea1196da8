import { fileURLToPath } from "node:url";
import { BUILT } from "./built.ts";

/** Set for a child that must not outlive us: it ends with its stdin, however we end. */
export const ENDS_WITH_STDIN = "FAULTLINE_ENDS_WITH_STDIN";

/** As this very process was started: from source and under a test's loader, too. */
export function sameProgram(): readonly [string, ...string[]] {
  // The executable names itself twice in argv, and takes no words of Node.
  if (BUILT.isSingle) return [process.execPath];
  return [process.execPath, ...process.execArgv, process.argv[1]!];
}

/** The words that start this program in a process of its own; the command's words go behind them. */
export function ownProgram(): readonly [string, ...string[]] {
  if (BUILT.isSingle) return [process.execPath];
  const above = fileURLToPath(new URL("..", import.meta.url));
  if (import.meta.url.endsWith(".js")) return [process.execPath, `${above}cli/main.js`];
  // From source, as in tests: the checkout's own program, which builds what is not built.
  return [`${above}../faultline`];
}
