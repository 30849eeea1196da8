/** The passes of each rank, iteration by iteration, in the order in which micro-batches go through. */
import type { Rank } from "../../../model/ids.ts";
import type { StageOperations } from "../../../model/stage-operations.ts";

/** Rows of one table: nothing is copied. */
export interface StepPasses {
  readonly table: StageOperations;
  readonly forward: readonly number[];
  readonly backward: readonly number[];
}

export interface RankSteps {
  readonly rank: Rank;
  /** Data-parallel index and pipeline stage; -1 where unknown. */
  readonly replica: number;
  readonly stage: number;
  readonly steps: ReadonlyMap<number, StepPasses>;
  /** By table: how long the rank had been doing nothing when a row's pass began; infinite for a step's first. */
  readonly idleMs: ReadonlyMap<StageOperations, Float64Array>;
}

/** In the order of the pipeline: by stage where it is known, else by rank. */
export function stageSteps(tables: readonly StageOperations[]): RankSteps[] {
  const found = new Map<Rank, Gathered>();
  for (const table of tables) gather(table, found);
  const ranks = [...found].map(([rank, { replica, stage, steps, idleMs }]) => {
    const ordered = [...steps].map(([step, rows]) => [step, passesOf(rows)] as const);
    return { rank, replica, stage, steps: new Map(ordered), idleMs };
  });
  return ranks.sort((a, b) => a.replica - b.replica || a.stage - b.stage || a.rank - b.rank);
}

interface Rows {
  readonly table: StageOperations;
  readonly rows: number[];
}

interface Gathered {
  readonly replica: number;
  readonly stage: number;
  readonly steps: Map<number, Rows>;
  readonly idleMs: Map<StageOperations, Float64Array>;
  lastStep: number;
}

function gather(table: StageOperations, found: Map<Rank, Gathered>): void {
  const idleMs = idleBefore(table);
  for (let row = 0; row < table.rank.length; row++) {
    const rank = table.rank[row]!;
    const step = table.step[row]!;
    if (rank < 0 || step < 0) continue;
    const own: Gathered = found.get(rank) ?? {
      replica: table.replica[row]!,
      stage: table.stage[row]!,
      steps: new Map(),
      idleMs: new Map(),
      lastStep: -1,
    };
    found.set(rank, own);
    // A log that a later run went on writing: only one run can be compared with that of the other ranks.
    if (step < own.lastStep) own.steps.clear();
    own.lastStep = step;
    own.idleMs.set(table, idleMs);
    const list = own.steps.get(step) ?? { table, rows: [] };
    // Two files of one rank tell of the same passes; the first has been taken.
    if (list.table !== table) continue;
    list.rows.push(row);
    own.steps.set(step, list);
  }
}

function idleBefore({ rank, step, startMs, durationMs }: StageOperations): Float64Array {
  const rows = Uint32Array.from(rank.keys());
  rows.sort(
    (a, b) => rank[a]! - rank[b]! || step[a]! - step[b]! || startMs[a]! - startMs[b]! || a - b,
  );
  const idleMs = new Float64Array(rank.length).fill(Infinity);
  let busyUntil = NaN;
  for (const [at, row] of rows.entries()) {
    const previous = rows[at - 1];
    const isSame =
      previous !== undefined && rank[previous] === rank[row] && step[previous] === step[row];
    if (isSame) idleMs[row] = startMs[row]! - busyUntil;
    const end = startMs[row]! + durationMs[row]!;
    busyUntil = isSame ? Math.max(busyUntil, end) : end;
  }
  return idleMs;
}

function passesOf({ table, rows }: Rows): StepPasses {
  const ofKind = (name: string): number[] => {
    const kind = table.kinds.indexOf(name);
    const own = rows.filter((row) => table.kind[row] === kind);
    return own.sort(
      (a, b) =>
        table.microBatch[a]! - table.microBatch[b]! || table.startMs[a]! - table.startMs[b]!,
    );
  };
  return { table, forward: ofKind("forward-compute"), backward: ofKind("backward-compute") };
}
