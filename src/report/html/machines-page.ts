/** A page of machines alone, for `faultline machines`: the answer, its plots, then what else was seen. */
import { count, cutText } from "../../base/text.ts";
import type { MachinePicture } from "../../model/machine-picture.ts";
import type { MachineReport } from "../../model/machine-report.ts";
import { html, type Markup } from "./escape.ts";
import { fact } from "./machines-card.ts";
import { headline, renderFaulty } from "./machines-section.ts";
import { machineParts } from "./machines-tables.ts";
import { lastingWords, spanText, utc } from "./machines-words.ts";
import { renderPage } from "./page.ts";
import { renderSection, sectionLinks } from "./parts-of-pages.ts";

const MOST_WHY = 300;

export function renderMachinesPage(
  report: MachineReport,
  pictures: readonly MachinePicture[],
): string {
  const { faulty, method } = report;
  const title = headline(report);
  const name = `Unlike ${faulty.length === 1 ? "its" : "their"} peers`;
  const parts = machineParts(report);
  if (faulty.length > 0)
    parts.unshift({ id: "machines", name, body: renderFaulty(report, pictures) });
  const body = html`<header class="fl-head fl-${toneOf(report)}">
      <h1>${title}</h1>
      ${faulty.length === 1 && html`<p>${cutText(faulty[0]!.why, MOST_WHY)}</p>`} ${facts(report)}
    </header>
    ${parts.length > 0 && sectionLinks(parts)}
    <main>${parts.map(renderSection)}</main>
    <footer>
      Written by Faultline, method ${method}. The same as data: verdict.json (faultline.machines/1).
    </footer>`;
  return renderPage(title, body);
}

function toneOf({ faulty, metrics }: MachineReport): string {
  if (faulty.length > 0) return "bad";
  return metrics.some(({ coverage }) => coverage > 0) ? "good" : "open";
}

/** How much was looked at: "nobody" among three machines for a minute says little. */
function facts({ machines, metrics, fromS, toS, phases }: MachineReport): Markup {
  const seen = metrics.filter(({ coverage }) => coverage > 0).length;
  const halt = phases.find(({ what }) => what === "halt");
  return html`<dl class="fl-facts">
    ${fact("Machines", count(machines, "machine"))}
    ${fact("Metrics", `${seen} of ${metrics.length}`)}
    ${fact("Time (UTC)", `${spanText(fromS, toS)}, ${lastingWords(toS - fromS)}`)}
    ${halt && fact("Job hangs since (UTC)", utc(halt.fromS))}
  </dl>`;
}
