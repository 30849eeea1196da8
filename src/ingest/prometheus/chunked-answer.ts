/**
 * The streamed answer of remote read: frames of length, checksum and a prometheus.ChunkedReadResponse. A frame whose
 * checksum is off gives nothing: damaged samples would pass for measured ones.
 */
import type { LabelledSeries } from "../metrics/labelled-series.ts";
import { SampleColumns } from "../metrics/sample-columns.ts";
import { crc32c } from "./crc32c.ts";
import { ServerFailure } from "./failure.ts";
import { readXorChunk, SLACK_BYTES } from "./xor-chunk.ts";

const CHECKSUM_BYTES = 4;
/** Servers send frames of 1 MiB; one larger than this is no frame. */
const MOST_FRAME = 1 << 26;
const FIRST_ROOM = 1 << 14;
const XOR = 1;

export class ChunkedAnswer {
  readonly #series: LabelledSeries;
  readonly #startMs: number;
  readonly #endMs: number;
  readonly #columns = new SampleColumns();
  #bytes = Buffer.alloc(FIRST_ROOM);
  #from = 0;
  #to = 0;
  /** Where the field being read has its content, or its number. */
  #at = 0;
  #end = 0;
  #field = 0;
  #value = 0;
  /** Chunks of native histograms, and damaged ones. */
  otherChunks = 0;
  badChunks = 0;

  constructor(series: LabelledSeries, startMs: number, endMs: number) {
    this.#series = series;
    this.#startMs = startMs;
    this.#endMs = endMs;
  }

  push(chunk: Uint8Array): void {
    this.#append(chunk);
    while (this.#from < this.#to) {
      let size = 0;
      let shift = 1;
      let at = this.#from;
      let byte = 128;
      for (; byte >= 128 && at < this.#to; shift *= 128) {
        byte = this.#bytes[at++]!;
        size += (byte & 127) * shift;
        if (size > MOST_FRAME || shift > MOST_FRAME) throw damaged();
      }
      const content = at + CHECKSUM_BYTES;
      if (byte >= 128 || content + size > this.#to) return;
      const isWhole = crc32c(this.#bytes, content, content + size) === this.#bytes.readUInt32BE(at);
      if (!isWhole) throw damaged();
      this.#frame(content, content + size);
      this.#from = content + size;
    }
  }

  /** Throws where the last frame has no end. */
  end(): void {
    if (this.#from < this.#to) throw new ServerFailure("cut", "the answer broke off");
  }

  #append(chunk: Uint8Array): void {
    if (this.#to + chunk.length + SLACK_BYTES > this.#bytes.length) {
      const held = this.#to - this.#from;
      const needed = held + chunk.length + SLACK_BYTES;
      const room =
        needed > this.#bytes.length ? Buffer.alloc(2 * Math.max(needed, FIRST_ROOM)) : this.#bytes;
      this.#bytes.copy(room, 0, this.#from, this.#to);
      this.#bytes = room;
      this.#from = 0;
      this.#to = held;
    }
    this.#bytes.set(chunk, this.#to);
    this.#to += chunk.length;
  }

  #frame(from: number, to: number): void {
    let at = from;
    while (at < to) {
      at = this.#next(at, to);
      if (this.#field === 1) this.#oneSeries(this.#at, this.#end);
    }
  }

  /** A series' labels, then its chunks. */
  #oneSeries(from: number, to: number): void {
    let at = from;
    let labelsEnd = from;
    let id: number | null = null;
    while (at < to) {
      at = this.#next(at, to);
      if (this.#field === 1) labelsEnd = at;
      else if (this.#field === 2) {
        id ??= this.#idOf(from, labelsEnd);
        this.#chunk(this.#at, this.#end);
      }
    }
    this.#columns.flush(this.#series.builder, id ?? -1);
  }

  #chunk(from: number, to: number): void {
    let at = from;
    let type = 0;
    let dataFrom = to;
    let dataTo = to;
    let minMs = -Infinity;
    let maxMs = Infinity;
    while (at < to) {
      at = this.#next(at, to);
      if (this.#field === 1) minMs = this.#value;
      else if (this.#field === 2) maxMs = this.#value;
      else if (this.#field === 3) type = this.#value;
      else if (this.#field === 4) {
        dataFrom = this.#at;
        dataTo = this.#end;
      }
    }
    if (type !== XOR) this.otherChunks++;
    else if (maxMs >= this.#startMs && minMs <= this.#endMs) {
      const isGood = readXorChunk(
        this.#bytes,
        dataFrom,
        dataTo,
        this.#columns,
        this.#startMs,
        this.#endMs,
      );
      if (!isGood) this.badChunks++;
    }
  }

  #idOf(from: number, to: number): number {
    const [at, end, field] = [this.#at, this.#end, this.#field];
    const key = this.#bytes.toString("latin1", from, to);
    let id = this.#series.known(key);
    if (id === undefined) {
      const labels = new Map<string, string>();
      for (let label = from; label < to;) {
        label = this.#next(label, to);
        this.#label(labels, this.#at, this.#end);
      }
      id = this.#series.ofLabels(key, labels);
    }
    [this.#at, this.#end, this.#field] = [at, end, field];
    return id;
  }

  #label(labels: Map<string, string>, from: number, to: number): void {
    let name = "";
    let value = "";
    for (let at = from; at < to;) {
      at = this.#next(at, to);
      const text = this.#bytes.toString("utf8", this.#at, this.#end);
      if (this.#field === 1) name = text;
      else if (this.#field === 2) value = text;
    }
    labels.set(name, value);
  }

  /** Reads one protobuf field; returns the position behind it. */
  #next(from: number, to: number): number {
    let at = this.#varint(from, to);
    const tag = this.#value;
    this.#field = Math.floor(tag / 8);
    at = this.#varint(at, to);
    if (tag % 8 === 0) return at;
    if (tag % 8 !== 2 || at + this.#value > to) throw damaged();
    this.#at = at;
    this.#end = at + this.#value;
    return this.#end;
  }

  /** Negative numbers (times before 1970) come out as huge ones; nobody monitored anything then. */
  #varint(from: number, to: number): number {
    let at = from;
    let value = 0;
    let factor = 1;
    for (;;) {
      if (at >= to) throw damaged();
      const byte = this.#bytes[at++]!;
      value += (byte & 127) * factor;
      factor *= 128;
      if (byte < 128) break;
    }
    this.#value = value;
    return at;
  }
}

function damaged(): ServerFailure {
  return new ServerFailure("cut", "its remote-read answer is damaged");
}
