/** All that a report can show of what methods saw, before it is known what decided (evidence-order.ts). */
import type { Job } from "../../model/job.ts";
import type { IncidentPicture } from "../../model/picture.ts";
import type { Verdict } from "../../model/verdict.ts";
import { html, type Markup } from "./escape.ts";
import type { EvidenceSection } from "./evidence-order.ts";
import { renderFrontiers } from "./frontier-table.ts";
import { renderSeries } from "./iterations-section.ts";
import { type MachineAnswer, renderMachinesBody } from "./machines-section.ts";
import { pictureSections } from "./picture-section.ts";
import { type TracePictures, traceSections } from "./trace-section.ts";
import { renderWaitGraph } from "./wait-graph-section.ts";
import { readWaitOps } from "../../model/wait-ops.ts";

/** Where findings stand that nothing is drawn of. */
export const OTHER: EvidenceSection = {
  id: "evidence",
  name: "Other evidence",
  shows: [],
  folds: "",
  body: html``,
};

export function evidenceSections(
  job: Job,
  verdict: Verdict,
  traces: TracePictures | null,
  machines: MachineAnswer | null,
  picture: IncidentPicture | null,
): readonly EvidenceSection[] {
  const waits = readWaitOps(verdict);
  const suspects = new Set(verdict.suspects.flatMap((suspect) => suspect.ranks));
  const section = (
    id: string,
    name: string,
    shows: readonly string[],
    folds: string,
    body: Markup | null,
  ): EvidenceSection[] => (body === null ? [] : [{ id, name, shows, folds, body }]);
  return [
    ...section(
      "waits",
      "Who waits for whom",
      ["hang/wait-graph"],
      "The graph",
      waits && renderWaitGraph(job, waits, suspects),
    ),
    ...section(
      "iterations",
      "Iteration times",
      ["iterations/"],
      "Plots and tables",
      job.iterations.length > 0 ? renderSeries(job.iterations) : null,
    ),
    ...section(
      "machines",
      "Machines",
      ["machines/"],
      "Plots and tables",
      machines && renderMachinesBody(machines),
    ),
    ...pictureSections(picture, machines !== null, traces?.timeline != null),
    ...(traces ? traceSections(traces) : []).map(({ id, name, body }) => ({
      id,
      name,
      shows: ["traces/", "host/python-time"],
      folds: "The drawing",
      body,
    })),
    ...section(
      "frontiers",
      "How far each rank got",
      ["hang/wait-graph", "hang/ras"],
      "The table",
      job.dumps.size > 0
        ? renderFrontiers(job, suspects, new Set(verdict.victims), waits?.ops ?? [])
        : null,
    ),
  ];
}
