/** All that a report can show of what methods saw, before it is known what decided (evidence-order.ts). */
import type { Job } from "../../model/job.ts";
import type { IncidentPicture } from "../../model/picture.ts";
import type { Verdict } from "../../model/verdict.ts";
import { html, Markup, join } from "./escape.ts";
import type { EvidenceSection } from "./evidence-order.ts";
import { renderSeries } from "./iterations-section.ts";
import { renderMachinesBody, type MachineAnswer } from "./machines-section.ts";
import { pictureSections } from "./picture-section.ts";
import { traceSections, type TracePictures } from "./trace-section.ts";
import { readWaitOps, ABSENCES, type WaitOps } from "../../model/wait-ops.ts";
import type { StuckOperator } from "../../model/facts.ts";
import { count, cutText, rankWords } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import { COUNTERS, frontierTable, type FrontierCell, type FrontierColumn } from "./frontier.ts";
import { layOut, type Layout } from "./wait-graph-layout.ts";
import { buildGraph } from "./wait-graph-nodes.ts";
import { ABSENCE_WORDS, drawGraph } from "./wait-graph-svg.ts";

/** What a person takes in at once: above the first figure alike nodes fold, the second is never passed. */
const MOST_BEFORE_FOLDING = 28;
const MOST_DRAWN = 40;
const MAX_OPS_AS_TEXT = 60;

const MAX_ROWS = 256;
const MAX_ROLE = 80;

const SUSPECT_ROW = new Markup(' class="suspect"');

/** Where findings stand that nothing is drawn of. */
export const OTHER: EvidenceSection = {
  id: "evidence",
  name: "Other evidence",
  shows: [],
  folds: "",
  body: html``,
};

export function evidenceSections(
  job: Job,
  verdict: Verdict,
  traces: TracePictures | null,
  machines: MachineAnswer | null,
  picture: IncidentPicture | null,
): readonly EvidenceSection[] {
  const waits = readWaitOps(verdict);
  const suspects = new Set(verdict.suspects.flatMap((suspect) => suspect.ranks));
  const section = (
    id: string,
    name: string,
    shows: EvidenceSection["shows"],
    folds: string,
    body: Markup | null,
  ): EvidenceSection[] => (body === null ? [] : [{ id, name, shows, folds, body }]);
  return [
    ...section(
      "waits",
      "Who waits for whom",
      ["hang/wait-graph"],
      "The graph",
      waits && renderWaitGraph(job, waits, suspects),
    ),
    ...section(
      "iterations",
      "Iteration times",
      ["iterations/"],
      "Plots and tables",
      job.iterations.length > 0 ? renderSeries(job.iterations) : null,
    ),
    ...section(
      "machines",
      "Machines",
      ["machines/"],
      "Plots and tables",
      machines && renderMachinesBody(machines),
    ),
    ...pictureSections(picture, machines !== null, traces?.timeline != null),
    ...(traces ? traceSections(traces) : []).map(({ id, name, body }) => ({
      id,
      name,
      shows: ["traces/", "host/python-time"] as const,
      folds: "The drawing",
      body,
    })),
    ...section(
      "frontiers",
      "How far each rank got",
      ["hang/wait-graph", "hang/ras"],
      "The table",
      job.dumps.size > 0
        ? renderFrontiers(job, suspects, new Set(verdict.victims), waits?.ops ?? [])
        : null,
    ),
  ];
}

/** The table of ranks × groups: who lags where, in numbers. */
function renderFrontiers(
  job: Job,
  suspects: ReadonlySet<Rank>,
  victims: ReadonlySet<Rank>,
  ops: readonly StuckOperator[],
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

/**
 * The wait graph with what a reader needs around it: a key, what was left out, the same in words.
 */
function renderWaitGraph(job: Job, waits: WaitOps, culprits: ReadonlySet<Rank>): Markup {
  const layout = waitGraphLayout(waits.ops, culprits);
  return html`<p>
      An arrow leads from a rank to the operator it waits in, and from there to the rank that is
      missing there. The arrows end at what holds the job up.
    </p>
    <div class="scroll" tabindex="0" role="group" aria-label="Wait-for graph">
      ${drawGraph(job, layout)}
    </div>
    ${legend()} ${leftOut(layout, waits)} ${asText(waits)}`;
}

export function waitGraphLayout(
  ops: readonly StuckOperator[],
  culprits: ReadonlySet<Rank>,
): Layout {
  return layOut(buildGraph(ops, culprits, MOST_BEFORE_FOLDING), MOST_DRAWN);
}

function legend(): Markup {
  return html`<ul class="legend">
    <li><span class="key culprit"></span> suspect (thick border)</li>
    <li><span class="key waiting"></span> waits</li>
    <li><span class="key silent"></span> left no dump (dashed)</li>
    <li><span class="key op"></span> operator; ×4: four alike in different groups</li>
    <li><b>never issued</b>: its CPU did not get to the operator</li>
    <li><b>is behind</b>: it issued the operator and is stuck in an earlier one</li>
    <li><b>dotted</b>: an arrow back, which closes a circle</li>
  </ul>`;
}

function leftOut(layout: Layout, { ops, stuckOps }: WaitOps): Markup | null {
  const { leftOutRanks, leftOutOps } = layout;
  const unlisted = stuckOps - ops.length;
  const notes: string[] = [];
  if (leftOutRanks + leftOutOps > 0) {
    notes.push(
      `Not drawn, being farther from the suspects: ${count(leftOutRanks, "rank")} and ${count(leftOutOps, "operator")}.`,
    );
  }
  if (unlisted > 0) {
    notes.push(`The finding lists ${ops.length} of ${count(stuckOps, "stuck operator")}.`);
  }
  return notes.length === 0 ? null : html`<p class="note">${notes.join(" ")}</p>`;
}

/** For those who cannot see the picture, and for searching the page. */
function asText({ ops }: WaitOps): Markup {
  const items = ops.slice(0, MAX_OPS_AS_TEXT).map(({ what, arrived, absent }) => {
    const whys = ABSENCES.flatMap((why) => {
      const ranks = absent.filter((entry) => entry.why === why).map(({ rank }) => rank);
      return ranks.length === 0 ? [] : `${rankWords(ranks)} (${ABSENCE_WORDS[why]})`;
    });
    const missing = whys.length === 0 ? "no rank is missing" : `missing: ${whys.join(", ")}`;
    return html`<li>${rankWords(arrived)} in <b>${what}</b>; ${missing}</li>`;
  });
  const rest = ops.length - items.length;
  return html`<details>
    <summary>The same in words</summary>
    <ul>
      ${items}
    </ul>
    ${rest > 0 && html`<p class="note">${count(rest, "more operator")} in verdict.json.</p>`}
  </details>`;
}
