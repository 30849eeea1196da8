/**
 * What is kept of a job's logs: bounded, however long they are. Lines that differ in their numbers only have one shape;
 * templates are made of shapes (methods/logs/templates), so whatever is dear is done once for every shape.
 */

export interface LogFile {
  readonly name: string;
  readonly bytes: number;
  readonly lines: number;
  /** What was wrong with it, a sentence each: cut lines, binary junk, vanished while being read. */
  readonly defects: readonly string[];
}

/** A writer of lines: a file, or one of the writers that a merged file's prefixes distinguish. */
export interface LogStream {
  /** Index into `files`. */
  readonly file: number;
  /** As the lines name it; null where they do not. */
  readonly host: string | null;
  /** Global; null where unknown. */
  readonly rank: number | null;
  /** A writer that is known without its rank: "default3", "pid 4304", "task 7"; else "". */
  readonly writer: string;
  readonly lines: number;
  /** Milliseconds since 1970, NaN where no line has a time. Of a clock that may be off. */
  readonly firstMs: number;
  readonly lastMs: number;
}

export type LogLevel = "fatal" | "error" | "warning" | "info" | "debug";

export interface LogShape {
  /** The first line of it without its prefix, verbatim but for control characters, cut to 2,000 characters. */
  readonly text: string;
  readonly level: LogLevel | null;
  /** Where it was first seen: index into `files`, line from 1. */
  readonly file: number;
  readonly line: number;
  readonly count: number;
  /** Whether lines of it may tell of a failure: only those are kept one by one. */
  readonly isTelling: boolean;
  /** Whether it is part of a traceback or stack, so that it says nothing by itself. */
  readonly isPart: boolean;
}

/** Which stream wrote which shape, one row each, sorted by stream, then shape. */
export interface LogCells {
  readonly count: number;
  readonly stream: Int32Array;
  readonly shape: Int32Array;
  readonly lines: Uint32Array;
  readonly firstLine: Uint32Array;
  readonly lastLine: Uint32Array;
  /** NaN where it has no time. */
  readonly firstMs: Float64Array;
  readonly lastMs: Float64Array;
}

/** A line that may tell of a failure. Of one shape in one stream the first and the last are kept. */
export interface KeptLine {
  readonly file: number;
  /** From 1. */
  readonly line: number;
  readonly stream: number;
  readonly shape: number;
  readonly timeMs: number;
  /** Without its prefix, cut to 1,000 characters. */
  readonly text: string;
}

/** Whose code a frame of a stack is: the user's own, a training framework's, or a package's that speaks with devices. */
export type FrameOwner = "user" | "framework" | "driver";

/** A traceback, C++ frames or a kernel's block: one event, stitched out of its writer's lines. */
export interface LogBlock {
  readonly kind: "traceback" | "native" | "kernel";
  readonly stream: number;
  readonly firstLine: number;
  readonly lastLine: number;
  readonly timeMs: number;
  /** What it says: the exception's line, or the block's first. */
  readonly text: string;
  readonly line: number;
  /** Innermost frame of the user's own code: "train.py:177 train_step"; null where there is none. */
  readonly at: string | null;
  /** Whose the innermost frame is that is anybody's of those; null for native stacks, and where none is. */
  readonly inner: FrameOwner | null;
  /** Of a traceback: its lines, without the marks under code, as far as there was room for them. */
  readonly rows?: readonly BlockRow[];
}

export interface BlockRow {
  readonly line: number;
  readonly text: string;
}

/** Iterations as one stream tells of them, by the order of its lines. */
export interface LogIterations {
  readonly stream: number;
  /** As the log numbers them. */
  readonly iteration: Float64Array;
  readonly line: Uint32Array;
  readonly timeMs: Float64Array;
  /** What the job's lines were from the iteration's report on to the next: index into `sequences`. */
  readonly sequence: Int32Array;
}

/** A time in which a stream that writes often wrote nothing. */
export interface LogGap {
  readonly stream: number;
  readonly fromMs: number;
  /** NaN: to the end of the log. */
  readonly toMs: number;
}

export interface LogDigest {
  readonly files: readonly LogFile[];
  readonly streams: readonly LogStream[];
  readonly shapes: readonly LogShape[];
  readonly cells: LogCells;
  /** By file, then line. */
  readonly kept: readonly KeptLine[];
  readonly blocks: readonly LogBlock[];
  readonly iterations: readonly LogIterations[];
  /** Distinct sequences of shapes; repetitions in a row count once. */
  readonly sequences: readonly Int32Array[];
  /** The longest of each stream. */
  readonly gaps: readonly LogGap[];
  /** What is missing or odd, a sentence each. */
  readonly missing: readonly string[];
}
