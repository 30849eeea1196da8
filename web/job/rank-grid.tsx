/** The ranks of a job by their place in it, coloured by what is asked, with what is known of the one pointed at. */
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Incident, JobView } from "../live/api.ts";
import { type Observable, useObservable } from "../live/observable.ts";
import { brushed } from "../live/store.ts";
import { useKeys } from "../shell/keys.ts";
import { Loading, Problem } from "../shell/states.tsx";
import { thousands } from "../shell/words.ts";
import { CellDetail, cellWords } from "./cell-detail.tsx";
import type { RankState } from "./follow-ranks.ts";
import { GridCanvas } from "./grid-canvas.tsx";
import { gridLayout } from "./grid-layout.ts";
import { GridLegend } from "./grid-legend.tsx";
import { leastSpan, MEASURES, type MeasureId, verdictColumn } from "./measures.ts";
import { BrushedRanks, WorstRanks } from "./rank-rows.tsx";
import type { RankTable } from "./rank-table.ts";
import { standsStill } from "./stands-still.ts";
import { calmed, type Limits, limitsOf } from "./scale-limits.ts";

export function RankGrid({
  view,
  feed,
  incidents,
}: {
  readonly view: JobView;
  readonly feed: Observable<RankState>;
  /** The open ones. */
  readonly incidents: readonly Incident[];
}): VNode {
  const { table, atMs, problem } = useObservable(feed);
  return (
    <section class="section" aria-labelledby="ranks-title">
      {table === null ? (
        <>
          <h2 id="ranks-title">Ranks</h2>
          {problem ? <Problem error={problem} /> : <Loading what="ranks" />}
        </>
      ) : (
        <Grid view={view} table={table} atMs={atMs} incidents={incidents} />
      )}
    </section>
  );
}

function Grid({
  view,
  table,
  atMs,
  incidents,
}: {
  readonly view: JobView;
  readonly table: RankTable;
  readonly atMs: number;
  /** The open ones. */
  readonly incidents: readonly Incident[];
}): VNode {
  const { job } = view;
  const isStill = standsStill(view);
  const [chosenId, setMeasure] = useState<MeasureId | null>(null);
  // Who is late says nothing of a job that stands still; what somebody chose stays.
  const measureId = chosenId ?? (isStill ? "verdict" : "late");
  const measure = MEASURES.find(({ id }) => id === measureId)!;
  const [cursor, setCursor] = useState(-1);
  const marked = useObservable(brushed);
  const chosen =
    marked !== null && marked.job === job && marked.ranks.size > 0 ? marked.ranks : null;
  const layout = useMemo(() => gridLayout(table), [table]);
  const verdict = useMemo(() => verdictColumn(table, incidents), [table, incidents]);
  const values = measure.column === null ? null : table[measure.column];
  const limits = useLimits(table, values, atMs, measure.column);
  useEffect(() => setCursor(-1), [table]);

  const brush = (rows: readonly number[], adds: boolean): void => {
    const ranks = rows.map((row) => table.rank[row]!);
    const had = chosen ?? new Set<number>();
    if (!adds) brushed.set(ranks.length === 0 ? null : { job, ranks: new Set(ranks) });
    else if (ranks.length === 1 && had.has(ranks[0]!))
      brushed.set({ job, ranks: new Set([...had].filter((rank) => rank !== ranks[0])) });
    else brushed.set({ job, ranks: new Set([...had, ...ranks]) });
  };
  const clear = (): void => brushed.set(null);
  useKeys([
    ...MEASURES.map(({ id, label }, at) => ({
      keys: String(at + 1),
      says: `colour ranks by ${label.toLowerCase()}`,
      run: () => setMeasure(id),
    })),
    {
      keys: "Escape",
      says: "clear the selection of ranks",
      run: () => {
        if (brushed.value === null) return false;
        clear();
        return true;
      },
    },
  ]);

  return (
    <>
      <div class="section-head">
        <h2 id="ranks-title">
          Ranks <span class="soft small">{layoutWords(layout.kind, table.count)}</span>
        </h2>
        <div class="segmented measure-choice small" role="group" aria-label="Colour by">
          {MEASURES.map(({ id, label }, at) => (
            <button
              key={id}
              type="button"
              aria-pressed={id === measureId}
              title={`${label}: key ${at + 1}`}
              onClick={() => setMeasure(id)}
            >
              {label}
            </button>
          ))}
        </div>
      </div>
      <div class="grid-body">
        <div class="grid-main">
          <div class="panel grid-panel">
            <GridCanvas
              label={`${thousands(table.count)} ranks, coloured by ${measure.label.toLowerCase()}. Arrow keys move, Enter selects, Escape clears.`}
              table={table}
              version={atMs}
              layout={layout}
              values={values}
              limits={limits}
              verdict={verdict}
              brushed={chosen}
              cursor={cursor}
              onCursor={setCursor}
              onBrush={brush}
            />
            <GridLegend
              measure={measure}
              limits={limits}
              table={table}
              atMs={atMs}
              verdict={verdict}
            />
            <p class="small soft">
              {measure.says}
              {isStill && " The job hangs: these are the values of its last iteration."}
              {view.health === "ended" && " The job has ended: these are its last values."}
            </p>
          </div>
          <WorstDetails table={table} column={measure.column ?? "lateMs"} label={measure.label} />
        </div>
        <div class="grid-side">
          <CellDetail table={table} row={cursor} verdict={verdict} />
          {chosen && <BrushedRanks table={table} ranks={chosen} onClear={clear} />}
        </div>
      </div>
      <p class="visually-hidden" aria-live="polite">
        <CursorWords table={table} row={cursor} />
      </p>
    </>
  );
}

/** Said once per cell, not again with every second's values. */
function CursorWords({ table, row }: { readonly table: RankTable; readonly row: number }): VNode {
  const words = useMemo(() => cellWords(table, row), [table, row]);
  return <>{words}</>;
}

function WorstDetails({
  table,
  column,
  label,
}: {
  readonly table: RankTable;
  readonly column: "lateMs" | "waitMs" | "durationMs" | "temperature";
  readonly label: string;
}): VNode {
  const [isOpen, setOpen] = useState(false);
  const by = label === "Verdict" ? "lateness" : label.toLowerCase();
  return (
    <details class="small" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The 20 ranks with the highest {by}, as a table (times in milliseconds)</summary>
      {isOpen && <WorstRanks table={table} column={column} />}
    </details>
  );
}

/** They follow the values once per answer, and begin anew with another measure. */
function useLimits(
  table: RankTable,
  values: Float32Array | null,
  atMs: number,
  column: (typeof MEASURES)[number]["column"],
): Limits | null {
  const shown = useRef<{ values: Float32Array; limits: Limits | null } | null>(null);
  return useMemo(() => {
    if (values === null) return null;
    const wanted = limitsOf(values, leastSpan(table, column));
    const before = shown.current?.values === values ? shown.current.limits : null;
    const limits = wanted && calmed(before, wanted);
    shown.current = { values, limits };
    return limits;
  }, [values, atMs]);
}

function layoutWords(kind: ReturnType<typeof gridLayout>["kind"], count: number): string {
  const ranks = `${thousands(count)} by `;
  if (kind === "coordinates") return `${ranks}pipeline stage, data replica and tensor place`;
  if (kind === "machines") return `${ranks}machine and GPU; their places in the job are unknown`;
  return `${ranks}number; machines and places are unknown`;
}
