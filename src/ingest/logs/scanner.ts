/**
 * Reads a log's bytes, chunk by chunk. A line whose form is known costs a scan and a few counters; one whose form is new
 * is decoded, its prefix read and its shape registered. See ARCHITECTURE.md, "Follow a line of a log".
 */
import { BlockList } from "./block-list.ts";
import { StreamBlocks } from "./blocks.ts";
import { CellTable } from "./cell-table.ts";
import { cleanBytes } from "./clean-bytes.ts";
import { LineCutter, MOST_LINE_BYTES } from "./cut-lines.ts";
import { FormReader } from "./form-reader.ts";
import * as forms from "./form-table.ts";
import { IterationTable } from "./iteration-table.ts";
import { KEPT_TEXT, KeptLines } from "./kept-lines.ts";
import { FRAME, HEADER, isPartKind, PLAIN, SEQUEL } from "./line-kind.ts";
import type { FilePart, PartialDigest } from "./partial-digest.ts";
import { headerOfText } from "./prefix-header.ts";
import { scanForm, scanned } from "./scan-bytes.ts";
import { nearTime, StampReader } from "./stamps.ts";
import { MOST_STREAMS, NO_RANK, StreamTable } from "./stream-table.ts";
import { unfolded } from "./unfolded.ts";
import { wideEncoding, WideReader } from "./wide-text.ts";

/** Where a file's times and its lines' header are looked for first. */
const HEAD_BYTES = 262_144;
/** Below these a job's logs stay whole; the digest of all is bounded in merge-digests.ts. */
export const MOST_FORMS = 100_000;
const LIMITS = {
  forms: MOST_FORMS,
  cells: 1_000_000,
  kept: 100_000,
  keptChars: 30e6,
  blocks: 20_000,
  blockChars: 4e6,
  iterations: 500_000,
};

export interface ScanOptions {
  /** Whether a line of this text may tell of a failure, whatever its numbers; where no reader is given that knows. */
  readonly isTelling?: (text: string) => boolean;
  readonly limits?: Partial<typeof LIMITS>;
  /** Readers that follow single ranks get every line; `isNoted` is what its own question said of the line's form. */
  readonly onLine?: (text: string, line: number, isNoted: boolean) => void;
}

/** What is known of a file before it is read. */
export interface FileAbout {
  /** When it was last written to. */
  readonly latestMs?: number;
  /** What tells it from other files whose digests it will be merged with, where its number does not. */
  readonly key?: string;
}

/** Scans parts of files one after the other. */
export class LogEngine {
  readonly #limits: typeof LIMITS;
  readonly #onLine: ScanOptions["onLine"];
  readonly #reader: FormReader;
  readonly #streams = new StreamTable();
  readonly #cells: CellTable;
  readonly #kept: KeptLines;
  readonly #iterations: IterationTable;
  readonly #blocksOf: (StreamBlocks | undefined)[] = [];
  readonly #blocks: BlockList;
  readonly #parts: FilePart[] = [];
  #streamsLeft = 0;

  // Of the file that is being read.
  #file = -1;
  #fileA = 0;
  #fileB = 0;
  #stamps = new StampReader(NaN);
  /** Its beginning, until there is enough of it to tell what it is; null afterwards. */
  #head: Buffer[] | null = null;
  #wide: WideReader | null = null;
  #firstStream = 0;
  #fileStream = -1;
  #fileMs = NaN;
  /** The last writer that was named, and the last line that is surely its own. */
  #writer = -1;
  #writerLine = -1;
  #writerTold = false;
  readonly #cutter = new LineCutter((buf, from, isLast) => this.#line(buf, from, isLast));

  /** `reader`: one that is set up otherwise; it serves this engine alone. */
  constructor({ isTelling, limits, onLine }: ScanOptions, reader?: FormReader) {
    this.#limits = { ...LIMITS, ...limits };
    this.#onLine = onLine;
    this.#reader = reader ?? new FormReader(isTelling ?? (() => false), this.#limits.forms);
    this.#cells = new CellTable(this.#limits.cells);
    this.#kept = new KeptLines(this.#limits.kept, this.#limits.keptChars);
    this.#iterations = new IterationTable(this.#limits.iterations);
    this.#blocks = new BlockList(this.#limits.blocks, this.#limits.blockChars);
  }

