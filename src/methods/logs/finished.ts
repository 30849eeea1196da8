/** Jobs that say that they are done: what came before did not end them, and falling silent afterwards is no stall. */
import type { LogDigest } from "../../model/log-digest.ts";

const DONE =
  /\brun_stop\b.{0,400}["']status["']: ?["']success["']|\bafter training is done\b|\btraining (?:is |has )?(?:complete|completed|done|finished)\b|`Trainer\.fit` stopped|\bfinished training\b|\btrain_runtime\b|\bjob (?:is )?(?:done|completed successfully|finished successfully)\b|\bfinal (?:eval|test|val|acc|loss|score|result)\w*\b.{0,20}[:=]|\b\d+ passed\b.{0,60}\bin \d+(?:\.\d+)?s\b|\bexiting program at iteration\b|\bmax(?:imum)? (?:steps|epochs|iterations) reached\b/i;
const NOT_DONE = /\b(?:not|before|until|error|fail\w*|abort\w*)\b/i;

interface Finish {
  readonly file: number;
  readonly line: number;
  /** NaN where it has no time. */
  readonly timeMs: number;
}

/** Where the job says that it is done, the last time; null where it does not, or goes on with iterations. */
export function finishOf({ cells, shapes, streams, iterations }: LogDigest): Finish | null {
  const isDone = shapes.map(({ text }) => DONE.test(text) && !NOT_DONE.test(text));
  let finish: Finish | null = null;
  for (let c = 0; c < cells.count; c++) {
    if (!isDone[cells.shape[c]!]) continue;
    const { file } = streams[cells.stream[c]!]!;
    const line = cells.lastLine[c]!;
    if (!finish || file !== finish.file || line > finish.line)
      finish = { file, line, timeMs: cells.lastMs[c]! };
  }
  if (!finish) return null;
  const { file, line } = finish;
  const goesOn = iterations.some(
    (one) => streams[one.stream]!.file === file && (one.line.at(-1) ?? 0) > line,
  );
  return goesOn ? null : finish;
}

/** Whether a line came before the job was done; in other files, without times, it is taken to have. */
export function isBefore(finish: Finish, file: number, line: number, timeMs: number): boolean {
  if (file === finish.file) return line <= finish.line;
  const isTimed = !Number.isNaN(timeMs) && !Number.isNaN(finish.timeMs);
  return !isTimed || timeMs <= finish.timeMs + SKEW_MS;
}

const LAST_LINES = 5;

/**
 * Files that had to say themselves that they are done, and end in a traceback: they report iterations of their own, or
 * are another rank's. That one process got to its end says nothing of another that died.
 */
export function diedApart(
  finish: Finish,
  { files, blocks, iterations, streams }: LogDigest,
): ReadonlySet<number> {
  const ranks = new Set(streams.map(({ file, rank }) => (file === finish.file ? rank : null)));
  const isApart = new Set(iterations.map(({ stream }) => streams[stream]!.file));
  if (ranks.size > 1) for (const { file, rank } of streams) if (!ranks.has(rank)) isApart.add(file);
  isApart.delete(finish.file);
  return new Set(
    blocks.flatMap(({ kind, stream, lastLine }) => {
      const { file } = streams[stream]!;
      const isLast = lastLine > files[file]!.lines - LAST_LINES;
      return kind === "traceback" && isLast && isApart.has(file) ? file : [];
    }),
  );
}

const SKEW_MS = 5_000;
