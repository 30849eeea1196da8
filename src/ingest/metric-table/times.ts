/** Times of samples: numbers by their magnitude, and ISO 8601 with its cousins. */
export const MILLISECONDS_FROM = 1e11;
const MICROSECONDS_FROM = 1e14;
const NANOSECONDS_FROM = 1e17;

/** Seconds out of a time since 1970 in s, ms, µs or ns; small numbers are seconds of any origin. */
export function secondsOf(value: number): number {
  const size = Math.abs(value);
  if (size < MILLISECONDS_FROM) return value;
  if (size < MICROSECONDS_FROM) return value / 1e3;
  return size < NANOSECONDS_FROM ? value / 1e6 : value / 1e9;
}

const STAMP =
  /^(\d{4})([-/.])(\d\d)\2(\d\d)(?:[T _](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?\s*(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?$/i;

interface Stamp {
  readonly timeS: number;
  readonly hasZone: boolean;
}

/** null for what is no time. A time without a zone is read as UTC, whatever the zone of this machine. */
export function parseStamp(text: string): Stamp | null {
  const m = STAMP.exec(text);
  if (!m) return null;
  const [, year, , month, day, hour = "0", minute = "0", second = "0", part = "", zone] = m;
  const [y, mo, d, h, mi, s] = [year, month, day, hour, minute, second].map(Number);
  if (mo! < 1 || mo! > 12 || d! < 1 || d! > 31 || h! > 24 || mi! > 59 || s! > 60) return null;
  const whole = Date.UTC(y!, mo! - 1, d, h, mi, s) / 1000 - zoneS(zone);
  // Whole and part are joined as text: their sum would be rounded twice.
  const timeS =
    part === "" ? whole : whole >= 0 ? Number(`${whole}.${part}`) : whole + Number(`0.${part}`);
  return { timeS, hasZone: zone !== undefined };
}

function zoneS(zone: string | undefined): number {
  const m = /^([+-])(\d\d):?(\d\d)?$/.exec(zone ?? "");
  if (!m) return 0;
  const seconds = 3600 * Number(m[2]) + 60 * Number(m[3] ?? 0);
  return m[1] === "-" ? -seconds : seconds;
}

/** What the name of a time column says of its unit: seconds a unit, 0 where it says nothing. */
export function unitOfTimeName(name: string): number {
  if (/_(?:ms|msec|millis|milliseconds)$/.test(name)) return 1e-3;
  if (/_(?:us|usec|micros|microseconds)$/.test(name)) return 1e-6;
  if (/_(?:ns|nsec|nanos|nanoseconds)$/.test(name)) return 1e-9;
  return /_(?:s|sec|secs|seconds)$/.test(name) ? 1 : 0;
}
