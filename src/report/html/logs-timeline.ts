/** Who said what, when: a row for every writer, a mark for every telling line; the root is where the first marks are. */
import { cutText } from "../../base/text.ts";
import type { IndicatingLine } from "../../model/log-report.ts";
import { isoTime } from "../logs-document.ts";
import { html, type Markup } from "./escape.ts";

const MOST_ROWS = 40;
const MOST_MARKS = 2000;
const WIDTH = 900;
const LEFT = 190;
const RIGHT = 16;
const ROW = 16;
const TOP = 8;
const BOTTOM = 26;

/** null where times do not tell anything: fewer than two different ones. */
export function renderLogTimeline(lines: readonly IndicatingLine[]): Markup | null {
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
