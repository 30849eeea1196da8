/** A page of logs alone, for `faultline logs`: the cause, what to do, a picture of who said what when, the lines. */
import { count, cutText, ranges, thousands } from "../../base/text.ts";
import type { IndicatingLine, LogCause, LogReport } from "../../model/log-report.ts";
import { isoTime } from "../logs-document.ts";
import { bar } from "./bar.ts";
import { html, type Markup, type Part } from "./escape.ts";
import { fact } from "./machines-card.ts";
import { table } from "./machines-tables.ts";
import { renderPage } from "./page.ts";
import { renderSection, sectionLinks, type Section } from "./parts-of-pages.ts";
import { ownerWords } from "../owner-words.ts";

const MOST_ROWS = 40;
const MOST_MARKS = 2000;
const WIDTH = 900;
const LEFT = 190;
const RIGHT = 16;
const ROW = 16;
const TOP = 8;
const BOTTOM = 26;

const MOST_LINES = 300;
const MOST_TEXT = 600;

export function renderLogsPage(report: LogReport): string {
  const title = headline(report);
  const parts = sections(report);
  const body = html`<header class="fl-head fl-${toneOf(report)}">
      <h1>${title}</h1>
      ${report.cause && html`<p>${report.cause.meaning}</p>`} ${facts(report)}
    </header>
    ${sectionLinks(parts)}
    <main>${parts.map(renderSection)}</main>
    <footer>Written by Faultline. The same as data: verdict.json (faultline.logs/1).</footer>`;
  return renderPage(title, body);
}

function headline({ cause, indicating }: LogReport): string {
  if (cause) return cause.title;
  return indicating.length > 0
    ? "No known cause, but lines that stand out"
    : "These logs show no failure";
}

function toneOf({ cause, indicating }: LogReport): string {
  return cause ? "bad" : indicating.length > 0 ? "warn" : "good";
}

function facts(report: LogReport): Markup {
  const { cause, stage, lines, files, nodesSeen, healthyJobs } = report;
  const sure = cause ? Math.round(100 * cause.confidence) : 0;
  return html`<dl class="fl-facts">
    ${cause && fact("Category", cause.category)}
    ${cause && fact("Confidence", html`${sure} % ${bar(cause.confidence, `${sure} %`)}`)}
    ${cause && fact("Owner", ownerWords(cause.owner))} ${fact("Stage", stage)}
    ${fact("Read", `${count(lines, "line")} in ${count(files, "file")}, ${count(nodesSeen, "node")}`)}
    ${fact("Compared with", healthyJobs > 0 ? count(healthyJobs, "healthy job") : "no healthy job")}
  </dl>`;
}

function sections(report: LogReport): Section[] {
  const { cause, alternatives, indicating, nodes, iterations, missing } = report;
  const timeline = renderLogTimeline(indicating);
  const all: (Section | false)[] = [
    cause !== null && { id: "action", name: "What to do", body: action(cause) },
    timeline !== null && { id: "timeline", name: "Who logged what, when", body: timeline },
    indicating.length > 0 && {
      id: "lines",
      name: "Lines that show it",
      body: lineTable(indicating),
    },
    nodes.length > 0 && {
      id: "nodes",
      name: "Nodes that stand out",
      body: table("Nodes", ["Node", "Score", "Why"], nodes, ({ node, score, why }) => [
        node,
        html`${score.toFixed(2)} ${bar(score, `Score ${score.toFixed(2)}`)}`,
        cutText(why.join("; "), MOST_TEXT),
      ]),
    },
    iterations.length > 0 && {
      id: "iterations",
      name: "Iterations that stand out",
      body: table("Iterations", ["Iteration", "Score", "Why"], iterations, (one) => [
        thousands(one.iteration),
        one.score.toFixed(2),
        cutText(one.why, MOST_TEXT),
      ]),
    },
    alternatives.length > 0 && {
      id: "alternatives",
      name: "Other possible causes",
      body: table(
        "Alternatives",
        ["What", "Category", "Confidence", "Where"],
        alternatives,
        (one) => [
          one.title,
          one.category,
          `${Math.round(100 * one.confidence)} %`,
          one.at ? `${one.at.file}:${one.at.line}` : "",
        ],
      ),
    },
    missing.length > 0 && {
      id: "missing",
      name: "Missing or odd",
      body: html`<ul>
        ${missing.slice(0, 40).map((text) => html`<li>${cutText(text, MOST_TEXT)}</li>`)}
      </ul>`,
    },
  ];
  return all.filter((part) => part !== false);
}

