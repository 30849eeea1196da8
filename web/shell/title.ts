/** The tab's title: how many incidents are open, and where one is. */
import { handlings } from "../live/store.ts";
import { plain } from "../../src/report/parts/plain.ts";
import type { Incident } from "../live/api.ts";
import { jobOf } from "../fleet/kinds.ts";
import type { Route } from "./address.ts";

export function titleOf(at: Route, incidents: ReadonlyMap<string, Incident>): string {
  const open = openOf(incidents).length;
  return plain(`${open > 0 ? `(${open}) ` : ""}${placeOf(at, incidents)} · Faultline`);
}

/** Those that are not over, for the service or for somebody who has reopened them. */
export function openOf(incidents: ReadonlyMap<string, Incident>): readonly Incident[] {
  const isReopened = (id: string): boolean => (handlings.value.get(id)?.reopened ?? null) !== null;
  return [...incidents.values()].filter(({ id, state }) => state !== "resolved" || isReopened(id));
}

function placeOf(at: Route, incidents: ReadonlyMap<string, Incident>): string {
  switch (at.page) {
    case "fleet":
      return "Fleet";
    case "job":
      return at.job.slice(0, 80);
    case "incident": {
      const incident = incidents.get(at.id);
      if (!incident) return "Incident";
      const job = jobOf(incident);
      return job === null ? incident.kind : `${incident.kind} in ${job.slice(0, 80)}`;
    }
    case "history":
      return at.words === "" ? "Incidents" : `Incidents: ${at.words.slice(0, 80)}`;
    case "site":
      return "Site";
    case "right":
      return "How right";
    case "nothing":
      return "Not found";
  }
}
