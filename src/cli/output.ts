/** What all commands write, and how: colours, width, the report's folder, remarks. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pico from "picocolors";
import { UserError, errorText } from "../base/errors.ts";
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

function screenWidth(io: Io): number {
  return Math.min(100, Math.max(60, io.out.columns || 100));
}

export function remarkUnread(io: Io, files: readonly string[]): void {
  if (files.length === 0) return;
  io.err.write(
    `skipped ${count(files.length, "file")} of unknown format, for example ${harmless(files[0]!)}\n`,
  );
}

export function printJson(io: Io, document: unknown): void {
  io.out.write(`${JSON.stringify(document, null, 2)}\n`);
}

/** One JSON document, or words for people and where the report is. */
export function printAnswer(
  io: Io,
  { json, out }: { readonly json?: boolean; readonly out?: string },
  document: string,
  words: (colours: ReturnType<typeof pico.createColors>, width: number) => string,
): void {
  if (json) {
    io.out.write(`${document}\n`);
    return;
  }
  io.out.write(`${words(pico.createColors(wantsColour(io)), screenWidth(io))}\n`);
  if (out !== undefined) io.out.write(`report: ${harmless(join(out, "report.html"))}\n`);
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
    throw new UserError(
      `cannot write the report to ${folder}: ${errorText(error)}`,
      "give --out a writable folder",
    );
  }
}
