/** The table of ranks × groups: who lags where, in numbers. */
import { count, cutText } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import { html, join, Markup } from "./escape.ts";
import { COUNTERS, frontierTable, type FrontierCell, type FrontierColumn } from "./frontier.ts";
import type { WaitOp } from "../../model/wait-ops.ts";

const MAX_ROWS = 256;
const MAX_ROLE = 80;

export function renderFrontiers(
  job: Job,
  suspects: ReadonlySet<Rank>,
  victims: ReadonlySet<Rank>,
  ops: readonly WaitOp[],
): Markup {
  const table = frontierTable(job, suspects, ops, MAX_ROWS);
  if (table.columns.length === 0) {
    return html`<p class="note">The dumps carry no counters of their process groups.</p>`;
  }
  const shown = table.rows.length;
  return html` <p>
      Last operator ${COUNTERS.join(" / ")} in each group.
      <span class="lag">488<small>−1</small></span> marks a counter that is behind the farthest
      member of the same group, and by how much; “–” is unknown.
    </p>
    ${table.leftOutRows > 0 && html`<p class="note">The ${count(shown, "rank")} nearest to the suspects; ${count(table.leftOutRows, "more rank")} left out.</p>`}
    <div class="scroll tall" tabindex="0" role="group" aria-label="Frontiers, scrolls both ways">
      <table class="frontiers">
        <caption class="hidden">
          Counters of every rank in every process group
        </caption>
        <thead>
          <tr>
            <th scope="col">Rank</th>
            ${table.columns.map(columnHead)}
          </tr>
        </thead>
        <tbody>
          ${table.rows.map(({ rank, isSuspect, cells }) => {
            const machine = job.ranks.get(rank)?.machine ?? null;
            const state = isSuspect ? "suspect" : victims.has(rank) ? "waits" : "";
            return html`<tr${isSuspect && SUSPECT_ROW}><th scope="row"><b>${rank}</b> ${machine}${state !== "" && html` <span class="state">${state}</span>`}</th>${
              cells
                ? cells.map(renderCell)
                : html`<td class="none" colspan="${table.columns.length}">no dump</td>`
            }</tr>\n`;
          })}
        </tbody>
      </table>
    </div>`;
}

const SUSPECT_ROW = new Markup(' class="suspect"');

function columnHead({ role, isMixed }: FrontierColumn): Markup {
  const words = join(
    cutText(role, MAX_ROLE)
      .split(/(?<=_)/)
      .map((word) => html`${word}`),
    html`<wbr />`,
  );
  const note = isMixed && html` <small>P2P: differs by stage</small>`;
  return html`<th scope="col">${words}${note}</th>`;
}

function renderCell(cell: FrontierCell | null): Markup {
  if (!cell) return html`<td></td>`;
  const parts = cell.counters.map(({ value, lag }) => {
    if (value < 0) return "–";
    return lag > 0 ? html`<span class="lag">${value}<small>−${lag}</small></span>` : value;
  });
  return html`<td>${join(parts, "/")}${cell.more > 0 && html` <small>+${cell.more}</small>`}</td>`;
}
