/**
 * "operators.flop", every operator of a simulated job as columns (docs/formats/operators.md). Such a file may
 * have many gigabytes, so of each pipeline stage only the first rank's operators are kept: all ranks of a stage
 * run one program, and one of them is enough to follow its iterations. Reading.format says so.
 */
import { count } from "../base/text.ts";
import { COMPLETED, SCHEDULED, STARTED, type OperatorLog } from "../model/operators.ts";
import type { Defect, Reading } from "../model/reading.ts";
import { FirstLane, type Block } from "./operators-file/first-lane.ts";
import { emptyRow, GrowingColumns, MAX_OPERATORS } from "./operators-file/growing-columns.ts";
import { parseHeader, SCHEMA, type FlopHeader } from "./operators-file/header.ts";
import type { Head, Reader, Sink } from "./reader.ts";

const FORMAT = "operators";
const NEWLINE = 10;
/** Groups and programs of a quarter of a million ranks take about 20 MB. */
const MAX_HEADER_BYTES = 64 << 20;

export const operatorsFile: Reader = {
  format: FORMAT,
  sniff({ text }: Head): boolean {
    return /^\s*\{\s*"schema"\s*:\s*"([^"]*)"/.exec(text)?.[1] === SCHEMA;
  },
  open: (file) => new OperatorsSink(file),
};

class OperatorsSink implements Sink {
  readonly #file: string;
  #headerParts: Buffer[] = [];
  #headerBytes = 0;
  #isHeaderRead = false;
  #header: FlopHeader | null = null;
  #lane: FirstLane | null = null;
  #stages: StageRows[] = [];
  #bytes = 0;
  #records = 0;
  #tooMany = 0;
  #blocks = 0;

  constructor(file: string) {
    this.#file = file;
  }

  push(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#isHeaderRead) {
      this.#lane?.push(chunk);
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
    if (end >= 0) this.#lane?.push(chunk.subarray(end + 1));
  }

  #readHeader(): void {
    this.#header = parseHeader(Buffer.concat(this.#headerParts).toString("utf8"));
    this.#headerParts = [];
    if (!this.#header) return;
    this.#stages = this.#header.stages.map((_, stage) => new StageRows(this.#header!, stage));
    this.#lane = new FirstLane(this.#header, (block) => this.#block(block));
  }

  #block(block: Block): void {
    const added = this.#stages[block.stage]!.add(block, MAX_OPERATORS - this.#records);
    this.#blocks++;
    this.#records += added.kept;
    this.#tooMany += added.left;
  }

  end(): Reading {
    const defects: Defect[] = [];
    const say = (what: string): void => void defects.push({ file: this.#file, what });
    if (!this.#isHeaderRead) say(`cut off after ${count(this.#bytes, "byte")}, in its first line`);
    else if (!this.#header) say(`its first line is not the header of ${SCHEMA}; not read`);
    else if (this.#lane?.isLost) {
      say(`a block is not as the header says; ${kept(this.#records)} before it`);
    } else if (this.#lane?.isInside || this.#blocks % this.#stages.length !== 0) {
      say(`cut off after ${count(this.#bytes, "byte")}; ${kept(this.#records)} of whole blocks`);
    }
    if (this.#tooMany > 0) {
      say(`the last ${count(this.#tooMany, "operator")} left out: more than we hold`);
    }
    const operators = this.#stages
      .filter((stage) => stage.count > 0)
      .map((stage) => stage.build(this.#file));
    return {
      file: this.#file,
      format: `${FORMAT}, first rank of each stage`,
      rank: null,
      records: this.#records,
      defects,
      ...(operators.length > 0 ? { operators } : {}),
      ...(this.#header ? { worldSize: this.#header.gpus } : {}),
    };
  }
}

/** The operators of a stage's first rank. */
class StageRows {
  readonly #header: FlopHeader;
  readonly #stage: number;
  readonly #columns = new GrowingColumns();
  readonly #row = emptyRow();
  readonly #names: readonly number[];
  /** By group: collectives and P2P operators so far, the way PyTorch counts them. */
  readonly #seq: Int32Array;
  readonly #p2pSeq: Int32Array;

  constructor(header: FlopHeader, stage: number) {
    const { operators, groups } = header.stages[stage]!;
    this.#header = header;
    this.#stage = stage;
    this.#seq = new Int32Array(groups.length);
    this.#p2pSeq = new Int32Array(groups.length);
    this.#names = operators.map((op) => (op ? this.#columns.name(op.name, "unknown") : -1));
  }

  get count(): number {
    return this.#columns.count;
  }

  add(block: Block, room: number): { kept: number; left: number } {
    const { operators } = this.#header.stages[this.#stage]!;
    const row = this.#row;
    let keptRows = 0;
    let left = 0;
    for (let i = 0; i < operators.length; i++) {
      const op = operators[i];
      // What the CPU never issued is not there, as it would not be in any recording.
      if (!op || !Number.isFinite(block.issueNs[i])) continue;
      if (keptRows === room) {
        left++;
        continue;
      }
      const { isP2p } = op;
      const start = finite(block.startNs[i]!);
      const end = finite(block.endNs[i]!);
      row.group = op.group;
      row.name = this.#names[i]!;
      row.seq = isP2p ? 0 : ++this.#seq[op.group]!;
      row.p2pSeq = isP2p ? ++this.#p2pSeq[op.group]! : 0;
      row.isP2p = isP2p;
      row.isSend = op.isSend;
      row.peer = op.peer;
      row.createdNs = block.issueNs[i]!;
      row.startedNs = start;
      row.completedNs = end;
      row.durationMs = (end - start) / 1e6;
      row.state = Number.isNaN(end) ? (Number.isNaN(start) ? SCHEDULED : STARTED) : COMPLETED;
      // Bytes: the file does not say of what type the elements are.
      row.inputNumel = op.bytes;
      this.#columns.add(row);
      keptRows++;
    }
    return { kept: keptRows, left };
  }

  build(file: string): OperatorLog {
    const { rank, groups } = this.#header.stages[this.#stage]!;
    const { epochNs } = this.#header;
    const ops = this.#columns.build(false);
    return { file, format: FORMAT, rank, host: "", pid: null, groups, ops, epochNs };
  }
}

/** Infinity is the simulator's "never". */
function finite(ns: number): number {
  return Number.isFinite(ns) ? ns : NaN;
}

function kept(records: number): string {
  return `kept ${count(records, "operator")}`;
}
