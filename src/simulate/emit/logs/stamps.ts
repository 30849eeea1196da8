/** Times as the writers of a log print them. Everything is UTC, as on most clusters. */
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** "2026-11-15 10:11:12" and nine digits of the second. */
function split(ns: bigint): { at: Date; fraction: string } {
  const second = ns / 1_000_000_000n;
  return {
    at: new Date(Number(second) * 1000),
    fraction: String(ns % 1_000_000_000n).padStart(9, "0"),
  };
}

/** "2026-11-15 10:11:12.123456": Megatron has six digits (str(datetime)), Python's logging three. */
export function isoStamp(ns: bigint, digits: number): string {
  const { at, fraction } = split(ns);
  const whole = at.toISOString().slice(0, 19).replace("T", " ");
  return digits === 0 ? whole : `${whole}.${fraction.slice(0, digits)}`;
}

/** c10/util/Logging.cpp: "E1115 00:42:01.629186287"; the month is not padded ("E603"). */
export function glogStamp(ns: bigint, level: string): string {
  const { at, fraction } = split(ns);
  const date = (at.getUTCMonth() + 1) * 100 + at.getUTCDate();
  return `${level}${date} ${at.toISOString().slice(11, 19)}.${fraction}`;
}

/** `dmesg -T`: "Sun Nov 15 00:42:01 2026". */
export function kernelStamp(ns: bigint): string {
  const { at } = split(ns);
  const day = String(at.getUTCDate()).padStart(2, " ");
  const time = at.toISOString().slice(11, 19);
  return `${DAYS[at.getUTCDay()]} ${MONTHS[at.getUTCMonth()]} ${day} ${time} ${at.getUTCFullYear()}`;
}