function action(cause: LogCause): Markup {
  const { at, nodes, ranks, captures, falseFriends } = cause;
  const named = Object.entries(captures)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
  return html`<p>${cause.action}</p>
    ${
      at &&
      html`<p><code>${at.file}:${at.line}</code></p>
        <pre class="scroll">${cutText(at.text, MOST_TEXT)}</pre>`
    }
    <dl class="fl-facts">
      ${nodes.length > 0 && fact("Logged by", cutText(nodes.slice(0, 12).join(", "), 300))}
      ${ranks.length > 0 && fact("Ranks", ranges(ranks))} ${named !== "" && fact("Names", named)}
      ${fact("Signature", cause.signature)}
    </dl>
    ${
      falseFriends.length > 0 &&
      html`<p class="note">It may mislead:</p>
        <ul>
          ${falseFriends.map((text) => html`<li>${text}</li>`)}
        </ul>`
    }`;
}

function lineTable(lines: readonly IndicatingLine[]): Markup {
  return table(
    "Lines",
    ["Place", "Node", "Time (UTC)", "Times", "Role", "Why", "Line"],
    lines.slice(0, MOST_LINES),
    (line): Part[] => [
      html`<code>${cutText(line.file, 80)}:${line.line}</code>`,
      [line.node, line.rank === null ? "" : ` rank ${line.rank}`],
      line.timeMs === null ? "" : (isoTime(line.timeMs) ?? ""),
      thousands(line.count),
      line.role ?? "",
      line.why.join(", "),
      html`<code>${cutText(line.text, MOST_TEXT)}</code>`,
    ],
  );
}

/**
 * Who said what, when: a row for every writer, a mark for every telling line; the root is where the first marks are.
 * null where times do not tell anything: fewer than two different ones.
 */
function renderLogTimeline(lines: readonly IndicatingLine[]): Markup | null {
  const timed = lines.filter(({ timeMs }) => timeMs !== null).slice(0, MOST_MARKS);
  const fromMs = timed.reduce((least, { timeMs }) => Math.min(least, timeMs!), Infinity);
  const toMs = timed.reduce((most, { timeMs }) => Math.max(most, timeMs!), -Infinity);
  if (timed.length < 2 || !(toMs > fromMs)) return null;
  const firstMs = new Map<string, number>();
  for (const line of timed) {
    const name = writerOf(line);
    firstMs.set(name, Math.min(firstMs.get(name) ?? Infinity, line.timeMs!));
  }
  const rows = [...firstMs].sort((a, b) => a[1] - b[1]).map(([name]) => name);
  const place = new Map(rows.slice(0, MOST_ROWS).map((name, row) => [name, row]));
  const height = TOP + place.size * ROW + BOTTOM;
  const x = (ms: number): string =>
    (LEFT + ((ms - fromMs) / (toMs - fromMs)) * (WIDTH - LEFT - RIGHT)).toFixed(1);
  const y = (row: number): number => TOP + (row + 0.5) * ROW;
  const left = rows.length - place.size;
  return html`<p class="note">
      A row for each writer, the first to speak on
      top${left > 0 ? ` (${left} more writers are left out)` : ""}. Filled: says what broke. Hollow:
      follows from it. Clocks of different machines may be off.
    </p>
    <div class="scroll">
      <svg
        class="log-timeline"
        viewBox="0 0 ${WIDTH} ${height}"
        width="${WIDTH}"
        height="${height}"
        role="img"
        aria-label="Telling lines by writer and time"
      >
        ${[...place].map(
          ([name, row]) =>
            html`<text x="${LEFT - 8}" y="${y(row) + 4}" class="name">${cutText(name, 26)}</text>
              <line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(row)}" y2="${y(row)}" />`,
        )}
        ${timed.map((line) => {
          const row = place.get(writerOf(line));
          if (row === undefined) return null;
          const kind = line.role === "root" ? "root" : "other";
          return html`<circle class="${kind}" cx="${x(line.timeMs!)}" cy="${y(row)}" r="4">
            <title>${cutText(`${isoTime(line.timeMs!)} ${line.text}`, 300)}</title>
          </circle>`;
        })}
        <text x="${LEFT}" y="${height - 8}" class="start">${isoTime(fromMs)}</text>
        <text x="${WIDTH - RIGHT}" y="${height - 8}" class="end">${isoTime(toMs)}</text>
      </svg>
    </div>`;
}

function writerOf({ node, rank, file }: IndicatingLine): string {
  const name = node ?? file;
  return rank === null ? name : `${name} rank ${rank}`;
}
