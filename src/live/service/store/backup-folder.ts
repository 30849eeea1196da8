/**
 * Backups of a data folder. Only one process can have the history open, so a backup of a running service is asked for by a
 * file in its folder: who may write there may have a copy, and no token or address is needed.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { access, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { errorText, UserError } from "../../../base/errors.ts";
import type { History } from "../../../history/history.ts";
import { LINK_KEY } from "../access/links.ts";

/** Documents of jobs, where the history itself is in ClickHouse. */
export const STATE_FILE = "state.duckdb";
/** There while a restore is under way. */
export const RESTORING = ".restoring";
const REQUEST = ".backup-request";
const DONE = "done.json";
/** What a folder for a backup is called. */
const TARGET = /^\.backup-[0-9a-f]{12}$/;
const LOOK_MS = 500;
/** A service looks twice a second; one that does not take the request in this time does not work. */
const TAKEN_MS = 15_000;
const COPIED_MS = 600_000;
/** No backup takes as long. */
const LEFT_MS = 24 * 3600_000;

/** A store and its part in the service; whatever its file is called, the copy is called after the part. */
export interface OpenStore {
  readonly part: "history" | "state";
  readonly history: History;
  readonly file: string;
}

export function newTarget(): string {
  return `.backup-${randomBytes(6).toString("hex")}`;
}

/** What backups that were killed have left. */
export async function removeLeftTargets(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    if (!TARGET.test(name)) continue;
    const { mtimeMs = Date.now() } = (await stat(join(folder, name)).catch(() => null)) ?? {};
    if (Date.now() - mtimeMs > LEFT_MS) await rm(join(folder, name), { recursive: true });
  }
}

/** Nothing of a restore counts before all of it is there. */
export function refuseHalfRestored(folder: string): void {
  if (existsSync(join(folder, RESTORING)))
    throw new UserError(
      `${folder} holds half a restore`,
      `run faultline restore --data '${folder}' FILE again, or rm -r '${join(folder, RESTORING)}' to start without it`,
    );
}

/** Copies stores into the folder that a request names. Returns how to stop. */
export function answerBackups(
  folder: string,
  stores: readonly OpenStore[],
  log: (line: string) => void,
): () => void {
  let isBusy = false;
  const timer = setInterval(() => {
    if (isBusy) return;
    isBusy = true;
    void answer(folder, stores, log).finally(() => (isBusy = false));
  }, LOOK_MS).unref();
  return () => clearInterval(timer);
}

async function answer(
  folder: string,
  stores: readonly OpenStore[],
  log: (line: string) => void,
): Promise<void> {
  const request = join(folder, REQUEST);
  const name = await readFile(request, "utf8").catch(() => null);
  if (name === null) return;
  await rm(request, { force: true });
  if (!TARGET.test(name)) return;
  const target = join(folder, name);
  let error: string | null = null;
  try {
    await copyStores(stores, target);
    log(`a copy for a backup was written to ${target}`);
  } catch (reason) {
    error = errorText(reason);
    log(`a backup failed: ${error}`);
  }
  await writeFile(join(target, `${DONE}.new`), JSON.stringify({ error })).catch(() => {});
  await rename(join(target, `${DONE}.new`), join(target, DONE)).catch(() => {});
}

/** One file a store, of one moment each. Whoever has a backup must not be able to sign links to incidents. */
export async function copyStores(stores: readonly OpenStore[], target: string): Promise<void> {
  for (const { part, history, file } of stores)
    await history.copyTo?.(
      join(target, `${part}${file.endsWith(".jsonl") ? ".jsonl" : ".duckdb"}`),
      [LINK_KEY],
    );
}

/** Asks the service that has the stores open; resolves when they are copied. */
export async function requestCopies(folder: string, name: string): Promise<void> {
  const request = join(folder, REQUEST);
  const done = join(folder, name, DONE);
  await writeFile(`${request}.new`, name, { mode: 0o600 });
  await rename(`${request}.new`, request);
  const began = performance.now();
  for (;;) {
    const read = await readFile(done, "utf8").catch(() => null);
    if (read !== null) {
      await rm(done, { force: true });
      const { error } = JSON.parse(read) as { error: string | null };
      if (error !== null)
        throw new UserError(`the service could not copy its history: ${error}`, "see its log");
      return;
    }
    const sinceMs = performance.now() - began;
    const isWaiting = await access(request).then(
      () => true,
      () => false,
    );
    if (sinceMs > (isWaiting ? TAKEN_MS : COPIED_MS)) {
      await rm(request, { force: true });
      throw new UserError(
        `the process that has the history of ${folder} open does not answer`,
        "stop it and try again: a backup needs no service",
      );
    }
    await pause(LOOK_MS / 5);
  }
}
