/** Which columns of a CSV file say what, by their names. */
import { textsOf } from "../metric-table/fields.ts";

const COMMA = 44;

export interface Columns {
  /** Fields a row has. */
  readonly width: number;
  readonly iteration: number;
  /** -1 where the table has none: then the wall times tell. */
  readonly duration: number;
  /** Milliseconds a unit of the duration. */
  readonly unitMs: number;
  /** Whether the name of the column says so. */
  readonly unitIsKnown: boolean;
  /** Whether the values are normalised, so that no unit is right. */
  readonly isRelative: boolean;
  /** Whether rows are numbered by times. */
  readonly areTimes: boolean;
  /** Whether the duration may be the time since the start of the job. */
  readonly mayBeCumulative: boolean;
  /** -1 where the table has none; so are the others. */
  readonly rank: number;
  readonly batch: number;
  /** Seconds since 1970. */
  readonly wallTime: number;
}

const ITERATION = ["iteration", "iter", "step", "global_step", "train_step", "time"];
const RANK = ["rank", "global_rank", "worker", "worker_id", "worker_rank"];
const BATCH = ["global_batch_size", "batch_size", "gbs"];
const DURATION =
  /^(?:train_)?(?:iteration|iter|step|batch)_?(?:time|timing|duration|elapsed|latency)(?:_\w{1,40})?$|^(?:train_)?(?:iteration|iter|step|batch)_(?:ms|s|sec|seconds|msec|milliseconds)$|^(?:duration|elapsed|elapsed_time)(?:_\w{1,40})?$/;
/** Of several iterations together: not how long one took. */
const STATISTIC =
  /_(?:std|stddev|var|variance|cv|min|max|median|sum|total|count|pct|percent|p\d+)(?:_|$)/;
const SECONDS = /_(?:s|sec|secs|seconds|in_s|in_seconds)$/;
const MILLISECONDS = /_(?:ms|msec|msecs|milliseconds|in_ms)$/;
const RELATIVE = /_(?:norm|normed|normali[sz]ed|relative|rel|scaled)(?:_|$)/;
/** TensorBoard's "Download CSV" of one scalar: its tag is in the file's name at best. */
const TENSORBOARD = "wall_time,step,value";
const TIME_TAG = /(?:iteration|iter|step|batch)[-_ ]?(?:time|timing|duration)|end_to_end/i;
/** Numbers above are times since 1970, not iterations. */
const LARGEST_ITERATION = 1e9;

export function findColumns(header: string, fileName: string): Columns | null {
  if (header.length > 4000 || !header.includes(",")) return null;
  const names = splitCsv(header.replace(/^\uFEFF|^ï»¿/, "")).map(normal);
  const width = names.length;
  const none = {
    width,
    rank: -1,
    batch: -1,
    wallTime: -1,
    mayBeCumulative: false,
    isRelative: false,
    areTimes: false,
  };
  const unitIsKnown = true;
  if (names.join() === TENSORBOARD) {
    const isTime = TIME_TAG.test(fileName);
    const unitMs = /[-_(]ms\b/.test(fileName) ? 1 : 1000;
    return { ...none, iteration: 1, wallTime: 0, duration: isTime ? 2 : -1, unitMs, unitIsKnown };
  }
  const of = (wanted: readonly string[]): number => {
    const found = wanted.find((name) => names.includes(name));
    return found === undefined ? -1 : names.indexOf(found);
  };
  const iteration = of(ITERATION);
  const duration = names.findIndex((name) => DURATION.test(name) && !STATISTIC.test(name));
  if (iteration < 0 || duration < 0) return null;
  const name = names[duration]!;
  return {
    ...none,
    iteration,
    duration,
    unitMs: SECONDS.test(name) ? 1000 : 1,
    unitIsKnown: SECONDS.test(name) || MILLISECONDS.test(name),
    isRelative: RELATIVE.test(name),
    areTimes: names[iteration] === "time",
    mayBeCumulative: name.startsWith("elapsed"),
    rank: of(RANK),
    batch: of(BATCH),
  };
}

/** Whether there are rows, all as wide as the header, and most are numbers where they must be. */
export function rowsFit(rows: readonly string[], columns: Columns): boolean {
  let all = 0;
  let fitting = 0;
  for (const row of rows) {
    if (row.trim() === "") continue;
    const fields = splitCsv(row);
    if (fields.length !== columns.width) return false;
    all++;
    if (rowFits(fields, columns)) fitting++;
  }
  return fitting > all / 2;
}

export function rowFits(fields: readonly string[], columns: Columns): boolean {
  const iteration = fieldNumber(fields[columns.iteration]);
  if (!Number.isInteger(iteration) || iteration < 0 || iteration > LARGEST_ITERATION) return false;
  const measure = columns.duration >= 0 ? columns.duration : columns.wallTime;
  return fieldNumber(fields[measure]) >= 0 || /^nan$/i.test(fields[measure] ?? "");
}

/** NaN for what is empty or no number. */
export function fieldNumber(field: string | undefined): number {
  return field === undefined || field.trim() === "" ? NaN : Number(field);
}

export function splitCsv(line: string): string[] {
  return line.includes('"') ? textsOf(line, COMMA) : line.split(",");
}

/** "Iteration time (ms)" → "iteration_time_ms" */
function normal(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "_")
    .replaceAll(/^_|_$/g, "");
}
