/** What all commands write, and how: colours, width, the report's folder, remarks. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../base/errors.ts";
import { count, harmless } from "../base/text.ts";
import { refuseKernelFolder } from "./folder-output.ts";
import type { Io } from "./io.ts";

/** Exit status with --exit-code when something is wrong. */
export const FOUND_SOMETHING = 10;

export function wantsColour(io: Io): boolean {
  // A plain false, not undefined: picocolors takes that as leave to look for itself.
  if (io.env["NO_COLOR"]) return false;
  const forced = io.env["FORCE_COLOR"];
  if (forced) return forced !== "0" && forced !== "false";
  return io.out.isTTY === true && io.env["TERM"] !== "dumb";
}

export function screenWidth(io: Io): number {
  return Math.min(100, Math.max(60, io.out.columns || 100));
}

export function remarkUnread(io: Io, files: readonly string[]): void {
  if (files.length === 0) return;
  io.err.write(
    `skipped ${count(files.length, "file")} of unknown format, for example ${harmless(files[0]!)}\n`,
  );
}

/** `more`: name → text of what lies beside them. */
export async function writeReport(
  folder: string,
  json: string,
  html: string,
  more: Readonly<Record<string, string>> = {},
): Promise<void> {
  refuseKernelFolder(folder);
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "verdict.json"), `${json}\n`);
    await writeFile(join(folder, "report.html"), html);
    for (const [name, text] of Object.entries(more)) await writeFile(join(folder, name), text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UserError(
      `cannot write the report to ${folder}: ${why}`,
      "give --out a writable folder",
    );
  }
}
