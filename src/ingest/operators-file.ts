/**
 * "operators.flop", every operator of a simulated job as columns (docs/formats/operators.md). Such a file may have
 * many gigabytes: where it is too large to keep every rank, of each pipeline stage only the first rank is kept. All
 * ranks of a stage run one program, so that one of them is enough to follow its iterations; who makes them slow only
 * all can tell. Reading.format says which it is.
 */
import { count } from "../base/text.ts";
import type { Defect, Reading } from "../model/reading.ts";
import { BlockReader, type Block } from "./operators-file/block-reader.ts";
import { FIRST_CAPACITY } from "./growing-table.ts";
import { MAX_OPERATORS, emptyRow, GrowingColumns } from "./operators-file/growing-columns.ts";
import { parseHeader, SCHEMA, type FlopHeader, type FlopStage } from "./operators-file/header.ts";
import type { Head, Reader, Sink } from "./reader.ts";
import {
  COMPLETED,
  SCHEDULED,
  STARTED,
  type OperatorLog,
  type DumpGroup,
} from "../model/operators.ts";
import { groupNamed } from "./operators-file/role-groups.ts";

interface RankCalls {
  readonly rank: number;
  /** By role of the stage. */
  readonly groups: readonly DumpGroup[];
  /** By call of the stage: as the flight recorder names it, "send 0->1" with ranks of the group. */
  readonly names: readonly string[];
  /** By call: group rank of the other side; -1 for collectives and where it is unknown. */
  readonly peers: Int32Array;
}

/** Used for all operators of all ranks. */
const row = emptyRow();

const FORMAT = "operators";
const NEWLINE = 10;
/** Groups and programs of a quarter of a million ranks take about 20 MB. */
const MAX_HEADER_BYTES = 64 << 20;
/** Operators up to which every rank is kept: at 79 bytes each, 316 MB. */
const MOST_OF_ALL_RANKS = 4_000_000;

export const operatorsFile: Reader = {
  format: FORMAT,
  sniff({ text }: Head): boolean {
    return /^\s*\{\s*"schema"\s*:\s*"([^"]*)"/.exec(text)?.[1] === SCHEMA;
  },
  open: (file) => operatorsSink(file),
};

/** Tests make the bound small. */
export function operatorsSink(file: string, mostOfAllRanks = MOST_OF_ALL_RANKS): Sink {
  return new OperatorsSink(file, mostOfAllRanks);
}

class OperatorsSink implements Sink {
  readonly #file: string;
  readonly #mostOfAllRanks: number;
  #headerParts: Buffer[] = [];
  #headerBytes = 0;
  #isHeaderRead = false;
  #header: FlopHeader | null = null;
  #reader: BlockReader | null = null;
  /** By stage, then lane: all lanes, or lane 0 alone. */
  #stages: RankRows[][] = [];
  #keepsAll = true;
  #bytes = 0;
  #records = 0;
  #tooMany = 0;
  #blocks = 0;

  constructor(file: string, mostOfAllRanks: number) {
    this.#file = file;
    this.#mostOfAllRanks = mostOfAllRanks;
  }

