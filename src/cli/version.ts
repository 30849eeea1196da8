/** `faultline --version`: what this is, and what it reads. */
import { BUILT } from "../base/built.ts";
import { formatNames } from "../pipeline/formats.ts";
import type { Io } from "./io.ts";

export function printVersion(io: Io, isJson: boolean): void {
  const { version, commit } = BUILT;
  const formats = formatNames();
  if (isJson) {
    const about = { version, commit: commit || null, node: process.versions.node, formats };
    io.out.write(`${JSON.stringify(about, null, 2)}\n`);
    return;
  }
  const built = [...(commit ? [commit] : []), `Node.js ${process.versions.node}`].join(", ");
  io.out.write(`faultline ${version} (${built})\nreads: ${formats.join(", ")}\n`);
}
