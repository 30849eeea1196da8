/**
 * The service as somebody sees it who may see some jobs only. All routes get their view here, so that none can forget
 * it: what belongs to another job is not there.
 */
import { fitsAny, overlap } from "../../../base/patterns.ts";
import type { Handling, Mute } from "../../../model/handling.ts";
import { type LiveEvent, Refusal, type ServiceView } from "../view.ts";
import type { Caller } from "./grants.ts";

export function viewFor(view: ServiceView, { jobs }: Pick<Caller, "jobs">): ServiceView {
  return jobs === null ? view : limitedView(view, jobs);
}

/** Who hears of an event: those who see its job. What is about no job may name any: it is for those who see all. */
export type Audience = { readonly job: string } | "everybody" | "who-sees-all";

export function audienceOf(event: LiveEvent): Audience {
  if (event.type === "job") return { job: event.job.job };
  if (event.type === "incident") return { job: event.incident.job };
  if (event.type === "iterations" || event.type === "handling") return { job: event.job };
  return event.type === "actions" || event.type === "mutes" ? "everybody" : "who-sees-all";
}

/** The event as somebody hears it who sees these jobs; the very same where nothing in it is of others. */
export function eventFor(event: LiveEvent, jobs: readonly string[] | null): LiveEvent {
  if (jobs === null) return event;
  if (event.type === "mutes") return { ...event, mutes: shownMutes(event.mutes, jobs) };
  if (event.type !== "handling") return event;
  const handling = shownHandling(event.handling, jobs);
  return handling === event.handling ? event : { ...event, handling };
}

/** In place of what is about somebody else's job. */
const HIDDEN = "hidden";

/** Names of jobs have no dots: ids of incidents begin with the job's. */
function seesIncident(id: string, patterns: readonly string[]): boolean {
  return fitsAny(id.slice(0, id.indexOf(".")), patterns);
}

function shownHandling<T extends Handling>(handling: T, patterns: readonly string[]): T {
  const { mergedInto } = handling;
  if (mergedInto === null || seesIncident(mergedInto, patterns)) return handling;
  return { ...handling, mergedInto: HIDDEN };
}

/** Those that could silence a job of theirs; who made them and why only where they are about their jobs alone. */
function shownMutes(mutes: readonly Mute[], patterns: readonly string[]): readonly Mute[] {
  return mutes
    .filter(({ job }) => job === null || patterns.some((pattern) => overlap(job, pattern)))
    .map((mute) => (isOwn(mute.job, patterns) ? mute : { ...mute, who: HIDDEN, why: HIDDEN }));
}

/** A pattern of somebody's own is theirs as it is; another one might fit jobs of others. */
function isOwn(job: string | null, patterns: readonly string[]): boolean {
  return job !== null && (patterns.includes(job) || (!/[*?]/.test(job) && fitsAny(job, patterns)));
}

export function isAmong({ jobs }: Pick<Caller, "jobs">, audience: Audience): boolean {
  if (jobs === null || audience === "everybody") return true;
  return audience !== "who-sees-all" && fitsAny(audience.job, jobs);
}

/** Of one caller, so that nobody uses up what all share. */
const MOST_OWN_MUTES = 50;

