/**
 * "operators.flop", every operator of a simulated job as columns (docs/formats/operators.md). Such a file may have
 * many gigabytes: where it is too large to keep every rank, of each pipeline stage only the first rank is kept. All
 * ranks of a stage run one program, so that one of them is enough to follow its iterations; who makes them slow only
 * all can tell. Reading.format says which it is.
 */
import { count } from "../base/text.ts";
import type { Defect, Reading } from "../model/reading.ts";
import { BlockReader, type Block } from "./operators-file/block-reader.ts";
import { FIRST_CAPACITY, MAX_OPERATORS } from "./operators-file/growing-columns.ts";
import { parseHeader, SCHEMA, type FlopHeader } from "./operators-file/header.ts";
import { RankRows } from "./operators-file/rank-rows.ts";
import type { Head, Reader, Sink } from "./reader.ts";

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
      say(`a block is not as the header says; ${kept(this.#records)} before it`);
    } else if (this.#reader?.isInside || this.#blocks % this.#stages.length !== 0) {
      say(`cut off after ${count(this.#bytes, "byte")}; ${kept(this.#records)} of whole blocks`);
    }
    if (!this.#keepsAll) say("too large to keep every rank; of each stage the first is used");
    if (this.#tooMany > 0) {
      say(`the last ${count(this.#tooMany, "operator")} left out: more than we hold`);
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
