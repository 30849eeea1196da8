/** Who looks after which incident, and what is muted: read from the audit trail, kept in memory, written there first. */
import type { AuditRow, History } from "../../../history/history.ts";
import { CAUSES } from "../../../model/cause.ts";
import {
  acknowledgedNow,
  type CommentedHandling,
  type Handling,
  type Mute,
  rootOf,
  saidThen,
  type SaidThen,
} from "../../../model/handling.ts";
import type { Incident } from "../../../model/incident.ts";
import { knownMachine, nearMachines } from "../../../model/machine-names.ts";
import { fits } from "../../../base/patterns.ts";
import type { Hush } from "../alerts/types.ts";
import { Refusal } from "../view.ts";
import {
  after,
  type Asked,
  type AskedMute,
  commentsOf,
  type Deed,
  detailOf,
  isDeed,
  mayJudge,
  type MuteDeed,
  muteOf,
  untouched,
} from "./deeds.ts";

export interface WorkflowOptions {
  readonly history: Pick<History, "audit" | "putAudit">;
  nowMs(this: void): number;
  newId(this: void): string;
  /** As it is now; null where nobody knows it. */
  incident(this: void, id: string): Promise<Incident | null>;
  /** Names of all that are known, also of earlier jobs. */
  machines(this: void): Promise<Iterable<string>>;
  /** What people see and hear of the incident may change; null: of all. */
  changed(this: void, incident: Incident | null, handling: Handling | null): void;
}

/** Rows of a page, and pages that are read at the start; what is older is read where somebody looks at its incident. */
const MOST_ROWS = 10_000;
const MOST_PAGES = 100;
/** Rows that are looked at for what other services wrote. */
const LATEST_ROWS = 200;
/** Incidents that are kept in memory, those that were touched last; others are read where somebody looks at them. */
const MOST_HANDLINGS = 10_000;
const MOST_SEEN = 20 * LATEST_ROWS;
const MOST_MUTES = 2000;
const MOST_REOPENED = 100;
const MOST_MUTE_MS = 90 * 86_400_000;
const MOST_MERGES = 32;
const MOST_NEAR = 5;

export class Workflow {
  readonly #options: WorkflowOptions;
  readonly #handlings = new Map<string, Handling>();
  readonly #mutes = new Map<string, Mute>();
  readonly #seen = new Set<string>();
  /** Whether the incidents are over that others, which may be open, are merged into. */
  readonly #over = new Map<string, boolean>();
  /** Whether rows were left unread at the start. */
  #hasOlder = true;
  #isRead = false;
  /** One deed after the other: each rests on what the one before left. */
  #last: Promise<unknown> = Promise.resolve();
  #lastMs = 0;

  constructor(options: WorkflowOptions) {
    this.#options = options;
  }

  /** Takes in what was written since; a store that is away is asked again later. */
  refresh(): Promise<void> {
    return this.#inTurn(() => this.#refresh());
  }

