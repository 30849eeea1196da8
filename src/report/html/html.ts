/**
 * The report: one HTML file that asks nothing of the network, for a person on call. The answer first,
 * then who, what to do, and the evidence down to file and line.
 */
import { cutText } from "../../base/text.ts";
import type { Job } from "../../model/job.ts";
import type { IncidentPicture } from "../../model/picture.ts";
import type { Verdict } from "../../model/verdict.ts";
import { Evidence } from "../parts/evidence.tsx";
import { Lacks } from "../parts/lacks.tsx";
import { markupOf } from "../parts/markup-of.ts";
import { html } from "./escape.ts";
import { renderFrontiers } from "./frontier-table.ts";
import { renderInputs } from "./inputs.ts";
import { renderIterations } from "./iterations-section.ts";
import { renderMachinesSection, type MachineAnswer } from "./machines-section.ts";
import { renderMitigation } from "./mitigation-section.ts";
import { renderPage } from "./page.ts";
import { pictureSections } from "./picture-section.ts";
import { renderTracePictures, traceSections, type TracePictures } from "./trace-section.ts";
import { renderActions, renderHead, renderSuspects } from "./verdict-section.ts";
import { renderWaitGraph } from "./wait-graph-section.ts";
import { readWaitOps } from "./wait-ops.ts";

/**
 * `traces`: where the job left profiler traces; `machines`: where there are monitoring metrics of them; `picture`: the
 * story, what-if and log lines, and whatever of the others is not given in full.
 */
export function renderHtml(
  job: Job,
  verdict: Verdict,
  traces: TracePictures | null = null,
  machines: MachineAnswer | null = null,
  picture: IncidentPicture | null = null,
): string {
  const pictures = traces ? renderTracePictures(traces) : html``;
  const drawn = pictureSections(picture, machines !== null, traces?.timeline != null);
  const waits = readWaitOps(verdict);
  const suspects = new Set(verdict.suspects.flatMap((suspect) => suspect.ranks));
  const hasPlan = (verdict.mitigation?.steps.length ?? 0) > 0;
  const actions = renderActions(job, verdict);
  const sections = [
    { id: "suspects", name: "Suspects", show: true },
    { id: "actions", name: "What to do", show: actions.text !== "" },
    ...drawn.story,
    { id: "mitigation", name: "While it lasts", show: hasPlan },
    { id: "iterations", name: "Iteration times", show: job.iterations.length > 0 },
    { id: "machines", name: "Machines", show: machines !== null },
    ...drawn.rest,
    ...traceSections(pictures).map((section) => ({ ...section, show: true })),
    { id: "waits", name: "Who waits for whom", show: waits !== null },
    { id: "frontiers", name: "How far each rank got", show: job.dumps.size > 0 },
    { id: "evidence", name: "Evidence", show: true },
    { id: "inputs", name: "Inputs", show: true },
  ].filter(({ show }) => show);
  const body = html`${renderHead(job, verdict)}
    <nav aria-label="Sections">
      ${sections.map(({ id, name }) => html`<a href="#${id}">${name}</a> `)}
    </nav>
    <main>
      ${renderSuspects(job, verdict)} ${actions} ${drawn.story.map(({ body }) => body)}
      ${hasPlan && renderMitigation(verdict.mitigation!)} ${renderIterations(job.iterations)}
      ${machines && renderMachinesSection(machines)} ${drawn.rest.map(({ body }) => body)}
      ${pictures}
      ${
        waits &&
        html`<section id="waits">
          <h2>Who waits for whom</h2>
          ${renderWaitGraph(job, waits, suspects)}
        </section>`
      }
      ${
        job.dumps.size > 0 &&
        html`<section id="frontiers">
          <h2>How far each rank got</h2>
          ${renderFrontiers(job, suspects, new Set(verdict.victims), waits?.ops ?? [])}
        </section>`
      }
      <section id="evidence">
        <h2>Evidence</h2>
        ${markupOf(Evidence, { verdict })} ${picture && markupOf(Lacks, { lacks: picture.lacks })}
      </section>
      ${renderInputs(verdict)}
    </main>
    <footer>Written by Faultline. The same as data: verdict.json (${verdict.schema}).</footer>`;
  return renderPage(`${verdict.kind}: ${cutText(verdict.summary, 120)}`, body);
}