function limitedView(view: ServiceView, patterns: readonly string[]): ServiceView {
  const sees = (job: string): boolean => fitsAny(job, patterns);
  const incident: ServiceView["incident"] = async (id) => {
    const found = await view.incident(id);
    return found && sees(found.job) ? found : null;
  };
  /** What is about an incident, where that one is seen. */
  const of = async <T>(id: string, ask: () => Promise<T>): Promise<T> => {
    if (await incident(id)) return await ask();
    throw new Refusal(404, "there is no such incident");
  };
  const ofAll = (): never => {
    throw new Refusal(403, "the token is for some jobs only, and this is about all");
  };
  const mutes = (): readonly Mute[] => shownMutes(view.mutes(), patterns);
  return {
    jobs: () => view.jobs().filter(({ job }) => sees(job)),
    job: (job) => (sees(job) ? view.job(job) : null),
    ranks: (job) => (sees(job) ? view.ranks(job) : null),
    iterations: async (job, query) => (sees(job) ? await view.iterations(job, query) : null),
    // The store picks them, so that `most` counts what is seen; nothing depends on it.
    incidents: async (query) =>
      (await view.incidents({ ...query, jobs: patterns })).filter(({ job }) => sees(job)),
    incident,
    incidentHistory: async (id) => ((await incident(id)) ? await view.incidentHistory(id) : []),
    picture: async (id) => ((await incident(id)) ? await view.picture(id) : null),
    report: async (id) => ((await incident(id)) ? await view.report(id) : null),
    offenders: (sinceMs, most) => view.offenders(sinceMs, most, patterns),
    audit: async (query) =>
      (await view.audit({ ...query, jobs: patterns })).map((row) =>
        row.what !== "merge" || seesIncident(row.detail, patterns)
          ? row
          : { ...row, detail: HIDDEN },
      ),
    note: (...row) => view.note(...row),
    links: {
      create: (id, ...rest) => of(id, () => view.links.create(id, ...rest)),
      revoke: (id, ...rest) => of(id, () => view.links.revoke(id, ...rest)),
      // Whom it was given to is known by the link alone.
      open: (link) => view.links.open(link),
    },
    act: (id, ...rest) => of(id, () => view.act(id, ...rest)),
    handling: async (id) => {
      const found = (await incident(id)) ? await view.handling(id) : null;
      return found && shownHandling(found, patterns);
    },
    handlings: () =>
      new Map(
        [...view.handlings()]
          .filter(([id]) => seesIncident(id, patterns))
          .map(([id, handling]) => [id, shownHandling(handling, patterns)]),
      ),
    handle: (id, asked, who) =>
      of(id, async () => {
        const work = (): Promise<Handling> => view.handle(id, asked, who, patterns);
        const done = await (asked.do === "merge" ? of(asked.into, work) : work());
        return shownHandling(done, patterns);
      }),
    digest: (sinceMs) => view.digest(sinceMs, patterns),
    mutes,
    mute: async (asked, who) => {
      if (!isOwn(asked.job, patterns))
        return refuse(403, "the token is for some jobs only: name one of them, or its pattern");
      if (view.mutes().filter((mute) => mute.who === who).length >= MOST_OWN_MUTES)
        return refuse(409, `${who} has ${MOST_OWN_MUTES} mutes already: end one of them first`);
      return await view.mute(asked, who);
    },
    unmute: async (id, who) => {
      const found = mutes().find((mute) => mute.id === id);
      if (!found) return refuse(404, "there is no such mute");
      if (!isOwn(found.job, patterns)) return refuse(403, "the mute is about jobs of others, too");
      await view.unmute(id, who);
      return mutes();
    },
    site: () => view.site(patterns),
    siteLabels: () => view.siteLabels(patterns),
    addRecord: ofAll,
    removeRecord: ofAll,
    exportSite: ofAll,
    importSite: ofAll,
    forgetLogs: ofAll,
    agents: () => [],
    actionsSwitch: () => view.actionsSwitch(),
    switchActions: ofAll,
    askShares: async (job, question) => {
      if (sees(job)) return await view.askShares(job, question);
      throw question.ask === "state"
        ? new Refusal(404, "there is no such job")
        : new Refusal(403, "the token is not for this job");
    },
    listen: (listener) =>
      view.listen((event) => {
        if (isAmong({ jobs: patterns }, audienceOf(event))) listener(eventFor(event, patterns));
      }),
    // Figures of the whole service are for those who see all of it.
    stats: () => null,
    health: () => view.health(),
  };
}

function refuse(status: number, message: string): never {
  throw new Refusal(status, message);
}
