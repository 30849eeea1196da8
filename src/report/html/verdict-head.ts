/** The answer: what is wrong, how sure, since when, whose. Then who is suspected, and what to do. */
import { count, cutText, ranges, rankWords } from "../../base/text.ts";
import type { VerdictKind } from "../../model/finding.ts";
import type { Job } from "../../model/job.ts";
import type { Suspect, Verdict } from "../../model/verdict.ts";
import { bar, percent } from "./bar.ts";
import { renderAdvice } from "./commands.ts";
import { anchor, html, join, type Markup, type Part } from "./escape.ts";

const TONES: Readonly<Record<VerdictKind, string>> = {
  hang: "bad",
  crash: "bad",
  "fail-slow": "warn",
  regression: "warn",
  "faulty-machine": "warn",
  healthy: "good",
  undetermined: "open",
};

const MAX_CARDS = 12;
const MAX_WHY_CHARS = 1_200;

export function renderHead(job: Job, verdict: Verdict): Markup {
  const { kind, summary, confidence, when, owner } = verdict;
  const sure = percent(confidence);
  const size = job.worldSize > 0 ? count(job.worldSize, "rank") : "";
  return html`<header class="verdict ${TONES[kind] ?? "open"}">
    <p class="line">
      <span class="badge">${kind}</span>
      <span class="job">${[job.name, size].filter((part) => part !== "").join(" · ")}</span>
    </p>
    <h1>${summary}</h1>
    <dl class="facts">
      ${fact("Confidence", html`${sure} ${bar(confidence, `Confidence ${sure}`)}`)}
      ${when.iteration !== null && fact("Iteration", when.iteration)}
      ${when.from !== null && fact(when.to === null ? "Since" : "From", time(when.from))}
      ${when.to !== null && fact("Until", time(when.to))} ${owner !== null && fact("Owner", owner)}
    </dl>
  </header>`;
}

function fact(name: string, value: Part): Markup {
  return html`<div>
    <dt>${name}</dt>
    <dd>${value}</dd>
  </div>`;
}

/** "2026-11-15T00:41:49.457Z" → "2026-11-15 00:41:49 UTC"; anything else as it is. */
function time(iso: string): Markup {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/.exec(iso);
  return match ? html`<time datetime="${iso}">${match[1]} ${match[2]} UTC</time>` : html`${iso}`;
}

export function renderSuspects(job: Job, verdict: Verdict): Markup {
  const { suspects, victims } = verdict;
  const cards = suspects.map((suspect) => card(job, suspect));
  const rest = cards.slice(MAX_CARDS);
  return html`<section id="suspects">
    <h2>${suspects.length === 1 ? "Suspect" : "Suspects"}</h2>
    ${suspects.length === 0 && html`<p>Nobody.</p>`}
    <div class="cards">${cards.slice(0, MAX_CARDS)}</div>
    ${
      rest.length > 0 &&
      html`<details>
        <summary>${count(rest.length, "more suspect")}</summary>
        <div class="cards">${rest}</div>
      </details>`
    }
    ${victims.length > 0 && html`<p><b>Only waiting, not at fault:</b> ${rankWords(victims)}.</p>`}
  </section>`;
}

function card(job: Job, suspect: Suspect): Markup {
  const { type, ranks, machine, link, cause, score, why, evidence } = suspect;
  const who = ranks.length > 0 ? `${ranks.length === 1 ? "Rank" : "Ranks"} ${ranges(ranks)}` : type;
  const info = ranks.length === 1 ? job.ranks.get(ranks[0]!) : undefined;
  const details: Part[] = [];
  if (machine !== null) details.push(html`machine <b>${machine}</b>`);
  if (info && info.gpu !== null) details.push(`GPU ${info.gpu}`);
  if (info && info.pid !== null) details.push(`pid ${info.pid}`);
  if (link !== null) details.push(`between ${link[0]} and ${link[1]}`);
  if (type !== "rank" && ranks.length > 0) details.push(`suspected: the ${type}`);
  const share = percent(score);
  return html`<article class="card">
    <h3>${who}</h3>
    <p class="line">
      <span class="cause">${cause}</span>
      <span>score ${share} ${bar(score, `Score ${share}`)}</span>
    </p>
    ${details.length > 0 && html`<p>${join(details, " · ")}</p>`}
    <p class="why">${cutText(why, MAX_WHY_CHARS)}</p>
    ${
      evidence.length > 0 &&
      html`<p class="note">
        Evidence:
        ${join(
          evidence.map((id) => html`<a href="#${anchor(id)}">${id}</a>`),
          ", ",
        )}
      </p>`
    }
  </article>`;
}

export function renderActions(job: Job, verdict: Verdict): Markup {
  const ranks = new Set(verdict.suspects.flatMap((suspect) => suspect.ranks));
  const pid = ranks.size === 1 ? (job.ranks.get([...ranks][0]!)?.pid ?? null) : null;
  // What the plan below says in full is not said twice.
  const planned = new Set(verdict.mitigation?.steps.map((step) => step.do));
  const actions = verdict.actions.filter((action) => !planned.has(action.do));
  if (actions.length === 0) return html``;
  return html`<section id="actions">
    <h2>What to do</h2>
    <ol class="actions">
      ${actions.map(
        (action) =>
          html`<li>
            <b>${action.do}</b> <span class="target">${action.target}</span>
            <p>${renderAdvice(action.why, pid)}</p>
          </li>`,
      )}
    </ol>
  </section>`;
}
