/**
 * One dump: all that this machine can tell of a job now, in a form that `faultline diagnose` takes. Rings are copied
 * first, because they change; then processes, flight recorders and RAS are asked, all at once. Whatever fails is a line
 * in the report, and the rest is written.
 */
import { basename } from "node:path";
import { HEADER } from "../../../ingest/probe-ring/layout.ts";
import { copyRing, type RingCopy } from "../rings/copy-ring.ts";
import type { FoundRing } from "../rings/discover.ts";
import { cannotWrite, openTarget, type DumpTarget } from "./dump-target.ts";
import { collectDumps, findRecorders } from "./flight-recorder.ts";
import type { Machine } from "../process-state.ts";
import { rasAnswerAt, rasWords } from "./ras-answer.ts";
import type { RasOptions } from "./ras-client.ts";
import { requestStacks } from "./request-stacks.ts";
import { openingError } from "../rings/ring-file.ts";
import { sidecarsOf } from "./sidecars.ts";
import { SlowStorage } from "./slow-storage.ts";

const STACKS_MS = 2000;
/** Copies that are held in memory until all rings are copied, so that they are of one moment. */
const HELD_BYTES = 1 << 30;
const MOST_SIDECAR_BYTES = 512 << 20;
const MOST_DUMP_BYTES = 4 * 2 ** 30;

export interface DumpOptions {
  readonly rings: readonly FoundRing[];
  readonly out: string;
  /** Prefix of the pipes; true: as the processes' environment says; absent: not asked. */
  readonly flightRecorder?: string | true;
  /** "host:port"; true: as the processes' environment says. */
  readonly ras?: string | true;
  readonly stacks?: boolean;
  readonly machine: Machine;
  /** Older records than the ring still holds, for an agent that followed it. */
  readonly extend?: (ring: FoundRing, copy: Buffer) => Buffer;
  readonly limits?: DumpLimits;
}

/** How long is waited for whom; for tests. */
export interface DumpLimits {
  readonly stacksMs?: number;
  readonly appearMs?: number;
  readonly growMs?: number;
  readonly ras?: Omit<RasOptions, "host" | "port">;
}

export interface CopiedRing {
  readonly name: string;
  readonly rank: number;
  readonly pid: number;
  /** As in RING.md; "" where unknown. */
  readonly state: string;
  readonly records: number;
  readonly unsettled: number;
}

export interface DumpReport {
  readonly out: string;
  readonly rings: readonly CopiedRing[];
  /** Names in the dump of what was collected beside the rings. */
  readonly files: readonly string[];
  readonly troubles: readonly string[];
  /** How long the rings took: the dump is of a moment that long. */
  readonly copiedMs: number;
}

/** UserError only where the place cannot be written. */
export async function dump(options: DumpOptions): Promise<DumpReport> {
  const target = await openTarget(options.out);
  try {
    const report = await fill(target, options);
    await target.end();
    return report;
  } catch (error) {
    target.abandon();
    throw cannotWrite(options.out, error);
  }
}

async function fill(target: DumpTarget, options: DumpOptions): Promise<DumpReport> {
  const troubles: string[] = [];
  const files: string[] = [];
  const { rings, copiedMs } = await copyAll(target, options, troubles);
  const [recorded, ras] = await Promise.all([
    flightDumps(options, troubles),
    askRas(options, troubles),
    options.stacks ? askStacks(options, troubles) : null,
  ]);
  for (const path of sidecarsOf(options.rings).keys())
    await addFile(target, `rings/${basename(path)}`, path, MOST_SIDECAR_BYTES, files, troubles);
  const taken = new Set<string>();
  for (const path of recorded) {
    const name = basename(path);
    // Two jobs' dumps may have one name.
    const free = taken.has(name) ? `${taken.size}/${name}` : name;
    taken.add(name);
    await addFile(target, `flight-recorder/${free}`, path, MOST_DUMP_BYTES, files, troubles);
  }
  if (ras !== null) {
    await target.add(ras.name, ras.bytes);
    files.push(ras.name);
  }
  return { out: options.out, rings, files, troubles, copiedMs };
}

async function copyAll(
  target: DumpTarget,
  { rings, machine, extend }: DumpOptions,
  troubles: string[],
): Promise<{ rings: CopiedRing[]; copiedMs: number }> {
  const began = performance.now();
  const copied: CopiedRing[] = [];
  let held: { name: string; bytes: Buffer }[] = [];
  let heldBytes = 0;
  const flush = async (): Promise<void> => {
    for (const { name, bytes } of held) await target.add(`rings/${name}`, bytes);
    [held, heldBytes] = [[], 0];
  };
  for (const ring of rings) {
    let copy: RingCopy;
    try {
      copy = copyRing(ring, machine);
    } catch (error) {
      troubles.push(`${ring.name}: ${openingError(error)}`);
      continue;
    }
    const bytes = extend ? extend(ring, copy.bytes) : copy.bytes;
    held.push({ name: ring.name, bytes });
    heldBytes += bytes.length;
    const { rank, pid } = ring.header;
    const records = Math.min(ring.progress.head, bytes.readUInt32LE(HEADER.recordCount));
    copied.push({
      name: ring.name,
      rank,
      pid,
      state: copy.state,
      records,
      unsettled: copy.unsettled,
    });
    if (heldBytes > HELD_BYTES) await flush();
  }
  const copiedMs = performance.now() - began;
  await flush();
  return { rings: copied, copiedMs };
}

async function askStacks({ rings, limits }: DumpOptions, troubles: string[]): Promise<void> {
  for (const line of await requestStacks(rings, limits?.stacksMs ?? STACKS_MS)) troubles.push(line);
}

async function flightDumps(options: DumpOptions, troubles: string[]): Promise<readonly string[]> {
  const { flightRecorder, rings, limits } = options;
  if (flightRecorder === undefined) return [];
  const pids = [...new Set(rings.map(({ process: { pid } }) => pid))].filter((pid) => pid > 0);
  const prefix = flightRecorder === true ? undefined : flightRecorder;
  // Rings whose processes are all gone: other jobs' recorders are none of this dump's.
  if (rings.length > 0 && pids.length === 0 && prefix === undefined) return [];
  const storage = new SlowStorage();
  const found = await findRecorders(pids, prefix, storage);
  troubles.push(...found.troubles);
  const { files, troubles: more } = await collectDumps(found.recorders, storage, limits);
  troubles.push(...more);
  return files;
}

async function askRas(
  { ras, rings, limits }: DumpOptions,
  troubles: string[],
): Promise<{ name: string; bytes: Buffer } | null> {
  if (ras === undefined) return null;
  const pids = rings.map(({ process: { pid } }) => pid);
  const words = ras === true ? await rasWords(pids, new SlowStorage()) : ras;
  const { file, trouble } = await rasAnswerAt(words, limits?.ras);
  if (trouble !== null) troubles.push(trouble);
  return file;
}

async function addFile(
  target: DumpTarget,
  name: string,
  path: string,
  mostBytes: number,
  files: string[],
  troubles: string[],
): Promise<void> {
  try {
    await target.addFile(name, path, mostBytes);
    files.push(name);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // The place that is written is full or gone: nobody is helped by going on.
    if (code === "ENOSPC" || code === "EDQUOT" || code === "EIO") throw error;
    troubles.push(`${path}: ${openingError(error)}`);
  }
}
