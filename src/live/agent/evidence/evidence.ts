/**
 * Files for `faultline diagnose` from this machine: rings cut to their last records, stacks, flight recorders, NCCL's RAS, the
 * kernel's log, ends of logs. Each source has a limit of its own, all are asked at once, and what fails is a line.
 */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { basename } from "node:path";
import { cutText, harmless } from "../../../base/text.ts";
import {
  COMMUNICATOR_BYTES,
  CONNECTION_BYTES,
  HEADER,
  HEADER_BYTES,
  NAME_BYTES,
  RECORD_BYTES,
} from "../../../ingest/probe-ring/layout.ts";
import { type AgentReply, type EvidenceRequest, LIMITS } from "../../wire/messages.ts";
import { copyRing } from "../rings/copy-ring.ts";
import { isAlive, type FoundRing } from "../rings/discover.ts";
import { collectDumps, findRecorders } from "./flight-recorder.ts";
import { kernelLog } from "./kernel-log.ts";
import { outsideStacks } from "./outside-stacks.ts";
import { ownLogs } from "../logs/own-logs.ts";
import type { Machine } from "../process-state.ts";
import { rasAnswer } from "./ras-answer.ts";
import { requestStacks } from "./request-stacks.ts";
import { openingError } from "../rings/ring-file.ts";
import { whole } from "../rings/ring-header.ts";
import { sidecarsOf } from "./sidecars.ts";
import type { SlowStorage } from "./slow-storage.ts";

const STACKS_MS = 2000;
/** A job that hangs waits for its answer: whoever has not given his part by then is left out. */
const ASKED_MS = 3000;
/** Room for names and troubles. */
const MOST_BYTES = LIMITS.replyBytes - (1 << 20);
const MOST_SIDECAR = 4 << 20;
/** A dump that is cut says nothing. */
const MOST_RECORDER = 16 << 20;
const MOST_LOG = 4 << 20;
const MOST_TROUBLES = 200;

export interface EvidenceSource {
  readonly rings: readonly FoundRing[];
  readonly machine: Machine;
  /** Older records than the ring still holds. */
  extend(this: void, ring: FoundRing, copy: Buffer): Buffer;
  logEnds(
    this: void,
    bytes: number,
  ): Promise<readonly { readonly path: string; readonly inode: string; readonly bytes: Buffer }[]>;
  readonly storage: SlowStorage;
  readonly stacksMs?: number;
  /** How long the others have; for tests. */
  readonly askedMs?: number;
  /** The kernel's log. */
  readonly kernelPath?: string;
}

export async function collectEvidence(
  { records, stacks, logBytes }: EvidenceRequest,
  source: EvidenceSource,
): Promise<AgentReply> {
  const files = new Files();
  // Rings change, and asking for stacks takes its time: they come first.
  for (const ring of source.rings) {
    try {
      const copy = copyRing(ring, source.machine).bytes;
      const slots = ring.header.recordCount;
      const bytes = records > slots ? source.extend(ring, copy) : copy;
      files.add(`rings/${ring.name}`, trimRing(bytes, records));
    } catch (error) {
      files.trouble(`${ring.name}: ${openingError(error)}`);
    }
  }
  if (stacks) await askAll(files, source);
  for (const path of sidecarsOf(source.rings).keys()) {
    if (!/\.(?:stacks|validation\.json)$/.test(path)) continue;
    try {
      files.add(`rings/${basename(path)}`, await readSmall(path, source.storage));
    } catch (error) {
      files.trouble(`${basename(path)}: ${openingError(error)}`);
    }
  }
  if (logBytes > 0) await addLogs(files, source, Math.min(logBytes, MOST_LOG));
  return files.reply();
}

/** What others can tell of a job that stands still: asked at once, each for a few seconds. */
async function askAll(files: Files, source: EvidenceSource): Promise<void> {
  const { rings, machine, storage, askedMs = ASKED_MS } = source;
  const ranks = ranksOf(rings);
  const pids = ranks.map(({ pid }) => pid);
  const probed = new Set(
    rings.filter(({ header }) => header.writer === "python").map(({ process: { pid } }) => pid),
  );
  const { recorders } =
    pids.length === 0
      ? { recorders: [] }
      : await findRecorders(pids, undefined, storage, machine.proc);
  const [own, outside, dumps, ras] = await Promise.all([
    probed.size === 0 ? [] : requestStacks(rings, source.stacksMs ?? STACKS_MS),
    outsideStacks(
      ranks.filter(({ pid }) => !probed.has(pid)),
      askedMs,
    ),
    collectDumps(recorders, storage, { appearMs: askedMs, growMs: askedMs }),
    pids.length === 0 ? null : rasAnswer(pids, storage, machine.proc, askedMs),
  ]);
  for (const line of [...own, ...outside.troubles, ...dumps.troubles]) files.trouble(line);
  for (const { name, bytes } of outside.files) files.add(`stacks/${name}`, bytes);
  for (const path of dumps.files) {
    try {
      const bytes = await readSmall(path, storage, MOST_RECORDER, true);
      files.add(`recorder/${basename(path)}`, bytes);
    } catch (error) {
      files.trouble(`${basename(path)}: ${openingError(error)}`);
    }
  }
  if (ras?.trouble) files.trouble(ras.trouble);
  if (ras?.file) files.add(ras.file.name, ras.file.bytes);
  addKernelLog(files, source);
}

/** Since the job began: what the kernel said of an earlier one is not this one's. */
function addKernelLog(files: Files, { rings, machine, kernelPath }: EvidenceSource): void {
  const since = rings.map(({ header }) => header.startedMs);
  if (since.length === 0) return;
  const bootMs = Number(machine.realtimeNs() - machine.monotonicNs()) / 1e6;
  const { text, trouble } = kernelLog(Math.min(...since), bootMs, kernelPath);
  if (trouble !== null) files.trouble(trouble);
  if (text !== "") files.add("logs/dmesg.log", Buffer.from(text));
}

