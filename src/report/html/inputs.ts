/** What was read, what was missing or odd, and what would settle what is open. */
import { count, cutText } from "../../base/text.ts";
import type { Verdict } from "../../model/verdict.ts";
import { Lacks } from "../parts/lacks.tsx";
import { markupOf } from "../parts/markup-of.ts";
import { renderAdvice } from "./commands.ts";
import { html, type Markup, type Part } from "./escape.ts";

const MAX_INPUTS = 1_000;
const MAX_LINES = 200;
const MAX_LINE_CHARS = 1_000;
const MAX_PATH_CHARS = 400;

/** `undrawn`: what could not be drawn, and why. Nothing where nothing is missing. */
export function renderMissing({ missing, wouldHelp }: Verdict, undrawn: readonly string[]): Markup {
  return html`${
    wouldHelp.length > 0 &&
    html`<h3>What would help</h3>
      ${list(wouldHelp, (text) => renderAdvice(text, null))}`
  }
  ${
    missing.length > 0 &&
    html`<h3>Missing or odd</h3>
      ${list(missing, (text) => text)}`
  }
  ${markupOf(Lacks, { lacks: undrawn })}`;
}

export function renderInputs({ inputs }: Verdict): Markup {
  const rows = inputs.slice(0, MAX_INPUTS);
  const rest = inputs.length - rows.length;
  return html`<details>
    <summary>${count(inputs.length, "file")} read</summary>
    <div class="scroll" tabindex="0" role="group" aria-label="Input files, scrolls sideways">
      <table class="inputs">
        <thead>
          <tr>
            <th scope="col">Path</th>
            <th scope="col">Format</th>
            <th scope="col">Rank</th>
            <th scope="col">Records</th>
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            ({ path, format, rank, records }) =>
              html`<tr>
                <td><code>${cutText(path, MAX_PATH_CHARS)}</code></td>
                <td>${format}</td>
                <td class="number">${rank ?? "–"}</td>
                <td class="number">${records}</td>
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
    ${rest > 0 && html`<p class="note">${count(rest, "more file")} in verdict.json.</p>`}
  </details>`;
}

function list(lines: readonly string[], show: (line: string) => Part): Markup {
  const rest = lines.length - MAX_LINES;
  return html`<ul>
      ${lines.slice(0, MAX_LINES).map((line) => html`<li>${show(cutText(line, MAX_LINE_CHARS))}</li>`)}
    </ul>
    ${rest > 0 && html`<p class="note">${rest} more in verdict.json.</p>`}`;
}