  async #refresh(): Promise<void> {
    const isFirst = !this.#isRead;
    const rows = isFirst
      ? await this.#readAll()
      : await this.#options.history.audit({ most: LATEST_ROWS });
    this.#isRead = true;
    const news = rows.filter((row) => isDeed(row) && !this.#seen.has(row.id)).reverse();
    for (const row of news) this.#take(row);
    for (const id of this.#over.keys()) await this.#look(id);
    if (isFirst) return;
    for (const id of new Set(news.map(({ incident }) => incident))) {
      // In the order of the trail, which may not be the one in which rows were seen here.
      if (id !== "") this.#keep(await this.#read(id));
      await this.#tell(id);
    }
  }

  /** Page by page, the newest first, for other rows may be many. */
  async #readAll(): Promise<AuditRow[]> {
    const all: AuditRow[] = [];
    let before: { readonly atMs: number; readonly id: string } | undefined;
    for (let page = 0; page < MOST_PAGES; page++) {
      const rows = await this.#options.history.audit({
        most: MOST_ROWS,
        ...(before ? { before } : {}),
      });
      all.push(...rows.filter(isDeed));
      before = rows.at(-1);
      this.#hasOlder = rows.length >= MOST_ROWS;
      if (!this.#hasOlder) break;
    }
    return all;
  }

  /** Incidents that somebody has touched, of those that were read. */
  get handlings(): ReadonlyMap<string, Handling> {
    return this.#handlings;
  }

  async handling(id: string): Promise<Handling> {
    const known = this.#handlings.get(id);
    return known ?? (this.#hasOlder ? await this.#read(id) : untouched(id));
  }

  async commented(id: string): Promise<CommentedHandling> {
    const handling = await this.handling(id);
    const rows = handling.commentCount === 0 ? [] : await this.#rowsOf(id);
    return { ...handling, comments: commentsOf(rows) };
  }

  /** Resolved, and somebody says that it is not over; the latest ones. */
  reopened(): ReadonlySet<string> {
    const all = [...this.#handlings.values()].filter(({ reopened }) => reopened !== null);
    return new Set(all.slice(-MOST_REOPENED).map(({ incident }) => incident));
  }

  /** Those that are not over, the next to end first. */
  mutes(): readonly Mute[] {
    const nowMs = this.#options.nowMs();
    for (const { id, untilMs } of this.#mutes.values())
      if (untilMs <= nowMs) this.#mutes.delete(id);
    return [...this.#mutes.values()].sort((a, b) => a.untilMs - b.untilMs);
  }

  /** Why nobody is to be alerted of it now; null: nothing speaks against it. */
  hush(incident: Incident): Hush | null {
    const nowMs = this.#options.nowMs();
    const muted = this.mutes().find((mute) => mute.fromMs <= nowMs && covers(mute, incident));
    if (muted) return { how: "muted", who: muted.who, why: muted.why };
    const handling = this.#handlings.get(incident.id) ?? untouched(incident.id);
    const acknowledged = acknowledgedNow(handling, incident);
    const root = rootOf(this.#handlings, incident.id);
    if (root !== incident.id && !this.#isOver(root))
      return { how: "muted", who: "", why: `the same as ${root}` };
    return acknowledged && { how: "acknowledged", who: acknowledged.who, why: "" };
  }

  /** Nobody is alerted of that one any more: what is the same and still open must not be silent, too. */
  #isOver(id: string): boolean {
    const isOver = this.#over.get(id);
    // Looked at soon: most are merged while both are open.
    if (isOver === undefined) this.#over.set(id, false);
    return isOver ?? false;
  }

  async #look(id: string): Promise<void> {
    const found = await this.#options.incident(id).catch(() => undefined);
    if (found !== undefined) this.#over.set(id, found === null || found.state === "resolved");
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work, work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** `jobs`: what somebody may see who does not see all jobs. */
  handle(
    id: string,
    asked: Asked,
    who: string,
    jobs: readonly string[] | null = null,
  ): Promise<Handling> {
    return this.#inTurn(() => this.#handle(id, asked, who, jobs));
  }

  async #handle(
    id: string,
    asked: Asked,
    who: string,
    jobs: readonly string[] | null,
  ): Promise<Handling> {
    const incident = await this.#options.incident(id);
    if (!incident) throw new Refusal(404, "there is no such incident");
    const deed = await this.#deedOf(incident, asked, jobs);
    const before = await this.handling(id);
    if (asked.do === "judge" && !mayJudge(before, who, jobs))
      throw new Refusal(
        409,
        "somebody has judged it already: only who sees all jobs may change that",
      );
    if (asked.do === "reopen" && incident.state !== "resolved")
      throw new Refusal(409, "the incident is open");
    if (asked.do === "close" && before.reopened === null)
      throw new Refusal(409, "nobody has reopened the incident");
    this.#keep(before);
    const row = await this.#write(id, deed, who);
    this.#take(row);
    await this.#tell(id);
    return this.#handlings.get(id) ?? (await this.#read(id));
  }

  async mute(asked: AskedMute, who: string): Promise<Mute> {
    const { job, machine, cause, fromMs, untilMs } = asked;
    if (job === null && machine === null && cause === null)
      throw new Refusal(400, "a mute names a job, a machine or a cause");
    const nowMs = this.#options.nowMs();
    if (untilMs <= Math.max(nowMs, fromMs) || untilMs - nowMs > MOST_MUTE_MS)
      throw new Refusal(400, "a mute ends after it begins, and within 90 days");
    if (nowMs - fromMs > MOST_MUTE_MS)
      throw new Refusal(
        400,
        "a mute begins at most 90 days ago: fromMs is milliseconds since 1970",
      );
    if (cause !== null && !CAUSES.some((one) => fits(one, cause)))
      throw new Refusal(400, `no cause is called "${cause}": they are ${CAUSES.join(", ")}`);
    if (this.mutes().length >= MOST_MUTES)
      throw new Refusal(409, `there are ${MOST_MUTES} mutes already`);
    const mute = { ...asked, id: this.#options.newId() };
    this.#take(await this.#write("", { do: "mute", mute }, who));
    this.#options.changed(null, null);
    return { ...mute, who };
  }

  async unmute(id: string, who: string): Promise<readonly Mute[]> {
    if (!this.mutes().some((mute) => mute.id === id))
      throw new Refusal(404, "there is no such mute, or it is over");
    this.#take(await this.#write("", { do: "unmute", id }, who));
    this.#options.changed(null, null);
    return this.mutes();
  }

  async #deedOf(incident: Incident, asked: Asked, jobs: readonly string[] | null): Promise<Deed> {
    if (asked.do === "acknowledge") return { ...asked, relapses: incident.relapses };
    if (asked.do === "judge") {
      const { isRight, cause } = asked;
      if (incident.verdict === null)
        throw new Refusal(409, "the incident has no verdict that could be right or wrong");
      const said = saidThen(incident);
      const machine =
        asked.machine === null ? null : await this.#machine(asked.machine, said, jobs);
      const isOther =
        (machine !== null && said.machines.length > 0 && !said.machines.includes(machine)) ||
        (cause !== null && said.cause !== null && cause !== said.cause);
      if (isRight && isOther)
        throw new Refusal(400, "a verdict that named another machine or cause was not right");
      return { do: "judge", judgement: { isRight, machine, cause, jobs, said } };
    }
    if (asked.do === "merge") await this.#checkMerge(incident.id, asked.into);
    return asked;
  }

  /** As it is known, however it is spelled: otherwise its history would be another machine's. */
  async #machine(
    spelled: string,
    { machines: accused }: SaidThen,
    jobs: readonly string[] | null,
  ): Promise<string> {
    if (accused.includes(spelled)) return spelled;
    const all = await this.#options.machines().catch(() => {
      throw new Refusal(503, "the machines are not known at the moment, so it was not done");
    });
    const known = [...accused, ...all];
    const name = knownMachine(spelled, known);
    if (name !== null) return name;
    // Who sees some jobs only is not told the machines of others.
    const near = nearMachines(spelled, jobs === null ? known : accused, MOST_NEAR);
    const there = near.length === 0 ? "" : `; there are ${near.join(", ")}`;
    throw new Refusal(400, `no machine ${spelled} is known${there}`);
  }

  /** A chain of merges must end. */
  async #checkMerge(id: string, into: string): Promise<void> {
    let at: string | null = into;
    for (let steps = 0; at !== null; steps++) {
      if (at === id || steps > MOST_MERGES)
        throw new Refusal(409, "an incident cannot be merged into itself");
      if (steps === 0 && (await this.#options.incident(at)) === null)
        throw new Refusal(404, "there is no incident to merge into");
      at = (await this.handling(at)).mergedInto;
    }
  }

  async #write(incident: string, deed: Deed | MuteDeed, who: string): Promise<AuditRow> {
    const { history, nowMs, newId } = this.#options;
    // Rows of one moment would be read back in any order.
    this.#lastMs = Math.max(nowMs(), this.#lastMs + 1);
    const row: AuditRow = {
      id: newId(),
      atMs: this.#lastMs,
      who,
      what: deed.do,
      incident,
      action: "",
      detail: detailOf(deed),
    };
    try {
      await history.putAudit(row);
    } catch {
      throw new Refusal(503, "it cannot be written down at the moment, so it was not done");
    }
    return row;
  }

  #take(row: AuditRow): void {
    this.#seen.add(row.id);
    for (const id of this.#seen) {
      if (this.#seen.size <= MOST_SEEN) break;
      this.#seen.delete(id);
    }
    this.#lastMs = Math.max(this.#lastMs, row.atMs);
    const mute = row.what === "mute" ? muteOf(row) : null;
    if (mute !== null) this.#mutes.set(mute.id, mute);
    else if (row.what === "unmute") this.#mutes.delete(row.detail);
    else {
      const known = this.#handlings.get(row.incident) ?? untouched(row.incident);
      this.#keep(after(known, row));
    }
  }

  #keep(handling: Handling): void {
    this.#handlings.delete(handling.incident);
    this.#handlings.set(handling.incident, handling);
    if (this.#handlings.size <= MOST_HANDLINGS) return;
    this.#hasOlder = true;
    for (const id of this.#handlings.keys()) {
      this.#handlings.delete(id);
      return;
    }
  }

  /** Oldest first. */
  async #rowsOf(id: string): Promise<readonly AuditRow[]> {
    const rows = await this.#options.history.audit({ incident: id, most: MOST_ROWS });
    return rows.filter(isDeed).reverse();
  }

  async #read(id: string): Promise<Handling> {
    return (await this.#rowsOf(id)).reduce(after, untouched(id));
  }

  async #tell(id: string): Promise<void> {
    const { incident, changed } = this.#options;
    const root = rootOf(this.#handlings, id);
    if (root !== id) await this.#look(root);
    if (id === "") changed(null, null);
    else changed(await incident(id).catch(() => null), this.#handlings.get(id) ?? null);
  }
}

/** Cause and machine of any suspect will do: who mutes a machine does not want to hear of it. */
export function covers({ job, machine, cause }: Mute, incident: Incident): boolean {
  const causes = incident.verdict?.suspects.map((suspect): string => suspect.cause) ?? [];
  return (
    (job === null || fits(incident.job, job)) &&
    (machine === null || incident.machines.some((one) => fits(one, machine))) &&
    (cause === null || causes.some((one) => fits(one, cause)))
  );
}
