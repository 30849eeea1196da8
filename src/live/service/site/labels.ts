/** Judged incidents as labels of machines, for `faultline machines train --labels`. */
import type { Incident } from "../../../model/incident.ts";
import type { SiteLabels } from "../../../model/site.ts";
import type { Judged } from "./how-right.ts";

/** The last ones. */
const MOST_LABELS = 2000;
const AT_ONCE = 500;

/**
 * Who was accused rightly, or named instead, was faulty; who was accused wrongly was healthy. An incident that is open
 * lasts until `nowMs`.
 */
export async function labelsOf(
  judgements: readonly Judged[],
  incidentsOf: (ids: readonly string[]) => Promise<readonly Incident[]>,
  nowMs: number,
): Promise<SiteLabels> {
  const labels: SiteLabels["labels"][number][] = [];
  const counted = judgements.slice(-MOST_LABELS);
  const incidents = new Map<string, Incident>();
  for (let at = 0; at < counted.length; at += AT_ONCE) {
    const ids = counted.slice(at, at + AT_ONCE).map(({ incident }) => incident);
    for (const incident of await incidentsOf(ids)) incidents.set(incident.id, incident);
  }
  for (const { incident: id, isRight, machine: truth, cause, said } of counted) {
    const incident = incidents.get(id);
    if (!incident) continue;
    const { onsetMs, resolvedMs } = incident;
    const span = {
      start: new Date(onsetMs).toISOString(),
      end: new Date(Math.max(onsetMs + 1, resolvedMs ?? nowMs)).toISOString(),
      incident: id,
    };
    const isTrue = (machine: string): boolean => (truth === null ? isRight : machine === truth);
    for (const machine of new Set([...said.machines, ...(truth === null ? [] : [truth])]))
      labels.push({
        machine,
        state: isTrue(machine) ? "faulty" : "healthy",
        cause: isTrue(machine) ? (cause ?? (isRight ? said.cause : null)) : null,
        ...span,
      });
  }
  return { schema: "faultline.machine-labels/1", labels: labels.slice(-MOST_LABELS) };
}
