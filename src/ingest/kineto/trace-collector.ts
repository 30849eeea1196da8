/** Sorts events into the trace's tables as they come, and leaves out what nobody needs. */
import * as Kernels from "../../model/kernels.ts";
import { EventFields, type Span } from "./event-fields.ts";
import * as Kind from "./event-kinds.ts";
import { InternedTexts } from "./interned-texts.ts";
import { traceTables } from "./trace-tables.ts";

interface Branch extends Map<number, Branch | number> {}

const COMPLETE_EVENT = 88; // "X"
const MAX_GROUPS = 1 << 16;
const MAX_SHAPES = 1 << 16;

export class TraceCollector {
  readonly tables;
  readonly names = new InternedTexts();
  /** Sizes and types of inputs, lists of members: texts that are no names. */
  readonly lists = new InternedTexts();
  /** Name, description, and members (in `lists`); -1 for what is missing. */
  readonly groups = new NumberedTuples(MAX_GROUPS);
  /** Sizes and types, both in `lists`. */
  readonly shapes = new NumberedTuples(MAX_SHAPES);
  events = 0;
  /** Events of a kind that a profiler of PyTorch writes. */
  known = 0;
  /** Events of use without a time. */
  timeless = 0;
  /** Microseconds, as the trace counts, that the tables' times are relative to; NaN before the first event. */
  epochUs = NaN;
  /** The first process that called the runtime. */
  pid: number | null = null;

  readonly #fields = new EventFields();
  readonly #categories: number[] = [];
  readonly #callKinds: number[] = [];
  readonly #kernelKinds: number[] = [];
  readonly #hostNames: number[] = [];
  #bytes: Uint8Array = new Uint8Array(0);

  constructor(mostRows?: number) {
    this.tables = traceTables(mostRows);
  }

  event(bytes: Uint8Array, from: number, end: number): number {
    const fields = this.#fields;
    const behind = fields.read(bytes, from, end);
    if (behind < 0) return behind;
    this.events++;
    if (fields.phase !== COMPLETE_EVENT || fields.cat.length < 0) return behind;
    this.#bytes = bytes;
    const category = this.#of(this.#categories, this.#name(fields.cat), Kind.categoryOf);
    if (category === Kind.IGNORED) return behind;
    this.known++;
    if (!Number.isFinite(fields.tsUs)) {
      this.timeless++;
      return behind;
    }
    if (Number.isNaN(this.epochUs)) this.epochUs = fields.tsUs;
    const name = this.#name(fields.name);
    if (category >= Kind.KERNEL && category <= Kind.MEMSET) this.#gpu(category, name);
    else if (category === Kind.RUNTIME) this.#call(name);
    else this.#host(category, name);
    return behind;
  }

  /** Exact: both differences are small against what doubles hold. */
  get #startNs(): number {
    return (this.#fields.tsUs - this.epochUs) * 1000 + this.#fields.tsRestNs;
  }

