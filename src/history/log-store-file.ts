/** The store of `faultline logs` in one JSON file: readable, and easy to keep beside the code. */
import { readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { errorText, UserError } from "../base/errors.ts";
import { checked } from "../library/load.ts";
import { EMPTY_STORE, type LogStore, type Vote } from "../model/log-store.ts";

const SCHEMA = "faultline.logs-store/1";
/** Bounded: a template of a healthy job is some hundred characters. */
const MOST_NORMAL = 200_000;
const MOST_JOBS = 1000;
const MOST_COUNT = 1e9;

export async function readLogStore(file: string, mustExist = false): Promise<LogStore> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT" && !mustExist) return EMPTY_STORE;
    throw new UserError(`${file}: cannot be read: ${errorText(error)}`, MAKE_ONE, 3);
  }
  return parseLogStore(text, file);
}

export function parseLogStore(text: string, file: string): LogStore {
  let given: Partial<LogStore> & { schema?: string };
  try {
    given = JSON.parse(text) as typeof given;
  } catch (error) {
    throw new UserError(`${file} is not JSON: ${errorText(error)}`, MAKE_ONE, 3);
  }
  if (given?.schema !== SCHEMA)
    throw new UserError(`${file} is no store of faultline logs (${SCHEMA})`, MAKE_ONE, 3);
  const { jobs = [], normal = {}, records = [], votes = {} } = given;
  const isMap = (value: unknown): boolean =>
    typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isMap(normal) || !isMap(votes)) throw new UserError(`${file} is damaged`, MAKE_ONE, 3);
  const isCount = (value: unknown): boolean =>
    typeof value === "number" && value >= 0 && value <= MOST_COUNT;
  const isVote = (vote: Partial<Vote> | null): boolean =>
    isCount(vote?.confirmed) && isCount(vote?.disputed) && Array.isArray(vote?.notes);
  const isSound =
    Array.isArray(jobs) &&
    jobs.every((job) => typeof job === "string") &&
    Object.values(normal).every(isCount) &&
    Array.isArray(records) &&
    Object.values(votes).every(isVote);
  if (!isSound) throw new UserError(`${file} is damaged`, MAKE_ONE, 3);
  return {
    jobs,
    normal,
    records: records.map((record, i) => checked(record, `${file}, record ${i + 1}`)),
    votes,
  };
}

const MAKE_ONE = "faultline logs learn --store FILE PATH… makes one";

/** Beside it first, so that a full disk does not cost what was learnt. */
export async function writeLogStore(file: string, store: LogStore): Promise<void> {
  try {
    const fresh = `${file}.${process.pid}.new`;
    await writeFile(fresh, `${storeText(store)}\n`);
    await rename(fresh, file);
  } catch (error) {
    const hint = "give --store a path that can be written";
    throw new UserError(`${file}: cannot be written: ${errorText(error)}`, hint);
  }
}

const LOCK_TRIES = 100;
const LOCK_PAUSE_MS = 100;
/** Whoever died holding it does not keep others out for ever. */
const LOCK_STALE_MS = 60_000;

/** Reads, changes and writes a store while nobody else does. */
export async function changeLogStore(
  file: string,
  change: (store: LogStore) => LogStore | Promise<LogStore>,
): Promise<LogStore> {
  const lock = `${file}.lock`;
  for (let tries = 0; ; tries++) {
    try {
      await writeFile(lock, String(process.pid), { flag: "wx" });
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
        const hint = "give --store a path that can be written";
        throw new UserError(`${file}: cannot be written: ${errorText(error)}`, hint);
      }
      const age = await stat(lock).then(
        ({ mtimeMs }) => Date.now() - mtimeMs,
        () => 0,
      );
      if (age > LOCK_STALE_MS) await rm(lock, { force: true });
      else if (tries >= LOCK_TRIES)
        throw new UserError(`${file} is being changed by somebody else`, `remove ${lock} if not`);
      else await new Promise((done) => setTimeout(done, LOCK_PAUSE_MS));
    }
  }
  try {
    const store = await change(await readLogStore(file));
    await writeLogStore(file, store);
    return store;
  } finally {
    await rm(lock, { force: true });
  }
}

export function storeText(store: LogStore): string {
  return JSON.stringify({ schema: SCHEMA, ...store }, null, 1);
}

/** A job of the same name takes no second place; templates that only old jobs had go first where they are too many. */
export function learnt(
  store: LogStore,
  job: string,
  templates: readonly string[],
  most = MOST_NORMAL,
): LogStore {
  const isKnown = store.jobs.includes(job);
  const normal = { ...store.normal };
  for (const text of new Set(templates)) {
    const before = Object.hasOwn(normal, text) ? normal[text]! : 0;
    if (before === 0 || !isKnown) {
      // Last: what was seen again is young again.
      delete normal[text];
      normal[text] = before + 1;
    }
  }
  const entries = Object.entries(normal);
  const kept = entries.length > most ? entries.slice(-most) : entries;
  const jobs = isKnown ? store.jobs : [...store.jobs, job].slice(-MOST_JOBS);
  return { ...store, jobs, normal: Object.fromEntries(kept) };
}

/** What another store knows is added, once: importing twice changes nothing. Of records with the same id the other's is taken. */
export function merged(store: LogStore, other: LogStore): LogStore {
  const ids = new Set(other.records.map(({ id }) => id));
  const jobs = [...new Set([...store.jobs, ...other.jobs])];
  const fresh = other.jobs.some((job) => !store.jobs.includes(job));
  const normal = { ...store.normal };
  for (const [text, seen] of Object.entries(other.normal)) {
    const before = Object.hasOwn(normal, text) ? normal[text]! : 0;
    normal[text] = fresh ? before + seen : Math.max(before, seen);
  }
  const votes = { ...store.votes };
  for (const [id, vote] of Object.entries(other.votes)) {
    const before = Object.hasOwn(votes, id) ? votes[id]! : { confirmed: 0, disputed: 0, notes: [] };
    votes[id] = {
      confirmed: Math.max(before.confirmed, vote.confirmed),
      disputed: Math.max(before.disputed, vote.disputed),
      notes: [...new Set([...before.notes, ...vote.notes])],
    };
  }
  const records = [...store.records.filter(({ id }) => !ids.has(id)), ...other.records];
  return { jobs, normal, records, votes };
}

export function voted(
  store: LogStore,
  id: string,
  what: "confirmed" | "disputed",
  note: string,
): LogStore {
  const before = Object.hasOwn(store.votes, id)
    ? store.votes[id]!
    : { confirmed: 0, disputed: 0, notes: [] };
  const notes = note === "" ? before.notes : [...before.notes, note].slice(-50);
  return {
    ...store,
    votes: { ...store.votes, [id]: { ...before, [what]: before[what] + 1, notes } },
  };
}
