/** What the service shows: jobs, ranks and iterations from memory, incidents and what was done from the history. */
import { errorText } from "../../base/errors.ts";
import { fits, fitsAny } from "../../base/patterns.ts";
import type { IterationRows } from "../../history/history.ts";
import type { Incident } from "../../model/incident.ts";
import { answersWithin } from "./answers-within.ts";
import { healthOf } from "./health.ts";
import type { Service } from "./service.ts";
import { rankColumns } from "./job/rank-columns.ts";
import { jobView } from "./job/job-view.ts";
import { countingFor, howRight, type Judged } from "./site/how-right.ts";
import { labelsOf } from "./site/labels.ts";
import { correctedOffenders, countedTwice } from "./site/machine-history.ts";
import { Refusal, type ServiceView } from "./view.ts";

/** An answer that takes longer than this is given without the outcome. */
const ANSWER_MS = 20_000;
/** Less than /healthz waits: a database that does not answer is away, which is an answer. */
const PING_MS = 3000;
const NOTHING: IterationRows = {
  iteration: new Float64Array(0),
  endMs: new Float64Array(0),
  durationMs: new Float64Array(0),
};

const MOST_JOBS = 10_000;

export function serviceView(service: Service, startedMs: number): ServiceView {
  const { incidents } = service;
  const { history } = service.options;

  /** What counts everywhere, or what was said of incidents of these jobs. */
  const judgedOf = (jobs: readonly string[] | undefined): readonly Judged[] =>
    jobs === undefined
      ? countingFor(service.judgements(), null)
      : service.judgements().filter(({ said }) => fitsAny(said.job, jobs));
  /** Also by a pattern, and also where nobody can say. */
  const isKnownJob = async (pattern: string): Promise<boolean> => {
    if ([...service.jobs.keys()].some((job) => fits(job, pattern))) return true;
    const rows = await history.jobs(MOST_JOBS).catch(() => null);
    return rows?.some(({ job }) => fits(job, pattern)) ?? true;
  };
  return {
    jobs: () =>
      [...service.jobs.values()]
        .map((leased) => jobView(leased, service))
        .sort((a, b) => b.seenMs - a.seenMs || (a.job < b.job ? -1 : 1)),
    job(job) {
      const leased = service.jobs.get(job);
      return leased ? jobView(leased, service) : null;
    },
    ranks(job) {
      const run = service.jobs.get(job)?.run;
      if (!run) return null;
      return rankColumns(run, service.agents, (layout) => service.temperatures.of(layout));
    },
    async iterations(job, { fromMs = -Infinity, toMs = Infinity, most, run }) {
      const leased = service.jobs.get(job);
      if (!leased) return null;
      const isEarlier = run !== undefined && run !== leased.saved.run;
      const series = isEarlier ? undefined : leased.run?.iterations.series();
      if (series && (series.endMs[0] ?? Infinity) <= fromMs)
        return thinned(series, fromMs, toMs, most);
      const range = {
        ...(fromMs > -Infinity ? { fromMs } : {}),
        ...(toMs < Infinity ? { toMs } : {}),
      };
      const stored = await history
        .iterations(job, run ?? leased.saved.run, { ...range, most })
        .catch(() => NOTHING);
      const recent = series ? thinned(series, fromMs, toMs, most) : NOTHING;
      return stored.iteration.length > recent.iteration.length
        ? joined(stored, recent, most)
        : recent;
    },
    async incidents(query) {
      // A store that is away: what is open is known all the same.
      const stored = await history.incidents(query).catch(() => []);
      const latest = stored.map((one) => incidents.known(one.id) ?? one);
      const ids = new Set(latest.map(({ id }) => id));
      const { job, jobs, sinceMs = -Infinity, machine, before, open = false, most = 1000 } = query;
      // What is older than a full page is on a later one.
      const end = stored.length < most ? undefined : latest.at(-1);
      const again = service.workflow.reopened();
      const reopened = open
        ? await Promise.all([...again].map((id) => incidents.incident(id)))
        : [];
      const missing = [...incidents.open(), ...reopened.filter((one) => one !== null)].filter(
        (one) =>
          !ids.has(one.id) &&
          (job === undefined || one.job === job) &&
          (jobs === undefined || fitsAny(one.job, jobs)) &&
          one.openedMs >= sinceMs &&
          (!before || isBehind(one, { openedMs: before.atMs, id: before.id })) &&
          (!end || !isBehind(one, end)) &&
          (machine === undefined || one.machines.includes(machine)),
      );
      return [...missing, ...latest]
        .filter((one) => !open || one.state !== "resolved" || again.has(one.id))
        .sort((a, b) => (isBehind(a, b) ? 1 : -1))
        .slice(0, most);
    },
    incident: (id) => incidents.incident(id),
    async incidentHistory(id) {
      const stored = await history.incidentHistory(id);
      const now = incidents.known(id);
      return now && (stored.at(-1)?.revision ?? 0) < now.revision ? [...stored, now] : stored;
    },
    picture: (id) => service.pictures.picture(id),
    report: (id) => service.pictures.report(id),
    async offenders(sinceMs, most, jobs) {
      const judged = judgedOf(jobs);
      // One whose incidents were others' makes room for the next.
      const twice = await countedTwice(history, service.workflow.handlings, sinceMs, jobs);
      const found = await history.offenders(sinceMs, most + judged.length, jobs, twice);
      return correctedOffenders(found, judged, sinceMs).slice(0, most);
    },
    audit: (query) => history.audit(query),
    note: (...row) =>
      service.note(...row).catch((error: unknown) => {
        service.publisher.trouble(`the audit trail: ${errorText(error)}`);
        throw new Refusal(503, "the audit trail cannot be written at the moment");
      }),
    links: service.links,
    async act(id, action, verb, who, dryRun) {
      const found = incidents.inHand(id);
      if (!found && !(await incidents.incident(id)))
        throw new Refusal(404, "there is no such incident");
      if (!found)
        throw new Refusal(409, "the incident is over, or another service watches its job");
      const done = service.actions.act(found, action, verb, who, dryRun);
      // A command may take minutes: whoever approved sees it running, and its end in the record.
      const late = new Promise<null>((resolve) => {
        setTimeout(() => resolve(null), ANSWER_MS).unref();
      });
      const first = await Promise.race([done, late]);
      if (first) return first;
      done.catch((error: unknown) =>
        service.publisher.trouble(`an action of ${id}: ${String(error)}`),
      );
      return incidents.inHand(id) ?? found;
    },
    async handling(id) {
      const handling = await service.workflow.commented(id);
      return (await incidents.incident(id)) ? handling : null;
    },
    handlings: () => service.workflow.handlings,
    handle: (id, asked, who, jobs) => service.workflow.handle(id, asked, who, jobs),
    digest: (sinceMs, jobs) => service.digest(sinceMs, jobs),
    mutes: () => service.workflow.mutes(),
    async mute(asked, who) {
      const made = await service.workflow.mute(asked, who);
      if (asked.job === null || (await isKnownJob(asked.job))) return made;
      return { ...made, says: `no job that is known here is called ${asked.job}; one may come` };
    },
    unmute: (id, who) => service.workflow.unmute(id, who),
    site: async (jobs) =>
      jobs === undefined
        ? { ...howRight(judgedOf(jobs)), logs: await service.site.logs() }
        : howRight(judgedOf(jobs)),
    siteLabels: (jobs) =>
      labelsOf(
        judgedOf(jobs),
        async (ids) => [
          ...(await history.incidents({ ids, most: ids.length })),
          ...ids.flatMap((id) => incidents.known(id) ?? []),
        ],
        service.options.nowMs(),
      ),
    addRecord: (asked, who) => service.site.addRecord(asked, who),
    removeRecord: (id, who) => service.site.removeRecord(id, who),
    exportSite: (texts) => service.site.exported(texts),
    importSite: (document, who, from) => service.site.take(document, who, from),
    forgetLogs: (what, who) => service.site.forget(what, who),
    actionsSwitch: () => service.actionsSwitch.state,
    switchActions: (isOn, who) => service.actionsSwitch.switch(isOn, who),
    askShares: (job, question) => service.askShares(job, question),
    listen: (listener) => service.publisher.listen(listener),
    stats() {
      const { figures, bus } = service;
      const jobs = [...service.jobs.values()];
      const writers = [...jobs, service.machines ?? []]
        .flat()
        .flatMap(({ writer }) => writer ?? []);
      return {
        startedMs,
        agents: service.agents.size,
        jobs: jobs.length,
        ranks: jobs.reduce((sum, { run }) => sum + (run?.ranks.size ?? 0), 0),
        openIncidents: incidents.open().length,
        incidentsTotal: figures.incidents,
        points: figures.points,
        reports: bus?.traffic.reports ?? 0,
        reportBytes: bus?.traffic.reportBytes ?? 0,
        refusedReports: figures.refusedReports + (bus?.traffic.refused ?? 0),
        fetchedBytes: figures.fetchedBytes,
        localizations: figures.localizations,
        verdictSeconds: figures.verdictSeconds,
        droppedPoints: figures.droppedPoints,
        historyPending:
          (history.pending ?? 0) + writers.reduce((sum, { unsaved }) => sum + unsaved, 0),
        historyFailures: history.failures ?? 0,
        alertsSent: writers.reduce((sum, { alertsSent }) => sum + alertsSent, 0),
        alertFailures: writers.reduce((sum, one) => sum + one.alertFailures, 0),
      };
    },
    agents: () =>
      (service.bus?.agents ?? [])
        .map(({ agent, machine, version }) => ({
          agent,
          machine,
          version,
          clockOffsetMs: service.clocks.offsetMs(agent),
        }))
        .sort((a, b) => (a.agent < b.agent ? -1 : 1)),
    async health() {
      const ping = history.ping().catch((error: unknown) => {
        // A store behind a buffer says so itself.
        if (history.pending === undefined)
          service.publisher.trouble(`the history: ${errorText(error)}`);
        throw error;
      });
      const answers = await answersWithin(ping, PING_MS);
      const found = healthOf({
        noRoom: service.data.says,
        answers,
        waiting: history.pending ?? null,
        broker: service.bus?.broker ?? "none",
      });
      const says = [found.degraded, service.configSays].filter((said) => said !== null);
      return { ...found, degraded: says.join("; ") || null };
    },
  };
}

