/** The pickle encoding of a flight-recorder dump: from the pickle's arena straight into columns. */
import type { FlightDump, Frame } from "../../model/operators.ts";
import {
  BIG,
  BOOL,
  DICT,
  FLOAT,
  INT,
  LIST,
  STRING,
  TUPLE,
  type PickleData,
} from "../pickle-data.ts";
import { clearEntry, DumpBuilder, emptyEntry, type RawEntry } from "./dump-builder.ts";

// Numbers, because a switch over strings costs a third of the whole decoding time.
const RECORD_ID = 1;
const PG_ID = 2;
const PROCESS_GROUP = 3;
const SEQ = 4;
const P2P_SEQ = 5;
const PROFILING_NAME = 6;
const STATE = 7;
const RETIRED = 8;
const IS_P2P = 9;
const CREATED = 10;
const DISCOVERED_STARTED = 11;
const DISCOVERED_COMPLETED = 12;
const DURATION = 13;
const INPUT_SIZES = 14;
const OUTPUT_SIZES = 15;
const INPUT_DTYPES = 16;
const FRAMES = 17;
const TIMEOUT = 18;
const FRAME_FUNC = 19;
const FRAME_FILE = 20;
const FRAME_LINE = 21;

const FIELDS = new Map<string, number>([
  ["record_id", RECORD_ID],
  ["pg_id", PG_ID],
  ["process_group", PROCESS_GROUP],
  ["collective_seq_id", SEQ],
  ["p2p_seq_id", P2P_SEQ],
  ["profiling_name", PROFILING_NAME],
  ["state", STATE],
  ["retired", RETIRED],
  ["is_p2p", IS_P2P],
  ["time_created_ns", CREATED],
  ["time_discovered_started_ns", DISCOVERED_STARTED],
  ["time_discovered_completed_ns", DISCOVERED_COMPLETED],
  ["duration_ms", DURATION],
  ["input_sizes", INPUT_SIZES],
  ["output_sizes", OUTPUT_SIZES],
  ["input_dtypes", INPUT_DTYPES],
  ["frames", FRAMES],
  ["timeout_ms", TIMEOUT],
  ["name", FRAME_FUNC],
  ["filename", FRAME_FILE],
  ["line", FRAME_LINE],
]);

/** Returns null where the pickle is no flight-recorder dump. */
export function decodePickleDump(data: PickleData, file: string): FlightDump | null {
  if (data.rootKind !== DICT) return null;
  const root = data.rootNum;
  const entries = data.lookup(root, "entries");
  const status = data.lookup(root, "pg_status");
  const config = data.lookup(root, "pg_config");
  if (entries < 0 && status < 0 && config < 0) return null;

  let count = 0;
  const list = entries >= 0 && isList(data, entries) ? data.items.num[entries]! : -1;
  if (list >= 0) data.forEachItem(list, 1, () => count++);
  const builder = new DumpBuilder(count);
  builder.version = textAt(data, data.lookup(root, "version"));
  builder.epochNs = data.base;
  builder.isCut = data.problem !== null;
  readConfig(data, config, builder);
  readStatus(data, status, builder);

  // Key string → field number.
  const fieldOf = new Uint8Array(data.stringCount);
  for (let id = 0; id < data.stringCount; id++) fieldOf[id] = FIELDS.get(data.text(id)) ?? 0;
  const raw = emptyEntry();
  const framesItem: number[] = [];
  if (list >= 0) {
    data.forEachItem(list, 1, (item) => {
      if (data.items.kind[item] !== DICT) return;
      clearEntry(raw);
      const frames = readEntry(data, data.items.num[item]!, fieldOf, raw);
      if (raw.profilingName === "" && raw.groupName === "") return;
      builder.add(raw);
      framesItem.push(frames);
    });
  }
  const shared = new Map<string, readonly Frame[]>();
  return builder.build(file, (entry) => {
    const item = framesItem[entry]!;
    return item >= 0 ? readFrames(data, item, fieldOf, shared) : null;
  });
}