/** Those that the agent follows, and those that it finds in the processes' hands. */
async function addLogs(files: Files, source: EvidenceSource, most: number): Promise<void> {
  const { rings, machine, storage, logEnds } = source;
  const known = new Set<string>();
  for (const { path, inode, bytes } of await logEnds(most)) {
    if (bytes.length > 0) files.add(`logs/${basename(path)}`, bytes);
    known.add(inode);
  }
  const own = await ownLogs(ranksOf(rings), most, known, { proc: machine.proc, storage });
  for (const { name, bytes } of own.files) files.add(`logs/${name}`, bytes);
  for (const line of own.troubles) files.trouble(line);
}

/** Living processes, one entry a rank. */
function ranksOf(rings: readonly FoundRing[]): { readonly rank: number; readonly pid: number }[] {
  const byPid = new Map<number, number>();
  for (const ring of rings) {
    const { pid } = ring.process;
    if (pid > 0 && isAlive(ring)) byPid.set(pid, Math.max(ring.header.rank, byPid.get(pid) ?? -1));
  }
  return [...byPid]
    .map(([pid, rank]) => ({ rank, pid }))
    .sort((a, b) => a.rank - b.rank || a.pid - b.pid);
}

class Files {
  readonly #files = new Map<string, Uint8Array>();
  readonly #troubles: string[] = [];
  #bytes = 0;

  /** One that does not fit is left out, and smaller ones behind it may still come. */
  add(name: string, bytes: Uint8Array): void {
    const safe = name.replace(/[^A-Za-z0-9_./-]/g, "_").replace(/\.{2,}/g, "_");
    if (this.#bytes + bytes.length > MOST_BYTES) {
      this.trouble(`${safe}: left out, the answer is full`);
      return;
    }
    let free = safe;
    for (let n = 1; this.#files.has(free); n++) free = safe.replace("/", `/${n}/`);
    this.#files.set(free, bytes);
    this.#bytes += bytes.length;
  }

  trouble(line: string): void {
    if (this.#troubles.length < MOST_TROUBLES) this.#troubles.push(cutText(harmless(line), 400));
  }

  reply(): AgentReply {
    const files = [...this.#files].map(([name, bytes]) => ({ name, bytes }));
    return { kind: "evidence", files, troubles: this.#troubles };
  }
}

/** Its end, or nothing but all of it. Never a link: whoever may write beside the rings could send us anywhere. */
export function readSmall(
  path: string,
  storage: SlowStorage,
  most = MOST_SIDECAR,
  isWhole = false,
): Promise<Buffer> {
  return storage.read(path, async () => {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const file = await open(path, flags);
    try {
      const info = await file.stat();
      if (!info.isFile()) throw new Error("is not a plain file");
      const from = Math.max(0, info.size - most);
      if (isWhole && from > 0) throw new Error(`is larger than ${most} bytes`);
      const bytes = Buffer.alloc(info.size - from);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
      return bytes.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  });
}

const TABLES = [
  [HEADER.commsOffset, HEADER.commCount, COMMUNICATOR_BYTES],
  [HEADER.connectionsOffset, HEADER.connectionCount, CONNECTION_BYTES],
  [HEADER.namesOffset, HEADER.nameCount, NAME_BYTES],
] as const;
const LEAST_RECORDS = 64;

/**
 * The last records of a ring, and the entries of its tables that are used: still a valid ring, and small. `copy` is a whole
 * ring (headerDefect found nothing).
 */
function trimRing(copy: Buffer, lastRecords: number): Buffer {
  const slots = copy.readUInt32LE(HEADER.recordCount);
  const wanted = Math.max(LEAST_RECORDS, Math.min(lastRecords, slots));
  const count = Math.min(slots, 2 ** Math.ceil(Math.log2(wanted)));
  const header = Buffer.from(copy.subarray(0, HEADER_BYTES));
  const parts: Buffer[] = [header];
  let end = HEADER_BYTES;
  const add = (part: Buffer): number => {
    const at = end;
    const rest = (8 - (part.length % 8)) % 8;
    parts.push(part, Buffer.alloc(rest));
    end += part.length + rest;
    return at;
  };
  for (const [field, usedField, each] of TABLES) {
    const [offset, capacity] = [copy.readUInt32LE(field), copy.readUInt32LE(field + 4)];
    const used = Math.min(copy.readUInt32LE(usedField), capacity);
    header.writeUInt32LE(add(copy.subarray(offset, offset + used * each)), field);
    header.writeUInt32LE(used, field + 4);
  }
  const words = copy.readUInt32LE(HEADER.wordsOffset);
  const wordsBytes = Math.min(
    whole(copy, HEADER.wordsLength),
    copy.readUInt32LE(HEADER.wordsBytes),
  );
  header.writeUInt32LE(add(copy.subarray(words, words + wordsBytes)), HEADER.wordsOffset);
  header.writeUInt32LE(wordsBytes, HEADER.wordsBytes);
  header.writeUInt32LE(count, HEADER.recordCount);
  header.writeBigUInt64LE(BigInt(end), HEADER.recordsOffset);
  const records = Buffer.alloc(count * RECORD_BYTES);
  const from = Number(copy.readBigUInt64LE(HEADER.recordsOffset));
  const head = whole(copy, HEADER.head);
  for (let ticket = Math.max(0, head - count); ticket < head; ticket++) {
    const at = from + (ticket % slots) * RECORD_BYTES;
    copy.copy(records, (ticket % count) * RECORD_BYTES, at, at + RECORD_BYTES);
  }
  parts.push(records);
  return Buffer.concat(parts);
}
