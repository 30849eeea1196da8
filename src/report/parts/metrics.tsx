/** Metrics of suspects' machines beside their peers', a small plot each on one time axis. */
import type { VNode } from "preact";
import { groupBy } from "../../base/group-by.ts";
import { count } from "../../base/text.ts";
import type { MachinePicture } from "../../model/machine-picture.ts";
import { renderMachineLegend } from "../html/machines-legend.ts";
import { pictureTitle, renderMachinePlot } from "../html/machines-plot.ts";
import { isAmount, timeAxis } from "../html/machines-scale.ts";
import { amountWords, nameWords } from "../html/machines-words.ts";
import type { ClockZone } from "./clock-zone.ts";
import { Drawn } from "./markup.tsx";

const MOST_PLOTS = 36;
/** Before the fold, of a machine: what deviates comes first. */
const MOST_OPEN = 6;

export function Metrics({
  pictures,
  zone,
}: {
  readonly pictures: readonly MachinePicture[];
  /** UTC where it is absent. */
  readonly zone?: ClockZone;
}): VNode | null {
  if (pictures.length === 0) return null;
  const shown = pictures.slice(0, MOST_PLOTS);
  const axis = timeAxis(shown, zone);
  const plots = (list: readonly MachinePicture[]): VNode => (
    <div class="small-plots">
      {list.map((picture) => (
        <div>
          <p class="fl-p">
            <b>{pictureTitle(picture)}</b>
          </p>
          <p class="fl-note">{figureWordsOf(picture)}</p>
          <Drawn markup={renderMachinePlot(picture, axis, figureWordsOf(picture))} />
        </div>
      ))}
    </div>
  );
  return (
    <div class="fl-metrics">
      <Drawn markup={renderMachineLegend(axis)} />
      {[...groupBy(shown, ({ machine }) => machine)].map(([machine, list]) => (
        <article class="fl-machine">
          <h3>{nameWords(machine)}</h3>
          {plots(list.slice(0, MOST_OPEN))}
          {list.length > MOST_OPEN && (
            <details class="fl-details">
              <summary>{count(list.length - MOST_OPEN, "more metric")}</summary>
              {plots(list.slice(MOST_OPEN))}
            </details>
          )}
        </article>
      ))}
      {pictures.length > shown.length && (
        <p class="fl-note">{count(pictures.length - shown.length, "more plot")} left out.</p>
      )}
    </div>
  );
}

/** "71 W, peers 500 W": medians of the time in which it was unlike them. */
export function figureWordsOf({ timeS, value, middle, fromS, toS, unit }: MachinePicture): string {
  const middleOf = (list: readonly (number | null)[]): number | undefined => {
    const inside = list
      .filter((one, i): one is number => isAmount(one) && timeS[i]! >= fromS && timeS[i]! <= toS)
      .toSorted((a, b) => a - b);
    return inside[inside.length >> 1];
  };
  const [own, peers] = [middleOf(value), middleOf(middle)];
  if (own === undefined)
    return peers === undefined ? "" : `no sample, peers ${amountWords(peers, unit)}`;
  return peers === undefined
    ? amountWords(own, unit)
    : `${amountWords(own, unit)}, peers ${amountWords(peers, unit)}`;
}
