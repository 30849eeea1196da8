/** Adds up what was read of all files, in their order: the result is the same whichever worker read what and finished first. */
import type { KeptLine, LogCells, LogDigest, LogFile } from "../../model/log-digest.ts";
import { BlockList } from "./block-list.ts";
import { CellTable } from "./cell-table.ts";
import {
  foundGaps,
  MOST_GAPS,
  MOST_STREAMS,
  NO_RANK,
  StreamTable,
  type StreamColumns,
} from "./stream-table.ts";
import { IterationTable, iterationsOf } from "./iteration-table.ts";
import { KeptLines } from "./kept-lines.ts";
import type { FilePart, PartialDigest, LeftOut } from "./partial-digest.ts";
import { LEVELS, ShapeTable, type ShapeColumns } from "./shape-table.ts";
import { count, thousands } from "../../base/text.ts";

const LIMITS = {
  shapes: 400_000,
  cells: 4_000_000,
  kept: 400_000,
  keptChars: 100e6,
  blocks: 100_000,
  blockChars: 20e6,
  iterations: 4_000_000,
};
const SHAPE_CHARS = 100e6;
type MergeLimits = typeof LIMITS;

export function mergeDigests(
  names: readonly string[],
  digests: Iterable<PartialDigest>,
  limits: Partial<MergeLimits> = {},
): LogDigest {
  const merger = new DigestMerger(names, limits);
  for (const digest of digests) merger.add(digest);
  return merger.end();
}

class DigestMerger {
  readonly #limits: MergeLimits;
  readonly #names: readonly string[];
  readonly #parts: FilePart[] = [];
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
    this.#cells = new CellTable(this.#limits.cells);
    this.#kept = new KeptLines(this.#limits.kept, this.#limits.keptChars);
    this.#iterations = new IterationTable(this.#limits.iterations);
    this.#blocks = new BlockList(this.#limits.blocks, this.#limits.blockChars);
  }

  add(digest: PartialDigest): void {
    const { streams, cells, kept, blocks, left } = digest;
    const streamOf = this.#addStreams(streams);
    const shapeOf = this.#addShapes(digest.shapes);
    const cellOf = new Int32Array(cells.count);
    for (let cell = 0; cell < cells.count; cell++) {
      cellOf[cell] = this.#cells.merge(
        streamOf[cells.stream[cell]!]!,
        shapeOf[cells.shape[cell]!]!,
        cells.lines[cell]!,
        cells.firstLine[cell]!,
        cells.lastLine[cell]!,
        cells.firstMs[cell]!,
        cells.lastMs[cell]!,
      );
    }
    for (let row = 0; row < kept.text.length; row++) {
      const cell = cellOf[kept.cell[row]!]!;
      if (cell >= 0) this.#kept.add(cell, kept.line[row]!, kept.timeMs[row]!, kept.text[row]!);
    }
    for (const block of blocks) this.#blocks.add({ ...block, stream: streamOf[block.stream]! });
    this.#iterations.absorb(digest.iterations, streamOf, shapeOf);
    this.#parts.push(...digest.parts);
    this.#lumped += left.lumped;
    this.#lostCells += left.cells;
    this.#lostBlocks += left.blocks;
    this.#lostStreams += left.streams;
    this.#isThinned ||= left.isThinned;
  }

  end(): LogDigest {
    const isPart = this.#partShapes();
    const { shapes, streams } = this;
    return {
      files: this.#parts.map((part) => fileOf(this.#names[part.file]!, part)),
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

  #addStreams(from: StreamColumns): Int32Array {
    const streamOf = new Int32Array(from.count);
    const to = this.#streams;
    for (let i = 0; i < from.count; i++) {
      let stream = to.find(from.a[i]!, from.b[i]!);
      // Beyond so many, a file's further writers count as its first.
      if (stream < 0 && i > 0 && to.size >= MOST_STREAMS) {
        stream = streamOf[0]!;
        this.#lostStreams += from.lines[i]!;
      }
      if (stream < 0)
        stream = to.add(
          from.a[i]!,
          from.b[i]!,
          from.file[i]!,
          from.host[i]!,
          from.rank[i]!,
          from.writer[i]!,
        );
      streamOf[i] = stream;
      to.lines[stream]! += from.lines[i]!;
      if (from.stamped[i] === 0) continue;
      for (let g = i * MOST_GAPS; g < (i + 1) * MOST_GAPS; g++)
        if (from.gapMs[g]! > 0) to.gap(stream, from.gapMs[g]!, from.gapFrom[g]!);
      if (!(to.firstMs[stream]! <= from.firstMs[i]!)) to.firstMs[stream] = from.firstMs[i]!;
      to.lastMs[stream] = from.lastMs[i]!;
      to.lastLine[stream] = from.lastLine[i]!;
      to.stamped[stream]! += from.stamped[i]!;
    }
    return streamOf;
  }

  #addShapes(from: ShapeColumns): Int32Array {
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
        to.line[shape] = from.line[i]!;
        to.isTelling[shape] = from.isTelling[i]!;
      }
      to.lines[shape]! += from.lines[i]!;
      to.parts[shape]! += from.parts[i]!;
      shapeOf[from.id[i]!] = shape;
    }
    return shapeOf;
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

/** What is missing or wrong, in words. */
function fileOf(name: string, part: FilePart): LogFile {
  const { bytes, lines, cutLines, nulLines } = part;
  const defects: string[] = [];
  if (cutLines > 0)
    defects.push(
      `${count(cutLines, "line")} longer than 8 KB: the rest of these lines was not read`,
    );
  if (nulLines > 0) defects.push(`NUL bytes in ${count(nulLines, "place")}`);
  return { name, bytes, lines, defects };
}

function missingWords(left: LeftOut & { readonly reports: number }): string[] {
  const missing: string[] = [];
  if (left.lumped > 0)
    missing.push(
      `${count(left.lumped, "line")} came after too many different lines, and were grouped ` +
        "with lines that start alike",
    );
  if (left.cells > 0)
    missing.push(
      `the writers of ${count(left.cells, "line")} were not counted: too many writers and messages`,
    );
  if (left.isThinned)
    missing.push(
      "too many lines may indicate a failure to keep them all: fewer repetitions are kept",
    );
  if (left.blocks > 0)
    missing.push(
      `${count(left.blocks, "traceback or stack")} between the first and the last were left out`,
    );
  if (left.streams > 0)
    missing.push(
      `${count(left.streams, "line")} of writers after the first ${thousands(MOST_STREAMS)} were not separated by writer`,
    );
  if (left.reports > 0)
    missing.push(
      `${count(left.reports, "report")} of iterations between the first and the last were left out`,
    );
  return missing;
}
