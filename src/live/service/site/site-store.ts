/** What the site knows of logs: one document of the history, with people's judgements as votes on its records. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { errorText, UserError } from "../../../base/errors.ts";
import type { History } from "../../../history/history.ts";
import {
  importId,
  learnt,
  logStoreOf,
  merged,
  storeText,
  whole,
  withImport,
  withoutJob,
  writeLogStore,
} from "../../../history/log-store-file.ts";
import { withoutSecrets } from "../../../history/masked-store.ts";
import type { FaultRecord } from "../../../model/fault-record.ts";
import { EMPTY_STORE, type LogKnown, type LogStore, type Vote } from "../../../model/log-store.ts";
import type { AskedRecord, ForgottenLogs, SiteLogs } from "../../../model/site.ts";
import { recordOfLine, recordsOf, refuseUnfit } from "../../../pipeline/logs.ts";
import type { AuditWord } from "../view.ts";
import { Refusal } from "../view.ts";
import { countingFor, type Judged } from "./how-right.ts";

export interface SiteStoreOptions {
  readonly history: Pick<History, "document" | "putDocument" | "documentKeys">;
  /** Of this service among those that share the history; "" where it is alone. */
  readonly service: string;
  /** Where `faultline diagnose` finds it. */
  readonly folder: string;
  nowMs(this: void): number;
  judgements(this: void): readonly Judged[];
  /** Names of machines and jobs, which other sites are not to see. */
  names(this: void): Promise<Iterable<string>>;
  /** Rejects where it cannot be written down. */
  audit(this: void, who: string, what: AuditWord, detail: string): Promise<void>;
  trouble(this: void, line: string): void;
}

/** Each service writes a document of its own: none overwrites what another has learnt. */
const KEY = "site/logs";
/** What is here is left out of all of them; saying so must not wait for the services that have it. */
const REMOVED = "site/removed-records/";
const FORGOTTEN = "site/forgotten-jobs/";
const TAKEN_BACK = "site/removed-imports/";
const MOST_SERVICES = 64;
/** Some megabytes: it is written as a whole. */
const MOST_NORMAL = 20_000;
const MOST_JOBS = 1000;
const MOST_RECORDS = 1000;
const MOST_IMPORTS = 16;

