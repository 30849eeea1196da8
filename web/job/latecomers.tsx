/** Who holds the job up: the latest ranks, their own time and their waiting beside what is typical of their stage. */
import type { VNode } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { type Observable, useObservable } from "../live/observable.ts";
import { brushed } from "../live/store.ts";
import { Machine } from "../shell/place.tsx";
import type { RankState } from "./follow-ranks.ts";
import { median, msWords } from "./measures.ts";
import { worst } from "./rank-rows.tsx";
import { type RankTable, STATES } from "./rank-table.ts";
import { rankWords } from "../../src/base/text.ts";

const SHOWN = 5;
/** Behind by less than this share of an iteration is what ranks always are. */
const LATE_SHARE = 0.02;
/**
 * Of the latest one's lateness. Its neighbours' own time grows a little with it, for not all waiting shows as
 * communication: they hold nobody up, and must not look as if they did.
 */
const AS_LATE = 0.5;
/** Rows change places at most this often. */
const REORDER_MS = 3000;

export function Latecomers({
  job,
  feed,
}: {
  readonly job: string;
  readonly feed: Observable<RankState>;
}): VNode | null {
  const { table, atMs } = useObservable(feed);
  const usual = useUsualLateness(table, atMs);
  const held = useRef<{ table: RankTable; atMs: number; rows: readonly number[] } | null>(null);
  const isInside = useRef(false);
  if (table === null || usual === null) return null;
  const isOld = held.current?.table !== table;
  if (isOld || (!isInside.current && atMs - held.current!.atMs >= REORDER_MS))
    held.current = { table, atMs, rows: worst(table, usual, SHOWN) };
  const typicalMs = median(table.durationMs);
  const { rows } = held.current!;
  const latest = worst(table, table.lateMs, 1)[0];
  const mostMs = latest === undefined ? 0 : table.lateMs[latest]!;
  const isLate = (row: number): boolean =>
    table.lateMs[row]! > typicalMs * LATE_SHARE && table.lateMs[row]! >= AS_LATE * mostMs;
  const late = rows.filter(isLate);
  const typical = typicalOf(table, rows);
  const longestMs = Math.max(
    1e-9,
    ...rows.map(
      (row) => Math.max(table.durationMs[row]!, table.ownMs[row]! + table.waitMs[row]!) || 0,
    ),
  );
  return (
    <section
      class="section"
      aria-labelledby="late-title"
      onPointerEnter={() => (isInside.current = true)}
      onPointerLeave={() => (isInside.current = false)}
      onFocusCapture={() => (isInside.current = true)}
      onBlurCapture={() => (isInside.current = false)}
    >
      <div class="section-head">
        <h2 id="late-title">Who holds the job up</h2>
        <span class="small soft late-key">
          <span class="legend-cell bar-own" /> own time <span class="legend-cell bar-wait" />{" "}
          waiting
        </span>
      </div>
      <div class="panel late-panel">
        {haltedWords(table).map((words) => (
          <p key={words} class="tone-bad">
            {words}
          </p>
        ))}
        <p class="soft">{lateWords(table, latest, late.length)}</p>
        <ul class="late-list">
          {rows.map((row) => (
            <Latecomer
              key={table.rank[row]}
              job={job}
              table={table}
              row={row}
              longestMs={longestMs}
              isLate={isLate(row)}
              peers={typical.get(table.pipeline[row]!)!}
            />
          ))}
        </ul>
      </div>
    </section>
  );
}

/**
 * Lateness over the last seconds: of ranks that are late by chance each second has others, and the list would be of
 * names that change.
 */
function useUsualLateness(table: RankTable | null, atMs: number): Float32Array | null {
  const usual = useRef<{ table: RankTable; lateMs: Float32Array } | null>(null);
  return useMemo(() => {
    if (table === null) return null;
    if (usual.current?.table !== table) usual.current = { table, lateMs: table.lateMs.slice() };
    const { lateMs } = usual.current;
    for (let row = 0; row < lateMs.length; row++) {
      const now = table.lateMs[row]!;
      lateMs[row] = Number.isFinite(lateMs[row]!) ? lateMs[row]! * 0.8 + now * 0.2 : now;
    }
    return lateMs;
  }, [table, atMs]);
}

