/** Which part of the network is slow: machines against machines, a slow link where they meet, a slow NIC as a band. */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { Incident } from "../live/api.ts";
import { type Observable, useObservable } from "../live/observable.ts";
import type { RankState } from "./follow-ranks.ts";
import { networkCells } from "./network-cells.ts";

/** Of the drawing; it grows with the page. */
const SIZE = 480;
const MOST_WORDS = 4;

export function NetworkMatrix({
  feed,
  incidents,
}: {
  readonly feed: Observable<RankState>;
  /** The open ones. */
  readonly incidents: readonly Incident[];
}): VNode | null {
  const { table } = useObservable(feed);
  const cells = useMemo(() => table && networkCells(table, incidents), [table, incidents]);
  if (!cells) return null;
  const { places, machines, names, links, ends } = cells;
  const side = SIZE / places;
  const slow = [...new Set([...links, ...ends].map(({ says }) => says))];
  const more = slow.length - MOST_WORDS;
  const words = `Slow: ${slow.slice(0, MOST_WORDS).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return (
    <section class="section" aria-labelledby="network-title">
      <div class="section-head">
        <h2 id="network-title">
          Network <span class="soft small">{machines} machines, each against each</span>
        </h2>
      </div>
      <div class="panel network-panel">
        <svg class="network" viewBox={`0 0 ${SIZE} ${SIZE}`} role="img" aria-label={words}>
          <rect class="network-back" width={SIZE} height={SIZE} />
          {ends.map(({ at, says }) => (
            <g key={`${at} ${says}`} class="network-end">
              <rect x={at * side} width={side} height={SIZE} />
              <rect y={at * side} width={SIZE} height={side} />
            </g>
          ))}
          {places <= 24 &&
            Array.from({ length: places + 1 }, (_, i) => (
              <path key={i} class="network-line" d={lines(i * side)} />
            ))}
          {links.flatMap(({ from, to, says }) =>
            [
              [from, to],
              [to, from],
            ].map(([x, y]) => (
              <rect
                key={`${x} ${y} ${says}`}
                class="network-link"
                x={x! * side}
                y={y! * side}
                width={Math.max(side, 8)}
                height={Math.max(side, 8)}
              >
                <title>{says}</title>
              </rect>
            )),
          )}
        </svg>
        <div class="stack">
          <p>
            <strong>{words}</strong>
          </p>
          <p class="soft small">
            Rows and columns are machines, from {names[0]} to {names.at(-1)}. A red cell is a slow
            link between two machines; a red band is a machine whose NIC or switch is slow.
          </p>
        </div>
      </div>
    </section>
  );
}

function lines(at: number): string {
  return `M${at} 0V${SIZE}M0 ${at}H${SIZE}`;
}
