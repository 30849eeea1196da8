/** Which ranks are late: the latest ranks, their own time and their waiting beside what is typical of their stage. */
import type { VNode } from "preact";
import { useMemo, useRef } from "preact/hooks";
import type { Incident, JobView } from "../live/api.ts";
import { type Observable, useObservable } from "../live/observable.ts";
import { brushed } from "../live/store.ts";
import { Machine } from "../shell/place.tsx";
import { links } from "../shell/route.ts";
import { useSteady } from "../shell/steady.ts";
import type { RankState } from "./follow-ranks.ts";
import { type LateRows, lateRows } from "./late-rows.ts";
import { median, msWords } from "./measures.ts";
import { worst } from "./rank-rows.tsx";
import { type RankTable, STATES } from "./rank-table.ts";
import { standsStill } from "./stands-still.ts";
import { rankWords } from "../../src/base/text.ts";

const SHOWN = 5;
const MOST_NAMED = 3;
const NOBODY: LateRows = { shown: [], count: 0 };

export function Latecomers({
  view,
  feed,
  incident,
}: {
  readonly view: JobView;
  readonly feed: Observable<RankState>;
  readonly incident: Incident | null;
}): VNode | null {
  const { table, atMs } = useObservable(feed);
  const usual = useUsualLateness(table, atMs);
  const isStill = standsStill(view);
  const late = table === null || usual === null || isStill ? NOBODY : lateRows(table, usual, SHOWN);
  const { order, hold } = useSteady(late.shown.map((row) => String(table!.rank[row]!)));
  if (table === null) return null;
  const rows = order.flatMap((rank) => table.rowOf.get(Number(rank)) ?? []);
  const typical = typicalOf(table, rows);
  const longestMs = Math.max(
    1e-9,
    ...rows.map(
      (row) => Math.max(table.durationMs[row]!, table.ownMs[row]! + table.waitMs[row]!) || 0,
    ),
  );
  return (
    <section class="section" aria-labelledby="late-title" {...hold}>
      <div class="section-head">
        <h2 id="late-title">Which ranks are late</h2>
        {rows.length > 0 && (
          <span class="small soft late-key">
            <span class="legend-cell bar-own" /> own time <span class="legend-cell bar-wait" />{" "}
            waiting
          </span>
        )}
      </div>
      <div class="panel late-panel">
        {haltedWords(table).map((words) => (
          <p key={words} class="tone-bad">
            {words}
          </p>
        ))}
        <p class="soft">
          {isStill
            ? "The job hangs; the values are those of its last iteration."
            : rows.length === 0 && isOfNetwork(incident)
              ? `No rank is late by itself: they wait for the network.`
              : lateWords(table, late)}
        </p>
        {(isStill || (rows.length === 0 && isOfNetwork(incident))) && (
          <Suspected incident={incident} />
        )}
        {/* Keeps the room of one row: what is below must not move when somebody begins to be late. */}
        <div class="late-room">
          {rows.length > 0 && (
            <ul class="late-list">
              {rows.map((row) => (
                <Latecomer
                  key={table.rank[row]}
                  job={view.job}
                  table={table}
                  row={row}
                  longestMs={longestMs}
                  peers={typical.get(table.pipeline[row]!)!}
                />
              ))}
            </ul>
          )}
        </div>
      </div>
    </section>
  );
}

/** A link, a NIC or a switch: no rank's own time tells of it. */
function isOfNetwork(incident: Incident | null): boolean {
  const type = incident?.verdict?.suspects[0]?.type;
  return type === "link" || type === "nic" || type === "switch";
}

/** Who it is that all wait for, as far as the open incident knows. */
function Suspected({ incident }: { readonly incident: Incident | null }): VNode | null {
  if (incident === null) return null;
  const suspects = incident.verdict?.suspects ?? [];
  if (suspects.length === 0)
    return (
      <p>
        The root cause is not known{incident.state === "suspected" ? " yet" : ""}:{" "}
        <a href={links.incident(incident.id)}>the incident</a>
      </p>
    );
  return (
    <p class="line">
      <span>
        <a href={links.incident(incident.id)}>Suspected</a>:
      </span>
      {suspects.slice(0, MOST_NAMED).map(({ ranks, machine, name, link, cause }, at) => (
        <span key={at} class="line">
          {at === 0 && isOfNetwork(incident) && incident.verdict?.answer !== undefined && (
            <strong>{incident.verdict.answer.who.slice(0, 200)}</strong>
          )}
          {ranks.length > 0 && !isOfNetwork(incident) && (
            <strong class="num">{rankWords(ranks.slice(0, 20_000))}</strong>
          )}
          {machine !== null && <Machine name={machine} />}
          {ranks.length === 0 && machine === null && (
            <strong class="cut">{(name ?? link?.join(" – ") ?? cause).slice(0, 200)}</strong>
          )}
        </span>
      ))}
      {suspects.length > MOST_NAMED && (
        <span class="soft">and {suspects.length - MOST_NAMED} more</span>
      )}
    </p>
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

function lateWords(table: RankTable, { shown: [first], count }: LateRows): string {
  if (first === undefined) {
    const latest = worst(table, table.lateMs, 1)[0];
    if (latest === undefined) return "Which rank is late is not known yet.";
    return `No rank stands out: the latest is ${msWords(table.lateMs[latest]!)} behind its peers.`;
  }
  const more = count - 1;
  const others = more === 0 ? "" : more === 1 ? "; one more is late" : `; ${more} more are late`;
  return `Rank ${table.rank[first]} needs ${msWords(table.lateMs[first]!)} more than its peers${others}.`;
}

function Latecomer({
  job,
  table,
  row,
  longestMs,
  peers,
}: {
  readonly job: string;
  readonly table: RankTable;
  readonly row: number;
  readonly longestMs: number;
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
        <Bars ownMs={table.ownMs[row]!} waitMs={table.waitMs[row]!} longestMs={longestMs} isLate />
        <Bars ownMs={peers.ownMs} waitMs={peers.waitMs} longestMs={longestMs} isPeer />
      </div>
      <div class="late-words num">
        <span class="late-by">{msWords(table.lateMs[row]!)} late</span>
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
