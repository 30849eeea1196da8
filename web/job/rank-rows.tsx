/** Ranks as a table: those that are brushed, and the worst ones for who cannot see the grid. */
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { figure as figureWords } from "../shell/words.ts";
import { valueWords } from "./measures.ts";
import { type RankTable, STATES } from "./rank-table.ts";

type Column = "rank" | "machine" | "ownMs" | "waitMs" | "lateMs" | "temperature";
const COLUMNS: readonly { readonly id: Column; readonly label: string }[] = [
  { id: "rank", label: "Rank" },
  { id: "machine", label: "Machine" },
  { id: "ownMs", label: "Own" },
  { id: "waitMs", label: "Wait" },
  { id: "lateMs", label: "Late" },
  { id: "temperature", label: "°C" },
];
const MOST_ROWS = 200;

export function BrushedRanks({
  table,
  ranks,
  onClear,
}: {
  readonly table: RankTable;
  readonly ranks: ReadonlySet<number>;
  readonly onClear: () => void;
}): VNode {
  const [sort, setSort] = useState<{ column: Column; isDown: boolean }>({
    column: "rank",
    isDown: false,
  });
  // Ordered when it is asked for, not with every second's values: rows must not move while they are read.
  const rows = useMemo(() => {
    const known = [...ranks].flatMap((rank) => table.rowOf.get(rank) ?? []);
    return known.toSorted((a, b) => compare(table, sort.column, a, b) * (sort.isDown ? -1 : 1));
  }, [table, ranks, sort]);
  return (
    <div class="brushed">
      <div class="section-head">
        <h3>
          {rows.length} {rows.length === 1 ? "rank" : "ranks"} selected
        </h3>
        <button type="button" class="button-quiet small" onClick={onClear}>
          Clear
        </button>
      </div>
      <p class="small soft">{machineWords(table, rows)}. Times in milliseconds.</p>
      <div class="rows-scroll" tabIndex={0} role="region" aria-label="Selected ranks">
        <table class="table rank-rows small">
          <thead>
            <tr>
              {COLUMNS.map(({ id, label }) => (
                <th
                  key={id}
                  class={id === "rank" || id === "machine" ? "" : "right"}
                  aria-sort={sort.column !== id ? "none" : sort.isDown ? "descending" : "ascending"}
                >
                  <button
                    type="button"
                    class="sort-button"
                    onClick={() =>
                      setSort({
                        column: id,
                        isDown:
                          sort.column === id ? !sort.isDown : id !== "rank" && id !== "machine",
                      })
                    }
                  >
                    {label}
                    <span aria-hidden="true">
                      {sort.column !== id ? "" : sort.isDown ? " ↓" : " ↑"}
                    </span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, MOST_ROWS).map((row) => (
              <RankRow key={table.rank[row]} table={table} row={row} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > MOST_ROWS && <p class="small soft">and {rows.length - MOST_ROWS} more</p>}
    </div>
  );
}

export function WorstRanks({
  table,
  column,
}: {
  readonly table: RankTable;
  readonly column: "lateMs" | "waitMs" | "durationMs" | "temperature";
}): VNode {
  const rows = worst(table, table[column], 20);
  return (
    <table class="table rank-rows small">
      <thead>
        <tr>
          {COLUMNS.map(({ id, label }) => (
            <th key={id} class={id === "rank" || id === "machine" ? "" : "right"}>
              {label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <RankRow key={table.rank[row]} table={table} row={row} />
        ))}
      </tbody>
    </table>
  );
}

function RankRow({ table, row }: { readonly table: RankTable; readonly row: number }): VNode {
  const state = STATES[table.state[row]!]!;
  return (
    <tr>
      <td class="num">
        {table.rank[row]}
        {state !== "running" && <span class="tone-bad"> {state}</span>}
      </td>
      <td>
        <span class="cut" title={table.machine[row]}>
          {table.machine[row] || "–"}
        </span>
      </td>
      <td class="num right">{figure(table.ownMs[row]!)}</td>
      <td class="num right">{figure(table.waitMs[row]!)}</td>
      <td class="num right">{figure(table.lateMs[row]!)}</td>
      <td class="num right">
        {valueWords("temperature", table.temperature[row]!).replace(" °C", "")}
      </td>
    </tr>
  );
}

/** Rows of the highest values, highest first; unknown ones are left out. */
export function worst(table: RankTable, values: Float32Array, most: number): readonly number[] {
  const found: number[] = [];
  for (let row = 0; row < table.count; row++) {
    const value = values[row]!;
    if (!Number.isFinite(value)) continue;
    if (found.length === most && !(value > values[found[most - 1]!]!)) continue;
    let at = found.length;
    while (at > 0 && values[found[at - 1]!]! < value) at--;
    found.splice(at, 0, row);
    if (found.length > most) found.pop();
  }
  return found;
}

function compare(table: RankTable, column: Column, a: number, b: number): number {
  if (column === "machine") {
    const [one, other] = [table.machine[a]!, table.machine[b]!];
    return one < other ? -1 : one > other ? 1 : table.rank[a]! - table.rank[b]!;
  }
  const [one, other] = [table[column][a]!, table[column][b]!];
  // Unknown values are below all others.
  return (
    (Number.isNaN(one) ? -1 : one) - (Number.isNaN(other) ? -1 : other) ||
    table.rank[a]! - table.rank[b]!
  );
}

/** "3 machines: node001 (8), node002 (8), node003 (2)" */
function machineWords(table: RankTable, rows: readonly number[]): string {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const name = table.machine[row] || "not known";
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const most = 5;
  const named = [...counts].slice(0, most).map(([name, ranks]) => `${name} (${ranks})`);
  const rest = counts.size > most ? ` and ${counts.size - most} more` : "";
  return `${counts.size} ${counts.size === 1 ? "machine" : "machines"}: ${named.join(", ")}${rest}`;
}

/** To the tenth below a hundred: columns of them are read downwards. */
function figure(ms: number): string {
  return Number.isFinite(ms) && ms < 99.95 ? ms.toFixed(1) : figureWords(ms);
}
