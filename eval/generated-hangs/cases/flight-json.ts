import type { PyRecord, PyValue } from "../../../src/simulate/flight/pickle-writer.ts";
import { PyFloat, PyShared, PyTuple } from "../../../src/simulate/flight/pickle-writer.ts";

/**
 * The JSON that PyTorch's dump_json writes for the same dump: keys sorted, counters as strings, 0 for
 * times that are missing, lists for tuples, no stacks, and no entries at all where the list is empty.
 */
export function flightJson(dump: PyRecord): Uint8Array {
  const parts: string[] = [];
  for (const { key, quoted } of sortedKeys(dump)) {
    const value = dump[key];
    if (value === undefined) continue;
    if (key === "entries") {
      const entries = value as readonly PyRecord[];
      if (entries.length > 0) parts.push(quoted + jsonEntries(entries));
    } else if (key === "pg_status") {
      const counters = [...(value as ReadonlyMap<string, PyRecord>)];
      const strings = counters.map(([id, own]) => [id, asStrings(own)] as const);
      parts.push(quoted + json(new Map(strings)));
    } else parts.push(quoted + json(value));
  }
  return new TextEncoder().encode(`{${parts.join()}}`);
}

function asStrings(counters: PyRecord): PyRecord {
  return Object.fromEntries(
    Object.entries(counters).map(([key, count]) => [key, `${count as number}`]),
  );
}

/** The entries of a dump all have the same keys, which are therefore sorted only once. */
function jsonEntries(entries: readonly PyRecord[]): string {
  const keys = sortedKeys(entries[0] ?? {}).filter(({ key }) => key !== "frames");
  return `[${entries.map((entry) => jsonRecord(entry, keys)).join()}]`;
}

function json(value: PyValue): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value !== "object" || value === null) return String(value);
  // A float keeps its point, as nlohmann's writer has it.
  if (value instanceof PyFloat)
    return Number.isInteger(value.value) ? `${value.value}.0` : String(value.value);
  if (value instanceof PyTuple) return jsonList(value.items);
  if (value instanceof PyShared) return json(value.value);
  if (Array.isArray(value)) return jsonList(value as readonly PyValue[]);
  const record: PyRecord =
    value instanceof Map ? Object.fromEntries(value as Map<string, PyValue>) : (value as PyRecord);
  return jsonRecord(record, sortedKeys(record));
}

function jsonList(items: readonly PyValue[]): string {
  return `[${items.map(json).join()}]`;
}

interface SortedKey {
  readonly key: string;
  /** `"key":` */
  readonly quoted: string;
}

function sortedKeys(record: PyRecord): SortedKey[] {
  const keys = Object.keys(record).toSorted();
  return keys.map((key) => ({ key, quoted: `${JSON.stringify(key)}:` }));
}

function jsonRecord(record: PyRecord, keys: readonly SortedKey[]): string {
  let text = "";
  for (const { key, quoted } of keys) {
    const item = record[key];
    if (item === undefined) continue;
    const isNoTime = item === null && key.startsWith("time_discovered");
    text += `${text === "" ? "" : ","}${quoted}${isNoTime ? "0" : json(item)}`;
  }
  return `{${text}}`;
}
