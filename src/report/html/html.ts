/**
 * The report: one HTML file that asks nothing of the network, for a person on call. The answer first,
 * then who, what to do, and the evidence down to file and line.
 */
import { cutText } from "../../base/text.ts";
import type { Job } from "../../model/job.ts";
import type { Verdict } from "../../model/verdict.ts";
import { html } from "./escape.ts";
import { renderEvidence } from "./evidence.ts";
import { renderFrontiers } from "./frontier-table.ts";
import { renderInputs } from "./inputs.ts";
import { renderIterations } from "./iterations-section.ts";
import { renderMachinesSection, type MachineAnswer } from "./machines-section.ts";
import { renderMitigation } from "./mitigation-section.ts";
import { renderPage } from "./page.ts";
import { renderTracePictures, traceSections, type TracePictures } from "./trace-section.ts";
import { renderActions, renderHead, renderSuspects } from "./verdict-head.ts";
import { renderWaitGraph } from "./wait-graph-section.ts";
import { readWaitOps } from "./wait-ops.ts";

/** `traces`: where the job left profiler traces; `machines`: where there are monitoring metrics of them. */
export function renderHtml(
  job: Job,
  verdict: Verdict,
  traces: TracePictures | null = null,
  machines: MachineAnswer | null = null,
): string {
  const pictures = traces ? renderTracePictures(traces) : html``;
  const waits = readWaitOps(verdict);
  const suspects = new Set(verdict.suspects.flatMap((suspect) => suspect.ranks));
  const hasPlan = (verdict.mitigation?.steps.length ?? 0) > 0;
  const sections = [
    { id: "suspects", name: "Suspects", show: true },
    { id: "actions", name: "What to do", show: verdict.actions.length > 0 },
    { id: "mitigation", name: "While it lasts", show: hasPlan },
    { id: "iterations", name: "Iteration times", show: job.iterations.length > 0 },
    { id: "machines", name: "Machines", show: machines !== null },
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
      ${renderSuspects(job, verdict)} ${renderActions(job, verdict)}
      ${hasPlan && renderMitigation(verdict.mitigation!)} ${renderIterations(job.iterations)}
      ${machines && renderMachinesSection(machines)} ${pictures}
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
      ${renderEvidence(verdict)} ${renderInputs(verdict)}
    </main>
    <footer>Written by Faultline. The same as data: verdict.json (${verdict.schema}).</footer>`;
  return renderPage(`${verdict.kind}: ${cutText(verdict.summary, 120)}`, body);
}