  get #durNs(): number {
    const { durNs } = this.#fields;
    return durNs > 0 ? durNs : 0;
  }

  #gpu(category: number, name: number): void {
    const fields = this.#fields;
    const row = this.tables.gpu.add();
    if (row < 0) return;
    const c = this.tables.gpu.columns;
    let kind: number = category === Kind.MEMCPY ? Kernels.MEMCPY : Kernels.MEMSET;
    if (category === Kind.KERNEL) kind = this.#of(this.#kernelKinds, name, Kind.kernelKind);
    const says = category === Kind.KERNEL && fields.collective.length >= 0;
    if (says) kind = Kernels.COMMUNICATION;
    c.startNs[row] = this.#startNs;
    c.durNs[row] = this.#durNs;
    c.name[row] = name;
    c.kind[row] = kind;
    // In a GPU event, pid is the device and tid the stream.
    c.device[row] = whole(fields.device, whole(fields.pid, -1));
    c.stream[row] = whole(fields.stream, whole(fields.tid, -1));
    c.correlation[row] = fields.correlation;
    c.externalId[row] = fields.externalId;
    c.collective[row] = says ? this.#collective() : -1;
  }

  #collective(): number {
    const fields = this.#fields;
    const row = this.tables.collectives.add();
    if (row < 0) return -1;
    const c = this.tables.collectives.columns;
    const { groupName, groupDesc, groupRanks } = fields;
    const hasGroup = groupName.length >= 0 || groupRanks.length >= 0;
    c.operation[row] = this.#name(fields.collective);
    c.group[row] = hasGroup
      ? this.groups.number(this.#name(groupName), this.#name(groupDesc), this.#list(groupRanks))
      : -1;
    c.inputNumel[row] = fields.inputNumel;
    c.outputNumel[row] = fields.outputNumel;
    c.dtype[row] = this.#name(fields.dtype);
    c.groupSize[row] = whole(fields.groupSize, 0);
    c.seq[row] = fields.seq;
    c.peer[row] = whole(fields.dstRank, whole(fields.srcRank, -1));
    return row;
  }

  #call(name: number): void {
    const fields = this.#fields;
    const kind = this.#of(this.#callKinds, name, Kind.callKind);
    if (kind === Kernels.OTHER_CALL && !(this.#durNs >= Kernels.LONG_CALL_NS)) return;
    const row = this.tables.calls.add();
    if (row < 0) return;
    if (this.pid === null && fields.pid > 0) this.pid = fields.pid;
    const c = this.tables.calls.columns;
    c.startNs[row] = this.#startNs;
    c.durNs[row] = this.#durNs;
    c.name[row] = name;
    c.kind[row] = kind;
    c.thread[row] = whole(fields.tid, -1);
    c.correlation[row] = fields.correlation;
  }

  #host(category: number, name: number): void {
    const what = this.#of(this.#hostNames, name, Kind.hostName);
    if (what === Kind.STEP) this.#step(name);
    else if (what === Kind.MATRIX && category === Kind.CPU_OP) this.#matrixOp(name);
    else if (what === Kind.LOADER) this.#hostRow(name, Kernels.DATA_LOADER);
    else if (what === Kind.GC) this.#hostRow(name, Kernels.GARBAGE_COLLECTION);
    else if (what === Kind.SYNC) this.#hostRow(name, Kernels.HOST_SYNCHRONIZE);
    else if (category === Kind.ANNOTATION) this.#hostRow(name, Kernels.ANNOTATION);
    else if (category === Kind.PYTHON) {
      if (this.#durNs >= Kernels.LONG_CALL_NS) this.#hostRow(name, Kernels.PYTHON_FUNCTION);
    }
  }

  #step(name: number): void {
    const row = this.tables.steps.add();
    if (row < 0) return;
    const c = this.tables.steps.columns;
    c.number[row] = Kind.stepNumber(this.names.texts[name]!);
    c.startNs[row] = this.#startNs;
    c.durNs[row] = this.#durNs;
  }

  #matrixOp(name: number): void {
    const row = this.tables.matrixOps.add();
    if (row < 0) return;
    const c = this.tables.matrixOps.columns;
    const { inputDims, inputType, tid, externalId } = this.#fields;
    c.startNs[row] = this.#startNs;
    c.durNs[row] = this.#durNs;
    c.name[row] = name;
    c.thread[row] = whole(tid, -1);
    c.externalId[row] = externalId;
    c.shape[row] =
      inputDims.length < 0
        ? -1
        : this.shapes.number(this.#list(inputDims), this.#list(inputType), 0);
  }

  #hostRow(name: number, kind: number): void {
    const row = this.tables.host.add();
    if (row < 0) return;
    const c = this.tables.host.columns;
    c.startNs[row] = this.#startNs;
    c.durNs[row] = this.#durNs;
    c.name[row] = name;
    c.kind[row] = kind;
    c.thread[row] = whole(this.#fields.tid, -1);
  }

  #name({ at, length }: Span): number {
    return length < 0 ? -1 : this.names.intern(this.#bytes, at, length);
  }

  #list({ at, length }: Span): number {
    return length < 0 ? -1 : this.lists.intern(this.#bytes, at, length);
  }

  /** What a text means, asked once for each. */
  #of(known: number[], text: number, ask: (text: string) => number): number {
    if (text < 0) return ask("");
    let answer = known[text];
    if (answer === undefined) {
      // No holes: an array with holes is slow for ever.
      while (known.length < text) known.push(ask(this.names.texts[known.length]!));
      answer = known[text] = ask(this.names.texts[text]!);
    }
    return answer;
  }
}

function whole(value: number, otherwise: number): number {
  return Number.isFinite(value) ? value : otherwise;
}

/** Numbers for tuples of numbers: process groups (name, description, members), shapes (sizes, types). */
class NumberedTuples {
  readonly tuples: (readonly number[])[] = [];
  readonly #most: number;
  readonly #root: Branch = new Map();

  constructor(most: number) {
    this.#most = most;
  }

  /** -1 where there are too many already. */
  number(first: number, second: number, third: number): number {
    const seconds = branch(this.#root, first);
    const thirds = branch(seconds, second);
    const known = thirds.get(third);
    if (known !== undefined) return known as number;
    if (this.tuples.length >= this.#most) return -1;
    thirds.set(third, this.tuples.length);
    return this.tuples.push([first, second, third]) - 1;
  }
}

function branch(from: Branch, key: number): Branch {
  let next = from.get(key) as Branch | undefined;
  if (!next) {
    next = new Map();
    from.set(key, next);
  }
  return next;
}
