/** Incidents of the site: as they are here, where this service looks after them, else as the history has them. */
import type { History, RowAt } from "../../../history/history.ts";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import type { LeasedJob } from "../lease/leased-job.ts";
import type { LeasedMachineComparison } from "../machines/leased-machine-comparison.ts";

const MOST_LOOKED_AT = 1000;
export const MOST_LASTING = 10_000;
const LASTING_AT_ONCE = 500;

export type SiteIncidents = ReturnType<typeof siteIncidents>;

export function siteIncidents(
  history: Pick<History, "incidents" | "incidentHistory">,
  watched: () => readonly (LeasedJob | LeasedMachineComparison)[],
) {
  /** From memory where it is looked after here: the store may lag behind, or be down. */
  const known = (id: string): Incident | null => {
    for (const { shown } of watched()) {
      const found = shown.find((one) => one.id === id);
      if (found) return found;
    }
    return null;
  };
  return {
    known,

    open: () => watched().flatMap(({ open }) => open),

    /** The same as `known`, also where it is over for a while: what was done about it can be undone. */
    inHand(id: string): Incident | null {
      const records = watched().flatMap((one) => one.records);
      return known(id) ?? records.find((one) => one.id === id) ?? null;
    },

    incident: async (id: string): Promise<Incident | null> =>
      known(id) ?? (await history.incidentHistory(id)).at(-1) ?? null,

    /** Of one job, or of all: those of this service, which may be newer than the history, and the latest others. */
    async latest(job?: string): Promise<readonly Incident[]> {
      const query = job === undefined ? {} : { job };
      const stored = await history.incidents({ ...query, most: MOST_LOOKED_AT });
      const own = watched()
        .flatMap(({ records }) => records)
        .filter((one) => job === undefined || one.job === job);
      const ids = new Set(own.map(({ id }) => id));
      return [...own, ...stored.filter(({ id }) => !ids.has(id))];
    },

    /** Those that lasted at this moment or later, of some jobs or of all. */
    async lasting(sinceMs: number, jobs: readonly string[] | undefined): Promise<Incident[]> {
      const query = { lastedMs: sinceMs, most: LASTING_AT_ONCE, ...(jobs && { jobs }) };
      const incidents: Incident[] = [];
      // Page by page: all of them at once would hold up everybody else while they are read.
      for (let before: RowAt | null = null; incidents.length < MOST_LASTING;) {
        const page = await history.incidents({ ...query, ...(before && { before }) });
        incidents.push(...page);
        const last = page.at(-1);
        if (!last || page.length < LASTING_AT_ONCE) break;
        before = { atMs: last.openedMs, id: last.id };
      }
      return incidents.map((one) => known(one.id) ?? one);
    },

    /** Puts an action into the record of the incident; null where another service looks after it, or none. */
    async putAction(id: string, action: IncidentAction): Promise<Incident | null> {
      for (const one of watched()) {
        const incident = await one.putAction(id, action);
        if (incident) return incident;
      }
      return null;
    },
  };
}
