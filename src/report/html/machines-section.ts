/** The machines that are unlike their peers: who, since when, in what, with a small plot of each metric. */
import { groupBy } from "../../base/group-by.ts";
import { largest, smallest } from "../../base/numbers.ts";
import { thousands } from "../../base/text.ts";
import type { MachinePicture } from "../../model/machine-picture.ts";
import type { FaultyMachine, MachineReport } from "../../model/machine-report.ts";
import { html, type Markup } from "./escape.ts";
import { renderMachine, scoreWords } from "./machines-card.ts";
import { renderMachineLegend } from "./machines-legend.ts";
import { timeAxis } from "./machines-scale.ts";
import { machineParts, more, table } from "./machines-tables.ts";
import { metricTitle, nameWords, spanText, utc, utcText } from "./machines-words.ts";

const MOST_MACHINES = 200;
const NAMED = 3;

export interface MachineAnswer {
  readonly report: MachineReport;
  readonly pictures: readonly MachinePicture[];
}

/** Within another report: the answer as its first sentence, what is asked for seldom folded. */
export function renderMachinesBody({ report, pictures }: MachineAnswer): Markup {
  return html`<p><b>${headline(report)}.</b></p>
    ${renderFaulty(report, pictures)}
    ${machineParts(report).map(
      ({ name, body }) =>
        html`<details>
          <summary>${name}</summary>
          ${body}
        </details> `,
    )}`;
}

/** Without a full stop: it is a title, too. */
export function headline({ faulty, metrics }: MachineReport): string {
  const [first] = faulty.toSorted((a, b) => a.sinceS - b.sinceS);
  if (!first) {
    return metrics.some(({ coverage }) => coverage > 0)
      ? "No machine is unlike its peers"
      : "Nothing to compare";
  }
  if (faulty.length === 1) {
    const { machine, sinceS, untilS } = first;
    return untilS === null
      ? `${nameWords(machine)} has been unlike its peers since ${moment(sinceS)}`
      : `${nameWords(machine)} was unlike its peers ${spanText(sinceS, untilS)} UTC`;
  }
  const names = faulty.slice(0, NAMED).map(({ machine }) => nameWords(machine));
  const rest = faulty.length - names.length;
  const who =
    rest > 0
      ? `${names.join(", ")} and ${thousands(rest)} more`
      : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  const verb = faulty.some(({ untilS }) => untilS === null) ? "are" : "were";
  // Where the sampling cannot tell who was first, neither does the headline.
  const isAlone = faulty.filter(({ order }) => order === first.order).length === 1;
  const lead = isAlone ? `; ${nameWords(first.machine)} first,` : ",";
  return `${who} ${verb} unlike their peers${lead} since ${moment(first.sinceS)}`;
}

/** In one piece: a line that breaks between day and clock is read wrong. */
function moment(seconds: number): string {
  return `${utcText(seconds)} UTC`.replaceAll(" ", "\u00a0");
}

/** Nothing where there is nobody. */
export function renderFaulty(
  { faulty }: MachineReport,
  pictures: readonly MachinePicture[],
): Markup {
  if (faulty.length === 0) return html``;
  const axis = timeAxis(pictures);
  const byMachine = groupBy(pictures, ({ machine }) => machine);
  const shown = faulty.slice(0, MOST_MACHINES);
  return html`${faulty.length > 1 && renderOrder(shown)}
  ${pictures.length > 0 && renderMachineLegend(axis)}
  ${shown.map((one, i) => renderMachine(one, i, faulty, byMachine.get(one.machine) ?? [], axis))}
  ${faulty.length > shown.length && more(faulty.length - shown.length)}`;
}

/** Who was first, at one glance: a bar for each on the same time axis. */
function renderOrder(shown: readonly FaultyMachine[]): Markup {
  const ends = shown.flatMap(({ untilS, deviations }) => [
    untilS ?? -Infinity,
    ...deviations.map(({ toS }) => toS).filter(Number.isFinite),
  ]);
  const starts = shown.map(({ sinceS }) => sinceS);
  const startS = smallest(starts, Infinity);
  const endS = largest(ends, startS);
  const place = (seconds: number): number =>
    endS > startS ? Math.min(1, Math.max(0, (seconds - startS) / (endS - startS))) : 0;
  const rows = shown.map((one, i) => ({ one, i })).sort((a, b) => a.one.order - b.one.order);
  return html`<h3>In the order of their onset</h3>
    ${table(
      "Machines in the order of their onset",
      ["No.", "Machine", "Since (UTC)", "Until (UTC)", "When", "Most clearly in", "Score"],
      rows,
      ({ one, i }) => [
        one.order,
        html`<a href="#machine-${i + 1}">${nameWords(one.machine)}</a>`,
        utc(one.sinceS),
        one.untilS === null ? "still" : utc(one.untilS),
        whenBar(place(one.sinceS), one.untilS === null ? 1 : place(one.untilS)),
        metricTitle(one.metric),
        scoreWords(one.score),
      ],
    )}`;
}

function whenBar(from: number, to: number): Markup {
  const width = Math.max(2, Math.round(2000 * (to - from)) / 10 || 0);
  const x = Math.min(200 - width, Math.round(2000 * from) / 10 || 0);
  return html`<svg class="when" role="presentation" viewBox="0 0 200 12">
    <rect class="track" y="5" width="200" height="2" />
    <rect class="fill" x="${x}" y="1" width="${width}" height="10" rx="2" />
  </svg>`;
}
