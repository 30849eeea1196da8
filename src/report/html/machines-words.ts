/** Times, metrics and amounts of machines in words. Whatever is not a number becomes "–", never NaN. */
import { cutText } from "../../base/text.ts";
import type { Deviation } from "../../model/machine-report.ts";
import { catalogMetric, unknownMetric } from "../../model/metric-catalog.ts";
import { type ClockZone, shiftedMs, UTC } from "../parts/clock-zone.ts";
import { html, type Part } from "./escape.ts";

/** Machines and metrics are named by strangers, at any length. */
const MAX_NAME = 80;
/** The last moment that a Date can hold. */
const LAST_S = 8.64e12;

export function nameWords(name: string): string {
  return cutText(name, MAX_NAME);
}

/** What is said of a machine as a whole has no entry in the catalog. */
const OWN_TITLES: Readonly<Record<string, string>> = {
  reporting: "reporting",
  gpus: "number of GPUs",
  nics: "number of NICs",
  "shared-gpu": "work of a shared GPU, as a share of before",
};

export function metricTitle(metric: string): string {
  const own = Object.hasOwn(OWN_TITLES, metric) ? OWN_TITLES[metric] : undefined;
  return nameWords(own ?? (catalogMetric(metric) ?? unknownMetric(metric)).title);
}

export function metricUnit(metric: string): string {
  return catalogMetric(metric)?.unit ?? "";
}

/** "2026-11-14 00:41:02"; what no calendar has stays a number. */
export function utcText(seconds: number): string {
  const ms = Math.round(1000 * seconds);
  if (!(Math.abs(seconds) <= LAST_S)) return Number.isFinite(seconds) ? String(seconds) : "–";
  return new Date(ms).toISOString().slice(0, -5).replace("T", " ");
}

/** The same by the clocks of a zone. */
export function zoneText(seconds: number, zone: ClockZone): string {
  return utcText(shiftedMs(1000 * seconds, zone) / 1000);
}

export function utc(seconds: number): Part {
  const text = utcText(seconds);
  if (!/^\d{4}-\d\d-\d\d /.test(text)) return text;
  return html`<time datetime="${text.replace(" ", "T")}Z">${text}</time>`;
}

/** "2026-11-14 00:41:02 to 00:52:10": the day again only where it is another one. */
export function spanText(fromS: number, toS: number, zone: ClockZone = UTC): string {
  const [from, to] = [zoneText(fromS, zone), zoneText(toS, zone)];
  const day = from.split(" ", 1)[0]!;
  return `${from} to ${to.startsWith(`${day} `) ? to.slice(day.length + 1) : to}`;
}

/** How a moment is written on an axis of this length: short, but never ambiguous. */
export function clockText(
  seconds: number,
  axis: { readonly fromS: number; readonly toS: number; readonly zone: ClockZone },
): string {
  const { fromS, toS, zone } = axis;
  const [day, time] = zoneText(seconds, zone).split(" ");
  if (time === undefined) return day!;
  const isOneDay = zoneText(fromS, zone).slice(0, 10) === zoneText(toS, zone).slice(0, 10);
  if (isOneDay) return time;
  return `${day!.slice(5)} ${time.slice(0, 5)}`;
}

/** "45 s", "12 min 5 s", "3 h 20 min", "2 d 4 h". */
export function lastingWords(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.round(seconds));
  const parts = [
    [Math.floor(whole / 86_400), "d"],
    [Math.floor(whole / 3600) % 24, "h"],
    [Math.floor(whole / 60) % 60, "min"],
    [whole % 60, "s"],
  ] as const;
  const first = parts.findIndex(([value]) => value > 0);
  if (first < 0) return "0 s";
  return parts
    .slice(first, first + 2)
    .flatMap(([value, unit]) => (value > 0 ? [`${value} ${unit}`] : []))
    .join(" ");
}

/** A unit in which amounts up to `most` read well: what one of it is worth, and what follows the number. */
interface ShownUnit {
  readonly worth: number;
  readonly suffix: string;
}

const PREFIXES = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
] as const;

export function shownUnit(unit: string, most: number): ShownUnit {
  if (unit === "share") return { worth: 0.01, suffix: " %" };
  if (unit === "MiB") {
    return most >= 1024 ? { worth: 1024, suffix: " GiB" } : { worth: 1, suffix: " MiB" };
  }
  if (unit === "MHz" && most >= 1000) return { worth: 1000, suffix: " GHz" };
  const [worth, prefix] = PREFIXES.find(([least]) => most >= least) ?? [1, ""];
  if (unit === "B/s") return { worth, suffix: ` ${prefix}B/s` };
  if (unit === "1/s") return { worth, suffix: `${prefix}/s` };
  // 1,755 W is called that, and a bare number has no prefix to carry.
  if (unit !== "") return { worth: 1, suffix: ` ${unit}` };
  return most >= 1e4 ? { worth, suffix: prefix } : { worth: 1, suffix: "" };
}

/** 0.713 of "share" → "71.3 %". */
export function amountWords(value: number, unit: string): string {
  if (!Number.isFinite(value)) return "–";
  const { worth, suffix } = shownUnit(unit, Math.abs(value));
  return `${digits(value / worth)}${suffix}`;
}

export function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return String(Number(value.toPrecision(3)));
  if (size >= 100) return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
  return String(Number(value.toPrecision(3)));
}

/** "71 W, peers 512 W": what a plot's title is followed by. */
export function figureWords({ metric, direction, value, peers }: Deviation): string {
  if (metric === "reporting") return "stopped reporting";
  if (metric === "gpus" || metric === "nics") {
    return `${digits(value)} of ${digits(peers)} ${metric === "gpus" ? "GPUs" : "NICs"} report`;
  }
  const unit = metricUnit(metric);
  const frozen = direction === "frozen" ? "frozen at " : "";
  return `${frozen}${amountWords(value, unit)}, peers ${amountWords(peers, unit)}`;
}
