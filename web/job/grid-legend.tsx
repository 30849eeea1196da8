/** What the grid's colours and marks mean, with numbers. */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { SCALE_GRADIENT } from "./color-scale.ts";
import { type Measure, SUSPECT, valueWords, VICTIM } from "./measures.ts";
import type { RankTable } from "./rank-table.ts";
import type { Limits } from "./scale-limits.ts";

const MARKS: Readonly<Record<string, string>> = {
  stopped: "M5 3.5v9M11 3.5v9",
  gone: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  silent: "M8 7.9v.2",
};

export function GridLegend({
  measure,
  limits,
  table,
  atMs,
  verdict,
}: {
  readonly measure: Measure;
  readonly limits: Limits | null;
  readonly table: RankTable;
  readonly atMs: number;
  readonly verdict: Uint8Array;
}): VNode {
  // Drawn with every move of the cursor, counted once per answer.
  const states = useMemo(() => counts(table.state), [table, atMs]);
  const kinds = useMemo(() => counts(verdict), [verdict]);
  return (
    <div class="grid-legend small">
      {measure.column === null ? (
        <ul class="legend-list">
          <li>
            <span class="legend-cell legend-suspect" /> suspect ({kinds[SUSPECT]})
          </li>
          <li>
            <span class="legend-cell legend-victim" /> shows symptoms ({kinds[VICTIM]})
          </li>
          <li>
            <span class="legend-cell legend-other" /> neither ({kinds[0]})
          </li>
        </ul>
      ) : limits === null ? (
        <span class="soft">No rank reports its {measure.label.toLowerCase()}.</span>
      ) : (
        <div class="legend-scale">
          <span class="num">{valueWords(measure.column, limits.low)}</span>
          <span class="legend-bar" style={{ backgroundImage: SCALE_GRADIENT }} />
          <span class="num">
            {valueWords(measure.column, limits.high)}
            {limits.max > limits.high * 1.02 && (
              <span class="soft"> and more, up to {valueWords(measure.column, limits.max)}</span>
            )}
          </span>
        </div>
      )}
      <ul class="legend-list">
        {["stopped", "gone", "silent"].map(
          (word, at) =>
            states[at + 1]! > 0 && (
              <li key={word}>
                <svg class="legend-mark" viewBox="0 0 16 16" aria-hidden="true">
                  <path
                    d={MARKS[word]}
                    stroke="currentColor"
                    stroke-width={word === "silent" ? 6 : 2.4}
                    stroke-linecap="round"
                    fill="none"
                  />
                </svg>
                {word} ({states[at + 1]})
              </li>
            ),
        )}
      </ul>
    </div>
  );
}

function counts(column: Uint8Array): Uint32Array {
  const count = new Uint32Array(8);
  for (const value of column) count[value]!++;
  return count;
}