  begin(file: number, about: FileAbout = {}): void {
    this.#file = file;
    this.#fileA = Math.imul((about.key === undefined ? file : hash(about.key, 1)) + 1, 0x9e3779b1);
    this.#fileB = about.key === undefined ? file : hash(about.key, 2);
    this.#stamps = new StampReader(NaN, about.latestMs);
    this.#wide = null;
    this.#head = [];
    this.#reader.header = null;
    this.#cutter.begin();
    this.#firstStream = this.#streams.size;
    this.#fileStream = this.#writer = this.#writerLine = -1;
    this.#fileMs = NaN;
    this.#writerTold = false;
  }

  push(chunk: Uint8Array): void {
    const buf = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (this.#head) this.#begun(this.#head, buf);
    else this.#cutter.push(this.#wide ? this.#wide.push(buf) : buf);
  }

  /** Ends the file and its last line. */
  end(): void {
    const cutter = this.#cutter;
    if (this.#head) this.#first(Buffer.concat(this.#head));
    if (this.#wide) cutter.push(this.#wide.end());
    cutter.end();
    for (let stream = this.#firstStream; stream < this.#streams.size; stream++)
      this.#blocksOf[stream]?.finish();
    this.#parts.push({
      file: this.#file,
      bytes: cutter.bytes,
      lines: cutter.lines,
      cutLines: cutter.cutLines,
      nulLines: cutter.nulLines,
    });
  }

  digest(): PartialDigest {
    this.#iterations.finish();
    return {
      parts: this.#parts,
      streams: this.#streams.columns(),
      shapes: this.#reader.shapes.columns(),
      cells: this.#cells.columns(),
      kept: this.#kept.columns(),
      blocks: this.#blocks.list,
      iterations: this.#iterations.columns(),
      left: {
        lumped: this.#reader.lumped,
        cells: this.#cells.dropped,
        blocks: this.#blocks.dropped,
        streams: this.#streamsLeft,
        isThinned: this.#kept.isThinned,
      },
    };
  }

  /** What a file says of itself must not depend on the chunks it comes in. */
  #begun(head: Buffer[], buf: Buffer): void {
    const before = head.reduce((sum, { length }) => sum + length, 0);
    if (before === 0 && buf.length >= HEAD_BYTES) this.#first(buf);
    else {
      // The caller may use its chunk again.
      head.push(Buffer.from(buf));
      if (before + buf.length >= HEAD_BYTES) this.#first(Buffer.concat(head));
    }
  }

  #first(raw: Buffer): void {
    this.#head = null;
    const encoding = wideEncoding(raw);
    if (encoding) this.#wide = new WideReader(encoding);
    const buf = this.#wide ? this.#wide.push(raw) : raw;
    const text = buf.toString("latin1", 0, HEAD_BYTES);
    const ms = nearTime(text);
    if (ms === ms) this.#stamps = new StampReader(ms);
    this.#reader.header = headerOfText(text);
    this.#cutter.push(buf);
  }

  /**
   * The line that was scanned last. Of a progress bar's states those that are not the last count only where they tell
   * something.
   */
  #line(buf: Buffer, from: number, isLast: boolean): void {
    const line = this.#cutter.lines + 1;
    const to = scanned.end;
    if (to === from) {
      this.#onLine?.("", line, false);
      if (this.#writerLine === line - 1) this.#writerLine = line;
      return;
    }
    const reader = this.#reader;
    reader.read(buf, from, to);
    if (reader.kind === HEADER && buf[from] === BRACE) {
      const inside = unfolded(buf.toString("utf8", from, to));
      for (const text of inside) this.#inside(text);
      if (inside.length > 0) return;
    }
    this.#onLine?.(reader.whole(buf, to), line, reader.noted);
    const { flags, kind, shape } = reader;
    if (!isLast && (flags & forms.TELLING) === 0 && reader.report === forms.NO_REPORT) return;
    const stamp = reader.stamp;
    const own = stamp === 0 ? NaN : this.#stamps.read(buf, reader.place(forms.STAMP), to, stamp);
    const isNamed = (flags & forms.NAMED) !== 0;
    const stream = isNamed ? this.#named(buf) : this.#unnamed(buf, flags, kind, stamp, line);
    const streams = this.#streams;
    streams.lines[stream]!++;
    let ms = own;
    if (own === own) {
      this.#fileMs = own;
      streams.stamp(stream, line, own);
    } else {
      ms = streams.lastMs[stream]!;
      if (ms !== ms) ms = this.#fileMs;
    }
    if (shape < 0) return;
    let isPart = false;
    if (kind !== PLAIN || this.#blocksOf[stream]?.isOpen === true)
      isPart = this.#block(buf, to, stream, kind, line, ms);
    const cell = this.#cells.add(stream, shape, line, ms);
    reader.shapes.count(shape, this.#file, line, isPart);
    const isTelling = (flags & forms.TELLING) !== 0 && !isPart;
    if (isTelling) this.#tell(buf, to, stream, kind, cell, line, ms);
    if (isNamed) {
      this.#writer = stream;
      this.#writerLine = line;
      this.#writerTold = isTelling;
    } else if (stream === this.#writer && this.#writerLine === line - 1) this.#writerLine = line;
    if (reader.report !== forms.NO_REPORT)
      this.#iterations.report(
        stream,
        reader.report,
        reader.number(buf, to),
        reader.total(buf, to),
        line,
        ms,
      );
    this.#iterations.wrote(stream, shape);
  }

  /** A line that stands within another, as if it stood by itself. */
  #inside(text: string): void {
    const buf = Buffer.from(text.slice(0, MOST_LINE_BYTES));
    const clean = Buffer.alloc(buf.length);
    scanForm(clean, 0, cleanBytes(buf, 0, buf.length, clean));
    this.#line(clean, 0, true);
  }

  #tell(
    buf: Buffer,
    to: number,
    stream: number,
    kind: number,
    cell: number,
    line: number,
    ms: number,
  ): void {
    const text = this.#reader.content(buf, to, KEPT_TEXT);
    if (cell >= 0) this.#kept.add(cell, line, ms, text);
    if (kind !== SEQUEL) this.#blocksAt(stream).telling(text, line, ms);
  }

