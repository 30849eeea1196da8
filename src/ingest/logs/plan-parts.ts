/**
 * Cuts a job's files into parts that can be read at the same time. The cut depends on the files alone, never on how many
 * threads there are, so that the result does not either.
 */
import { HEAD_BYTES } from "./scanner.ts";
import { nearTime } from "./stamps.ts";
import { type FileHead, readHead } from "./files.ts";

/** Lines that begin in [from, to) of a file. */
export interface Part {
  readonly file: number;
  readonly path: string;
  readonly from: number;
  readonly to: number;
  readonly isGzip: boolean;
  /** A time near those of the file; NaN for unknown. */
  readonly nearMs: number;
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
const HEADS_AT_ONCE = 32;

export async function planParts(paths: readonly string[], taskBytes?: number): Promise<Plan> {
  const heads: (FileHead | null)[] = [];
  const times: number[] = [];
  for (let i = 0; i < paths.length; i += HEADS_AT_ONCE) {
    const some = paths.slice(i, i + HEADS_AT_ONCE);
    for (const head of await Promise.all(
      some.map(async (path) => await readHead(path, HEAD_BYTES)),
    )) {
      times.push(head === null ? NaN : nearTime(Buffer.from(head.bytes).toString("latin1")));
      // Only what it says is kept: a job may have many thousand files.
      heads.push(head);
    }
  }
  const ofJob = times.find((ms) => ms === ms);
  const bytes = heads.reduce((sum, head) => sum + (head?.size ?? 0), 0);
  const most = taskBytes ?? Math.min(LARGEST_TASK, Math.max(SMALLEST_TASK, bytes / TASKS));
  const tasks: Part[][] = [];
  const defects: Plan["defects"][number][] = [];
  let room = 0;
  const put = (part: Part, size: number): void => {
    if (room < size || tasks.length === 0) {
      tasks.push([]);
      room = most;
    }
    tasks.at(-1)!.push(part);
    room -= size;
  };
  paths.forEach((path, file) => {
    const head = heads[file];
    if (!head) {
      defects.push({ file, what: "it is not there, or may not be read" });
      return;
    }
    const { size, isGzip } = head;
    const what = isGzip ? null : whyNoText(head.bytes);
    if (what !== null) {
      defects.push({ file, what });
      return;
    }
    // Its own time, else that of the job's other files, else when it was last written to.
    const nearMs = times[file]! > 0 ? times[file]! : (ofJob ?? head.modifiedMs);
    if (isGzip || size <= most) {
      put({ file, path, from: 0, to: size, isGzip, nearMs }, size);
      return;
    }
    const parts = Math.ceil(size / most);
    for (let i = 0; i < parts; i++) {
      const from = Math.floor((size * i) / parts);
      const to = Math.floor((size * (i + 1)) / parts);
      // A task of its own each: lines of one file are numbered by the tasks before.
      room = 0;
      put({ file, path, from, to, isGzip, nearMs }, to - from);
    }
  });
  return { tasks, bytes, defects };
}

/** Null for text. Blocks of NULs that a crash left between lines do not make a log binary. */
function whyNoText(bytes: Uint8Array): string | null {
  let control = 0;
  let nuls = 0;
  for (const byte of bytes) {
    if (byte === 0) nuls++;
    else if (byte < 9 || (byte > 13 && byte < 27)) control++;
  }
  if (isNoise(bytes)) return "it is not text: skipped";
  const rest = bytes.length - nuls;
  const isHoles = nuls > 0 && control === 0 && rest > 200 && !isSpread(bytes, nuls);
  if ((nuls > bytes.length / 100 && !isHoles) || control > rest / 10)
    return "it is not text: skipped";
  return null;
}

/** Random or packed bytes: most that are not ASCII do not make UTF-8, and they are many. */
function isNoise(bytes: Uint8Array): boolean {
  let high = 0;
  for (const byte of bytes) if (byte >= 128) high++;
  if (high < bytes.length / 4) return false;
  const text = new TextDecoder().decode(bytes);
  let broken = 0;
  for (const character of text) if (character === "\ufffd") broken++;
  return broken > bytes.length / 10;
}

/** NULs between the other bytes (UTF-16, numbers) instead of in blocks. */
function isSpread(bytes: Uint8Array, nuls: number): boolean {
  let blocks = 0;
  for (let i = 1; i < bytes.length; i++) if (bytes[i] === 0 && bytes[i - 1] !== 0) blocks++;
  return blocks > 2 + nuls / 64;
}
