/** Which archives a folder of recordings holds; what is wrong with a folder is said in one line. */
import { readdirSync } from "node:fs";
import { join } from "node:path";

export function archivesIn(folder: string): string[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why =
      code === "ENOENT" ? "is not there" : code === "ENOTDIR" ? "is no folder" : "cannot be read";
    throw new Error(`${folder} ${why}; give folders of recordings (.tar.gz)`, { cause: error });
  }
  const archives = names.filter((name) => name.endsWith(".tar.gz")).sort();
  if (archives.length === 0) throw new Error(`${folder} holds no recording (.tar.gz)`);
  return archives.map((name) => join(folder, name));
}
