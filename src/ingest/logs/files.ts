/** Which files of a job's folder may be logs, by their names, and what of it cannot be read. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** What lies beside logs in a job's folder. */
const NOT_A_LOG =
  /^\.|\.(?:py|pyc|sh|json|ya?ml|toml|cfg|ini|md|csv|tsv|parquet|arrow|pt|pth|ckpt|bin|idx|safetensors|npy|npz|pkl|pickle|h5|png|jpe?g|gif|svg|pdf|html?|css|js|ts|so|o|a|cu|cpp|cc|h|tar|tgz|zip|zst|xz|bz2|7z|db|sqlite|pb|trace|nsys-rep|qdrep|lock)$|\.tar\.\w+$/i;

/** Asked of what lies in folders, not of files that somebody names. */
export function mayBeLog(name: string): boolean {
  return !NOT_A_LOG.test(name);
}

/** Folders that cannot be listed and links to nothing, a sentence each: the walk passes them by. */
export async function unreadable(paths: readonly string[]): Promise<string[]> {
  const sentences: string[] = [];
  for (const path of paths) {
    const isFolder = (await stat(path).catch(() => null))?.isDirectory() === true;
    if (isFolder) await look(path, sentences);
  }
  return sentences;
}

async function look(folder: string, sentences: string[]): Promise<void> {
  let entries;
  try {
    entries = await readdir(folder, { withFileTypes: true });
  } catch (error) {
    sentences.push(`${folder}: it could not be listed: ${whyUnread(error)}`);
    return;
  }
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && !entry.name.startsWith(".")) await look(path, sentences);
    // Links to folders may lead round in circles.
    if (!entry.isSymbolicLink() || !mayBeLog(entry.name)) continue;
    await stat(path).catch((error) => sentences.push(`${path}: ${whyUnread(error)}`));
  }
}

function whyUnread(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "EACCES" || code === "EPERM") return "permission denied";
  return code === "ENOENT" ? "it does not exist (any more)" : message;
}
