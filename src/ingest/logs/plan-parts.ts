/**
 * Cuts a job's files into parts that can be read at the same time. The cut depends on the files alone, never on how many
 * threads there are, so that the result does not either.
 */
import { type FileHead, readHead } from "./files.ts";
import { type Header, headerOfText } from "./prefix-header.ts";
import { type FileAbout, HEAD_BYTES } from "./scanner.ts";
import { nearTime } from "./stamps.ts";
import { whyNoText } from "./text-bytes.ts";
import { narrowed, wideEncoding } from "./wide-text.ts";

/** Lines that begin in [from, to) of a file. */
export interface Part {
  readonly file: number;
  readonly path: string;
  readonly from: number;
  readonly to: number;
  readonly isGzip: boolean;
  readonly about: FileAbout;
}

export interface Plan {
  /** Each is read in one go, small files together. */
  readonly tasks: readonly (readonly Part[])[];
  readonly bytes: number;
  /** Files that are not read, and why. */
  readonly defects: readonly { readonly file: number; readonly what: string }[];
}

const SMALLEST_TASK = 8 << 20;
const LARGEST_TASK = 128 << 20;
/** So that threads have equal shares. */
const TASKS = 48;
/** The last of the bytes are cut smaller, so that no thread works on while the others have nothing left. */
const LAST_BYTES = 1 / 8;
const LAST_SMALLER = 4;
const HEADS_AT_ONCE = 32;
/** Bytes that show whether a file is text. */
const LOOKED_AT = 65_536;

/** What a file's first bytes say. */
interface Looked {
  readonly size: number;
  readonly modifiedMs: number;
  /** Packed or UTF-16: only to be read from the beginning. */
  readonly isWhole: boolean;
  readonly isGzip: boolean;
  /** Why it is not read. */
  readonly why: string | null;
  readonly nearMs: number;
  /** Looked for in files that are read in parts only. */
  readonly header: Header | null;
}

export async function planParts(paths: readonly string[], taskBytes?: number): Promise<Plan> {
  const least = taskBytes ?? SMALLEST_TASK;
  const files: (Looked | string)[] = [];
  for (let i = 0; i < paths.length; i += HEADS_AT_ONCE) {
    const some = paths.slice(i, i + HEADS_AT_ONCE);
    const heads = await Promise.all(some.map(async (path) => await readHead(path, HEAD_BYTES)));
    // Only what they say is kept: a job may have many thousand files.
    for (const head of heads) files.push(typeof head === "string" ? head : lookAt(head, least));
  }
  const read = files.filter((file) => typeof file !== "string");
  const ofJob = read.find(({ nearMs }) => nearMs === nearMs)?.nearMs ?? NaN;
  const bytes = read.reduce((sum, { size }) => sum + size, 0);
  const most = Math.ceil(
    taskBytes ?? Math.min(LARGEST_TASK, Math.max(SMALLEST_TASK, bytes / TASKS)),
  );
  const tasks: Part[][] = [];
  const defects: Plan["defects"][number][] = [];
  let room = 0;
  let planned = 0;
  const mostNow = (): number =>
    planned < bytes * (1 - LAST_BYTES) ? most : Math.ceil(most / LAST_SMALLER);
  const put = (part: Part, size: number): void => {
    if (room < size || tasks.length === 0) {
      tasks.push([]);
      room = mostNow();
    }
    tasks.at(-1)!.push(part);
    room -= size;
    planned += size;
  };
  paths.forEach((path, file) => {
    const looked = files[file]!;
    const why = typeof looked === "string" ? looked : looked.why;
    if (typeof looked === "string" || why !== null) {
      defects.push({ file, what: why! });
      return;
    }
    const { size, isGzip, header } = looked;
    // Its own time, else that of the job's other files, else before it was last written to.
    const nearMs = looked.nearMs === looked.nearMs ? looked.nearMs : ofJob;
    const about = { nearMs, latestMs: looked.modifiedMs };
    if (looked.isWhole || size <= most) {
      put({ file, path, from: 0, to: size, isGzip, about }, size);
      return;
    }
    for (let from = 0, to = 0; from < size; from = to) {
      // A rest that is not worth a task goes with the last one.
      const now = mostNow();
      to = size - from < 1.5 * now ? size : from + now;
      // A task of its own each: lines of one file are numbered by the tasks before.
      room = 0;
      const of = from === 0 ? about : { ...about, continued: { header } };
      put({ file, path, from, to, isGzip, about: of }, to - from);
    }
  });
  return { tasks, bytes, defects };
}

function lookAt({ size, modifiedMs, isGzip, bytes }: FileHead, least: number): Looked {
  const encoding = isGzip ? null : wideEncoding(bytes);
  const head = encoding
    ? narrowed(bytes, encoding)
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const text = head.toString("latin1");
  const isWhole = isGzip || encoding !== null;
  return {
    size,
    modifiedMs,
    isGzip,
    isWhole,
    why: isGzip ? null : whyNoText(head.subarray(0, LOOKED_AT), encoding !== null),
    nearMs: isGzip ? NaN : nearTime(text),
    header: size > least && !isWhole ? headerOfText(text) : null,
  };
}
