/** The store of `faultline logs` in one JSON file: readable, and easy to keep beside the code. */
import { createHash } from "node:crypto";
import { readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { fieldsOf } from "../base/json.ts";
import { errorText, UserError } from "../base/errors.ts";
import { checked } from "../library/load.ts";
import {
  EMPTY_STORE,
  type LogImport,
  type LogKnown,
  type LogStore,
  type Vote,
} from "../model/log-store.ts";

const SCHEMA = "faultline.logs-store/1";
/** Bounded: a template of a healthy job is some hundred characters. */
const MOST_NORMAL = 200_000;
const MOST_JOBS = 1000;
const MOST_COUNT = 1e9;

/** With what was imported into it. */
export async function readLogStore(file: string, mustExist = false): Promise<LogStore> {
  return whole(await readApart(file, mustExist));
}

async function readApart(file: string, mustExist = false): Promise<LogStore> {
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
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw new UserError(`${file} is not JSON: ${errorText(error)}`, MAKE_ONE, 3);
  }
  return logStoreOf(document, file);
}

/** Of a document that anybody may have written: what is not known of it is left out. */
export function logStoreOf(document: unknown, file: string): LogStore {
  const given = document as Partial<LogStore> & { schema?: string };
  if (given?.schema !== SCHEMA)
    throw new UserError(`${file} is no store of faultline logs (${SCHEMA})`, MAKE_ONE, 3);
  const { eventsOf = {}, imports = [] } = given;
  const known = knownIn(given, file);
  const events = Object.keys(known.normal);
  const seen = isMap(eventsOf) ? Object.entries(eventsOf as Record<string, unknown>) : [];
  return {
    ...known,
    eventsOf: Object.fromEntries(
      seen.map(([job, numbers]) => [
        job,
        textOf(numbers)
          .split(" ")
          .flatMap((number) => events[Number(number || NaN)] ?? []),
      ]),
    ),
    imports: (Array.isArray(imports) ? (imports as Partial<LogImport>[]) : []).map((one) => ({
      id: textOf(one?.id),
      from: textOf(one?.from),
      who: textOf(one?.who),
      atMs: typeof one?.atMs === "number" ? one.atMs : 0,
      known: knownIn(one?.known ?? {}, file),
    })),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function isMap(value: unknown): boolean {
  return fieldsOf(value) !== null;
}

function knownIn(given: Partial<LogKnown>, file: string): LogKnown {
  const { jobs = [], normal = {}, records = [], votes = {} } = given;
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
    // Earlier versions took any notes: a store must not become unreadable by what it took.
    votes: Object.fromEntries(
      Object.entries(votes).map(([id, { confirmed, disputed, notes }]) => [
        id,
        { confirmed, disputed, notes: notes.filter((note) => typeof note === "string") },
      ]),
    ),
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
    const store = await change(await readApart(file));
    await writeLogStore(file, store);
    return store;
  } finally {
    await rm(lock, { force: true });
  }
}

/** A job's events as numbers of the store's: their texts are long, and most jobs have the same. */
export function storeText({ eventsOf, ...store }: LogStore): string {
  const numbers = new Map(Object.keys(store.normal).map((text, number) => [text, number]));
  const jobs = Object.entries(eventsOf).map(([job, texts]) => [
    job,
    texts.flatMap((text) => numbers.get(text) ?? []).join(" "),
  ]);
  const document = { schema: SCHEMA, ...store, eventsOf: Object.fromEntries(jobs) as unknown };
  return JSON.stringify(document, null, 1);
}

/** A job of the same name takes no second place; where there are too many, the oldest are forgotten. */
export function learnt(
  store: LogStore,
  job: string,
  templates: readonly string[],
  most = MOST_NORMAL,
): LogStore {
  const isKnown = store.jobs.includes(job);
  const isOld = isKnown && !Object.hasOwn(store.eventsOf, job);
  const own = new Set(isKnown ? store.eventsOf[job] : []);
  const normal = { ...store.normal };
  for (const text of new Set(templates)) {
    const before = Object.hasOwn(normal, text) ? normal[text]! : 0;
    if (isOld ? before > 0 : own.has(text)) continue;
    // Last: what was seen again is young again.
    delete normal[text];
    normal[text] = before + 1;
    own.add(text);
  }
  const entries = Object.entries(normal);
  const kept = entries.length > most ? entries.slice(-most) : entries;
  const jobs = isKnown ? store.jobs : [...store.jobs, job];
  const eventsOf = isOld ? store.eventsOf : { ...store.eventsOf, [job]: [...own] };
  const all = { ...store, jobs, normal: Object.fromEntries(kept), eventsOf };
  return jobs
    .slice(0, -MOST_JOBS)
    .reduce(
      (rest, one) =>
        Object.hasOwn(rest.eventsOf, one)
          ? withoutJob(rest, one)
          : { ...rest, jobs: rest.jobs.filter((other) => other !== one) },
      all,
    );
}

/**
 * As if the job had never been learnt. Of jobs that were learnt before it was kept which event is whose, all are
 * forgotten together: what one of them had must not stay.
 */
export function withoutJob(store: LogStore, job: string): LogStore {
  if (!store.jobs.includes(job)) return store;
  const isOld = !Object.hasOwn(store.eventsOf, job);
  const stays = (one: string): boolean =>
    isOld ? Object.hasOwn(store.eventsOf, one) : one !== job;
  const eventsOf = Object.fromEntries(Object.entries(store.eventsOf).filter(([one]) => stays(one)));
  const counts = new Map<string, number>();
  if (isOld)
    for (const texts of Object.values(eventsOf))
      for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  const gone = new Set(store.eventsOf[job]);
  const normal = Object.entries(store.normal)
    .map(([text, seen]) => {
      const rest = isOld ? (counts.get(text) ?? 0) : seen - (gone.has(text) ? 1 : 0);
      return [text, rest] as const;
    })
    .filter(([, seen]) => seen > 0);
  return { ...store, jobs: store.jobs.filter(stays), normal: Object.fromEntries(normal), eventsOf };
}

/** What another store knows, kept apart; the same contents a second time change nothing. */
export function withImport(
  store: LogStore,
  other: LogKnown,
  about: Pick<LogImport, "from" | "who" | "atMs">,
): LogStore {
  const id = importId(other);
  if (store.imports.some((one) => one.id === id)) return store;
  const { jobs, normal, records, votes } = other;
  const known = { jobs, normal, records, votes };
  return { ...store, imports: [...store.imports, { id, ...about, known }] };
}

export function importId({ jobs, normal, records, votes }: LogKnown): string {
  const text = JSON.stringify([jobs, normal, records, votes]);
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}

/** What it knows itself and what was imported, as one. */
export function whole(store: LogStore): LogStore {
  const own: LogStore = { ...store, imports: [] };
  return store.imports.reduce<LogStore>((sum, { known }) => merged(sum, known), own);
}

/** What another store knows is added, once: adding it twice changes nothing. Of records with the same id the other's is taken. */
export function merged(store: LogStore, other: LogKnown & Partial<LogStore>): LogStore {
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
  return {
    jobs,
    normal,
    records,
    votes,
    eventsOf: { ...store.eventsOf, ...other.eventsOf },
    imports: [...store.imports, ...(other.imports ?? [])],
  };
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
