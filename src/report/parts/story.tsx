/** The way from a rank that waits to the one that all wait for, a card an operator. */
import type { VNode } from "preact";
import { count, cutText } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { Story as StoryPicture, StoryHop } from "../../model/picture.ts";
import { time } from "../mitigation-words.ts";
import { amount, isOpen, StoryBars } from "./story-bars.tsx";

const MOST_HOPS = 8;
const MOST_TITLE = 200;
const MOST_SAYS = 600;
const MOST_ROWS = 64;

interface StoryProps {
  readonly story: StoryPicture;
  /** Called when the pointer is on a hop, so that its ranks can be marked elsewhere; null: on none. */
  readonly onPoint?: ((ranks: readonly Rank[] | null) => void) | undefined;
}

export function Story({ story, onPoint }: StoryProps): VNode {
  const hops = story.hops.slice(0, MOST_HOPS);
  const hasEnded = hops.some((hop) => hop.kind !== "own" && !isOpen(hop));
  const hasOperators = hops.some(({ kind }) => kind !== "own");
  const hasBefore = hops.some(({ bars }) => bars.some(({ beforeMs }) => amount(beforeMs) !== null));
  return (
    <div class="fl-story">
      {story.iteration !== null && hops.length > 0 && (
        <p class="fl-p">
          Iteration {story.iteration}, from a waiting rank to the one that all wait for.
        </p>
      )}
      {hops.length > 0 && (
        <ul class="fl-legend">
          {hasOperators && (
            <li>
              <i class="fl-swatch fl-waits" />{" "}
              {hasEnded
                ? "from arrival to the end of the operator: the rank with the shortest bar arrived last"
                : "how long it has waited"}
            </li>
          )}
          {hops.some(({ bars }) => bars.some(({ role }) => role === "late")) && (
            <li>
              <i class="fl-swatch fl-late" /> the others wait for it
            </li>
          )}
          {hops.some(isOpen) && (
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
      {!isLast && <p class="fl-leads">leads to rank {to} →</p>}
    </li>
  );
}

const ROLES: Readonly<Record<string, string>> = {
  late: "the others wait for it",
  absent: "never arrived",
  waits: "waits",
};

function Figures({ hop }: { readonly hop: StoryHop }): VNode | null {
  const { bars, kind } = hop;
  if (bars.length === 0) return null;
  const isOwn = kind === "own";
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
              <th scope="col">Rank</th>
              <th scope="col">Machine</th>
              <th scope="col">{isOwn ? "Own time" : "Until the end"}</th>
              {isOwn && <th scope="col">Before</th>}
              <th scope="col">{isOwn ? "" : "What it does"}</th>
            </tr>
          </thead>
          <tbody>
            {bars.slice(0, MOST_ROWS).map(({ rank, machine, ms, beforeMs, role }) => (
              <tr>
                <td>{rank}</td>
                <td>{machine === null ? "–" : cutText(machine, 80)}</td>
                <td class="fl-number">{words(ms)}</td>
                {isOwn && <td class="fl-number">{words(beforeMs)}</td>}
                <td>{isOwn ? (role === "late" ? "late" : "") : (ROLES[role] ?? "")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
