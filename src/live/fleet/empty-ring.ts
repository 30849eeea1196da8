/** A ring as a probe makes it (probe/RING.md), before it has a record. Times are nanoseconds since it was made. */
import * as L from "../../ingest/probe-ring/layout.ts";

export interface RingAbout {
  readonly writer?: "native" | "python";
  readonly rank?: number;
  readonly worldSize?: number;
  readonly pid?: number;
  readonly gpu?: number;
  readonly host?: string;
  readonly job?: string;
  readonly library?: string;
  readonly source?: string;
  /** Nanoseconds since 1970. */
  readonly madeAtNs?: bigint;
  /** The machine's clock at that moment. */
  readonly monotonicNs?: bigint;
  /** A power of two. */
  readonly records?: number;
  readonly connections?: number;
}

interface ConnectionToWrite {
  readonly comm: number;
  readonly channel?: number;
  readonly isSend: boolean;
  readonly peer: number;
  readonly begun: number;
  readonly finished: number;
  readonly bytes?: number;
  /** Of the steps from `finished` on. */
  readonly states?: readonly number[];
  readonly changedNs?: number;
}

const ENDED = { exit: 1, exception: 2, signal: 3 } as const;
const TEXT = new TextEncoder();

export class EmptyRing {
  readonly bytes: Uint8Array;
  protected readonly view: DataView;
  protected readonly base: bigint;
  protected readonly madeAt: bigint;
  protected readonly recordCount: number;
  protected readonly offsets: {
    comms: number;
    connections: number;
    names: number;
    words: number;
    records: number;
  };
  #comms = 0;
  #connections = 0;
  readonly #names: string[] = [];

  constructor(about: RingAbout = {}) {
    this.recordCount = about.records ?? 256;
    const connections = about.connections ?? 64;
    const comms = L.HEADER_BYTES;
    const connectionsAt = comms + L.COMMUNICATOR_CAPACITY * L.COMMUNICATOR_BYTES;
    const names = connectionsAt + connections * L.CONNECTION_BYTES;
    const words = names + L.NAME_CAPACITY * L.NAME_BYTES;
    const records = words + L.WORDS_BYTES;
    this.offsets = { comms, connections: connectionsAt, names, words, records };
    this.bytes = new Uint8Array(records + this.recordCount * L.RECORD_BYTES);
    this.view = new DataView(this.bytes.buffer);
    this.base = about.monotonicNs ?? 1_000_000_000_000n;
    this.madeAt = about.madeAtNs ?? 1_767_225_600_000_000_000n;
    this.text(L.HEADER.magic, L.MAGIC, 8);
    this.u32(L.HEADER.version, L.RING_VERSION);
    this.u32(L.HEADER.headerBytes, L.HEADER_BYTES);
    this.u32(L.HEADER.recordBytes, L.RECORD_BYTES);
    this.u32(L.HEADER.recordCount, this.recordCount);
    this.u64(L.HEADER.recordsOffset, records);
    this.u32(L.HEADER.commsOffset, comms);
    this.u32(L.HEADER.commCapacity, L.COMMUNICATOR_CAPACITY);
    this.u32(L.HEADER.connectionsOffset, connectionsAt);
    this.u32(L.HEADER.connectionCapacity, connections);
    this.u32(L.HEADER.namesOffset, names);
    this.u32(L.HEADER.nameCapacity, L.NAME_CAPACITY);
    this.u32(L.HEADER.wordsOffset, words);
    this.u32(L.HEADER.wordsBytes, L.WORDS_BYTES);
    this.u32(L.HEADER.writer, about.writer === "python" ? L.PYTHON_WRITER : L.NATIVE_WRITER);
    this.i32(L.HEADER.pid, about.pid ?? 1000);
    this.i32(L.HEADER.rank, about.rank ?? -1);
    this.i32(L.HEADER.worldSize, about.worldSize ?? -1);
    this.i32(L.HEADER.localRank, -1);
    this.i32(L.HEADER.gpu, about.gpu ?? -1);
    this.text(L.HEADER.host, about.host ?? "node0", L.TEXT_BYTES.host);
    this.text(L.HEADER.job, about.job ?? "job", L.TEXT_BYTES.job);
    this.text(L.HEADER.library, about.library ?? "NCCL 2.28.9", L.TEXT_BYTES.library);
    this.text(L.HEADER.source, about.source ?? "nccl-profiler-v5", L.TEXT_BYTES.source);
    this.view.setBigUint64(L.HEADER.startedRealtimeNs, this.madeAt, true);
    this.view.setBigUint64(L.HEADER.startedMonotonicNs, this.base, true);
    this.view.setBigUint64(L.HEADER.anchorRealtimeNs, this.madeAt, true);
    this.view.setBigUint64(L.HEADER.anchorMonotonicNs, this.base, true);
  }

