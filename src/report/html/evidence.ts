/** Every finding with its place in the files and the figures behind it. */
import { count, cutText } from "../../base/text.ts";
import type { Place } from "../../model/ids.ts";
import type { Verdict } from "../../model/verdict.ts";
import { bar, percent } from "./bar.ts";
import { anchor, html, join, type Markup } from "./escape.ts";
import { jsonText } from "./json-text.ts";

const MAX_FINDINGS = 100;
const MAX_PLACES = 12;
const MAX_DATA_CHARS = 4_000;
const MAX_SAYS_CHARS = 2_000;
const MAX_PATH_CHARS = 400;

export function renderEvidence({ findings, suspects }: Verdict): Markup {
  // What a suspect's card links to must be there, however many findings come before it.
  const cited = new Set(suspects.flatMap(({ evidence }) => evidence));
  const others = findings.filter(({ id }) => !cited.has(id));
  const kept = new Set(others.slice(0, MAX_FINDINGS).map(({ id }) => id));
  const shown = findings.filter(({ id }) => cited.has(id) || kept.has(id));
  const rest = findings.length - shown.length;
  return html`<section id="evidence">
    <h2>Evidence</h2>
    ${findings.length === 0 && html`<p>No method found anything in these files.</p>`}
    ${shown.map(renderFinding)}
    ${rest > 0 && html`<p class="note">${count(rest, "more finding")} in verdict.json.</p>`}
  </section>`;
}

function renderFinding({
  id,
  method,
  says,
  weight,
  at,
  data,
}: Verdict["findings"][number]): Markup {
  const share = percent(weight);
  const json = Object.keys(data).length === 0 ? "" : jsonText(data, MAX_DATA_CHARS + 1);
  const isCut = json.length > MAX_DATA_CHARS;
  return html`<article class="finding" id="${anchor(id)}">
    <h3 class="line">
      <span class="id">${id}</span> <code>${method}</code>
      <span class="weight">weight ${share} ${bar(weight, `Weight ${share}`)}</span>
    </h3>
    <p>${cutText(says, MAX_SAYS_CHARS)}</p>
    ${at.length > 0 && html`<p class="places">${join(at.slice(0, MAX_PLACES).map(renderPlace), " ")}${at.length > MAX_PLACES && html` <span class="note">and ${at.length - MAX_PLACES} more</span>`}</p>`}
    ${
      json !== "" &&
      html`<details>
        <summary>Data</summary>
        <pre tabindex="0">
${json.slice(0, MAX_DATA_CHARS)}${isCut && "\n… cut; the whole is in verdict.json"}</pre>
      </details>`
    }
  </article>`;
}

function renderPlace({ file, line }: Place): Markup {
  return html`<code>${cutText(file, MAX_PATH_CHARS)}${line ? `:${line}` : ""}</code>`;
}
