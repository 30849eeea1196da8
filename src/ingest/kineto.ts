/**
 * Chrome traces of torch.profiler, one rank a file, written by Kineto (libkineto/src/output_json.cpp), of all its
 * releases since 2021, for NVIDIA and AMD. `{"schemaVersion": 1, "deviceProperties": […], "distributedInfo": {…},
 * "baseTimeNanoseconds": …, "traceEvents": […]}` in any order, or the bare list of events. Time since 1970 is
 * baseTimeNanoseconds + 1000 · ts; older releases have no base.
 *
 * Read as a stream: memory is what the kept columns take, whatever the size of the file.
 */
import { jsonOf } from "../base/json.ts";
import { count } from "../base/text.ts";
import type { Defect, Reading } from "../model/reading.ts";
import { operatorsOf } from "./kineto/operators.ts";
import { TraceCollector } from "./kineto/trace-collector.ts";
import { TraceHeader, parseRanks } from "./kineto/trace-header.ts";
import { TraceScanner, type TraceVisitor } from "./kineto/trace-scanner.ts";
import type { Head, Reader, Sink } from "./reader.ts";
import type { InputShape, RankKernels, TraceGroup } from "../model/kernels.ts";
import { linkTables } from "./kineto/link.ts";

const FORMAT = "kineto";