  #named(buf: Buffer): number {
    const reader = this.#reader;
    reader.identify(buf, this.#fileA, this.#fileB);
    const known = this.#streams.find(reader.idA, reader.idB);
    if (known >= 0) return known;
    if (this.#streams.size >= MOST_STREAMS) {
      this.#streamsLeft++;
      return this.#ofFile();
    }
    return this.#newStream(
      reader.idA,
      reader.idB,
      reader.host(buf),
      reader.rank,
      reader.writer(buf),
    );
  }

  /**
   * A line that names nobody is the file's, unless it surely goes on with what a named writer began: it follows at once,
   * has neither time nor level, and is indented, a part of a stack or a sentence of PyTorch's that never stands alone,
   * behind a line that tells of trouble or inside a block that is open.
   */
  #unnamed(buf: Buffer, flags: number, kind: number, stamp: number, line: number): number {
    const writer = this.#writer;
    if (writer < 0 || this.#writerLine !== line - 1) return this.#ofFile();
    if (stamp !== 0 || (flags & forms.LEVELLED) !== 0) return this.#ofFile();
    const isOpen = this.#blocksOf[writer]?.isOpen === true;
    if (!isOpen && !this.#writerTold) return this.#ofFile();
    const goesOn =
      kind === SEQUEL ||
      isPartKind(kind) ||
      (isOpen && kind !== PLAIN) ||
      isBlank(buf[this.#reader.place(forms.CONTENT)]);
    return goesOn ? writer : this.#ofFile();
  }

  #ofFile(): number {
    if (this.#fileStream >= 0) return this.#fileStream;
    const known = this.#streams.find(this.#fileA, this.#fileB);
    this.#fileStream =
      known >= 0 ? known : this.#newStream(this.#fileA, this.#fileB, null, NO_RANK, "");
    return this.#fileStream;
  }

  #newStream(a: number, b: number, host: string | null, rank: number, writer: string): number {
    return this.#streams.add(a, b, this.#file, host, rank, writer);
  }

  #block(buf: Buffer, to: number, stream: number, kind: number, line: number, ms: number): boolean {
    const at = this.#reader.place(forms.CONTENT);
    const isIndented = isBlank(buf[at]) && (buf[at] === 9 || isBlank(buf[at + 1]));
    const isCode = isIndented && this.#blocksOf[stream]?.isOpen === true;
    const text =
      kind === PLAIN && !isCode
        ? ""
        : this.#reader.content(buf, to, kind === FRAME ? 1400 : KEPT_TEXT);
    return this.#blocksAt(stream).line(kind, text, isIndented, line, ms);
  }

  #blocksAt(stream: number): StreamBlocks {
    return (this.#blocksOf[stream] ??= new StreamBlocks((block) =>
      this.#blocks.add({ ...block, stream }),
    ));
  }
}

const BRACE = 123;

function hash(text: string, seed: number): number {
  let sum = Math.imul(seed, 0x811c9dc5) | 0;
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193);
  return sum;
}

function isBlank(code: number | undefined): boolean {
  return code === 32 || code === 9;
}
