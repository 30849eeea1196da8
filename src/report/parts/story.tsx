/** The way from a rank that waits to the one that all wait for, a card an operator; or who was compared with whom. */
import type { VNode } from "preact";
import { count, cutText } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import { isOperator, type Story as StoryPicture, type StoryHop } from "../../model/picture.ts";
import { time } from "../mitigation-words.ts";
import { amount, barName, StoryBars } from "./story-bars.tsx";

const MOST_HOPS = 8;
const MOST_TITLE = 200;
const MOST_SAYS = 600;
const MOST_ROWS = 64;

/** Of a hang the way of the waiting; of a slow job a comparison. */
export function storyTitle({ hops }: StoryPicture): string {
  return hops.some(isOperator) ? "How it spread" : "Compared with its peers";
}

interface StoryProps {
  readonly story: StoryPicture;
  /** Called when the pointer is on a hop, so that its ranks can be marked elsewhere; null: on none. */
  readonly onPoint?: ((ranks: readonly Rank[] | null) => void) | undefined;
}

export function Story({ story, onPoint }: StoryProps): VNode {
  const hops = story.hops.slice(0, MOST_HOPS);
  const hasOperators = hops.some(isOperator);
  const isLate = hops.some(({ bars }) => bars.some(({ role }) => role === "late"));
  const hasBefore = hops.some(({ bars }) => bars.some(({ beforeMs }) => amount(beforeMs) !== null));
  return (
    <div class="fl-story">
      {hops.length > 0 && (
        <ul class="fl-legend">
          {hasOperators && (
            <li>
              <i class="fl-swatch fl-waits" /> how long it has waited
            </li>
          )}
          {isLate && (
            <li>
              <i class="fl-swatch fl-late" /> {lateWords(hops[0]!)}
            </li>
          )}
          {hops.some(({ bars }) => bars.some(({ role }) => role === "absent")) && (
            <li>
              <i class="fl-swatch fl-absent" /> never arrived
            </li>
          )}
          {hasOperators && <li>▸ the rank that is followed</li>}
          {hasBefore && (
            <li>
              <i class="fl-swatch fl-before" /> before it became slow
            </li>
          )}
        </ul>
      )}
      {hops.length > 0 && (
        <ol class="fl-hops">
          {hops.map((hop, i) => (
            <Hop hop={hop} number={i + 1} isLast={i === hops.length - 1} onPoint={onPoint} />
          ))}
        </ol>
      )}
      <p class="fl-ends">{cutText(story.ends, MOST_SAYS)}</p>
    </div>
  );
}

function lateWords({ kind }: StoryHop): string {
  return kind === "wires" ? "takes longer than its like" : "the others wait for it";
}

function Hop({
  hop,
  number,
  isLast,
  onPoint,
}: {
  readonly hop: StoryHop;
  readonly number: number;
  readonly isLast: boolean;
  readonly onPoint: StoryProps["onPoint"];
}): VNode {
  const { title, says, to, bars, leftOut } = hop;
  const point = onPoint && {
    onMouseEnter: () => onPoint(bars.map(({ rank }) => rank)),
    onMouseLeave: () => onPoint(null),
  };
  return (
    <li class="fl-hop" {...point}>
      <h3>
        <span class="fl-step">{number}</span> {cutText(title, MOST_TITLE)}
      </h3>
      <p class="fl-p">{cutText(says, MOST_SAYS)}</p>
      <StoryBars hop={hop} />
      {leftOut > 0 && <p class="fl-note">{count(leftOut, "more member")}, not drawn.</p>}
      <Figures hop={hop} />
      {!isLast && isOperator(hop) && <p class="fl-leads">leads to rank {to} →</p>}
    </li>
  );
}

const ROLES: Readonly<Record<string, string>> = {
  absent: "never arrived",
  waits: "waits",
};

function Figures({ hop }: { readonly hop: StoryHop }): VNode | null {
  const { bars, kind } = hop;
  if (bars.length === 0) return null;
  const isTime = !isOperator(hop);
  const words = (ms: number | null): string => {
    const value = amount(ms);
    return value === null ? "–" : time(value);
  };
  return (
    <details class="fl-details">
      <summary>Figures</summary>
      <div class="fl-scroll" tabIndex={0} role="group" aria-label="Figures, scrolls">
        <table class="fl-table">
          <thead>
            <tr>
              <th scope="col">{kind === "wires" ? "Wire" : "Rank"}</th>
              <th scope="col">Machine</th>
              <th scope="col">{isTime ? "Now" : "Has waited"}</th>
              {isTime && <th scope="col">Before</th>}
              <th scope="col">{isTime ? "" : "What it does"}</th>
            </tr>
          </thead>
          <tbody>
            {bars.slice(0, MOST_ROWS).map((bar) => (
              <tr>
                <td>{bar.label === undefined ? bar.rank : cutText(barName(bar), 80)}</td>
                <td>{bar.machine === null ? "–" : cutText(bar.machine, 80)}</td>
                <td class="fl-number">{words(bar.ms)}</td>
                {isTime && <td class="fl-number">{words(bar.beforeMs)}</td>}
                <td>{isTime ? (bar.role === "late" ? "slow" : "") : (ROLES[bar.role] ?? "")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