  /** Index of the new communicator. */
  comm(id: bigint, rank: number, size: number, name = "", issued = 0): number {
    const at = this.offsets.comms + this.#comms * L.COMMUNICATOR_BYTES;
    this.view.setBigUint64(at + L.COMMUNICATOR.id, id, true);
    this.i32(at + L.COMMUNICATOR.rank, rank);
    this.i32(at + L.COMMUNICATOR.size, size);
    this.i32(at + L.COMMUNICATOR.nodes, size);
    this.u32(at + L.COMMUNICATOR.flags, L.COMPLETE);
    this.u64(at + L.COMMUNICATOR.collectives, issued);
    this.text(at + L.COMMUNICATOR.name, name, L.COMMUNICATOR.nameBytes);
    this.u32(L.HEADER.commCount, this.#comms + 1);
    return this.#comms++;
  }

  /** Over which a member sends to another one, or receives. */
  connection(one: ConnectionToWrite): void {
    const at = this.offsets.connections + this.#connections * L.CONNECTION_BYTES;
    this.view.setUint16(at + L.CONNECTION.comm, one.comm, true);
    this.bytes[at + L.CONNECTION.channel] = one.channel ?? 0;
    this.bytes[at + L.CONNECTION.isSend] = one.isSend ? 1 : 0;
    this.i32(at + L.CONNECTION.peer, one.peer);
    this.u64(at + L.CONNECTION.begun, one.begun);
    this.u64(at + L.CONNECTION.finished, one.finished);
    this.u64(at + L.CONNECTION.bytes, one.bytes ?? 0);
    for (const [i, state] of (one.states ?? []).entries())
      this.bytes[at + L.CONNECTION.states + ((one.finished + i) % L.CONNECTION.stateCount)] = state;
    this.time(at + L.CONNECTION.changedNs, one.changedNs ?? 0);
    this.u32(L.HEADER.connectionCount, ++this.#connections);
  }

  /** Index of a name, added where it is new. */
  name(text: string): number {
    const known = this.#names.indexOf(text);
    if (known >= 0) return known;
    const at = this.offsets.names + this.#names.length * L.NAME_BYTES;
    this.text(at, text, L.NAME_BYTES);
    this.u32(L.HEADER.nameCount, this.#names.length + 1);
    return this.#names.push(text) - 1;
  }

  end(how: keyof typeof ENDED, code: number, atNs: number, words = ""): void {
    this.i32(L.HEADER.endedHow, ENDED[how]);
    this.i32(L.HEADER.endedCode, code);
    this.time(L.HEADER.endedNs, atNs);
    this.text(this.offsets.words, words, L.WORDS_BYTES);
    const length = Math.min(L.WORDS_BYTES, TEXT.encode(words).length);
    this.u64(L.HEADER.wordsLength, length);
  }

  protected u32(at: number, value: number): void {
    this.view.setUint32(at, value, true);
  }

  protected i32(at: number, value: number): void {
    this.view.setInt32(at, value, true);
  }

  protected u64(at: number, value: number): void {
    this.view.setBigUint64(at, BigInt(value), true);
  }

  protected time(at: number, ns: number): void {
    this.view.setBigUint64(at, this.base + BigInt(Math.round(ns)), true);
  }

  protected text(at: number, text: string, most: number): void {
    this.bytes.set(TEXT.encode(text).subarray(0, most), at);
  }
}