export class SiteStore {
  readonly #options: SiteStoreOptions;
  /** Changes come one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: SiteStoreOptions) {
    this.#options = options;
  }

  /** With the judgements that count for the job as votes; empty where nothing can be read. null: for all jobs. */
  async store(job: string | null = null): Promise<LogStore> {
    const store = whole(await this.#read());
    return withJudged(store, countingFor(this.#options.judgements(), job));
  }

  async logs(): Promise<SiteLogs> {
    const apart = await this.#read();
    const store = withJudged(whole(apart), countingFor(this.#options.judgements(), null));
    const own = new Set(store.records.map(({ id }) => id));
    const records = recordsOf(store).filter(
      ({ id }) => own.has(id) || Object.hasOwn(store.votes, id),
    );
    return {
      healthyJobs: store.jobs.length,
      normalEvents: Object.keys(store.normal).length,
      jobs: apart.jobs,
      imports: apart.imports.map(({ known, ...about }) => ({
        ...about,
        jobs: known.jobs.length,
        normalEvents: Object.keys(known.normal).length,
        records: known.records.length,
      })),
      records: records.map(({ id, title, certainty }) => {
        const { confirmed, disputed } = store.votes[id] ?? NO_VOTE;
        return { id, title, isOwn: own.has(id), confirmed, disputed, certainty };
      }),
    };
  }

  /** The store as a file for `diagnose --store` of this job; null where there is nothing in it. */
  file(job: string): Promise<string | null> {
    const work = this.#turn.then(() => this.#write(job));
    this.#turn = work;
    return work;
  }

  async #write(job: string): Promise<string | null> {
    try {
      const store = await this.store(job);
      const { jobs, records, votes } = store;
      if (jobs.length + records.length + Object.keys(votes).length === 0) return null;
      const file = join(this.#options.folder, `site-logs${this.#scopesOf(job)}.json`);
      await writeLogStore(file, store);
      return file;
    } catch (error) {
      this.#options.trouble(`what the site knows of logs is not used: ${errorText(error)}`);
      return null;
    }
  }

  /** Jobs that the same judges see share a file: a diagnosis that runs must not get the votes of others. */
  #scopesOf(job: string): string {
    const judged = countingFor(this.#options.judgements(), job);
    const scopes = new Set(judged.flatMap(({ jobs }) => (jobs === null ? [] : jobs.join(" "))));
    if (scopes.size === 0) return "";
    const text = [...scopes].sort().join("\n");
    return `-${createHash("sha256").update(text).digest("hex").slice(0, 12)}`;
  }

  async hasLearnt(job: string): Promise<boolean> {
    const { jobs } = whole(await this.#read());
    return jobs.includes(job) || (await this.#keys(FORGOTTEN)).has(job);
  }

  /** Events of a job that ended well. */
  async learn(job: string, events: readonly string[]): Promise<void> {
    await this.#change((store) => learnt(store, job, events, MOST_NORMAL));
  }

  async addRecord({ line, ...about }: AskedRecord, who: string): Promise<FaultRecord> {
    return await this.#change(async (store) => {
      const [all, removed] = [whole(await this.#readAll()), await this.#keys(REMOVED)];
      const made = orRefused(() => recordOfLine(line, about, all));
      const record = { ...made, id: freeId(made.id, removed) };
      if (all.records.some(({ id }) => id === record.id))
        throw new Refusal(409, `there is a record ${record.id} already: give another title`);
      const same = all.records.find(({ match }) => isDeepStrictEqual(match, record.match));
      if (same)
        throw new Refusal(
          409,
          `the line is recorded already, as ${same.id}: remove that one first`,
        );
      if (all.records.length >= MOST_RECORDS)
        throw new Refusal(409, `there are ${MOST_RECORDS} records of this site already`);
      await this.#audit(who, "add-record", `${record.id}: ${record.title}`);
      return { ...store, records: [...store.records, record] };
    }).then(({ records }) => records.at(-1)!);
  }

  /** One of the site's own that was a mistake, also where another service has it, or another site exports it again. */
  async removeRecord(id: string, who: string): Promise<SiteLogs> {
    await this.#change(async (store) => {
      const { records } = whole(await this.#readAll());
      const found = records.find((one) => one.id === id);
      if (!found) throw new Refusal(404, "there is no such record of this site");
      await this.#audit(who, "remove-record", `${id}: ${found.title}`);
      await this.#options.history.putDocument(REMOVED + id, { who });
      return without(store, new Set([id]));
    });
    return await this.logs();
  }

  /** A job that was learnt, or an import, with all that came of it, whichever service has it. */
  async forget(what: ForgottenLogs, who: string): Promise<SiteLogs> {
    await this.#change(async (store) => {
      const all = await this.#readAll();
      if ("job" in what) {
        const gone = all.jobs.filter((job) => !withoutJob(all, what.job).jobs.includes(job));
        if (gone.length === 0) throw new Refusal(404, "no such job was learnt");
        await this.#audit(who, "forget-logs", gone.join(", "));
        for (const job of gone) await this.#options.history.putDocument(FORGOTTEN + job, { who });
        return gone.reduce(withoutJob, store);
      }
      const found = all.imports.find(({ id }) => id === what.import);
      if (!found) throw new Refusal(404, "there is no such import");
      await this.#audit(who, "forget-logs", `import ${found.id} from ${found.from || found.who}`);
      await this.#options.history.putDocument(TAKEN_BACK + found.id, { who });
      return { ...store, imports: store.imports.filter(({ id }) => id !== found.id) };
    });
    return await this.logs();
  }

  /** For other sites: records and votes; `texts`: also what people and programs wrote, as far as it can be masked. */
  async exported(texts: boolean): Promise<unknown> {
    const store = withoutSecrets(await this.store(), await this.#options.names(), texts);
    return JSON.parse(storeText(store)) as unknown;
  }

  /** `from`: where it comes from, as people say it. */
  async take(document: unknown, who: string, from = ""): Promise<SiteLogs> {
    const given = orRefused(() => whole(logStoreOf(document, "the body")));
    await this.#change(async (store) => {
      const here = whole(await this.#readAll());
      orRefused(() => refuseUnfit(given.records, here));
      const known = {
        ...given,
        jobs: given.jobs.slice(-MOST_JOBS),
        normal: Object.fromEntries(Object.entries(given.normal).slice(-MOST_NORMAL)),
        // What people judged here is counted anyway.
        votes: lessJudged(given.votes, votesOf(countingFor(this.#options.judgements(), null))),
      };
      const { nowMs, history } = this.#options;
      const after = withImport(store, known, { from, who, atMs: nowMs() });
      if (whole(after).records.length > MOST_RECORDS)
        throw new Refusal(409, `a site may have ${MOST_RECORDS} records`);
      if (after.imports.length > MOST_IMPORTS)
        throw new Refusal(409, `there are ${MOST_IMPORTS} imports: remove one of them first`);
      const { records, jobs } = given;
      const origin = from === "" ? "" : ` from ${from}`;
      await this.#audit(
        who,
        "import-logs",
        `${records.length} records, ${jobs.length} jobs${origin}`,
      );
      // Who imports again what was taken back wants it.
      await history.putDocument(TAKEN_BACK + importId(known), null);
      return after;
    });
    return await this.logs();
  }

  async #audit(who: string, what: AuditWord, detail: string): Promise<void> {
    try {
      await this.#options.audit(who, what, detail);
    } catch {
      throw new Refusal(503, "it cannot be written down at the moment, so it was not done");
    }
  }

  async #read(): Promise<LogStore> {
    try {
      return await this.#readAll();
    } catch (error) {
      this.#options.trouble(`the site's store of logs cannot be read: ${errorText(error)}`);
      return EMPTY_STORE;
    }
  }

  /** What all services have learnt, what was imported apart. */
  async #readAll(): Promise<LogStore> {
    const keys = await this.#options.history.documentKeys(KEY);
    const [removed, forgotten, takenBack] = await Promise.all([
      this.#keys(REMOVED),
      this.#keys(FORGOTTEN),
      this.#keys(TAKEN_BACK),
    ]);
    let all = EMPTY_STORE;
    for (const key of keys.slice(-MOST_SERVICES)) {
      const one = await this.#readOne(key);
      const kept = one.jobs.filter((job) => forgotten.has(job)).reduce(withoutJob, one);
      const known = new Set(all.imports.map(({ id }) => id));
      const imports = kept.imports.filter(({ id }) => !takenBack.has(id) && !known.has(id));
      all = merged(all, without({ ...kept, imports }, removed));
    }
    return all;
  }

  /** What was removed, of one kind. */
  async #keys(prefix: string): Promise<ReadonlySet<string>> {
    const keys = await this.#options.history.documentKeys(prefix);
    return new Set(keys.map((key) => key.slice(prefix.length)));
  }

  async #readOne(key: string): Promise<LogStore> {
    const document = await this.#options.history.document(key);
    return document === null ? EMPTY_STORE : logStoreOf(document, "the site's store of logs");
  }

  /** Of what this service has learnt itself. */
  #change(change: (own: LogStore) => LogStore | Promise<LogStore>): Promise<LogStore> {
    const work = this.#turn.then(async () => {
      const { service, history } = this.#options;
      const key = service === "" ? KEY : `${KEY}/${service}`;
      // Read anew, and not as empty where it cannot be read: nothing is lost.
      const store = await change(await this.#readOne(key));
      await history.putDocument(key, JSON.parse(storeText(store)));
      return store;
    });
    this.#turn = work.catch(() => undefined);
    return work;
  }
}

