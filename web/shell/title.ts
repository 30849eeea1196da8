/** The tab's title: how many incidents are open, and where one is. */
import { plain } from "../../src/report/parts/plain.ts";
import type { Incident } from "../live/api.ts";
import { jobOf } from "../fleet/kinds.ts";
import type { Route } from "./address.ts";

export function titleOf(at: Route, incidents: ReadonlyMap<string, Incident>): string {
  const open = openOf(incidents).length;
  return plain(`${open > 0 ? `(${open}) ` : ""}${placeOf(at, incidents)} · Faultline`);
}

export function openOf(incidents: ReadonlyMap<string, Incident>): readonly Incident[] {
  return [...incidents.values()].filter(({ state }) => state !== "resolved");
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
