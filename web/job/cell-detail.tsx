/** All that is known of the rank under the cursor. */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { GroupView } from "../live/api.ts";
import { Machine } from "../shell/place.tsx";
import { msWords, SUSPECT, valueWords, VICTIM } from "./measures.ts";
import { memberWords } from "./rank-ranges.ts";
import { type RankTable, STATES } from "./rank-table.ts";

const MOST_GROUPS = 8;

export function CellDetail({
  table,
  row,
  verdict,
}: {
  readonly table: RankTable;
  readonly row: number;
  readonly verdict: Uint8Array;
}): VNode {
  const groupsOf = useMemo(() => groupIndex(table.groups), [table]);
  if (row < 0 || row >= table.count)
    return (
      <div class="cell-detail soft">
        <p>Point at a rank, or move with the arrow keys, to see its details.</p>
        <p class="small">
          Drag over ranks to select them, with Shift to add; Enter selects the one under the cursor,
          Esc clears.
        </p>
      </div>
    );
  const rank = table.rank[row]!;
  const groups = groupsOf(rank);
  const state = STATES[table.state[row]!]!;
  return (
    <div class="cell-detail">
      <p class="cell-name">
        <strong class="num">rank {rank}</strong> <Machine name={table.machine[row] || null} />
        {table.gpu[row]! >= 0 && <span class="num"> GPU {table.gpu[row]}</span>}
      </p>
      <p class="small soft">{placeWords(table, row)}</p>
      {state !== "running" && <p class="tone-bad">{state}</p>}
      {verdict[row] === SUSPECT && <p class="tone-bad">suspect of the open incident</p>}
      {verdict[row] === VICTIM && <p class="tone-wait">shows symptoms, is not to blame</p>}
      <dl class="cell-values small">
        <Value name="Late by" words={msWords(table.lateMs[row]!)} />
        <Value name="Own time" words={msWords(table.ownMs[row]!)} />
        <Value name="Waiting" words={msWords(table.waitMs[row]!)} />
        <Value name="Iteration" words={msWords(table.durationMs[row]!)} />
        <Value name="Temperature" words={valueWords("temperature", table.temperature[row]!)} />
        <Value
          name="At iteration"
          words={Number.isFinite(table.iteration[row]!) ? String(table.iteration[row]) : "–"}
        />
      </dl>
      {groups.length > 0 && (
        <ul class="cell-groups small">
          {groups.slice(0, MOST_GROUPS).map((group) => (
            <li key={group.name}>
              <span class="cut">{group.name.slice(0, 100)}</span>{" "}
              <span class="soft num">{memberWords(group.ranks)}</span>
            </li>
          ))}
          {groups.length > MOST_GROUPS && (
            <li class="soft">and {groups.length - MOST_GROUPS} more</li>
          )}
        </ul>
      )}
    </div>
  );
}

function Value({ name, words }: { readonly name: string; readonly words: string }): VNode {
  return (
    <div>
      <dt class="soft">{name}</dt>
      <dd class="num">{words}</dd>
    </div>
  );
}

/** "stage 2 · replica 12 · tensor 3" */
export function placeWords(table: RankTable, row: number): string {
  const parts = [
    ["stage", table.pipeline[row]!],
    ["replica", table.data[row]!],
    ["tensor", table.tensor[row]!],
  ] as const;
  const known = parts.filter(([, place]) => place >= 0);
  if (known.length === 0) return "place in the job unknown";
  return known.map(([name, place]) => `${name} ${place}`).join(" · ");
}

/** One sentence for who does not see the panel. */
export function cellWords(table: RankTable, row: number): string {
  if (row < 0 || row >= table.count) return "";
  const machine = table.machine[row] || "machine unknown";
  const state = STATES[table.state[row]!]!;
  return `Rank ${table.rank[row]} on ${machine}, ${placeWords(table, row)}, ${state}: late by ${msWords(
    table.lateMs[row]!,
  )}, waits ${msWords(table.waitMs[row]!)}.`;
}

/** Groups by rank, indexed when first asked for: most people never point. */
function groupIndex(groups: readonly GroupView[]): (rank: number) => readonly GroupView[] {
  let index: Map<number, GroupView[]> | null = null;
  return (rank) => {
    if (index === null) {
      index = new Map();
      for (const group of groups) {
        for (const member of group.ranks) {
          const there = index.get(member);
          if (there) there.push(group);
          else index.set(member, [group]);
        }
      }
    }
    // The group of all ranks says nothing of this one: last.
    return (index.get(rank) ?? []).toSorted((a, b) => a.ranks.length - b.ranks.length);
  };
}
