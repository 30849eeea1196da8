/** A page that lists jobs and open incidents: one document, nothing from elsewhere, everything written as text. */
import { createHash } from "node:crypto";

const STYLE = `
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1c2430;background:#fff}
h1{font-size:1.3rem}h2{font-size:1.05rem;margin-top:2rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #dde2ea;vertical-align:top}
th{font-weight:600;color:#566}#says{color:#8a4b00}label{display:block;margin:1rem 0}[hidden]{display:none}
@media(prefers-color-scheme:dark){body{color:#dde2ea;background:#14181f}th,td{border-color:#333c49}th{color:#9aa}#says{color:#e0a050}}
`;

const SCRIPT = String.raw`
"use strict";
const at = (id) => document.getElementById(id);
let token = "";
let timer = 0;
async function ask(path) {
  const headers = token === "" ? {} : { authorization: "Bearer " + token };
  const response = await fetch("/api/v1" + path, { headers, cache: "no-store" });
  at("ask").hidden = response.status !== 401;
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}
// Lines of strangers: no control characters, nothing that turns the reading direction.
const plain = (text) => text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu, "\ufffd");
function fill(id, rows, none) {
  const body = at(id);
  body.replaceChildren();
  for (const cells of rows.length === 0 ? [[none]] : rows) {
    const row = body.insertRow();
    for (const cell of cells) row.insertCell().textContent = cell === null ? "–" : plain(String(cell));
  }
}
const time = (ms) => new Date(ms).toISOString().replace("T", " ").slice(0, 19);
const took = (ms) => (ms === null ? null : ms >= 1000 ? (ms / 1000).toFixed(2) + " s" : ms.toFixed(0) + " ms");
async function show() {
  clearTimeout(timer);
  try {
    const [{ jobs }, { incidents }] = await Promise.all([ask("/jobs"), ask("/incidents?open=true")]);
    fill("jobs", jobs.map((j) => [j.job, j.health, j.ranks + " of " + (j.worldSize || "?"), j.machines, j.lastIteration, took(j.levelMs), took(j.baselineMs)]), "no job has reported yet");
    fill("incidents", incidents.map((i) => [time(i.onsetMs), i.job, i.state, i.kind, i.summary, i.machines.slice(0, 8).join(", ")]), "none");
    at("says").textContent = "";
  } catch (error) {
    at("says").textContent = plain(error.message);
  }
  timer = setTimeout(show, 5000);
}
at("token").addEventListener("change", (event) => {
  token = event.target.value.trim();
  show();
});
show();
`;

const head = (...names: readonly string[]): string =>
  `<thead><tr>${names.map((name) => `<th scope="col">${name}</th>`).join("")}</tr></thead>`;

export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Faultline</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Faultline</h1>
<p id="says" role="status"></p>
<label id="ask" hidden>Token with the scope read <input id="token" type="password" autocomplete="off" spellcheck="false"></label>
<h2>Open incidents</h2>
<table>${head("since (UTC)", "job", "state", "kind", "what", "machines")}<tbody id="incidents"></tbody></table>
<h2>Jobs</h2>
<table>${head("job", "health", "ranks", "machines", "iteration", "now", "healthy")}<tbody id="jobs"></tbody></table>
<p>The API is described in <a href="/api/v1/openapi.json">openapi.json</a>; figures are at <a href="/metrics">/metrics</a>.</p>
<script>${SCRIPT}</script>
</body>
</html>
`;

const hash = (text: string): string =>
  `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

export const PAGE_POLICY = [
  "default-src 'none'",
  `script-src ${hash(SCRIPT)}`,
  `style-src ${hash(STYLE)}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Of everything else: nothing that a browser could run. */
export const BARE_POLICY =
  "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
