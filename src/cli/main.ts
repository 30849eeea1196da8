#!/usr/bin/env node
/** The process around the command line: its streams, its arguments, its exit status. */
import { ENDS_WITH_STDIN } from "../base/own-program.ts";
import { main } from "./program.ts";

// A reader that goes away (| head) is no error; output that is lost is.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  process.stderr.write(`faultline: cannot write the output: ${error.message}; free some space\n`);
  process.exit(1);
});
if (process.env[ENDS_WITH_STDIN] !== undefined) {
  delete process.env[ENDS_WITH_STDIN];
  process.stdin
    .on("end", () => process.kill(process.pid, "SIGTERM"))
    .resume()
    .unref();
}
// No top-level await: the single executable is CommonJS.
void main(process.argv.slice(2), {
  out: process.stdout,
  err: process.stderr,
  env: process.env,
}).then((status) => {
  process.exitCode = status;
});