/** Ranks that do not run at all are no later than their last iteration was, yet all wait for them. */
function haltedWords(table: RankTable): readonly string[] {
  const halted = (["stopped", "gone"] as const).map((word) => {
    const state = STATES.indexOf(word);
    const ranks: number[] = [];
    for (let row = 0; row < table.count; row++)
      if (table.state[row] === state) ranks.push(table.rank[row]!);
    return { word, ranks };
  });
  return halted
    .filter(({ ranks }) => ranks.length > 0)
    .map(({ word, ranks }) => {
      const who = rankWords(ranks);
      const verb = ranks.length === 1 ? "has" : "have";
      return `${who[0]!.toUpperCase()}${who.slice(1)} ${word === "gone" ? (ranks.length === 1 ? "is gone" : "are gone") : `${verb} stopped`}.`;
    });
}

function lateWords(table: RankTable, latest: number | undefined, late: number): string {
  if (latest === undefined) return "Which rank is late is not known yet.";
  const by = msWords(table.lateMs[latest]!);
  if (late === 0) return `Nobody stands out: the latest rank is ${by} behind its peers.`;
  const more = late - 1;
  const others =
    more === 0
      ? ""
      : more === 1
        ? "; one more is late"
        : `; ${late === SHOWN ? "at least " : ""}${more} more are late`;
  return `Rank ${table.rank[latest]} needs ${by} more than its peers${others}.`;
}

function Latecomer({
  job,
  table,
  row,
  longestMs,
  isLate,
  peers,
}: {
  readonly job: string;
  readonly table: RankTable;
  readonly row: number;
  readonly longestMs: number;
  readonly isLate: boolean;
  readonly peers: Typical;
}): VNode {
  const rank = table.rank[row]!;
  const stage = table.pipeline[row]!;
  return (
    <li class="late">
      <div class="late-name">
        <button
          type="button"
          class="button-quiet"
          title="Select in the grid"
          onClick={() => brushed.set({ job, ranks: new Set([rank]) })}
        >
          rank {rank}
        </button>
        <Machine name={table.machine[row] || null} />
      </div>
      <div class="late-bars">
        <Bars
          ownMs={table.ownMs[row]!}
          waitMs={table.waitMs[row]!}
          longestMs={longestMs}
          isLate={isLate}
        />
        <Bars ownMs={peers.ownMs} waitMs={peers.waitMs} longestMs={longestMs} isPeer />
      </div>
      <div class="late-words num">
        <span class={isLate ? "late-by" : ""}>{msWords(table.lateMs[row]!)} late</span>
        <span class="small soft">
          own {msWords(table.ownMs[row]!)}; {stage >= 0 ? `stage ${stage}` : "ranks"} typically{" "}
          {msWords(peers.ownMs)}
        </span>
      </div>
    </li>
  );
}

function Bars({
  ownMs,
  waitMs,
  longestMs,
  isPeer = false,
  isLate = false,
}: {
  readonly ownMs: number;
  readonly waitMs: number;
  readonly longestMs: number;
  readonly isPeer?: boolean;
  readonly isLate?: boolean;
}): VNode {
  const width = (ms: number): string =>
    `${Number.isFinite(ms) ? Math.min(100, (Math.max(0, ms) / longestMs) * 100) : 0}%`;
  const words = `${isPeer ? "typical of its stage" : "this rank"}: own time ${msWords(ownMs)}, waiting ${msWords(waitMs)}`;
  return (
    <div class={`bars ${isPeer ? "bars-peer" : ""}`} role="img" aria-label={words} title={words}>
      <span class={isLate ? "bar-own bar-late" : "bar-own"} style={{ width: width(ownMs) }} />
      <span class="bar-wait" style={{ width: width(waitMs) }} />
    </div>
  );
}

interface Typical {
  readonly ownMs: number;
  readonly waitMs: number;
}

/** Medians of the stages that are asked for. */
function typicalOf(table: RankTable, rows: readonly number[]): ReadonlyMap<number, Typical> {
  const stages = new Set(rows.map((row) => table.pipeline[row]!));
  return new Map(
    [...stages].map((stage) => {
      const of = (column: Float32Array): number =>
        median(column.filter((_, row) => table.pipeline[row] === stage));
      return [stage, { ownMs: of(table.ownMs), waitMs: of(table.waitMs) }];
    }),
  );
}