/** One that was removed stays so: the same line, recorded anew, gets another. */
function freeId(id: string, removed: ReadonlySet<string>): string {
  let free = id;
  for (let number = 2; removed.has(free); number++) free = `${id}-${number}`;
  return free;
}

function without(store: LogStore, ids: ReadonlySet<string>): LogStore {
  if (ids.size === 0) return store;
  const less = <T extends LogKnown>(known: T): T => ({
    ...known,
    records: known.records.filter(({ id }) => !ids.has(id)),
    votes: Object.fromEntries(Object.entries(known.votes).filter(([id]) => !ids.has(id))),
  });
  const imports = store.imports.map((one) => ({ ...one, known: less(one.known) }));
  return { ...less(store), imports };
}

const NO_VOTE: Vote = { confirmed: 0, disputed: 0, notes: [] };

/** Right confirms the records that the verdict rests on; wrong disputes them where the cause was another. */
function votesOf(judgements: readonly Judged[]): Readonly<Record<string, Vote>> {
  const votes: Record<string, Vote> = {};
  for (const { isRight, cause, said } of judgements) {
    if (!isRight && (cause === null || cause === said.cause)) continue;
    for (const id of said.records) {
      const before = Object.hasOwn(votes, id) ? votes[id]! : NO_VOTE;
      const what = isRight ? "confirmed" : "disputed";
      votes[id] = { ...before, [what]: before[what] + 1 };
    }
  }
  return votes;
}

export function withJudged(store: LogStore, judgements: readonly Judged[]): LogStore {
  const votes = { ...store.votes };
  for (const [id, { confirmed, disputed }] of Object.entries(votesOf(judgements))) {
    const before = Object.hasOwn(votes, id) ? votes[id]! : NO_VOTE;
    votes[id] = {
      ...before,
      confirmed: before.confirmed + confirmed,
      disputed: before.disputed + disputed,
    };
  }
  return { ...store, votes };
}

function lessJudged(
  all: LogStore["votes"],
  judged: Readonly<Record<string, Vote>>,
): LogStore["votes"] {
  const rest = Object.entries(all).map(([id, vote]) => {
    const less = Object.hasOwn(judged, id) ? judged[id]! : NO_VOTE;
    const confirmed = Math.max(0, vote.confirmed - less.confirmed);
    const disputed = Math.max(0, vote.disputed - less.disputed);
    return [id, { ...vote, confirmed, disputed }] as const;
  });
  return Object.fromEntries(
    rest.filter(([, { confirmed, disputed, notes }]) => confirmed + disputed + notes.length > 0),
  );
}

function orRefused<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof UserError) throw new Refusal(409, `${error.message}; ${error.hint}`);
    throw error;
  }
}
