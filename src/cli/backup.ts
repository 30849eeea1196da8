/** `faultline backup`: the data folder of a service in one file, while it runs or not. */
import { existsSync } from "node:fs";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { printJson } from "./output.ts";
import { UserError } from "../base/errors.ts";
import { count, harmless } from "../base/text.ts";
import { StoreInUse } from "../history/in-use.ts";
import { openLocalHistory } from "../history/local-history.ts";
import { openTarget, type DumpTarget } from "../live/agent/evidence/dump-target.ts";
import {
  copyStores,
  newTarget,
  type OpenStore,
  refuseHalfRestored,
  removeLeftTargets,
  requestCopies,
  STATE_FILE,
} from "../live/service/store/backup-folder.ts";
import { defaultData } from "../live/service/config/config.ts";
import type { Io } from "./io.ts";

export interface BackupFlags {
  readonly data?: string;
  readonly history?: string;
  readonly out: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

export const BACKUP_SCHEMA = "faultline.backup/1";
export const MANIFEST = "backup.json";
/** What lies in a data folder beside the stores, a folder each. */
export const FOLDERS = ["incidents", "pictures"] as const;
/** Of one file of evidence. */
const MOST_BYTES = 64 * 2 ** 30;

export async function runBackup(io: Io, flags: BackupFlags, version: string): Promise<number> {
  if (!/\.(tar\.gz|tgz)$/i.test(flags.out))
    throw new UserError(`--out ${flags.out}: is no archive's name`, "end it with .tar.gz", 2);
  const folder = resolve(flags.data ?? defaultData(io.env));
  refuseHalfRestored(folder);
  const there = (
    [
      ["history", resolve(flags.history ?? join(folder, "history.duckdb"))],
      ["state", join(folder, STATE_FILE)],
    ] as const
  ).filter(([, path]) => existsSync(path) || existsSync(plainOf(path)));
  if (there.length === 0)
    throw new UserError(
      `${folder} holds no history`,
      "give --data the data folder of faultline serve; a history in ClickHouse is backed up with its own tools",
      3,
    );
  await removeLeftTargets(folder);
  const name = newTarget();
  const copies = join(folder, name);
  await mkdir(copies, { mode: 0o700 });
  try {
    await copyAll(folder, name, there);
    const target = await openTarget(flags.out);
    try {
      const stores = await readdir(copies);
      const about = { schema: BACKUP_SCHEMA, version, made: new Date().toISOString(), stores };
      await target.add(MANIFEST, Buffer.from(`${JSON.stringify(about)}\n`));
      for (const store of stores) await target.addFile(store, join(copies, store), MOST_BYTES);
      const files = await addFolders(target, folder);
      await target.end();
      await say(io, flags, { ...about, file: flags.out, files });
    } catch (error) {
      target.abandon();
      throw error;
    }
  } finally {
    await rm(copies, { recursive: true, force: true });
  }
  return 0;
}

/** A service that runs has all of them open, and copies them itself. */
async function copyAll(
  folder: string,
  name: string,
  paths: readonly (readonly [OpenStore["part"], string])[],
): Promise<void> {
  for (const [part, path] of paths) {
    try {
      const store = await openLocalHistory(path);
      try {
        await copyStores([{ part, ...store }], join(folder, name));
      } finally {
        await store.history.close();
      }
    } catch (error) {
      if (!(error instanceof StoreInUse)) throw error;
      return await requestCopies(folder, name);
    }
  }
}

/** As an installation without DuckDB writes it. */
function plainOf(path: string): string {
  return `${path.replace(/\.duckdb$/, "")}.jsonl`;
}

async function addFolders(target: DumpTarget, folder: string): Promise<number> {
  let files = 0;
  for (const part of FOLDERS) {
    const names = await readdir(join(folder, part), { recursive: true }).catch(() => []);
    for (const name of names.sort((a, b) => (a < b ? -1 : 1))) {
      const path = join(folder, part, name);
      // What is still being written, and what was removed since.
      if (name.endsWith(".part") || !(await stat(path).catch(() => null))?.isFile()) continue;
      await target.addFile(`${part}/${name}`, path, MOST_BYTES);
      files++;
    }
  }
  return files;
}

async function say(
  io: Io,
  { json, quiet }: BackupFlags,
  about: { readonly file: string; readonly stores: readonly string[]; readonly files: number },
): Promise<void> {
  const bytes = (await stat(about.file)).size;
  if (json) printJson(io, { ...about, bytes });
  else if (!quiet)
    io.out.write(
      `${harmless(about.file)}: ${about.stores.join(", ")} and ${count(about.files, "file")} of evidence, ${(bytes / 1e6).toFixed(1)} MB\nrestore it with: faultline restore --data FOLDER '${harmless(about.file)}'\n`,
    );
}
