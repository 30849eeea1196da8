/** Which columns of a table of samples say what: by their names, and by the first rows where names are ambiguous. */
import { isHostName, seriesColumn } from "./column-names.ts";
import { looksLikeMachine, machineFromName, stemOf } from "./file-words.ts";
import { metricWord, type MetricWord } from "./metric-words.ts";
import { unitOfTimeName, parseStamp } from "./times.ts";
import { NO_NUMBER, textNumber } from "./byte-number.ts";
import { decimalComma, isBlank, stateNumber, withUnit } from "./cells.ts";

type Rows = readonly (readonly string[])[];

const DEVICE_FIELD = /^(?:(?:gpu|nvidia|nic|cuda)[ :_-]?)?\d{1,2}$|^GPU-[0-9a-f-]{8,}$|^mlx5_\d+/i;

interface ValueColumn {
  readonly column: number;
  readonly metric: MetricWord;
  /** null: the row's. */
  readonly machine: string | null;
  readonly device: string | null;
  readonly labels?: ReadonlyMap<string, string>;
}

/** -1 for columns that a table has not. */
export interface TablePlan {
  readonly width: number;
  readonly time: number;
  /** What the time column's name says: seconds a unit, 0 where it says nothing. */
  readonly timeUnit: number;
  readonly isUtc: boolean;
  readonly machine: number;
  readonly device: number;
  readonly deviceKind: string;
  /** Where each row names its metric. */
  readonly metric: number;
  readonly value: number;
  /** Where columns are metrics or series. */
  readonly columns: readonly ValueColumn[];
  /** Whose the rows are where no column tells. */
  readonly fileMachine: string;
  readonly duplicates: readonly string[];
}

const TIME =
  /^(?:(?:unix|epoch|event|sample|sampling|collect|collection|scrape|wall|date)_?)?(?:time|timestamp|ts|datetime|clock)(?:_(?:utc|iso|s|sec|secs|seconds|ms|msec|millis|milliseconds|us|usec|micros|microseconds|ns|nsec|nanos|nanoseconds))?$|^(?:date|date_time|epoch|t|utc|elapsed|seconds|elapsed_(?:s|ms)|epoch_(?:s|ms|us|ns))$/;
const MACHINE =
  /^(?:machine|host|node|server|instance|vm)(?:_?(?:name|id|ip|index|idx))?$|^(?:hostname|nodename|ip|ip_address|target|pod|pod_name|container|container_id)$/;
const DEVICE =
  /^(?:gpu|device|nic|hca|card|accelerator|interface|iface)(?:_?(?:id|index|idx|no|num|number|name|uuid))?$|^(?:dev|ifname|local_rank|minor_number|index|uuid)$/;
const METRIC = [
  "metric",
  "metric_name",
  "metrics",
  "field",
  "name",
  "variable",
  "kpi",
  "measurement",
];
const VALUE = ["value", "val", "metric_value", "reading", "mean", "avg"];
/** Columns that measure nothing of a machine. */
const NO_METRIC =
  /^(?:unnamed.*|index|id|row|labels?|(?:is_)?anomaly|faults?|status|rank|step|iteration|iter|epoch|loss|job.*|user.*|namespace|pid|.*uuid|serial.*|pci_.*|driver.*|modelname|model|result|table|start|stop|end|partition|cluster|region|zone|rack|port|type|unit)$/;
/** Tables of these tell of iterations, or label faults: only a machine column makes them ours. */
const FOREIGN =
  /^(?:step|global_step|iteration|iter|epoch|loss|rank|label|fault|start|end|duration|dp_rank|optype)/;

/** null where it is no table of samples. `rows` are the first ones. */
export function planTable(given: readonly string[], rows: Rows, file: string): TablePlan | null {
  const names = given.map(normal);
  const firsts = firstPlaces(given);
  const column = (test: (name: string, at: number) => boolean): number => names.findIndex(test);
  const time = column((name, at) => TIME.test(name) && areTimes(rows, at));
  if (time < 0) return null;
  const machine = column((name, at) => MACHINE.test(name) && at !== time);
  const of = (words: readonly string[]): number => {
    const found = words.find((word) => names.includes(word));
    return found === undefined ? -1 : names.indexOf(found);
  };
  const value = of(VALUE);
  const metric = of(METRIC);
  const device = column(
    (name, at) => DEVICE.test(name) && at !== metric && isDevice(names, name, at, time, rows),
  );
  const base = {
    width: names.length,
    time,
    timeUnit: unitOfTimeName(names[time]!),
    isUtc: names[time]!.includes("utc"),
    machine,
    device,
    deviceKind: /^(?:nic|hca|iface|interface|ifname)/.test(names[device] ?? "") ? "nic" : "gpu",
    fileMachine: fileMachine(file, device >= 0),
    duplicates: names.filter((name, at) => name !== "" && firsts.get(given[at]!) !== at),
  };
  if (metric >= 0 && value >= 0 && areNumbers(rows, value)) {
    const tells = machine >= 0 || rows.some((row) => metricWord(row[metric] ?? "").isKnown);
    return tells ? { ...base, metric, value, columns: [] } : null;
  }
  const taken = new Set([time, machine, device]);
  const others = names
    .map((name, at) => ({ name, at, text: given[at]!.trim() }))
    .filter(({ at, text }) => !taken.has(at) && text !== "" && firsts.get(given[at]!) === at);
  const free = others.filter(({ at }) => areNumbers(rows, at));
  // A log that somebody cut into columns has machines too, but is made of words.
  const isLog = free.length < 0.5 * others.length;
  const columns = valueColumns(free, names, machine >= 0, file, value, isLog);
  return columns === null ? null : { ...base, metric: -1, value: -1, columns };
}

