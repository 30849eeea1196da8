/** One ring's bytes → a reading. */
import { count } from "../../base/text.ts";
import { MAX_RANKS } from "../../model/ids.ts";
import type { FlightDump } from "../../model/operators.ts";
import {
  RECEIVE_WAITS_FOR_DATA,
  SEND_WAITS_FOR_WIRE,
  type Communicator,
  type ConnectionTable,
  type ProbeProcess,
} from "../../model/probe.ts";
import type { Defect, Reading } from "../../model/reading.ts";
import { failureOf } from "./ended.ts";
import { readCalls, readIterations } from "./host-calls.ts";
import { readKernels } from "./kernels.ts";
import {
  HEADER,
  HEADER_BYTES,
  PYTHON_WRITER,
  RECORD,
  RING_NAME,
  COMMUNICATOR,
  COMMUNICATOR_BYTES,
  COMPLETE,
  CONNECTION,
  CONNECTION_BYTES,
  DESTROYED,
  NAME_BYTES,
} from "./layout.ts";
import { readOperators } from "./operators.ts";
import { wholeRecords, type Records } from "./records.ts";
import {
  headerText,
  linesAt,
  refusal,
  ringBytes,
  u64,
  textAt,
  type RingBytes,
} from "./ring-bytes.ts";

export const FORMAT = "probe-ring";

export function readRing(file: string, bytes: Uint8Array): Reading {
  const defects: Defect[] = [];
  const say = (what: string): void => void defects.push({ file, what });
  const refused = refusal(bytes);
  if (refused !== null) {
    say(refused);
    return { file, format: FORMAT, rank: null, records: 0, defects };
  }
  const ring = ringBytes(bytes, say);
  const records = wholeRecords(ring);
  const all = readCommunicators(ring);
  const communicators = all.filter((one): one is Communicator => one !== null);
  let next = 0;
  const kept = Int32Array.from(all, (one) => (one === null ? -1 : next++));
  const names = readNames(ring);
  const process = processOf(file, ring, records, communicators, kept, names);
  tell(ring, records, process, say);

  const { rank, worldSize, epochNs, host, gpu } = process;
  const taken = takenNs(ring, records, process);
  const waiting = waitingCommunicators(process.connections, taken);
  const recorded = readOperators({ ring, records, communicators, kept, waiting });
  const dump: FlightDump = {
    ...recorded,
    file,
    version: headerText(bytes, "source"),
    epochNs,
    timeoutMs: 0,
    isCut: false,
    takenNs: taken,
    frames: new Map(),
  };
  const source = `${file.slice(file.lastIndexOf("/") + 1)}${rank === null ? "" : `, rank ${rank}`}`;
  const series = readIterations(process.calls, epochNs, { file, source, rank });
  const kernels = readKernels(ring, records, names, dump, { rank, worldSize, host, gpu });
  const failure = failureOf(process);
  // A Python ring knows no operators; a native one that has none yet says so by its communicators.
  const hasDump =
    recorded.ops.count > 0 || (process.writer === "native" && communicators.length > 0);
  return {
    file,
    format: FORMAT,
    rank,
    records: records.at.length,
    defects,
    probes: [process],
    ...(hasDump ? { dumps: [dump] } : {}),
    ...(series ? { series: [series] } : {}),
    ...(kernels ? { kernels: [kernels] } : {}),
    ...(failure ? { failures: [failure] } : {}),
    ...(worldSize > 0 ? { worldSize } : {}),
  };
}

function processOf(
  file: string,
  ring: RingBytes,
  records: Records,
  communicators: readonly Communicator[],
  kept: Int32Array,
  names: readonly string[],
): ProbeProcess {
  const { view, bytes, epochNs } = ring;
  const rank = view.getInt32(HEADER.rank, true);
  const worldSize = view.getInt32(HEADER.worldSize, true);
  const gpu = view.getInt32(HEADER.gpu, true);
  const how = view.getInt32(HEADER.endedHow, true);
  const words = view.getUint32(HEADER.wordsOffset, true);
  const most = Math.min(u64(view, HEADER.wordsLength), view.getUint32(HEADER.wordsBytes, true));
  const state = view.getUint8(HEADER.processState);
  return {
    file,
    rank: rank >= 0 && rank < MAX_RANKS ? rank : rankOfName(file),
    worldSize: worldSize > 0 && worldSize <= MAX_RANKS ? worldSize : 0,
    host: headerText(bytes, "host"),
    pid: view.getInt32(HEADER.pid, true),
    gpu: gpu >= 0 ? gpu : null,
    writer: view.getUint32(HEADER.writer, true) === PYTHON_WRITER ? "python" : "native",
    job: headerText(bytes, "job"),
    library: headerText(bytes, "library"),
    epochNs,
    startedNs: ring.ns(HEADER.startedMonotonicNs),
    copiedNs: ring.ns(HEADER.copiedMonotonicNs),
    heartbeatNs: ring.ns(HEADER.heartbeatNs),
    state: /[A-Za-z]/.test(String.fromCharCode(state)) ? String.fromCharCode(state) : "",
    waitsIn: headerText(bytes, "waitsIn"),
    ended:
      how >= 1 && how <= 3
        ? {
            how: how === 1 ? "exit" : how === 2 ? "exception" : "signal",
            code: view.getInt32(HEADER.endedCode, true),
            atNs: ring.ns(HEADER.endedNs),
          }
        : null,
    words: words >= HEADER_BYTES ? linesAt(bytes, words, most) : "",
    communicators,
    connections: readConnections(ring, kept),
    calls: readCalls(ring, records, names),
    dropped: u64(view, HEADER.dropped),
  };
}

