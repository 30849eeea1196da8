/** The wait graph with what a reader needs around it: a key, what was left out, the same in words. */
import { count, rankWords } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import { html, type Markup } from "./escape.ts";
import { layOut, type Layout } from "./wait-graph-layout.ts";
import { buildGraph } from "./wait-graph-nodes.ts";
import { ABSENCE_WORDS, drawGraph } from "./wait-graph-svg.ts";
import { ABSENCES, type WaitOp, type WaitOps } from "../../model/wait-ops.ts";

/** What a person takes in at once: above the first figure alike nodes fold, the second is never passed. */
const MOST_BEFORE_FOLDING = 28;
const MOST_DRAWN = 40;
const MAX_OPS_AS_TEXT = 60;

export function renderWaitGraph(job: Job, waits: WaitOps, culprits: ReadonlySet<Rank>): Markup {
  const layout = waitGraphLayout(waits.ops, culprits);
  return html`<p>
      An arrow leads from a rank to the operator it waits in, and from there to the rank that is not
      there. The arrows end at what holds the job up.
    </p>
    <div class="scroll" tabindex="0" role="group" aria-label="Wait-for graph">
      ${drawGraph(job, layout)}
    </div>
    ${legend()} ${leftOut(layout, waits)} ${asText(waits)}`;
}

export function waitGraphLayout(ops: readonly WaitOp[], culprits: ReadonlySet<Rank>): Layout {
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
    const missing = whys.length === 0 ? "nobody is absent" : `absent: ${whys.join(", ")}`;
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
