/**
 * Programs that system tests run when they are there. What was looked for and not found is written down, so that the end of
 * the run can say it once (summary.ts).
 */
import { appendFileSync, existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The file in which test processes leave what they lack; set by the run (vitest.config.ts). */
export const LACKING_FILE = "FAULTLINE_TESTS_LACKING";

/** Debian keeps servers where only root's PATH leads. */
const MORE_FOLDERS = ["/usr/sbin", "/usr/local/sbin", "/sbin"];

/** The program's path; null where it is not installed. */
export function programPath(...names: readonly string[]): string | null {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), ...MORE_FOLDERS];
  const paths = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  return paths.find((path) => existsSync(path)) ?? null;
}

/** Why the tests of something are skipped, for their titles: "" where nothing is missing. */
export function unlessThere(isThere: boolean, what: string, packages: string): string {
  if (isThere) return "";
  const why = `no ${what}: apt install ${packages}`;
  const file = process.env[LACKING_FILE];
  if (file !== undefined) appendFileSync(file, `${why}\n`);
  return ` (skipped, ${why})`;
}
