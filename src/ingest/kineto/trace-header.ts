/** What stands at the top of a trace, beside its events. */
import { MAX_RANKS } from "../../model/ids.ts";
import type { TraceDevice, TraceGroup } from "../../model/kernels.ts";
import { type Fields, fieldsOf, jsonOf } from "../../base/json.ts";

const WANTED = new Set([
  "distributedInfo",
  "deviceProperties",
  "baseTimeNanoseconds",
  "traceName",
  "host_name",
  "hostname",
]);
const MAX_DEVICES = 1024;
const MAX_TEXT = 256;

export class TraceHeader {
  rank: number | null = null;
  worldSize = 0;
  backend = "";
  host = "";
  traceName = "";
  baseNs = 0n;
  devices: readonly TraceDevice[] = [];
  groups: readonly TraceGroup[] = [];
  /** Keys whose values could not be read. */
  readonly unread: string[] = [];

  wants(key: string): boolean {
    return WANTED.has(key);
  }

  value(key: string, json: string): void {
    if (key === "baseTimeNanoseconds") {
      // As text: it is no exact double.
      const digits = /^"?(-?\d{1,20})(?:\.0*)?"?$/.exec(json)?.[1];
      if (digits === undefined) this.unread.push(key);
      else this.baseNs = BigInt(digits);
      return;
    }
    const value = jsonOf(json);
    if (value === undefined) this.unread.push(key);
    else if (key === "distributedInfo") this.#distributed(fieldsOf(value) ?? {});
    else if (key === "deviceProperties") this.devices = devicesOf(value);
    else if (key === "traceName") this.traceName = text(value);
    else this.host = text(value);
  }

  #distributed(info: Fields): void {
    const rank = whole(info["rank"], -1);
    this.rank = rank >= 0 && rank < MAX_RANKS ? rank : null;
    const worldSize = whole(info["world_size"], 0);
    this.worldSize = worldSize > 0 && worldSize <= MAX_RANKS ? worldSize : 0;
    this.backend = text(info["backend"]);
    const groups = info["pg_config"];
    this.groups = (Array.isArray(groups) ? groups : []).map((given: unknown) => {
      const group = fieldsOf(given) ?? {};
      return {
        name: text(group["pg_name"]),
        desc: text(group["pg_desc"]),
        ranks: ranksOf(group["ranks"], whole(group["pg_size"], -1)),
      };
    });
  }
}

/** Newer releases cut long lists here too; only a whole one is of use. */
function ranksOf(value: unknown, size: number): readonly number[] | null {
  if (!Array.isArray(value) || !value.every(isRank)) return null;
  return size >= 0 && value.length !== size ? null : value;
}

/** "[0, 1]" → [0, 1]; null for a list that was cut, "[0, 1, ...]". */
export function parseRanks(list: string): readonly number[] | null {
  if (!/^\[[\d\s,]*\]$/.test(list)) return null;
  const ranks = (list.match(/\d+/g) ?? []).map(Number);
  return ranks.length > 0 && ranks.every(isRank) ? ranks : null;
}

function isRank(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < MAX_RANKS;
}

function devicesOf(value: unknown): TraceDevice[] {
  if (!Array.isArray(value)) return [];
  return value
    .slice(0, MAX_DEVICES)
    .map((given: unknown) => ({ name: text(fieldsOf(given)?.["name"]) }));
}

function text(value: unknown): string {
  return typeof value === "string" ? value.slice(0, MAX_TEXT) : "";
}

function whole(value: unknown, otherwise: number): number {
  const number = typeof value === "string" && value !== "" ? Number(value) : value;
  return Number.isSafeInteger(number) ? (number as number) : otherwise;
}
