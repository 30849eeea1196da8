/** Moments for people: in the viewer's zone, or in UTC where the viewer wants it. */
import { kept, oneOf } from "./kept.ts";
import { two } from "./words.ts";

export type Zone = "local" | "utc";
export const zone = kept<Zone>("zone", "local", oneOf("local", "utc"));

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
/** The last moment that a Date can hold. */
const MOST_MS = 8.64e15;

/** Moved so that its UTC fields are those of the zone. */
function shifted(ms: number, in_: Zone): Date {
  const date = new Date(ms);
  return in_ === "utc" ? date : new Date(ms - date.getTimezoneOffset() * 60_000);
}

/** "14:03:05" */
export function clockWords(ms: number, in_: Zone): string {
  if (!(Math.abs(ms) < MOST_MS)) return "–";
  const at = shifted(ms, in_);
  return `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`;
}

/** "Sun 15 Nov" */
export function dayWords(ms: number, in_: Zone): string {
  if (!(Math.abs(ms) < MOST_MS)) return "–";
  const at = shifted(ms, in_);
  return `${DAYS[at.getUTCDay()]} ${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
}

/** "14:03:05" today, "15 Nov 14:03" on other days, "15 Nov 2025" in other years; with " UTC" where that is meant. */
export function timeWords(ms: number, in_: Zone, nowMs: number): string {
  if (!(Math.abs(ms) < MOST_MS)) return "–";
  const at = shifted(ms, in_);
  const today = shifted(nowMs, in_);
  const day = `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
  const clock = clockWords(ms, in_);
  const suffix = in_ === "utc" ? " UTC" : "";
  if (at.getUTCFullYear() !== today.getUTCFullYear()) return `${day} ${at.getUTCFullYear()}`;
  if (at.toISOString().slice(0, 10) !== today.toISOString().slice(0, 10))
    return `${day} ${clock.slice(0, 5)}${suffix}`;
  return `${clock}${suffix}`;
}

/** Both zones to the millisecond, for titles. */
export function exactWords(ms: number): string {
  if (!(Math.abs(ms) < MOST_MS)) return "not known";
  const iso = (date: Date): string => date.toISOString().replace("T", " ").slice(0, 23);
  return `${iso(shifted(ms, "local"))} ${offsetWords(ms)} · ${iso(new Date(ms))} UTC`;
}

/** "UTC+1", "UTC−3:30" */
export function offsetWords(ms: number): string {
  const minutes = -new Date(ms).getTimezoneOffset();
  const size = Math.abs(minutes);
  const rest = size % 60 === 0 ? "" : `:${two(size % 60)}`;
  return `UTC${minutes < 0 ? "−" : "+"}${Math.floor(size / 60)}${rest}`;
}
