/** "15m", "90s", "1h30m", "240" → seconds. */
import { InvalidArgumentError } from "commander";

const UNITS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 };
const PARTS = /(\d+(?:\.\d+)?)(ms|[smhd])/g;

export function seconds(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) > 0) return Number(text);
  const parts = [...text.matchAll(PARTS)];
  const sum = parts.reduce((total, [, count, unit]) => total + Number(count) * UNITS[unit!]!, 0);
  if (parts.map(([part]) => part).join("") !== text || sum <= 0)
    throw new InvalidArgumentError("It must be a duration such as 15m, 90s or 1h30m.");
  return sum;
}

const ISO = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:\d\d)?)?$/;

/** A moment: ISO 8601, or Unix seconds. UTC where it names no zone, as in logs: the answer must not depend on the machine. */
export function moment(text: string): number {
  const [, day, time = "00:00", zone = "Z"] = ISO.exec(text) ?? [];
  const isUnix = /^\d+(\.\d+)?$/.test(text);
  const at = isUnix ? Number(text) : Date.parse(`${day}T${time}${zone}`) / 1000;
  if (!Number.isFinite(at))
    throw new InvalidArgumentError("It must be a time such as 2026-11-15T00:41:00Z.");
  return at;
}
