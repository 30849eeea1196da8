import { fileURLToPath } from "node:url";
import { BUILT } from "./built.ts";

/** The words that start this program in a process of its own; the command's words go behind them. */
export function ownProgram(): readonly [string, ...string[]] {
  if (BUILT.isSingle) return [process.execPath];
  const above = fileURLToPath(new URL("..", import.meta.url));
  if (import.meta.url.endsWith(".js")) return [process.execPath, `${above}cli/main.js`];
  // From source, as in tests: the checkout's own program, which builds what is not built.
  return [`${above}../faultline`];
}
