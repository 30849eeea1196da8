/**
 * Adds up what was read of all parts, in the order of files and parts: the result is the same whoever read what and
 * whoever finished first. Lines of a part count from 1; the lines of earlier parts of the same file are added here.
 */
import type { KeptLine, LogBlock, LogCells, LogDigest } from "../../model/log-digest.ts";
import { BlockList } from "./block-list.ts";
import { CellTable } from "./cell-table.ts";
import { fileOf, type FileSum, missingWords } from "./digest-words.ts";
import { foundGaps } from "./gaps.ts";
import { IterationTable } from "./iteration-table.ts";
import { iterationsOf } from "./iterations-of.ts";
import { KeptLines } from "./kept-lines.ts";
import type { FilePart, PartialDigest } from "./partial-digest.ts";
import { LEVELS, ShapeTable, type ShapeColumns } from "./shape-table.ts";
import {
  MOST_GAPS,
  MOST_STREAMS,
  NO_RANK,
  StreamTable,
  type StreamColumns,
} from "./stream-table.ts";

const LIMITS = {
  shapes: 400_000,
  cells: 4_000_000,
  kept: 400_000,
  keptChars: 100e6,
  blocks: 100_000,
  iterations: 4_000_000,
};
const SHAPE_CHARS = 100e6;
export type MergeLimits = typeof LIMITS;

export function mergeDigests(
  names: readonly string[],
  digests: Iterable<PartialDigest>,
  limits: Partial<MergeLimits> = {},
): LogDigest {
  const merger = new DigestMerger(names, limits);
  for (const digest of digests) merger.add(digest);
  return merger.end();
}

/** For digests that come one by one; they must come in order. */
export class DigestMerger {
  readonly #limits: MergeLimits;
  readonly #names: readonly string[];
  readonly #files: FileSum[];
  readonly #streams = new StreamTable();
  readonly #shapes = new ShapeTable(SHAPE_CHARS);
  readonly #lumps = new Map<number, number>();
  readonly #cells: CellTable;
  readonly #kept: KeptLines;
  readonly #iterations: IterationTable;
  readonly #blocks: BlockList;
  #lumped = 0;
  #lostCells = 0;
  #lostBlocks = 0;
  #lostStreams = 0;
  #isThinned = false;