export const kineto: Reader = {
  format: FORMAT,
  sniff({ text }: Head): boolean {
    const start = /^(?:\u00ef\u00bb\u00bf)?\s*([{[])/.exec(text)?.[1];
    if (start === "[") {
      return (
        /"ph"\s*:/.test(text) &&
        /"cat"\s*:\s*"(?:cpu_op|kernel|cuda_runtime|cuda_driver|user_annotation|python_function)"/.test(
          text,
        )
      );
    }
    if (start !== "{") return false;
    if (/"traceEvents"\s*:\s*\[/.test(text)) return true;
    // The groups of a large job fill more than the head.
    return (
      /"distributedInfo"\s*:\s*\{/.test(text) ||
      (/"schemaVersion"\s*:/.test(text) && /"deviceProperties"\s*:/.test(text))
    );
  },
  open: (file) => kinetoSink(file),
};

/** What tests make small. */
export interface KinetoLimits {
  /** Events of a kind that are kept. */
  readonly rows?: number;
  readonly blockBytes?: number;
  readonly valueBytes?: number;
}

export function kinetoSink(file: string, limits: KinetoLimits = {}): Sink {
  const header = new TraceHeader();
  const collector = new TraceCollector(limits.rows);
  const visitor: TraceVisitor = {
    event: (bytes, from, end) => collector.event(bytes, from, end),
    wants: (key) => header.wants(key),
    value: (key, json) => header.value(key, json),
  };
  const scanner = new TraceScanner(visitor, limits.blockBytes, limits.valueBytes);
  return {
    push: (chunk) => scanner.push(chunk),
    end(): Reading {
      scanner.end();
      const rank = header.rank ?? rankOf(file) ?? rankOf(header.traceName);
      const defects = defectsOf(file, scanner, header, collector);
      const { events, known, pid } = collector;
      const refused = refusedRows(collector);
      const reading = { file, format: FORMAT, rank, records: events, defects };
      if (known === 0) return reading;
      const isCut = !scanner.isWhole || refused > 0;
      const trace = buildTrace(file, rank, header, collector, isCut);
      const operators = operatorsOf(trace, FORMAT, pid);
      return {
        ...reading,
        kernels: [trace],
        ...(operators ? { operators: [operators] } : {}),
        ...(header.worldSize > 0 ? { worldSize: header.worldSize } : {}),
      };
    },
  };
}

/**
 * The rank, where a name marks it, or its only number is small. torch's own names end in a process id and a time
 * ("host_1102.1712195495522.pt.trace.json"), so that the last number of a name is none.
 */
export function rankOf(path: string): number | null {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const marked = /rank[-_.]?(\d{1,6})(?!\d)/i.exec(name);
  if (marked) return Number(marked[1]);
  const only = /^\D*(\d{1,5})(?:\.pt)?(?:\.trace)?\.json$/.exec(name);
  return only ? Number(only[1]) : null;
}

function refusedRows({ tables }: TraceCollector): number {
  return Object.values(tables).reduce((sum, table) => sum + table.refused, 0);
}

function defectsOf(
  file: string,
  scanner: TraceScanner,
  header: TraceHeader,
  collector: TraceCollector,
): Defect[] {
  const defects: Defect[] = [];
  const say = (what: string): void => void defects.push({ file, what });
  const { events, known, timeless, tables } = collector;
  const kept = `kept ${count(events, "event")} before it`;
  if (scanner.isLost) say(`not valid JSON outside its events; ${kept}`);
  else if (!scanner.isWhole) say(`cut off after ${count(scanner.bytes, "byte")}; ${kept}`);
  if (scanner.badEvents > 0) {
    say(
      `${count(scanner.badEvents, "event")} cannot be read as JSON; the first begins at byte ${scanner.firstBadByte}`,
    );
  }
  if (scanner.tooLarge > 0) say(`${count(scanner.tooLarge, "value")} of more than 16 MB left out`);
  for (const key of header.unread) say(`its ${key} cannot be read`);
  if (timeless > 0) say(`${count(timeless, "event")} without a time left out`);
  const refused = refusedRows(collector);
  if (refused > 0) say(`${count(refused, "event")} left out: too many to hold`);
  if (known === 0) {
    say(
      events === 0
        ? "holds no events"
        : `none of its ${count(events, "event")} is of a kind that PyTorch's profiler writes`,
    );
  } else if (tables.gpu.count === 0) say("holds no GPU events: only the CPU was profiled");
  return defects;
}

/** The collected tables, linked, as the model wants them. */
function buildTrace(
  file: string,
  rank: number | null,
  header: TraceHeader,
  collector: TraceCollector,
  isCut: boolean,
): RankKernels {
  const { worldSize, backend, host, devices } = header;
  const epochUs = Number.isNaN(collector.epochUs) ? 0 : collector.epochUs;
  const linked = linkTables(collector.tables);
  return {
    file,
    rank,
    worldSize,
    backend,
    host,
    epochNs: header.baseNs + BigInt(Math.trunc(epochUs)) * 1000n,
    isCut,
    devices,
    names: collector.names.texts,
    ...linked,
    shapes: shapesOf(collector),
    groups: groupsOf(collector, header, linked.collectives),
  };
}

function shapesOf({ shapes, lists }: TraceCollector): InputShape[] {
  return shapes.tuples.map(([dims, types]) => ({
    dims: dimsOf(jsonOf(lists.texts[dims!] ?? "")),
    types: list(jsonOf(lists.texts[types!] ?? "")).map((type) =>
      typeof type === "string" ? type : "",
    ),
  }));
}

/** Lists of tensors nest one level deeper; they are laid out flat. */
function dimsOf(value: unknown): number[][] {
  return list(value).flatMap((dims) => {
    const sizes = list(dims);
    return sizes.some(Array.isArray) ? sizes.map(numbers) : [numbers(dims)];
  });
}

function numbers(value: unknown): number[] {
  return list(value).filter((size): size is number => typeof size === "number");
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function groupsOf(
  { groups, names, lists }: TraceCollector,
  header: TraceHeader,
  collectives: RankKernels["collectives"],
): TraceGroup[] {
  const sizes = new Int32Array(groups.tuples.length);
  for (let i = 0; i < collectives.count; i++) {
    const group = collectives.group[i]!;
    if (group >= 0) sizes[group] = collectives.groupSize[i]!;
  }
  return groups.tuples.map(([nameId, descId, ranksId], index) => {
    const name = names.texts[nameId!] ?? "";
    const known = header.groups.filter((group) => group.name === name);
    const desc = names.texts[descId!] ?? known[0]?.desc ?? "";
    const size = sizes[index]!;
    const isWorld = size > 0 && size === header.worldSize;
    const ranks =
      parseRanks(lists.texts[ranksId!] ?? "") ??
      (known.length === 1 ? known[0]!.ranks : null) ??
      (isWorld ? Array.from({ length: size }, (_, rank) => rank) : null);
    return { name: name === "" ? desc : name, desc, ranks };
  });
}