/** Hosts are called "gpu012" at many sites; a file of several GPUs is none of theirs. */
function fileMachine(file: string, hasDevices: boolean): string {
  const stem = stemOf(file);
  if (hasDevices && /^gpu[-_]?\d+$/i.test(stem)) return stem;
  return machineFromName(file) ?? (stem || "machine");
}

/** Where each name stands first: a thousand machines have tens of thousands of columns. */
function firstPlaces(names: readonly string[]): ReadonlyMap<string, number> {
  const firsts = new Map<string, number>();
  names.forEach((name, at) => {
    if (!firsts.has(name)) firsts.set(name, at);
  });
  return firsts;
}

interface Free {
  readonly name: string;
  readonly at: number;
  readonly text: string;
}

function valueColumns(
  free: readonly Free[],
  names: readonly string[],
  hasMachine: boolean,
  file: string,
  value: number,
  isLog: boolean,
): ValueColumn[] | null {
  const ofFile = metricWord(stemOf(file));
  const isForeign = isLog || names.some((name) => FOREIGN.test(name));
  if (value >= 0 && ofFile.isKnown && free.some(({ at }) => at === value)) {
    return [{ column: value, metric: ofFile, machine: null, device: null }];
  }
  const metrics = free
    .map(({ text, name, at }) => ({ column: at, metric: metricWord(text), name }))
    .filter(({ metric, name }) => metric.isKnown || !NO_METRIC.test(name))
    .map(({ column, metric }) => ({
      column,
      metric,
      machine: null,
      device: metric.device || null,
    }));
  const known = metrics.filter(({ metric }) => metric.isKnown).length;
  if (hasMachine) return metrics.length > 0 && (known > 0 || !isForeign) ? metrics : null;
  const series = wideColumns(free, known, ofFile);
  if (series) return series;
  const isMachines = looksLikeMachine(stemOf(file));
  return !isForeign && (known >= 2 || (known === 1 && (isMachines || free.length === 1)))
    ? metrics
    : null;
}

/** A column per machine, or per machine and metric; nearly all must be of that kind. */
function wideColumns(
  free: readonly Free[],
  known: number,
  ofFile: MetricWord,
): ValueColumn[] | null {
  // Hosts that are called gpu-001.cluster.local look like words for a metric of a GPU.
  const areHosts = ofFile.isKnown && free.length > 1 && free.every(({ text }) => isHostName(text));
  if (known > free.length / 2 && !areHosts) return null;
  const hosts = free.filter(({ text }) =>
    looksLikeMachine(text.replace(/(?::\d{2,5}|(?<=\.\d+)[-_]\d{1,2})$/, "")),
  ).length;
  // Words of its own are believed where the columns cannot be anything but machines.
  const whole = ofFile.isKnown || hosts >= Math.max(2, 0.9 * free.length) ? ofFile : null;
  const series = free.flatMap(({ text, at }) => {
    const found = seriesColumn(text, whole);
    return found ? [{ column: at, ...found }] : [];
  });
  // What an exporter's metric measures its name tells, whether or not it is one that machines are compared by.
  const isTold = whole !== null || series.some(({ metric, labels }) => labels || metric.isKnown);
  return series.length > 0 && series.length >= 0.8 * free.length && isTold ? series : null;
}

/** "GPU Util (%)" → "gpu_util". */
function normal(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "_")
    .replaceAll(/^_+|_+$/g, "");
}

/**
 * What a table's first rows say of a column: times, numbers, or the names of devices.
 * "gpu" may be a number of a device or the utilisation; "index" may number the rows.
 */
function isDevice(
  names: readonly string[],
  name: string,
  at: number,
  time: number,
  rows: Rows,
): boolean {
  const fields = rows.map((row) => (row[at] ?? "").trim()).filter((field) => field !== "");
  if (name === "gpu") {
    const others = names.some(
      (other) => other !== "gpu" && /^gpu|util|power|temp|clock|sm_|^value$/.test(other),
    );
    const bare = names.some((other) => /^(?:cpu|memory|mem|disk)$/.test(other));
    return fields.every((field) => DEVICE_FIELD.test(field)) && (others || !bare);
  }
  if (name !== "index") return true;
  const times = rows.map((row) => row[time]);
  const repeats = (list: readonly unknown[]): boolean => new Set(list).size < list.length;
  return fields.every((field) => /^\d{1,2}$/.test(field)) && (repeats(fields) || repeats(times));
}

function areTimes(rows: Rows, at: number): boolean {
  return share(rows, at, (field) => {
    const number = textNumber(field);
    return number === NO_NUMBER ? parseStamp(field) !== null : Number.isFinite(number);
  });
}

function areNumbers(rows: Rows, at: number): boolean {
  return share(rows, at, (field) => isNumber(field));
}

function isNumber(field: string): boolean {
  return (
    textNumber(field) !== NO_NUMBER ||
    withUnit(field) !== null ||
    !Number.isNaN(decimalComma(field)) ||
    !Number.isNaN(stateNumber(field))
  );
}

/** Whether most fields that are not blank pass. */
function share(rows: Rows, at: number, passes: (field: string) => boolean): boolean {
  const fields = rows.map((row) => (row[at] ?? "").trim()).filter((field) => !isBlank(field));
  return fields.filter(passes).length >= 0.6 * fields.length;
}
