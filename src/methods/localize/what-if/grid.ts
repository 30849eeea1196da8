/**
 * Operations as a grid. All replicas do the same in every step, so an operation is (stage, kind, sequence number),
 * and each (step, replica) is a lane in which it happened once. Dependencies are then defined once, and a replay is a
 * loop over lanes for every operation.
 */
import type { Rank } from "../../../model/ids.ts";
import type { StageOperations } from "../../../model/stage-operations.ts";
import { KINDS, type Kind } from "./kinds.ts";

export interface Grid {
  readonly stages: number;
  readonly replicas: number;
  /** Iterations that hold every operation in every replica, as printed, ascending. */
  readonly steps: Int32Array;
  /** steps * replicas; the lane of (step s, replica r) is s * replicas + r. */
  readonly lanes: number;
  readonly ops: readonly Op[];
  /** In milliseconds, [op * lanes + lane]. */
  readonly startMs: Float64Array;
  readonly durationMs: Float64Array;
  /** Global rank of (replica, stage): [replica * stages + stage]. */
  readonly ranks: readonly Rank[];
  /** Steps that were left out because operations are missing in them. */
  readonly incompleteSteps: number;
}

export interface Op {
  readonly stage: number;
  readonly kind: Kind;
  readonly seq: number;
  /** Part of the model within the stage (virtual pipeline stages). */
  readonly chunk: number;
  /** -1 where the operation has none. */
  readonly microBatch: number;
}

/** An operation that is missing in more lanes than this does not belong to the program. */
const SHARE_OF_LANES = 0.5;
const SEQS = 2 ** 31;

/** Null where the files do not hold one complete step. Steps are thinned out evenly above `maxCells`. */
export function gridOf(
  files: readonly StageOperations[],
  maxCells: (stages: number) => number = () => Infinity,
): Grid | null {
  const rows = new Rows(files);
  const stages = rows.distinct((file, i) => file.stage[i]!);
  const replicas = rows.distinct((file, i) => file.replica[i]!);
  const steps = rows.distinct((file, i) => file.step[i]!);
  // A stage without any row would make its neighbours each other's.
  if (stages.length === 0 || stages.at(-1) !== stages.length - 1) return null;
  const replicaOf = new Map(replicas.map((replica, at) => [replica, at]));
  const stepOf = new Map(steps.map((step, at) => [step, at]));
  const lanes = steps.length * replicas.length;

  const counts = new Map<number, number>();
  rows.each((_, __, key) => counts.set(key, (counts.get(key) ?? 0) + 1));
  const keys = [...counts].filter(([, n]) => n > SHARE_OF_LANES * lanes).map(([key]) => key);
  const opOf = new Map(keys.sort((a, b) => a - b).map((key, at) => [key, at]));

  // Which row fills a cell: file number and row, the first where there are several.
  const fileAt = new Int32Array(keys.length * lanes).fill(-1);
  const rowAt = new Int32Array(keys.length * lanes);
  const filled = new Int32Array(steps.length);
  const ranks = Array.from({ length: replicas.length * stages.length }, () => -1);
  rows.each((file, i, key, fileNo) => {
    const op = opOf.get(key);
    const step = stepOf.get(file.step[i]!)!;
    const replica = replicaOf.get(file.replica[i]!)!;
    ranks[replica * stages.length + file.stage[i]!] = file.rank[i]!;
    if (op === undefined) return;
    const cell = op * lanes + step * replicas.length + replica;
    if (fileAt[cell] !== -1) return;
    fileAt[cell] = fileNo;
    rowAt[cell] = i;
    filled[step]!++;
  });

  const complete = steps.flatMap((_, at) =>
    filled[at] === keys.length * replicas.length ? [at] : [],
  );
  const kept = thinned(
    complete,
    Math.floor(maxCells(stages.length) / (keys.length * replicas.length)),
  );
  if (kept.length === 0 || keys.length === 0) return null;

  const keptLanes = kept.length * replicas.length;
  const startMs = new Float64Array(keys.length * keptLanes);
  const durationMs = new Float64Array(keys.length * keptLanes);
  for (let op = 0; op < keys.length; op++) {
    for (let lane = 0; lane < keptLanes; lane++) {
      const step = kept[Math.floor(lane / replicas.length)]!;
      const cell = op * lanes + step * replicas.length + (lane % replicas.length);
      const file = files[fileAt[cell]!]!;
      startMs[op * keptLanes + lane] = file.startMs[rowAt[cell]!]!;
      durationMs[op * keptLanes + lane] = file.durationMs[rowAt[cell]!]!;
    }
  }
  const ops = keys.map((key, op): Op => {
    const cell = op * lanes + kept[0]! * replicas.length;
    const file = files[fileAt[cell]!]!;
    const row = rowAt[cell]!;
    return {
      stage: file.stage[row]!,
      kind: file.kinds[file.kind[row]!] as Kind,
      seq: file.seq[row]!,
      chunk: Math.max(0, file.chunk[row]!),
      microBatch: file.microBatch[row]!,
    };
  });
  return {
    stages: stages.length,
    replicas: replicas.length,
    steps: Int32Array.from(kept, (at) => steps[at]!),
    lanes: keptLanes,
    ops,
    startMs,
    durationMs,
    ranks,
    incompleteSteps: steps.length - complete.length,
  };
}

/** All rows that can be placed, over several files. */
class Rows {
  readonly #files: readonly StageOperations[];
  /** For each file, its kind → ours; -1 for a kind that the model does not know. */
  readonly #kinds: readonly Int32Array[];

  constructor(files: readonly StageOperations[]) {
    this.#files = files;
    this.#kinds = files.map(({ kinds }) =>
      Int32Array.from(kinds, (kind) => KINDS.indexOf(kind as Kind)),
    );
  }

  each(visit: (file: StageOperations, row: number, key: number, fileNo: number) => void): void {
    this.#files.forEach((file, fileNo) => {
      for (let i = 0; i < file.step.length; i++) {
        const kind = this.#kinds[fileNo]![file.kind[i]!]!;
        const isPlaced = file.stage[i]! >= 0 && file.replica[i]! >= 0 && file.seq[i]! >= 0;
        const isTimed = Number.isFinite(file.startMs[i]!) && Number.isFinite(file.durationMs[i]!);
        if (kind < 0 || !isPlaced || !isTimed) continue;
        visit(file, i, (file.stage[i]! * KINDS.length + kind) * SEQS + file.seq[i]!, fileNo);
      }
    });
  }

  distinct(of: (file: StageOperations, row: number) => number): number[] {
    const seen = new Set<number>();
    this.each((file, row) => seen.add(of(file, row)));
    return [...seen].sort((a, b) => a - b);
  }
}

function thinned(steps: readonly number[], most: number): number[] {
  if (steps.length <= most) return [...steps];
  const n = Math.max(1, most);
  return Array.from({ length: n }, (_, i) => steps[Math.floor((i * steps.length) / n)]!);
}
