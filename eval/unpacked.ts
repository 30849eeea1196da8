/** Runs something on the contents of an archive, unpacked beside everything and taken away afterwards. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export async function unpacked<T>(
  archive: string,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "faultline-eval-"));
  try {
    execFileSync("tar", ["xf", archive, "-C", folder]);
    const [only, ...more] = readdirSync(folder);
    return await use(more.length === 0 && only !== undefined ? join(folder, only) : folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