function rankOfName(file: string): number | null {
  const named = RING_NAME.exec(file)?.[1];
  return named === undefined || named === "x" ? null : Number(named);
}

/** When the ring was copied; where nobody said, its newest sign of life. */
function takenNs(ring: RingBytes, records: Records, process: ProbeProcess): number {
  if (Number.isFinite(process.copiedNs)) return process.copiedNs;
  let newest = Number.isFinite(process.heartbeatNs) ? process.heartbeatNs : process.startedNs;
  for (const at of records.at) {
    for (const field of [RECORD.issuedNs, RECORD.endedNs]) {
      const ns = ring.ns(at + field);
      if (ns > newest) newest = ns;
    }
  }
  return newest;
}

function tell(
  { view }: RingBytes,
  records: Records,
  { dropped }: ProbeProcess,
  say: (what: string) => void,
): void {
  if (records.torn > 0)
    say(
      `${count(records.torn, "record")} left out: being written or damaged when the ring was copied`,
    );
  if (dropped > 0)
    say(
      `${count(dropped, "record")} dropped by the probe: the ring was too small for the rate of records`,
    );
  const full = view.getUint32(HEADER.tablesFull, true);
  if (full > 0) say(`${full} ${full === 1 ? "entry" : "entries"} of the ring's tables did not fit`);
}

/**
 * The ring's communicators, connections and names.
 * By index in the ring; null for an entry that is not complete, or says what cannot be.
 */
function readCommunicators({ view, bytes, communicators }: RingBytes): (Communicator | null)[] {
  return Array.from({ length: communicators.count }, (_, index) => {
    const at = communicators.offset + index * COMMUNICATOR_BYTES;
    const flags = view.getUint32(at + COMMUNICATOR.flags, true);
    const rank = view.getInt32(at + COMMUNICATOR.rank, true);
    const size = view.getInt32(at + COMMUNICATOR.size, true);
    if ((flags & COMPLETE) === 0 || size < 1 || size > MAX_RANKS || rank < 0 || rank >= size)
      return null;
    return {
      id: view
        .getBigUint64(at + COMMUNICATOR.id, true)
        .toString(16)
        .padStart(16, "0"),
      name: textAt(bytes, at + COMMUNICATOR.name, COMMUNICATOR.nameBytes),
      rank,
      size,
      collectives: u64(view, at + COMMUNICATOR.collectives),
      p2ps: u64(view, at + COMMUNICATOR.p2ps),
      isDestroyed: (flags & DESTROYED) !== 0,
    };
  });
}

function readNames({ bytes, names }: RingBytes): string[] {
  return Array.from({ length: names.count }, (_, index) =>
    textAt(bytes, names.offset + index * NAME_BYTES, NAME_BYTES),
  );
}

/** `kept`: the ring's index of a communicator → the process' own; -1 for those that are not kept. */
function readConnections(ring: RingBytes, kept: Int32Array): ConnectionTable {
  const { view, connections } = ring;
  const n = connections.count;
  const table = {
    communicator: new Int32Array(n),
    channel: new Uint8Array(n),
    isSend: new Uint8Array(n),
    peer: new Int32Array(n),
    begun: new Float64Array(n),
    finished: new Float64Array(n),
    state: new Uint8Array(n),
    changedNs: new Float64Array(n),
  };
  let count = 0;
  for (let index = 0; index < n; index++) {
    const at = connections.offset + index * CONNECTION_BYTES;
    const communicator = kept[view.getUint16(at + CONNECTION.comm, true)] ?? -1;
    const peer = view.getInt32(at + CONNECTION.peer, true);
    if (communicator < 0 || peer < 0) continue;
    const begun = u64(view, at + CONNECTION.begun);
    const finished = u64(view, at + CONNECTION.finished);
    const i = count++;
    table.communicator[i] = communicator;
    table.channel[i] = view.getUint8(at + CONNECTION.channel);
    table.isSend[i] = view.getUint8(at + CONNECTION.isSend) === 0 ? 0 : 1;
    table.peer[i] = peer;
    table.begun[i] = begun;
    table.finished[i] = finished;
    table.state[i] = begun > finished ? oldestState(view, at + CONNECTION.states, begun) : 0;
    table.changedNs[i] = ring.ns(at + CONNECTION.changedNs);
  }
  return { count, ...table };
}

/** Longer than any lag between a kernel's end and its proxy's books. */
const WAITS_NS = 1e9;

function waitingCommunicators(connections: ConnectionTable, takenNs: number): Set<number> {
  const { communicator, state, changedNs } = connections;
  const waiting = new Set<number>();
  for (let i = 0; i < connections.count; i++)
    if (
      (state[i] === SEND_WAITS_FOR_WIRE || state[i] === RECEIVE_WAITS_FOR_DATA) &&
      takenNs - changedNs[i]! > WAITS_NS
    )
      waiting.add(communicator[i]!);
  return waiting;
}

/** Collectives and P2P share a connection here, so that steps need not end in order: the oldest that has a state counts. */
function oldestState(view: DataView, states: number, begun: number): number {
  for (let step = Math.max(0, begun - CONNECTION.stateCount); step < begun; step++) {
    const state = view.getUint8(states + (step % CONNECTION.stateCount));
    if (state !== 0) return state;
  }
  return 0;
}