function readConfig(data: PickleData, item: number, builder: DumpBuilder): void {
  if (item < 0 || data.items.kind[item] !== DICT) return;
  data.forEachItem(data.items.num[item]!, 2, (key) => {
    if (data.items.kind[key + 1] !== DICT) return;
    const group = data.items.num[key + 1]!;
    builder.config(
      scalarText(data, key),
      textAt(data, data.lookup(group, "desc")),
      textAt(data, data.lookup(group, "ranks")),
    );
  });
}

function readStatus(data: PickleData, item: number, builder: DumpBuilder): void {
  if (item < 0 || data.items.kind[item] !== DICT) return;
  data.forEachItem(data.items.num[item]!, 2, (key) => {
    if (data.items.kind[key + 1] !== DICT) return;
    const status = data.items.num[key + 1]!;
    const counter = (name: string): number => {
      const at = data.lookup(status, name);
      return at >= 0 ? numberAt(data, at, -1) : -1;
    };
    builder.status(
      Number(scalarText(data, key)),
      counter("last_enqueued_collective"),
      counter("last_started_collective"),
      counter("last_completed_collective"),
    );
  });
}

/** Fills `raw`; returns the item index of the frames list, or -1. */
function readEntry(data: PickleData, entry: number, fieldOf: Uint8Array, raw: RawEntry): number {
  const { kind, num } = data.items;
  let frames = -1;
  for (let c = data.firstChunk[entry]!; c >= 0; c = data.chunkNext[c]!) {
    const end = data.chunkEnd[c]! - 1;
    for (let key = data.chunkStart[c]!; key < end; key += 2) {
      if (kind[key] !== STRING) continue;
      const at = key + 1;
      switch (fieldOf[num[key]!]!) {
        case RECORD_ID:
          raw.recordId = numberAt(data, at, -1);
          break;
        case PG_ID:
          raw.pgId = numberAt(data, at, -1);
          break;
        case PROCESS_GROUP:
          readGroupName(data, at, raw);
          break;
        case SEQ:
          raw.seq = numberAt(data, at, 0);
          break;
        case P2P_SEQ:
          raw.p2pSeq = numberAt(data, at, 0);
          break;
        case PROFILING_NAME:
          raw.profilingName = textAt(data, at);
          break;
        case STATE:
          raw.state = textAt(data, at);
          break;
        case RETIRED:
          raw.retired = kind[at] === BOOL && num[at] === 1;
          break;
        case IS_P2P:
          raw.isP2p = kind[at] === BOOL && num[at] === 1;
          break;
        case CREATED:
          raw.createdNs = timeAt(data, at);
          break;
        case DISCOVERED_STARTED:
          raw.startedNs = timeAt(data, at);
          break;
        case DISCOVERED_COMPLETED:
          raw.completedNs = timeAt(data, at);
          break;
        case DURATION:
          raw.durationMs = numberAt(data, at, NaN);
          break;
        case INPUT_SIZES:
          raw.inputNumel = numelAt(data, at);
          break;
        case OUTPUT_SIZES:
          raw.outputNumel = numelAt(data, at);
          break;
        case INPUT_DTYPES:
          raw.dtype = firstText(data, at);
          break;
        case TIMEOUT:
          raw.timeoutMs = numberAt(data, at, 0);
          break;
        case FRAMES:
          frames = at;
          break;
        default:
          break;
      }
    }
  }
  return frames;
}

/** The n-th item of a list, -1 where it is shorter; only the first batch is looked at. */
function itemAt(data: PickleData, list: number, position: number): number {
  const chunk = data.firstChunk[list]!;
  if (chunk < 0) return -1;
  const at = data.chunkStart[chunk]! + position;
  return at < data.chunkEnd[chunk]! ? at : -1;
}

function readGroupName(data: PickleData, at: number, raw: RawEntry): void {
  if (!isList(data, at)) return;
  const name = itemAt(data, data.items.num[at]!, 0);
  const desc = itemAt(data, data.items.num[at]!, 1);
  if (name >= 0) raw.groupName = scalarText(data, name);
  if (desc >= 0) raw.groupDesc = textAt(data, desc);
}

