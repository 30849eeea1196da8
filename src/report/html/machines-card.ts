/** One machine that is unlike its peers: in words, in small plots, in figures. */
import { count, cutText } from "../../base/text.ts";
import type { MachinePicture } from "../../model/machine-picture.ts";
import type { Deviation, FaultyMachine } from "../../model/machine-report.ts";
import { bar } from "./bar.ts";
import { html, type Markup, type Part } from "./escape.ts";
import { pictureTitle, renderMachinePlot } from "./machines-plot.ts";
import type { TimeAxis } from "./machines-scale.ts";
import { table } from "./machines-tables.ts";
import {
  amountWords,
  digits,
  figureWords,
  lastingWords,
  metricTitle,
  metricUnit,
  nameWords,
  utc,
} from "./machines-words.ts";

const MOST_WHY = 2_000;

export function renderMachine(
  one: FaultyMachine,
  i: number,
  faulty: readonly FaultyMachine[],
  pictures: readonly MachinePicture[],
  axis: TimeAxis,
): Markup {
  const { machine, score, sinceS, untilS, role, why, deviations } = one;
  return html`<article class="machine" id="machine-${i + 1}">
    <h3>${nameWords(machine)}</h3>
    <p class="why">${cutText(why, MOST_WHY)}</p>
    <dl class="fl-facts">
      ${fact("Since (UTC)", utc(sinceS))}
      ${fact("Until (UTC)", untilS === null ? "still, at the end of the data" : utc(untilS))}
      ${fact("Score", html`${scoreWords(score)} ${bar(score, `Score ${scoreWords(score)}`)}`)}
      ${fact("Compared with", nameWords(role))}
      ${faulty.length > 1 && fact("Order", orderWords(one, faulty))}
    </dl>
    ${
      pictures.length > 0 &&
      html`<div class="small-plots">
        ${pictures.map((picture) => renderPicture(picture, deviations, axis))}
      </div>`
    }
    ${deviations.length > 0 && renderDeviations(deviations, pictures.length > 0)}
  </article> `;
}

function renderPicture(
  picture: MachinePicture,
  deviations: readonly Deviation[],
  axis: TimeAxis,
): Markup {
  const deviation = shownBy(picture, deviations);
  const figures = deviation ? figureWords(deviation) : "";
  return html`<div>
    <p><b>${pictureTitle(picture)}</b></p>
    <p class="note">${figures}</p>
    ${renderMachinePlot(picture, axis, figures)}
  </div> `;
}

/** Absence has no metric of its own: any that ends shows it. */
function shownBy(picture: MachinePicture, deviations: readonly Deviation[]): Deviation | null {
  const { metric, fromS, device } = picture;
  const atOnce = deviations.filter((one) => one.fromS === fromS);
  return (
    atOnce.find((one) => one.metric === metric && one.device === device) ??
    atOnce.find(({ direction }) => direction === "absent") ??
    deviations.find((one) => one.metric === metric) ??
    null
  );
}

function renderDeviations(deviations: readonly Deviation[], isDrawn: boolean): Markup {
  const body = table(
    "Deviations",
    [
      "Metric",
      "Device",
      "Direction",
      "From (UTC)",
      "To (UTC)",
      "Machine",
      "Peers",
      "Multiple of the peers' spread",
    ],
    deviations,
    ({ metric, device, direction, fromS, toS, value, peers, sigmas }) => [
      metricTitle(metric),
      device === null ? "–" : nameWords(device),
      direction,
      utc(fromS),
      utc(toS),
      metric === "reporting" ? "–" : amountWords(value, metricUnit(metric)),
      metric === "reporting" ? "–" : amountWords(peers, metricUnit(metric)),
      Number.isFinite(sigmas) ? digits(sigmas) : "–",
    ],
  );
  if (!isDrawn) return body;
  return html`<details>
    <summary>${count(deviations.length, "deviation")} in figures</summary>
    ${body}
  </details>`;
}

function orderWords({ order, sinceS }: FaultyMachine, faulty: readonly FaultyMachine[]): string {
  const firsts = faulty.filter((one) => one.order === 1);
  if (order === 1)
    return firsts.length > 1 ? `first, with ${count(firsts.length - 1, "other")}` : "first";
  const [first] = firsts;
  if (!first) return `no. ${order}`;
  return `no. ${order}, ${lastingWords(sinceS - first.sinceS)} after ${nameWords(first.machine)}`;
}

export function scoreWords(score: number): string {
  return Number.isFinite(score) ? score.toFixed(2) : "–";
}

export function fact(name: string, value: Part): Markup {
  return html`<div>
    <dt>${name}</dt>
    <dd>${value}</dd>
  </div>`;
}
