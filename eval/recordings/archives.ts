/** Which recordings a folder holds; what is wrong with a folder is said in one line. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Large recordings are packed with xz, which halves them; what tests and users read is gzip. */
const ARCHIVE = /\.tar\.[gx]z$/;

export interface Recording {
  readonly name: string;
  /** An archive, or a folder with truth.json in it. */
  readonly path: string;
}

export function archivesIn(folder: string): string[] {
  const archives = namesIn(folder).filter((name) => ARCHIVE.test(name));
  if (archives.length === 0) throw new Error(`${folder} holds no recording (.tar.gz, .tar.xz)`);
  return archives.map((name) => join(folder, name));
}

/** Archives, and folders that were not packed yet; of several with one name the first. */
export function recordingsIn(folders: readonly string[]): Recording[] {
  const found = new Map<string, string>();
  for (const folder of folders)
    for (const name of namesIn(folder)) {
      const path = join(folder, name);
      const isOpen = existsSync(join(path, "truth.json"));
      if (!isOpen && !ARCHIVE.test(name)) continue;
      const own = isOpen ? name : name.replace(ARCHIVE, "");
      if (!found.has(own)) found.set(own, path);
    }
  return [...found]
    .map(([name, path]) => ({ name, path }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why =
      code === "ENOENT" ? "is not there" : code === "ENOTDIR" ? "is no folder" : "cannot be read";
    throw new Error(`${folder} ${why}; give folders of recordings (.tar.gz)`, { cause: error });
  }
}
