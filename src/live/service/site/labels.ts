/** Judged incidents as labels of machines, for `faultline machines train --labels`. */
import type { Incident } from "../../../model/incident.ts";
import type { SiteLabels } from "../../../model/site.ts";
import type { Judged } from "./how-right.ts";

/** The last ones. */
const MOST_LABELS = 2000;

/** Who was accused rightly, or named instead, was faulty; who was accused wrongly was healthy. */
export async function labelsOf(
  judgements: readonly Judged[],
  incidentOf: (id: string) => Promise<Incident | null>,
): Promise<SiteLabels> {
  const labels: SiteLabels["labels"][number][] = [];
  for (const { incident: id, isRight, machine: truth, cause, said } of judgements.slice(
    -MOST_LABELS,
  )) {
    const incident = await incidentOf(id);
    if (!incident) continue;
    const { onsetMs, resolvedMs, changedMs } = incident;
    const span = {
      start: new Date(onsetMs).toISOString(),
      end: new Date(Math.max(onsetMs + 1, resolvedMs ?? changedMs)).toISOString(),
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