type Opened = Pick<Incident, "openedMs" | "id">;

/** Whether it comes later in a list that begins with the newest. */
function isBehind(a: Opened, b: Opened): boolean {
  return a.openedMs < b.openedMs || (a.openedMs === b.openedMs && a.id < b.id);
}

function thinned(rows: IterationRows, fromMs: number, toMs: number, most: number): IterationRows {
  const within = [...rows.endMs.keys()].filter(
    (i) => rows.endMs[i]! >= fromMs && rows.endMs[i]! <= toMs,
  );
  const step = Math.max(1, Math.ceil(within.length / Math.max(1, most)));
  // The newest is always among them.
  const kept = within.filter((_, k) => (within.length - 1 - k) % step === 0);
  const of = (column: Float64Array): Float64Array => Float64Array.from(kept, (i) => column[i]!);
  return { iteration: of(rows.iteration), endMs: of(rows.endMs), durationMs: of(rows.durationMs) };
}

/** What is stored, and what came after it. */
function joined(stored: IterationRows, recent: IterationRows, most: number): IterationRows {
  const last = stored.endMs.at(-1) ?? -Infinity;
  const newer = [...recent.endMs.keys()].filter((i) => recent.endMs[i]! > last);
  const both = (a: Float64Array, b: Float64Array): Float64Array =>
    Float64Array.from([...a, ...newer.map((i) => b[i]!)]);
  const rows = {
    iteration: both(stored.iteration, recent.iteration),
    endMs: both(stored.endMs, recent.endMs),
    durationMs: both(stored.durationMs, recent.durationMs),
  };
  return thinned(rows, -Infinity, Infinity, most);
}
