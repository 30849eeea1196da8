/** What one file says, as plain data that threads hand over; those of all files add up in merge-digests.ts. */
import type { LogBlock } from "../../model/log-digest.ts";
import type { CellColumns } from "./cell-table.ts";
import type { IterationColumns } from "./iteration-table.ts";
import type { KeptColumns } from "./kept-lines.ts";
import type { ShapeColumns } from "./shape-table.ts";
import type { StreamColumns } from "./stream-table.ts";

export interface FilePart {
  readonly file: number;
  readonly bytes: number;
  readonly lines: number;
  /** Lines too long to be kept whole, and lines with NUL bytes. */
  readonly cutLines: number;
  readonly nulLines: number;
}

export interface PartialDigest {
  readonly parts: readonly FilePart[];
  readonly streams: StreamColumns;
  readonly shapes: ShapeColumns;
  readonly cells: CellColumns;
  readonly kept: KeptColumns;
  readonly blocks: readonly LogBlock[];
  readonly iterations: IterationColumns;
  readonly left: LeftOut;
}

/** What caps left out. */
export interface LeftOut {
  /** Lines of shapes that were lumped together, lines whose cell had no room, blocks, lines of further streams. */
  readonly lumped: number;
  readonly cells: number;
  readonly blocks: number;
  readonly streams: number;
  readonly isThinned: boolean;
}