function readFrames(
  data: PickleData,
  item: number,
  fieldOf: Uint8Array,
  shared: Map<string, readonly Frame[]>,
): readonly Frame[] {
  if (!isList(data, item)) return [];
  const { kind, num } = data.items;
  // Most stacks of a dump are the same few: recognise one by its numbers before making objects of it.
  let key = "";
  const parts: number[] = [];
  data.forEachItem(num[item]!, 1, (frameItem) => {
    if (kind[frameItem] !== DICT || parts.length >= 3 * MAX_FRAMES) return;
    const at = parts.length;
    parts.push(-1, -1, 0);
    data.forEachItem(num[frameItem]!, 2, (pair) => {
      const field = kind[pair] === STRING ? fieldOf[num[pair]!]! : 0;
      if (field >= FRAME_FUNC && field <= FRAME_LINE)
        parts[at + field - FRAME_FUNC] = num[pair + 1]!;
    });
  });
  key = parts.join();
  const same = shared.get(key);
  if (same) return same;
  const frames: Frame[] = [];
  for (let i = 0; i < parts.length; i += 3) {
    frames.push({
      func: frameText(data, parts[i]!),
      file: frameText(data, parts[i + 1]!),
      line: parts[i + 2]!,
    });
  }
  shared.set(key, frames);
  return frames;
}

const MAX_FRAMES = 64;

function frameText(data: PickleData, id: number): string {
  return id >= 0 && id < data.stringCount ? data.text(id) : "";
}

function isList(data: PickleData, item: number): boolean {
  const kind = data.items.kind[item];
  return kind === LIST || kind === TUPLE;
}

function textAt(data: PickleData, item: number): string {
  return item >= 0 && data.items.kind[item] === STRING ? data.text(data.items.num[item]!) : "";
}

/** Keys are texts in PyTorch's dumps, but a trainer's own pickle may use integers. */
function scalarText(data: PickleData, item: number): string {
  return data.items.kind[item] === INT ? String(data.items.num[item]) : textAt(data, item);
}

function numberAt(data: PickleData, item: number, otherwise: number): number {
  const kind = data.items.kind[item];
  if (kind === INT || kind === FLOAT || kind === BOOL) return data.items.num[item]!;
  if (kind === STRING) {
    const value = Number(textAt(data, item));
    return Number.isFinite(value) ? value : otherwise;
  }
  return otherwise;
}

/** Nanoseconds relative to the data's base; 0 and None mean that there is none. */
function timeAt(data: PickleData, item: number): number {
  return data.items.kind[item] === BIG ? data.items.num[item]! : NaN;
}

/** Elements over all tensors of a [[2, 3], [4]]; a long list is counted once, however often it is referred to. */
function numelAt(data: PickleData, item: number): number {
  if (!isList(data, item)) return NaN;
  const list = data.items.num[item]!;
  const first = data.firstChunk[list]!;
  const isLong = first >= 0 && data.chunkEnd[first]! - data.chunkStart[first]! > LONG_LIST;
  const known = isLong ? data.notes.get(list) : undefined;
  if (known !== undefined) return known;
  const { num } = data.items;
  let total = 0;
  for (let c = data.firstChunk[list]!; c >= 0; c = data.chunkNext[c]!) {
    for (let tensor = data.chunkStart[c]!; tensor < data.chunkEnd[c]!; tensor++) {
      if (isList(data, tensor)) total += tensorNumel(data, num[tensor]!);
    }
  }
  if (isLong) data.notes.set(list, total);
  return total;
}

function tensorNumel(data: PickleData, tensor: number): number {
  // Dims are few; what has more is no shape.
  let numel = 1;
  let dims = 0;
  for (let c = data.firstChunk[tensor]!; c >= 0; c = data.chunkNext[c]!) {
    for (let dim = data.chunkStart[c]!; dim < data.chunkEnd[c]!; dim++) {
      if (++dims > MAX_DIMS) return NaN;
      numel *= numberAt(data, dim, NaN);
    }
  }
  return numel;
}

const MAX_DIMS = 64;
const LONG_LIST = 16;

function firstText(data: PickleData, item: number): string {
  if (!isList(data, item)) return textAt(data, item);
  return textAt(data, itemAt(data, data.items.num[item]!, 0));
}
