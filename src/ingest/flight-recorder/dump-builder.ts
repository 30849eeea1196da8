/**
 * Collects one rank's dump into columns, whichever of the two encodings (pickle, JSON) it came in.
 * Field names and their meaning: pytorch, torch/csrc/distributed/c10d/FlightRecorderDetail.hpp.
 */
import { MAX_RANKS } from "../../model/ids.ts";
import type { DumpGroup, FlightDump, Frame, OperatorTable } from "../../model/operators.ts";
import { COMPLETED, SCHEDULED, STARTED } from "../../model/operators.ts";

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
  library = "";
  epochNs = 0n;
  isCut = false;
  #timeoutMs = 0;
  readonly #groups: GroupDraft[] = [];
  readonly #parsedRanks = new Map<string, readonly number[] | null>();
  readonly #groupByName = new Map<string, number>();
  readonly #status = new Map<number, { enqueued: number; started: number; completed: number }>();
  /** Profiling name as the dump has it → operator name without the library's prefix. */
  readonly #profilingNames = new Map<string, number>();
  readonly #names = new Map<string, number>();
  readonly #dtypes = new Map<string, number>();
  readonly #table: ReturnType<typeof allocate>;
  readonly #operators: { peer: number; isSend: number; coalesced: boolean }[] = [];
  #count = 0;

  constructor(capacity: number) {
    this.#table = allocate(capacity);
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
    const t = this.#table;
    const i = this.#count++;
    const group = this.#group(raw.groupName, raw.groupDesc);
    if (raw.pgId >= 0) this.#groups[group]!.localId = raw.pgId;
    const name = this.#name(raw.profilingName);
    const p2p = this.#operators[name]!;
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

  /** Which entries' stacks a report may want: the uncompleted ones first issued, and the last ones. */
  wantsFrames(): number[] {
    const { state } = this.#table;
    const wanted: number[] = [];
    for (let i = 0, pending = 0; i < this.#count; i++) {
      if (i >= this.#count - LAST_FRAMES) wanted.push(i);
      else if (state[i] !== COMPLETED && pending++ < PENDING_FRAMES) wanted.push(i);
    }
    return wanted;
  }

  build(file: string, frames: ReadonlyMap<number, readonly Frame[]>): FlightDump {
    this.#mapLocalIds();
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
    this.#settleStates(groups);
    const ops: OperatorTable = {
      ...cut(this.#table, this.#count),
      count: this.#count,
      names: [...this.#names.keys()],
      dtypes: [...this.#dtypes.keys()],
    };
    return {
      file,
      version: this.version,
      library: this.library,
      groups,
      ops,
      epochNs: this.epochNs,
      timing: hasTiming(groups, ops),
      timeoutMs: this.#timeoutMs,
      isCut: this.isCut,
      frames,
    };
  }

  #group(name: string, desc: string): number {
    const known = this.#groupByName.get(name);
    if (known !== undefined) return known;
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
    if (id === this.#operators.length) {
      const p2p = /^(send|recv)\S*\s+\d+\s*(?:->|<-)\s*(\d+)/.exec(name);
      this.#operators.push({
        peer: p2p ? Number(p2p[2]) : -1,
        isSend: p2p?.[1] === "send" ? 1 : 0,
        coalesced: /coalesced/.test(name),
      });
    }
    return id;
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

  /**
   * Two producers leave states behind: the parts of a coalesced operator are recorded without events,
   * so only the closing "coalesced" record moves; and Gloo never moves them, so the counter decides.
   */
  #settleStates(groups: readonly DumpGroup[]): void {
    const t = this.#table;
    const coalesced = new Map<string, number>();
    const mixed = new Uint8Array(groups.length);
    for (let i = 0; i < this.#count; i++) {
      if (t.isP2p[i]) mixed[t.group[i]!] = 1;
      if (this.#operators[t.name[i]!]!.coalesced)
        coalesced.set(this.#coalescingKey(i), t.state[i]!);
    }
    for (let i = 0; i < this.#count; i++) {
      if (t.state[i] === COMPLETED) continue;
      const group = t.group[i]!;
      const whole = coalesced.size > 0 ? coalesced.get(this.#coalescingKey(i)) : undefined;
      if (whole !== undefined) t.state[i] = whole;
      // A group that carries P2P counts both kinds in one number: no use.
      else if (!mixed[group] && t.seq[i]! <= groups[group]!.completed) t.state[i] = COMPLETED;
    }
  }

  #coalescingKey(i: number): string {
    const t = this.#table;
    return `${t.group[i]}/${t.isP2p[i] ? `p${t.p2pSeq[i]}` : t.seq[i]}`;
  }
}

const PENDING_FRAMES = 64;
const LAST_FRAMES = 128;

function stateOf(raw: RawEntry): number {
  if (raw.state === "completed") return COMPLETED;
  if (raw.state === "started") return STARTED;
  // Retired means that the watchdog has let go of it.
  return raw.retired ? COMPLETED : SCHEDULED;
}

function hasTiming(groups: readonly DumpGroup[], ops: OperatorTable): boolean {
  if (groups.some((group) => group.started >= 0)) return true;
  for (let i = 0; i < ops.count; i++) {
    if (ops.state[i] === STARTED || ops.startedNs[i]! > 0) return true;
  }
  return false;
}

function intern(table: Map<string, number>, text: string): number {
  let id = table.get(text);
  if (id === undefined) {
    id = table.size;
    table.set(text, id);
  }
  return id;
}

function allocate(n: number) {
  return {
    group: new Int32Array(n),
    name: new Int32Array(n),
    seq: new Int32Array(n),
    p2pSeq: new Int32Array(n),
    recordId: new Float64Array(n),
    state: new Uint8Array(n),
    isP2p: new Uint8Array(n),
    peer: new Int32Array(n),
    isSend: new Uint8Array(n),
    createdNs: new Float64Array(n),
    startedNs: new Float64Array(n),
    completedNs: new Float64Array(n),
    durationMs: new Float32Array(n),
    inputNumel: new Float64Array(n),
    outputNumel: new Float64Array(n),
    dtype: new Int32Array(n),
  };
}

/** The columns cut to the entries that were really there (a capacity may be an upper bound). */
function cut(table: ReturnType<typeof allocate>, n: number): ReturnType<typeof allocate> {
  if (table.group.length === n) return table;
  return Object.fromEntries(
    Object.entries(table).map(([name, column]) => [name, column.slice(0, n)]),
  ) as ReturnType<typeof allocate>;
}
