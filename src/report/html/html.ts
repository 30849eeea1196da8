/**
 * The report: one HTML file that asks nothing of the network, for a person on call. The answer first,
 * then who, what to do, and the evidence down to file and line.
 */
import { createHash } from "node:crypto";
import { cutText } from "../../base/text.ts";
import type { Job } from "../../model/job.ts";
import type { Verdict } from "../../model/verdict.ts";
import { html, Markup } from "./escape.ts";
import { renderEvidence } from "./evidence.ts";
import { renderFrontiers } from "./frontier-table.ts";
import { renderInputs } from "./inputs.ts";
import { SCRIPT } from "./script.ts";
import { STYLE } from "./style.ts";
import { renderActions, renderHead, renderSuspects } from "./verdict-head.ts";
import { renderWaitGraph } from "./wait-graph-section.ts";
import { readWaitOps } from "./wait-ops.ts";

/** Hashes rather than a nonce: the same input gives the same page, and nothing else may run in it. */
const POLICY = [
  "default-src 'none'",
  `style-src '${hashOf(STYLE)}'`,
  `script-src '${hashOf(SCRIPT)}'`,
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** Outside the template: the hashes cover every character, and a formatter moves white space. */
const STYLE_ELEMENT = new Markup(`<style>${STYLE}</style>`);
const SCRIPT_ELEMENT = new Markup(`<script>${SCRIPT}</script>`);

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text, "utf8").digest("base64")}`;
}

export function renderHtml(job: Job, verdict: Verdict): string {
  const waits = readWaitOps(verdict);
  const suspects = new Set(verdict.suspects.flatMap((suspect) => suspect.ranks));
  const sections = [
    { id: "suspects", name: "Suspects", show: true },
    { id: "actions", name: "What to do", show: verdict.actions.length > 0 },
    { id: "waits", name: "Who waits for whom", show: waits !== null },
    { id: "frontiers", name: "How far each rank got", show: job.dumps.size > 0 },
    { id: "evidence", name: "Evidence", show: true },
    { id: "inputs", name: "Inputs", show: true },
  ].filter(({ show }) => show);
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${POLICY}" />
        <meta name="referrer" content="no-referrer" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${verdict.kind}: ${cutText(verdict.summary, 120)}</title>
        ${STYLE_ELEMENT}
      </head>
      <body>
        ${renderHead(job, verdict)}
        <nav aria-label="Sections">
          ${sections.map(({ id, name }) => html`<a href="#${id}">${name}</a> `)}
        </nav>
        <main>
          ${renderSuspects(job, verdict)} ${renderActions(job, verdict)}
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
        <footer>Written by Faultline. The same as data: verdict.json (${verdict.schema}).</footer>
        ${SCRIPT_ELEMENT}
      </body>
    </html> `;
  return page.text;
}
