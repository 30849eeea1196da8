/**
 * The JSON twin of a flight-recorder dump (pytorch: FlightRecorder::dump_json). It differs from the
 * pickle in more than syntax: counters are strings, a missing time is 0, and there are no stacks.
 */
import { fieldsOf, type Fields } from "../../base/json.ts";
import type { FlightDump } from "../../model/operators.ts";
import { clearEntry, DumpBuilder, emptyEntry } from "./dump-builder.ts";

/** Returns null where the document is no flight-recorder dump. */
export function decodeJsonDump(root: unknown, file: string): FlightDump | null {
  if (!isRecord(root)) return null;
  const entries = Array.isArray(root["entries"]) ? root["entries"] : [];
  const config = isRecord(root["pg_config"]) ? root["pg_config"] : {};
  const status = isRecord(root["pg_status"]) ? root["pg_status"] : {};
  if (!("entries" in root) && !("pg_status" in root) && !("pg_config" in root)) return null;

  const builder = new DumpBuilder(entries.length);
  builder.version = text(root["version"]);
  for (const [name, group] of Object.entries(config)) {
    if (isRecord(group)) builder.config(name, text(group["desc"]), ranksText(group["ranks"]));
  }
  for (const [id, counters] of Object.entries(status)) {
    if (!isRecord(counters)) continue;
    builder.status(
      Number(id),
      number(counters["last_enqueued_collective"], -1),
      number(counters["last_started_collective"], -1),
      number(counters["last_completed_collective"], -1),
    );
  }
  // JSON.parse rounds nanoseconds since 1970 to 256 ns; harmless for what is compared with them.
  const epochNs = entries.reduce<number>((first, entry) => {
    const created = isRecord(entry) ? number(entry["time_created_ns"], 0) : 0;
    return first > 0 ? first : created;
  }, 0);
  builder.epochNs = BigInt(Math.round(epochNs));
  const time = (value: unknown): number => {
    const ns = number(value, 0);
    return ns > 0 ? ns - epochNs : NaN;
  };
  const raw = emptyEntry();
  for (const entry of entries) {
    if (!isRecord(entry)) continue;
    clearEntry(raw);
    const group = entry["process_group"];
    raw.recordId = number(entry["record_id"], -1);
    raw.pgId = number(entry["pg_id"], -1);
    raw.groupName = Array.isArray(group) ? text(group[0]) : text(group);
    raw.groupDesc = Array.isArray(group) ? text(group[1]) : "";
    raw.seq = number(entry["collective_seq_id"], 0);
    raw.p2pSeq = number(entry["p2p_seq_id"], 0);
    raw.profilingName = text(entry["profiling_name"]);
    raw.state = text(entry["state"]);
    raw.retired = entry["retired"] === true;
    raw.isP2p = entry["is_p2p"] === true;
    raw.createdNs = time(entry["time_created_ns"]);
    raw.startedNs = time(entry["time_discovered_started_ns"]);
    raw.completedNs = time(entry["time_discovered_completed_ns"]);
    raw.durationMs = number(entry["duration_ms"], NaN);
    raw.inputNumel = numel(entry["input_sizes"]);
    raw.outputNumel = numel(entry["output_sizes"]);
    raw.dtype = Array.isArray(entry["input_dtypes"]) ? text(entry["input_dtypes"][0]) : "";
    raw.timeoutMs = number(entry["timeout_ms"], 0);
    if (raw.profilingName !== "" || raw.groupName !== "") builder.add(raw);
  }
  return builder.build(file, () => null);
}

function isRecord(value: unknown): value is Fields {
  return fieldsOf(value) !== null;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

function ranksText(value: unknown): string {
  if (!Array.isArray(value)) return text(value);
  return `[${value.map((rank) => number(rank, NaN)).join(", ")}]`;
}

function number(value: unknown, otherwise: number): number {
  // Only what can be a number: an object's own conversion may throw.
  if (typeof value !== "number" && (typeof value !== "string" || value === "")) return otherwise;
  const result = Number(value);
  return Number.isFinite(result) ? result : otherwise;
}

function numel(sizes: unknown): number {
  if (!Array.isArray(sizes)) return NaN;
  let total = 0;
  for (const shape of sizes) {
    if (Array.isArray(shape)) total += shape.reduce<number>((n, dim) => n * number(dim, NaN), 1);
  }
  return total;
}
