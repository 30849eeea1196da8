/**
 * `faultline restore`: a data folder from a backup. It goes into a folder without a history; until all of it is there, a
 * service refuses the folder, and another try begins anew.
 */
import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, rmdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { printJson } from "./output.ts";
import { errorText, UserError } from "../base/errors.ts";
import { count, harmless } from "../base/text.ts";
import { openLocalHistory } from "../history/local-history.ts";
import { tarMembers } from "../ingest/tar.ts";
import { RESTORING } from "../live/service/store/backup-folder.ts";
import { defaultData } from "../live/service/config/config.ts";
import { BACKUP_SCHEMA, FOLDERS, MANIFEST } from "./backup.ts";
import type { Io } from "./io.ts";

export interface RestoreFlags {
  readonly data?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

const STORES = ["state.duckdb", "state.jsonl", "history.duckdb", "history.jsonl"];
/** The history comes last: with it the folder is whole. */
const PARTS = [...FOLDERS, ...STORES];

export async function runRestore(io: Io, file: string, flags: RestoreFlags): Promise<number> {
  if (!existsSync(file)) throw new UserError(`${file}: there is no such file`, NO_BACKUP, 3);
  const folder = resolve(flags.data ?? defaultData(io.env));
  const draft = join(folder, RESTORING);
  await prepare(folder, draft);
  try {
    const files = await unpack(file, draft);
    const { made } = await checked(file, draft);
    for (const part of PARTS)
      if (existsSync(join(draft, part))) await rename(join(draft, part), join(folder, part));
    await rm(draft, { recursive: true });
    if (flags.json) printJson(io, { schema: "faultline.restore/1", data: folder, made, files });
    else if (!flags.quiet)
      io.out.write(
        `${harmless(folder)}: restored ${count(files, "file")} of ${harmless(made)}; start it with: faultline serve --data '${harmless(folder)}'\n`,
      );
  } catch (error) {
    // Nothing has been moved, or all of it can be had again from the file.
    await empty(folder);
    await rm(draft, { recursive: true, force: true });
    if (error instanceof UserError) throw error;
    throw new UserError(
      `${file} cannot be restored: ${errorText(error)}`,
      "check the file and the room on the disk",
    );
  }
  return 0;
}

/** What an interrupted restore left is removed: no service has used it. */
async function prepare(folder: string, draft: string): Promise<void> {
  if (existsSync(draft)) {
    await empty(folder);
    await rm(draft, { recursive: true, force: true });
  }
  for (const part of PARTS) {
    const path = join(folder, part);
    const names = await readdir(path).catch((error: NodeJS.ErrnoException) =>
      error.code === "ENOENT" ? [] : [part],
    );
    if (names.length > 0)
      throw new UserError(
        `${folder} is in use: there is ${part}`,
        `stop the service, and move its folder away: mv '${folder}' '${folder}.before'`,
      );
    // An empty folder is in the way of the one that comes.
    await rmdir(path).catch(() => {});
  }
  await mkdir(draft, { recursive: true, mode: 0o700 });
}

async function empty(folder: string): Promise<void> {
  for (const part of PARTS) await rm(join(folder, part), { recursive: true, force: true });
}

/** The files in it, counted. */
async function unpack(file: string, draft: string): Promise<number> {
  let defect: string | null = null;
  let files = 0;
  const bytes = createGunzip();
  // Ends `bytes` with the error, which the loop throws.
  void pipeline(createReadStream(file), bytes).catch(() => {});
  for await (const { name, chunks } of tarMembers(bytes, (what) => (defect = what))) {
    if (!isOurs(name)) throw new UserError(`${file} holds ${harmless(name)}`, NO_BACKUP, 3);
    const path = join(draft, name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await pipeline(Readable.from(chunks), createWriteStream(path, { mode: 0o600 }));
    const handle = await open(path, "r+");
    await handle.sync();
    await handle.close();
    files++;
  }
  if (defect !== null) throw new UserError(`${file}: ${String(defect)}`, NO_BACKUP, 3);
  return files - 1;
}

const NO_BACKUP = "give a file that faultline backup has written";

/** Nothing leads out of the folder. */
function isOurs(name: string): boolean {
  if (name === MANIFEST || STORES.includes(name)) return true;
  const [first, ...rest] = name.split("/");
  return (
    FOLDERS.some((part) => part === first) &&
    rest.length > 0 &&
    rest.every((part) => part !== "" && part !== "." && part !== "..")
  );
}

async function checked(file: string, draft: string): Promise<{ readonly made: string }> {
  const text = await readFile(join(draft, MANIFEST), "utf8").catch(() => "null");
  const about = JSON.parse(text) as {
    readonly schema?: string;
    readonly version?: string;
    readonly made?: string;
    readonly stores?: readonly string[];
  } | null;
  if (about?.schema !== BACKUP_SCHEMA)
    throw new UserError(
      about?.schema?.startsWith("faultline.backup/")
        ? `${file} was written by a newer Faultline (${harmless(String(about.version))})`
        : `${file} is no backup`,
      NO_BACKUP,
      3,
    );
  // What the archive holds, and not only what it says: names could lead elsewhere.
  const stores = STORES.filter((store) => existsSync(join(draft, store)));
  const said = about.stores ?? [];
  if (said.length !== stores.length || !stores.every((store) => said.includes(store)))
    throw new UserError(`${file} is not whole`, NO_BACKUP, 3);
  for (const store of stores) {
    // Reads all records, compares checksums, and brings it up to date.
    const path = join(draft, store.replace(/jsonl$/, "duckdb"));
    // What it advises is for a file that stays.
    const { history } = await openLocalHistory(path).catch((error: unknown) => {
      const hint = "give another backup: nothing was changed";
      throw new UserError(`${file} cannot be restored: ${errorText(error)}`, hint, 3);
    });
    await history.close();
  }
  return { made: about.made ?? "" };
}
