/**
 * Collects one rank's dump into columns, whichever of the two encodings (pickle, JSON) it came in.
 * Field names and their meaning: pytorch, torch/csrc/distributed/c10d/FlightRecorderDetail.hpp.
 */
import { getOrInsert } from "../../base/group-by.ts";
import { MAX_RANKS } from "../../model/ids.ts";
import type { DumpGroup, FlightDump, Frame, OperatorTable } from "../../model/operators.ts";
import { COMPLETED, SCHEDULED, STARTED } from "../../model/operators.ts";
import { allocateColumns, pickRows, type Columns } from "../operator-columns.ts";
import { settleEntries, type NameFacts } from "./entry-states.ts";

/** One entry on its way into the columns; the same object is used for every entry. */
export interface RawEntry {
  recordId: number;
  pgId: number;
  groupName: string;
  groupDesc: string;
  seq: number;
  p2pSeq: number;
  profilingName: string;
  state: string;
  retired: boolean;
  isP2p: boolean;
  createdNs: number;
  startedNs: number;
  completedNs: number;
  durationMs: number;
  inputNumel: number;
  outputNumel: number;
  dtype: string;
  timeoutMs: number;
}

export function emptyEntry(): RawEntry {
  return {
    recordId: -1,
    pgId: -1,
    groupName: "",
    groupDesc: "",
    seq: 0,
    p2pSeq: 0,
    profilingName: "",
    state: "",
    retired: false,
    isP2p: false,
    createdNs: NaN,
    startedNs: NaN,
    completedNs: NaN,
    durationMs: NaN,
    inputNumel: NaN,
    outputNumel: NaN,
    dtype: "",
    timeoutMs: 0,
  };
}

export function clearEntry(entry: RawEntry): void {
  entry.recordId = -1;
  entry.pgId = -1;
  entry.groupName = "";
  entry.groupDesc = "";
  entry.seq = 0;
  entry.p2pSeq = 0;
  entry.profilingName = "";
  entry.state = "";
  entry.retired = false;
  entry.isP2p = false;
  entry.createdNs = NaN;
  entry.startedNs = NaN;
  entry.completedNs = NaN;
  entry.durationMs = NaN;
  entry.inputNumel = NaN;
  entry.outputNumel = NaN;
  entry.dtype = "";
  entry.timeoutMs = 0;
}

interface GroupDraft {
  name: string;
  desc: string;
  ranks: readonly number[] | null;
  localId: number;
}

export class DumpBuilder {
  version = "";
  epochNs = 0n;
  isCut = false;
  #timeoutMs = 0;
  /** First and last time that only the writing of the dump can have seen. */
  #takenFromNs = Infinity;
  #takenNs = -Infinity;
  #hasRetired = false;
  readonly #groups: GroupDraft[] = [];
  readonly #parsedRanks = new Map<string, readonly number[] | null>();
  readonly #groupByName = new Map<string, number>();
  readonly #status = new Map<number, { enqueued: number; started: number; completed: number }>();
  /** Profiling name as the dump has it → operator name without the library's prefix. */
  readonly #profilingNames = new Map<string, number>();
  readonly #names = new Map<string, number>();
  readonly #dtypes = new Map<string, number>();
  readonly #table: Columns;
  /** By name. */
  readonly #facts: (NameFacts & { readonly text: string })[] = [];
  #count = 0;

  constructor(capacity: number) {
    this.#table = allocateColumns(capacity);
  }

  config(name: string, desc: string, ranks: string): void {
    const draft = this.#groups[this.#group(name, desc)]!;
    draft.desc = desc;
    draft.ranks = this.#parseRanks(ranks);
  }

