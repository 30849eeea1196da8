/** `faultline --version`: what this is, and what it reads. */
import { printJson } from "./output.ts";
import { BUILT } from "../base/built.ts";
import { formatNames } from "../pipeline/formats.ts";
import type { Io } from "./io.ts";

export function printVersion(io: Io, isJson: boolean): void {
  const { version, commit } = BUILT;
  const formats = formatNames();
  if (isJson) {
    printJson(io, { version, commit: commit || null, node: process.versions.node, formats });
    return;
  }
  const built = [...(commit ? [commit] : []), `Node.js ${process.versions.node}`].join(", ");
  io.out.write(`faultline ${version} (${built})\nreads: ${formats.join(", ")}\n`);
}
