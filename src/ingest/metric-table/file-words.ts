/** What a file's name and folder say: of which machine it is, when it was taken, which metric it holds. */
import { MILLISECONDS_FROM, secondsOf } from "./times.ts";

const ENDINGS =
  /\.(?:csv|tsv|txt|prom|om|openmetrics|metrics|parquet|pq|jsonl?|ndjson|dat|data|log|out|gz|zst)$/i;
const STAMP =
  /(?<!\d)(\d{4})-?(\d\d)-?(\d\d)[T _-](\d\d)[:_-]?(\d\d)[:_-]?(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?(?!\d)/;
const UNIX = /(?<![\dA-Za-z])(1\d{9}(?:\.\d{1,9})?|1\d{12})(?!\d)/;
/** What Grafana puts behind the title of a panel. */
const GRAFANA = /-data(?:-as-seriestocolumns)?(?:-\d{4}-\d\d-\d\d[ T_]\d\d[:_]\d\d[:_]\d\d)?$/i;

/** Words of files that are named after what they are, not after whom they are of. */
const GENERIC = new Set(
  (
    "metric metrics scrape scrapes data dataset sample samples export exports exported dump dumps gpu gpus cpu nic " +
    "node nodes machine machines host hosts exporter dcgm prometheus prom openmetrics text table tables all out output " +
    "run job test tmp temp input inputs file files part page train training monitor monitoring telemetry series stats the of and rank ranks " +
    "victoriametrics victoria vm query result results range answer api v step log logs work home root user users smi nvidia"
  ).split(" "),
);

function baseName(file: string): string {
  return file.slice(file.lastIndexOf("/") + 1);
}

/** "a/GPU_UTIL-data-2026-11-15 00_41_02.csv" → "GPU_UTIL". */
export function stemOf(file: string): string {
  let stem = baseName(file);
  for (let before = ""; before !== stem;) {
    before = stem;
    stem = stem.replace(ENDINGS, "");
  }
  return stem
    .replace(GRAFANA, "")
    .replace(STAMP, "")
    .replace(UNIX, "")
    .replace(/^[-_. ]+|[-_. ]+$/g, "");
}

/** Names such as "node003", "gpu-a100-12.cluster", "10.0.0.4"; not "metrics2", not "rank3". */
export function looksLikeMachine(name: string): boolean {
  return name.length <= 255 && /^[A-Za-z0-9][\w.:[\]-]*$/.test(name) && /\d/.test(name)
    ? /^\d{1,3}(?:\.\d{1,3}){3}$/.test(name) ||
        (/[A-Za-z]/.test(name) &&
          (!isGeneric(name) || /(?:^|[-_])(?:node|host|machine|vm)[-_]?\d+$/i.test(name)))
    : false;
}

function isGeneric(name: string): boolean {
  const words = name.toLowerCase().match(/[a-z]+/g) ?? [];
  return words.every((word) => GENERIC.has(word));
}

/** null where neither the name nor the folder is one of a machine. */
export function machineFromName(file: string): string | null {
  const folders = file.split("/").slice(0, -1);
  const folder = (folders.at(-1) ?? "").replace(/^.*!/, "");
  const names = [stemOf(file), folder];
  return (
    names.find(looksLikeMachine) ??
    names.find((name) => /^[A-Za-z][\w-]*$/.test(name) && !isGeneric(name)) ??
    null
  );
}

/** Unix seconds; NaN where the name carries no time. */
export function timeFromName(file: string): number {
  const name = baseName(file);
  const stamp = STAMP.exec(name);
  if (stamp) {
    const [, year, month, day, hour, minute, second, part = "", zone = "Z"] = stamp;
    const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}${part && `.${part}`}${zone}`;
    const ms = Date.parse(iso);
    if (!Number.isNaN(ms)) return ms / 1000;
  }
  const unix = UNIX.exec(name);
  if (!unix) return NaN;
  const value = Number(unix[1]);
  return value > MILLISECONDS_FROM ? secondsOf(value) : value;
}
