/** A digest out of lines that are already taken apart, for tests and planted jobs: no reader needed. */
import { median } from "../../../src/maths/robust.ts";
import type {
  KeptLine,
  LogCells,
  LogDigest,
  LogGap,
  LogIterations,
  LogLevel,
  LogShape,
  LogStream,
} from "../../../src/model/log-digest.ts";

export interface TestLine {
  readonly file: string;
  readonly text: string;
  readonly host?: string;
  readonly rank?: number;
  readonly writer?: string;
  readonly timeMs?: number;
  /** Where the line reports an iteration. */
  readonly iteration?: number;
  readonly level?: LogLevel;
}

export interface Templates {
  readonly of: Int32Array;
  readonly texts: readonly string[];
}

const DIGITS = /\d+/g;
const HEX = /0x[0-9a-f]+/gi;
const TELLING =
  /error|fail|fatal|exception|abort|kill|timeout|timed out|warn|lost|unable|cannot|not responding|xid|refused|connection reset|closed|link down|NCCL version|panic|corrupt|unhealthy|denied|stale|out of memory|signal|bus error|off the bus|nfs: server|connection restored/i;
const PART = /^\s*(?:File ".*", line \d+|frame #\d+|\^+$| {4,}\S)/;

export function testShape(text: string): string {
  return text.replace(HEX, "0").replace(DIGITS, "0");
}

/** Every shape its own template. */
export function identityTemplates({ shapes }: LogDigest): Templates {
  return {
    of: Int32Array.from(shapes, (_, shape) => shape),
    texts: shapes.map(({ text }) => testShape(text)),
  };
}

interface Growing<T> {
  readonly index: Map<string, number>;
  readonly items: T[];
}

interface Cell {
  readonly stream: number;
  readonly shape: number;
  lines: number;
  firstLine: number;
  lastLine: number;
  firstMs: number;
  lastMs: number;
}

export function digestOf(lines: Iterable<TestLine>): LogDigest {
  const files: Growing<{ name: string; bytes: number; lines: number }> = fresh();
  const streams: Growing<Writing> = fresh();
  const shapes: Growing<{ -readonly [K in keyof LogShape]: LogShape[K] }> = fresh();
  const cells = new Map<number, Cell>();
  const kept = new Map<number, { first: KeptLine; last: KeptLine | null }>();
  const order: { file: number; stream: number; shape: number; iteration: number }[] = [];
  for (const { file: name, text, host, rank, writer, timeMs = NaN, iteration, level } of lines) {
    const file = indexIn(files, name, () => ({ name, bytes: 0, lines: 0 }));
    const ofFile = files.items[file]!;
    ofFile.bytes += text.length + 1;
    const line = ++ofFile.lines;
    const stream = indexIn(streams, `${file}|${host ?? ""}|${rank ?? ""}|${writer ?? ""}`, () =>
      newStream(file, host, rank, writer),
    );
    write(streams.items[stream]!, line, timeMs, iteration);
    const shape = indexIn(shapes, testShape(text), () => ({
      text,
      level: level ?? levelOf(text),
      file,
      line,
      count: 0,
      isTelling: TELLING.test(text),
      isPart: PART.test(text),
    }));
    const ofShape = shapes.items[shape]!;
    ofShape.count++;
    const key = stream * 2 ** 24 + shape;
    addToCell(cells, key, stream, shape, line, timeMs);
    if (ofShape.isTelling && !ofShape.isPart) {
      const one = { file, line, stream, shape, timeMs, text };
      const known = kept.get(key);
      if (known) known.last = one;
      else kept.set(key, { first: one, last: null });
    }
    order.push({ file, stream, shape, iteration: iteration ?? NaN });
  }
  const sequences = sequencesOf(order, streams.items);
  return {
    files: files.items.map((file) => ({ ...file, defects: [] })),
    streams: streams.items.map(({ of }) => of),
    shapes: shapes.items,
    cells: columns([...cells].sort((a, b) => a[0] - b[0]).map(([, cell]) => cell)),
    kept: [...kept.values()]
      .flatMap(({ first, last }) => (last ? [first, last] : [first]))
      .sort((a, b) => a.file - b.file || a.line - b.line),
    blocks: [],
    ...sequences,
    gaps: gapsOf(streams.items),
    missing: [],
  };
}

interface Writing {
  readonly of: { -readonly [K in keyof LogStream]: LogStream[K] };
  readonly times: number[];
  readonly marks: { iteration: number; line: number; timeMs: number; sequence: number }[];
}

function newStream(file: number, host?: string, rank?: number, writer = ""): Writing {
  const of = {
    file,
    host: host ?? null,
    rank: rank ?? null,
    writer,
    lines: 0,
    firstMs: NaN,
    lastMs: NaN,
  };
  return { of, times: [], marks: [] };
}

function write(stream: Writing, line: number, timeMs: number, iteration?: number): void {
  const { of, times, marks } = stream;
  of.lines++;
  if (!Number.isNaN(timeMs)) {
    if (Number.isNaN(of.firstMs)) of.firstMs = timeMs;
    of.lastMs = timeMs;
    times.push(timeMs);
  }
  if (iteration !== undefined) marks.push({ iteration, line, timeMs, sequence: -1 });
}

function addToCell(
  cells: Map<number, Cell>,
  key: number,
  stream: number,
  shape: number,
  line: number,
  timeMs: number,
): void {
  const cell = cells.get(key);
  if (!cell) {
    const place = { firstLine: line, lastLine: line, firstMs: timeMs, lastMs: timeMs };
    cells.set(key, { stream, shape, lines: 1, ...place });
    return;
  }
  cell.lines++;
  cell.lastLine = line;
  if (Number.isNaN(cell.firstMs)) cell.firstMs = timeMs;
  if (!Number.isNaN(timeMs)) cell.lastMs = timeMs;
}

function levelOf(text: string): LogLevel | null {
  const found = /\b(FATAL|CRITICAL|ERROR|WARN(?:ING)?|INFO|DEBUG)\b/.exec(text);
  if (!found) return null;
  const word = found[1]!;
  if (word === "FATAL" || word === "CRITICAL") return "fatal";
  if (word === "ERROR") return "error";
  if (word.startsWith("WARN")) return "warning";
  return word === "INFO" ? "info" : "debug";
}

/** Between two reports stand all lines of the file where one writer alone reports, else the writer's own. */
function sequencesOf(
  order: readonly { file: number; stream: number; shape: number; iteration: number }[],
  streams: readonly Writing[],
): Pick<LogDigest, "iterations" | "sequences"> {
  const reporters = new Map<number, number>();
  streams.forEach(({ of, marks }, stream) => {
    if (marks.length > 0) reporters.set(of.file, reporters.has(of.file) ? -1 : stream);
  });
  const distinct: Growing<Int32Array> = fresh();
  const open = new Map<number, { shapes: number[]; mark: number }>();
  const close = (stream: number): void => {
    const one = open.get(stream);
    if (!one) return;
    const sequence = indexIn(distinct, one.shapes.join(), () => Int32Array.from(one.shapes));
    streams[stream]!.marks[one.mark]!.sequence = sequence;
  };
  for (const { file, stream, shape, iteration } of order) {
    if (!Number.isNaN(iteration)) {
      const mark = (open.get(stream)?.mark ?? -1) + 1;
      close(stream);
      open.set(stream, { shapes: [], mark });
    }
    const reporter = reporters.get(file) ?? -1;
    const shapes = open.get(reporter >= 0 ? reporter : stream)?.shapes;
    if (shapes && shapes.at(-1) !== shape) shapes.push(shape);
  }
  for (const stream of open.keys()) close(stream);
  const iterations: LogIterations[] = [];
  streams.forEach(({ marks }, stream) => {
    if (marks.length === 0) return;
    iterations.push({
      stream,
      iteration: Float64Array.from(marks, (mark) => mark.iteration),
      line: Uint32Array.from(marks, ({ line }) => line),
      timeMs: Float64Array.from(marks, ({ timeMs }) => timeMs),
      sequence: Int32Array.from(marks, ({ sequence }) => sequence),
    });
  });
  return { iterations, sequences: distinct.items };
}

const GAP_FACTOR = 10;

function gapsOf(streams: readonly Writing[]): LogGap[] {
  const gaps: LogGap[] = [];
  streams.forEach(({ times }, stream) => {
    if (times.length < 5) return;
    const steps = times.slice(1).map((time, i) => time - times[i]!);
    let longest = 0;
    steps.forEach((step, i) => {
      if (step > steps[longest]!) longest = i;
    });
    if (steps[longest]! <= GAP_FACTOR * Math.max(1, median(steps))) return;
    gaps.push({
      stream,
      fromMs: times[longest]!,
      toMs: times[longest + 1]!,
    });
  });
  return gaps;
}

function columns(cells: readonly Cell[]): LogCells {
  return {
    count: cells.length,
    stream: Int32Array.from(cells, ({ stream }) => stream),
    shape: Int32Array.from(cells, ({ shape }) => shape),
    lines: Uint32Array.from(cells, ({ lines }) => lines),
    firstLine: Uint32Array.from(cells, ({ firstLine }) => firstLine),
    lastLine: Uint32Array.from(cells, ({ lastLine }) => lastLine),
    firstMs: Float64Array.from(cells, ({ firstMs }) => firstMs),
    lastMs: Float64Array.from(cells, ({ lastMs }) => lastMs),
  };
}

function fresh<T>(): Growing<T> {
  return { index: new Map(), items: [] };
}

function indexIn<T>({ index, items }: Growing<T>, key: string, make: () => T): number {
  const known = index.get(key);
  if (known !== undefined) return known;
  items.push(make());
  index.set(key, items.length - 1);
  return items.length - 1;
}