  push(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#isHeaderRead) {
      this.#reader?.push(chunk);
      return;
    }
    const end = chunk.indexOf(NEWLINE);
    const part = end < 0 ? chunk : chunk.subarray(0, end);
    this.#headerBytes += part.length;
    this.#isHeaderRead = end >= 0 || this.#headerBytes > MAX_HEADER_BYTES;
    // A copy: the caller may reuse its chunk.
    if (this.#headerBytes <= MAX_HEADER_BYTES) this.#headerParts.push(Buffer.from(part));
    else this.#headerParts = [];
    if (!this.#isHeaderRead) return;
    this.#readHeader();
    if (end >= 0) this.#reader?.push(chunk.subarray(end + 1));
  }

  #readHeader(): void {
    this.#header = parseHeader(Buffer.concat(this.#headerParts).toString("utf8"));
    this.#headerParts = [];
    if (!this.#header) return;
    const header = this.#header;
    this.#keepsAll = this.#isSmall(header);
    this.#stages = header.stages.map((_, stage) =>
      Array.from(
        { length: this.#keepsAll ? header.lanes : 1 },
        (_unused, lane) => new RankRows(header, stage, lane),
      ),
    );
    this.#reader = new BlockReader(header, {
      wantsAll: (stage) => this.#wantsAll(header, stage),
      block: (block) => this.#block(block),
    });
  }

  /** Whether one iteration of all ranks can be kept; how many there are only the end of the file tells. */
  #isSmall({ gpus, lanes, stages }: FlopHeader): boolean {
    if (lanes === 1) return true;
    const most = this.#mostOfAllRanks;
    // A block is held until its last column is there, with what does not communicate.
    if (stages.some((stage) => stage.count * lanes > most)) return false;
    const perIteration = stages.reduce((sum, { communicating }) => sum + communicating * lanes, 0);
    return Math.max(perIteration, gpus * FIRST_CAPACITY) <= most;
  }

  #wantsAll({ lanes, stages }: FlopHeader, stage: number): boolean {
    const more = stages[stage]!.communicating * lanes;
    if (this.#keepsAll && lanes > 1 && this.#records + more > this.#mostOfAllRanks) {
      this.#keepsAll = false;
      for (const ranks of this.#stages) ranks.length = 1;
      this.#records = this.#stages.reduce((sum, [first]) => sum + first!.count, 0);
    }
    return this.#keepsAll;
  }

  #block(block: Block): void {
    this.#blocks++;
    for (const [lane, rank] of this.#stages[block.stage]!.entries()) {
      const { kept: added, left } = rank.add(block, lane, MAX_OPERATORS - this.#records);
      this.#records += added;
      this.#tooMany += left;
    }
  }

  end(): Reading {
    const defects: Defect[] = [];
    const say = (what: string): void => void defects.push({ file: this.#file, what });
    if (!this.#isHeaderRead) say(`cut off after ${count(this.#bytes, "byte")}, in its first line`);
    else if (!this.#header) say(`its first line is not the header of ${SCHEMA}; not read`);
    else if (this.#reader?.isLost) {
      say(`a block does not match the header; ${kept(this.#records)} before it`);
    } else if (this.#reader?.isInside || this.#blocks % this.#stages.length !== 0) {
      say(`cut off after ${count(this.#bytes, "byte")}; ${kept(this.#records)} of whole blocks`);
    }
    if (!this.#keepsAll) say("too large to keep every rank; of each stage the first is used");
    if (this.#tooMany > 0) {
      say(`the last ${count(this.#tooMany, "operator")} left out: too many to hold`);
    }
    const operators = this.#stages
      .flat()
      .filter((rank) => rank.count > 0)
      .map((rank) => rank.build(this.#file, FORMAT));
    return {
      file: this.#file,
      format: this.#keepsAll ? FORMAT : `${FORMAT}, first rank of each stage`,
      rank: null,
      records: this.#records,
      defects,
      ...(operators.length > 0 ? { operators } : {}),
      ...(this.#header ? { worldSize: this.#header.gpus } : {}),
    };
  }
}

function kept(records: number): string {
  return `kept ${count(records, "operator")}`;
}

/** The operators of one rank, as blocks of operators.flop bring them. */
class RankRows {
  readonly #stage: FlopStage;
  readonly #epochNs: bigint;
  readonly #calls: RankCalls;
  readonly #columns = new GrowingColumns();
  /** By call. */
  readonly #names: Int32Array;
  /** By group: collectives and P2P operators so far, the way PyTorch counts them. */
  readonly #seq: Int32Array;
  readonly #p2pSeq: Int32Array;

  constructor(header: FlopHeader, stage: number, lane: number) {
    this.#stage = header.stages[stage]!;
    this.#epochNs = header.epochNs;
    this.#calls = rankCalls(header, stage, lane);
    this.#names = Int32Array.from(this.#calls.names, (name) => this.#columns.name(name, "unknown"));
    this.#seq = new Int32Array(this.#stage.roles.length);
    this.#p2pSeq = new Int32Array(this.#stage.roles.length);
  }

  get count(): number {
    return this.#columns.count;
  }

  add(block: Block, lane: number, room: number): { kept: number; left: number } {
    const { call, calls, bytes } = this.#stage;
    let kept = 0;
    let left = 0;
    for (let op = 0; op < call.length; op++) {
      const index = call[op]!;
      const at = op * block.lanes + lane;
      // What the CPU never issued (Infinity), or what its replica leaves out (NaN), is not in any recording.
      if (index < 0 || !Number.isFinite(block.issueNs[at])) continue;
      if (kept === room) {
        left++;
        continue;
      }
      const { group, isP2p, isSend } = calls[index]!;
      const start = finite(block.startNs[at]!);
      const end = finite(block.endNs[at]!);
      row.group = group;
      row.name = this.#names[index]!;
      row.seq = isP2p ? 0 : ++this.#seq[group]!;
      row.p2pSeq = isP2p ? ++this.#p2pSeq[group]! : 0;
      row.isP2p = isP2p;
      row.isSend = isSend;
      row.peer = this.#calls.peers[index]!;
      row.createdNs = block.issueNs[at]!;
      row.startedNs = start;
      row.completedNs = end;
      row.durationMs = (end - start) / 1e6;
      row.state = Number.isNaN(end) ? (Number.isNaN(start) ? SCHEDULED : STARTED) : COMPLETED;
      // Bytes: the file does not say of what type the elements are.
      row.inputNumel = bytes[op]!;
      this.#columns.add(row);
      kept++;
    }
    return { kept, left };
  }

  build(file: string, format: string): OperatorLog {
    const { rank, groups } = this.#calls;
    const ops = this.#columns.build(false);
    const epochNs = this.#epochNs;
    // Every rank is recorded from its first operator on, so that counting gives members the same numbers.
    const hasSequence = true;
    return { file, format, rank, host: "", pid: null, groups, ops, epochNs, hasSequence };
  }
}

/** Infinity is the simulator's "never". */
function finite(ns: number): number {
  return Number.isFinite(ns) ? ns : NaN;
}

/**
 * What a stage's program means on one of its ranks: with whom it communicates, and what its calls are named.
 */
function rankCalls(header: FlopHeader, stage: number, lane: number): RankCalls {
  const { lanes, groups: byRole } = header;
  const { calls, roles } = header.stages[stage]!;
  const rank = stage * lanes + lane;
  const groups = roles.map((role) => {
    const of = byRole.get(role);
    return of?.groups[of.groupOf[rank]!] ?? groupNamed(role, role, null);
  });
  const peers = new Int32Array(calls.length).fill(-1);
  const names = calls.map(({ kind, group, isP2p, isSend, peerStage }, index) => {
    if (!isP2p) return kind;
    // Where the group is not known a stage's number stands for its rank in the pipeline.
    const isKnown = groups[group]!.ranks !== null;
    const place = (of: number): number =>
      isKnown ? placeBeside(header, roles[group]!, rank, of * lanes + lane) : of;
    const peer = peerStage < 0 ? -1 : place(peerStage);
    peers[index] = peer;
    return peer < 0 ? kind : `${kind} ${place(stage)}${isSend ? "->" : "<-"}${peer}`;
  });
  return { rank, groups, names, peers };
}

/** The other rank's place in a rank's group of a role; -1 where it is in another. */
function placeBeside({ groups }: FlopHeader, role: string, rank: number, other: number): number {
  const { groupOf, placeOf } = groups.get(role)!;
  return groupOf[other] === groupOf[rank] ? placeOf[other]! : -1;
}