  constructor(names: readonly string[], limits: Partial<MergeLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
    this.#names = names;
    this.#files = names.map(() => ({
      bytes: 0,
      lines: 0,
      cutLines: 0,
      nulLines: 0,
      lastMs: NaN,
      defects: [],
    }));
    this.#cells = new CellTable(this.#limits.cells);
    this.#kept = new KeptLines(this.#limits.kept, this.#limits.keptChars);
    this.#iterations = new IterationTable(this.#limits.iterations);
    this.#blocks = new BlockList(this.#limits.blocks);
  }

  add(digest: PartialDigest): void {
    const { streams, cells, kept, blocks, left } = digest;
    const lineBase = this.#files.map(({ lines }) => lines);
    // A part's first lines have the time of the part before where they have none of their own.
    const earlier = new Float64Array(streams.count).fill(NaN);
    const streamOf = this.#addStreams(streams, lineBase, earlier);
    const timeOf = (stream: number, ms: number): number => (ms === ms ? ms : earlier[stream]!);
    const shapeOf = this.#addShapes(digest.shapes, lineBase);
    const base = (stream: number): number => lineBase[streams.file[stream]!]!;
    const cellOf = new Int32Array(cells.count);
    for (let cell = 0; cell < cells.count; cell++) {
      const stream = cells.stream[cell]!;
      cellOf[cell] = this.#cells.merge(
        streamOf[stream]!,
        shapeOf[cells.shape[cell]!]!,
        cells.lines[cell]!,
        cells.firstLine[cell]! + base(stream),
        cells.lastLine[cell]! + base(stream),
        timeOf(stream, cells.firstMs[cell]!),
        timeOf(stream, cells.lastMs[cell]!),
      );
    }
    for (let row = 0; row < kept.text.length; row++) {
      const cell = kept.cell[row]!;
      if (cellOf[cell]! < 0) continue;
      const stream = cells.stream[cell]!;
      const line = kept.line[row]! + base(stream);
      this.#kept.add(cellOf[cell]!, line, timeOf(stream, kept.timeMs[row]!), kept.text[row]!);
    }
    for (const block of blocks) {
      const timeMs = timeOf(block.stream, block.timeMs);
      this.#addBlock({ ...block, timeMs }, streamOf[block.stream]!, base(block.stream));
    }
    this.#iterations.absorb(
      digest.iterations,
      streamOf,
      shapeOf,
      (stream) => lineBase[this.#streams.file[stream]!]!,
    );
    for (const part of digest.parts) this.#addPart(part);
    for (let i = 0; i < streams.count; i++) {
      const sum = this.#files[streams.file[i]!]!;
      if (!(streams.lastMs[i]! <= sum.lastMs) && streams.stamped[i]! > 0)
        sum.lastMs = streams.lastMs[i]!;
    }
    this.#lumped += left.lumped;
    this.#lostCells += left.cells;
    this.#lostBlocks += left.blocks;
    this.#lostStreams += left.streams;
    this.#isThinned ||= left.isThinned;
  }

  /** What is wrong with a file as a whole. */
  defect(file: number, what: string): void {
    this.#files[file]!.defects.push(what);
  }

  end(): LogDigest {
    this.#iterations.finish();
    const isPart = this.#partShapes();
    const { shapes, streams } = this;
    return {
      files: this.#files.map((sum, index) => fileOf(this.#names[index]!, sum)),
      streams,
      shapes: shapes.map((shape, index) => ({
        ...shape,
        isPart: isPart[index] === 1,
        isTelling: shape.isTelling && isPart[index] === 0,
      })),
      cells: this.#sortedCells(),
      kept: this.#keptLines(isPart),
      blocks: this.#blocks.list,
      iterations: iterationsOf(this.#iterations),
      sequences: this.#iterations.sequences,
      gaps: foundGaps(this.#streams),
      missing: this.#missing(),
    };
  }

  /** `earlier`: filled with when each stream was last heard of, or its file. */
  #addStreams(from: StreamColumns, lineBase: readonly number[], earlier: Float64Array): Int32Array {
    const streamOf = new Int32Array(from.count);
    const to = this.#streams;
    for (let i = 0; i < from.count; i++) {
      const a = from.a[i]!;
      const b = from.b[i]!;
      let stream = to.find(a, b);
      if (stream < 0 && to.size >= MOST_STREAMS) {
        stream = this.#ofFile(from.file[i]!);
        if (stream >= 0) this.#lostStreams += from.lines[i]!;
      }
      if (stream < 0)
        stream = to.add(a, b, from.file[i]!, from.host[i]!, from.rank[i]!, from.writer[i]!);
      streamOf[i] = stream;
      const lastMs = to.lastMs[stream]!;
      earlier[i] = lastMs === lastMs ? lastMs : this.#files[from.file[i]!]!.lastMs;
      to.lines[stream]! += from.lines[i]!;
      if (from.stamped[i] === 0) continue;
      const base = lineBase[from.file[i]!]!;
      const gap = from.firstMs[i]! - to.lastMs[stream]!;
      if (gap > 0) to.gap(stream, gap, to.lastMs[stream]!, to.lastLine[stream]!);
      for (let g = i * MOST_GAPS; g < (i + 1) * MOST_GAPS; g++) {
        if (from.gapMs[g]! > 0)
          to.gap(stream, from.gapMs[g]!, from.gapFrom[g]!, from.gapLine[g]! + base);
      }
      if (!(to.firstMs[stream]! <= from.firstMs[i]!)) to.firstMs[stream] = from.firstMs[i]!;
      to.lastMs[stream] = from.lastMs[i]!;
      to.lastLine[stream] = from.lastLine[i]! + base;
      to.stamped[stream]! += from.stamped[i]!;
    }
    return streamOf;
  }

  /** The stream of the lines that name nobody; -1 where the file has none yet. */
  #ofFile(file: number): number {
    return this.#streams.find(Math.imul(file + 1, 0x9e3779b1), file);
  }

  #addShapes(from: ShapeColumns, lineBase: readonly number[]): Int32Array {
    const shapeOf = new Int32Array(from.size).fill(-1);
    const to = this.#shapes;
    for (let i = 0; i < from.id.length; i++) {
      let shape = to.find(from.a[i]!, from.b[i]!);
      if (shape < 0 && to.size >= this.#limits.shapes) {
        const isFull = this.#lumps.size >= this.#limits.shapes / 4;
        const lump = (isFull ? 0 : from.coarse[i]!) * 2 + from.isTelling[i]!;
        const known = this.#lumps.get(lump);
        if (known !== undefined) {
          shape = known;
          this.#lumped += from.lines[i]!;
        } else this.#lumps.set(lump, to.size);
      }
      if (shape < 0) {
        shape = to.add(from.a[i]!, from.b[i]!, from.text[i]!);
        to.level[shape] = from.level[i]!;
        to.file[shape] = from.file[i]!;
        to.line[shape] = from.line[i]! + lineBase[from.file[i]!]!;
        to.isTelling[shape] = from.isTelling[i]!;
      }
      to.lines[shape]! += from.lines[i]!;
      to.parts[shape]! += from.parts[i]!;
      shapeOf[from.id[i]!] = shape;
    }
    return shapeOf;
  }

  #addBlock(block: LogBlock, stream: number, base: number): void {
    this.#blocks.add({
      ...block,
      stream,
      firstLine: block.firstLine + base,
      lastLine: block.lastLine + base,
      line: block.line + base,
    });
  }

  #addPart(part: FilePart): void {
    const sum = this.#files[part.file]!;
    sum.bytes += part.bytes;
    sum.lines += part.lines;
    sum.cutLines += part.cutLines;
    sum.nulLines += part.nulLines;
    sum.defects.push(...part.defects);
  }

  get streams(): LogDigest["streams"] {
    const { file, host, rank, writer, lines, firstMs, lastMs } = this.#streams;
    return host.map((name, i) => ({
      file: file[i]!,
      host: name,
      rank: rank[i] === NO_RANK ? null : rank[i]!,
      writer: writer[i]!,
      lines: lines[i]!,
      firstMs: firstMs[i]!,
      lastMs: lastMs[i]!,
    }));
  }

  get shapes(): LogDigest["shapes"] {
    const { text, level, file, line, lines, isTelling } = this.#shapes;
    return text.map((words, i) => ({
      text: words,
      level: LEVELS[level[i]!]!,
      file: file[i]!,
      line: line[i]!,
      count: lines[i]!,
      isTelling: isTelling[i] === 1,
      isPart: false,
    }));
  }

  /** Code under a frame is a part in most of its lines; elsewhere the same words may be a message. */
  #partShapes(): Uint8Array {
    const { lines, parts, size } = this.#shapes;
    return Uint8Array.from({ length: size }, (_, i) => (parts[i]! * 2 > lines[i]! ? 1 : 0));
  }

  #sortedCells(): LogCells {
    const from = this.#cells.columns();
    const shapes = Math.max(1, this.#shapes.size);
    // One number a cell sorts faster than a comparison of two.
    const keys = new Float64Array(from.count);
    for (let i = 0; i < from.count; i++) keys[i] = from.stream[i]! * shapes + from.shape[i]!;
    const order = Uint32Array.from(keys, (_, i) => i).sort((x, y) => keys[x]! - keys[y]!);
    return {
      count: from.count,
      stream: Int32Array.from(order, (i) => from.stream[i]!),
      shape: Int32Array.from(order, (i) => from.shape[i]!),
      lines: Uint32Array.from(order, (i) => from.lines[i]!),
      firstLine: Uint32Array.from(order, (i) => from.firstLine[i]!),
      lastLine: Uint32Array.from(order, (i) => from.lastLine[i]!),
      firstMs: Float64Array.from(order, (i) => from.firstMs[i]!),
      lastMs: Float64Array.from(order, (i) => from.lastMs[i]!),
    };
  }

  #keptLines(isPart: Uint8Array): KeptLine[] {
    const { cell, line, timeMs, text } = this.#kept.columns();
    const kept: KeptLine[] = [];
    for (let row = 0; row < text.length; row++) {
      const stream = this.#cells.streamOf(cell[row]!);
      const shape = this.#cells.shapeOf(cell[row]!);
      if (isPart[shape] === 1) continue;
      const file = this.#streams.file[stream]!;
      kept.push({ file, line: line[row]!, stream, shape, timeMs: timeMs[row]!, text: text[row]! });
    }
    return kept.sort((x, y) => x.file - y.file || x.line - y.line);
  }

  #missing(): string[] {
    return missingWords({
      lumped: this.#lumped,
      cells: this.#lostCells + this.#cells.dropped,
      isThinned: this.#isThinned || this.#kept.isThinned,
      blocks: this.#lostBlocks + this.#blocks.dropped,
      streams: this.#lostStreams,
      reports: this.#iterations.dropped,
    });
  }
}