  /** A string such as "[0, 1]", often the same for many groups; anything else leaves members unknown. */
  #parseRanks(text: string): readonly number[] | null {
    const known = this.#parsedRanks.get(text);
    if (known !== undefined) return known;
    const digits = /^\s*\[[\d,\s]*\]\s*$/.test(text) ? (text.match(/\d+/g) ?? []) : null;
    const ranks = digits?.map(Number) ?? null;
    const parsed = ranks?.every((rank) => rank < MAX_RANKS) ? ranks : null;
    this.#parsedRanks.set(text, parsed);
    return parsed;
  }

  status(pgId: number, enqueued: number, started: number, completed: number): void {
    this.#status.set(pgId, { enqueued, started, completed });
  }

  add(raw: RawEntry): void {
    if (raw.timeoutMs > this.#timeoutMs) this.#timeoutMs = raw.timeoutMs;
    this.#noteTaken(raw);
    const t = this.#table;
    const i = this.#count++;
    const group = this.#group(raw.groupName, raw.groupDesc);
    if (raw.pgId >= 0) this.#groups[group]!.localId = raw.pgId;
    const name = this.#name(raw.profilingName);
    const p2p = this.#facts[name]!;
    t.group[i] = group;
    t.name[i] = name;
    t.seq[i] = raw.seq;
    t.p2pSeq[i] = raw.p2pSeq;
    t.recordId[i] = raw.recordId;
    t.state[i] = stateOf(raw);
    t.isP2p[i] = raw.isP2p ? 1 : 0;
    t.peer[i] = raw.isP2p ? p2p.peer : -1;
    t.isSend[i] = p2p.isSend;
    t.createdNs[i] = raw.createdNs;
    t.startedNs[i] = raw.startedNs;
    t.completedNs[i] = raw.completedNs;
    t.durationMs[i] = raw.durationMs;
    t.inputNumel[i] = raw.inputNumel;
    t.outputNumel[i] = raw.outputNumel;
    t.dtype[i] = raw.dtype === "" ? -1 : intern(this.#dtypes, raw.dtype);
  }

  /**
   * Until its watchdog lets go of an operator, nobody asks whether it started or ended but the dump itself: such a time
   * is when the dump was taken, and no time of the operator's.
   */
  #noteTaken({ retired, startedNs, completedNs }: RawEntry): void {
    if (retired) this.#hasRetired = true;
    else {
      const seenNs = Number.isNaN(completedNs) ? startedNs : completedNs;
      if (seenNs > this.#takenNs) this.#takenNs = seenNs;
      if (seenNs < this.#takenFromNs) this.#takenFromNs = seenNs;
    }
  }

  /** undefined where the dump does not tell: a writer that lets go of nothing, not PyTorch's own, says nothing by it. */
  #taken(): number | undefined {
    if (!this.#hasRetired || this.#takenNs === -Infinity) return undefined;
    const { completedNs } = this.#table;
    for (let i = 0; i < this.#count; i++)
      if (completedNs[i]! >= this.#takenFromNs) completedNs[i] = NaN;
    return this.#takenNs;
  }

  /** `framesOf` reads the stack of an entry, by its place among those added; it is asked for few of them. */
  build(file: string, framesOf: (entry: number) => readonly Frame[] | null): FlightDump {
    this.#mapLocalIds();
    const takenNs = this.#taken();
    const groups: DumpGroup[] = this.#groups.map((draft) => {
      const status = this.#status.get(draft.localId);
      return {
        name: draft.name,
        desc: draft.desc,
        ranks: draft.ranks,
        enqueued: status?.enqueued ?? -1,
        started: status?.started ?? -1,
        completed: status?.completed ?? -1,
      };
    });
    const { rows, unknownEnds, onlyActive } = settleEntries(
      this.#table,
      this.#count,
      this.#facts,
      groups,
      (part, closing) => this.#coalescedName(this.#table.name[part]!, this.#table.name[closing]!),
    );
    const ops: OperatorTable = {
      ...pickRows(this.#table, rows),
      count: rows.length,
      names: this.#facts.map(({ text }) => text),
      dtypes: [...this.#dtypes.keys()],
    };
    const frames = new Map<number, readonly Frame[]>();
    for (const row of wantsFrames(ops)) {
      const stack = framesOf(rows[row]!);
      if (stack) frames.set(row, stack);
    }
    return {
      file,
      version: this.version,
      groups,
      ops,
      epochNs: this.epochNs,
      timing: hasTiming(groups, ops),
      timeoutMs: this.#timeoutMs,
      isCut: this.isCut,
      unknownEnds,
      onlyActive,
      ...(takenNs === undefined ? {} : { takenNs }),
      frames,
    };
  }

  #group(name: string, desc: string): number {
    const known = this.#groupByName.get(name);
    if (known !== undefined) {
      // A device mesh describes its groups after their configuration was recorded: entries know better.
      if (desc !== "" && this.#groups[known]!.desc === "") this.#groups[known]!.desc = desc;
      return known;
    }
    this.#groupByName.set(name, this.#groups.length);
    this.#groups.push({ name, desc, ranks: null, localId: -1 });
    return this.#groups.length - 1;
  }

  #name(profilingName: string): number {
    const known = this.#profilingNames.get(profilingName);
    if (known !== undefined) return known;
    // "nccl:all_reduce", "xccl:…", "gloo:…": the library's prefix says nothing here.
    const name = profilingName.replace(/^[a-z0-9_]+:/i, "");
    const id = intern(this.#names, name);
    this.#profilingNames.set(profilingName, id);
    if (id === this.#facts.length) {
      const p2p = /^(send|recv)\S*\s+\d+\s*(?:->|<-)\s*(\d+)/.exec(name);
      this.#facts.push({
        text: name,
        peer: p2p ? Number(p2p[2]) : -1,
        isSend: p2p?.[1] === "send" ? 1 : 0,
        closes: name.endsWith("coalesced"),
      });
    }
    return id;
  }

  /** "coalesced" alone does not say what was called; "ALLGATHER_coalesced" does. */
  #coalescedName(part: number, closing: number): number {
    if (this.#facts[closing]!.text !== "coalesced") return closing;
    return this.#name(`${this.#facts[part]!.text}_coalesced`);
  }

  /**
   * pg_status is keyed by a number that is local to the process. Entries tell which group it is; for
   * groups without entries, numbers and numeric names rise together (both count the groups in order
   * of creation), so the sorted lists correspond if they are of one length and agree with the entries.
   */
  #mapLocalIds(): void {
    const ids = [...this.#status.keys()].sort((a, b) => a - b);
    const named = this.#groups.filter((group) => /^\d+$/.test(group.name));
    if (named.length !== this.#groups.length || ids.length !== named.length) return;
    const sorted = [...named].sort((a, b) => Number(a.name) - Number(b.name));
    const agrees = sorted.every((group, i) => group.localId < 0 || group.localId === ids[i]);
    if (!agrees) return;
    for (const [i, group] of sorted.entries()) group.localId = ids[i]!;
  }
}

const PENDING_FRAMES = 64;
const LAST_FRAMES = 128;

/** Which operators' stacks a report may want: the uncompleted ones first issued, and the last ones. */
function wantsFrames({ count, state }: OperatorTable): number[] {
  const wanted: number[] = [];
  for (let i = 0, pending = 0; i < count; i++) {
    if (i >= count - LAST_FRAMES) wanted.push(i);
    else if (state[i] !== COMPLETED && pending++ < PENDING_FRAMES) wanted.push(i);
  }
  return wanted;
}

function stateOf({ state, retired, profilingName }: RawEntry): number {
  if (state === "completed") return COMPLETED;
  if (state === "started") return STARTED;
  // Gloo has no events: it only lets go of what has ended. NCCL's watchdog also lets go of what timed out.
  return retired && profilingName.startsWith("gloo:") ? COMPLETED : SCHEDULED;
}

function hasTiming(groups: readonly DumpGroup[], ops: OperatorTable): boolean {
  if (groups.some((group) => group.started >= 0)) return true;
  for (let i = 0; i < ops.count; i++) {
    if (ops.state[i] === STARTED || ops.startedNs[i]! > 0) return true;
  }
  return false;
}

function intern(table: Map<string, number>, text: string): number {
  const id = getOrInsert(table, text, () => table.size);
  return id;
}
