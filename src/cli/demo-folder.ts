/** Creates the folder for the history, or says why not. */
import { accessSync, constants, existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { UserError, errorText } from "../base/errors.ts";

/** Step by step: below /proc, where nothing can be made, Node's `recursive` tries for ever. */
export function makeDataFolder(path: string): void {
  const missing: string[] = [];
  for (let at = path; !existsSync(at) && dirname(at) !== at; at = dirname(at)) missing.unshift(at);
  try {
    for (const folder of missing) mkdirSync(folder, { mode: 0o700 });
    if (!statSync(path).isDirectory()) throw new Error("it is a file");
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new UserError(
      `${path} cannot be used as the data folder: ${errorText(error)}`,
      "give another --data FOLDER",
      2,
    );
  }
}
