/**
 * What the agent asks of running processes, through the words of their rings (probe/RING.md): to wait, to write stacks, to
 * profile, to test their GPUs and links.
 *
 * A word is written by write(2), 8 bytes at an aligned place, which the kernel copies into the shared page. No standard
 * says that another processor sees all of it at once. So a trap is only ever set from 0 and set to 0: whatever mixture of
 * bytes is seen in between is no later than the deadline itself, and the library waits no longer than its own limit in any
 * case. A request is a number that is written after what it is about; seen half, it is at worst answered twice.
 */
import { closeSync } from "node:fs";
import type { FoundRing } from "./discover.ts";
import { isForeign, type Machine } from "../process-state.ts";
import { HEADER, TEXT_BYTES } from "../../../ingest/probe-ring/layout.ts";
import { readProgress } from "./ring-header.ts";
import { headerNow, openingError, openRing, writeWords, type Word } from "./ring-file.ts";

export interface Trouble {
  readonly ring: FoundRing;
  readonly why: string;
}

/** How often the answers are looked at. */
const LOOK_MS = 20;

/** Holds the next calls of all rings for so long; those whose words could not be written. */
export function setTrap(rings: readonly FoundRing[], forNs: bigint, machine: Machine): Trouble[] {
  const ours = rings.filter((ring) => !isForeign(ring, machine));
  const foreign = rings
    .filter((ring) => !ours.includes(ring))
    .map((ring) => ({ ring, why: "its clock is another machine's; it is not held" }));
  const clear = forEach(ours, () => [u64(HEADER.trapUntilNs, 0n), u64(HEADER.trapFromTicket, 0n)]);
  // One deadline for all, taken as late as can be: the first rings must not be free before the last are held.
  const until = machine.monotonicNs() + forNs;
  const failed = new Set(clear.map(({ ring }) => ring));
  const set = forEach(
    ours.filter((ring) => !failed.has(ring)),
    () => [u64(HEADER.trapUntilNs, until)],
  );
  return [...foreign, ...clear, ...set];
}

export function releaseTrap(rings: readonly FoundRing[]): Trouble[] {
  return forEach(rings, () => [u64(HEADER.trapUntilNs, 0n), u64(HEADER.trapFromTicket, 0n)]);
}

export interface Held {
  readonly ring: FoundRing;
  /** Threads that wait in the trap now. */
  readonly now: number;
  /** Calls that were held since the process began. */
  readonly calls: number;
}

export function heldBy(rings: readonly FoundRing[]): Held[] {
  return rings.flatMap((ring) => {
    const header = headerOf(ring);
    if (header === null) return [];
    const { trappedNow, trappedCalls } = readProgress(header);
    return [{ ring, now: trappedNow, calls: trappedCalls }];
  });
}

export interface Request {
  readonly wanted: number;
  readonly answered: number;
  /** Written before the number, so that whoever sees the number finds it. */
  readonly about?: readonly Word[];
}

export const stacksRequest: Request = {
  wanted: HEADER.stacksWanted,
  answered: HEADER.stacksAnswered,
};

export function profileRequest(steps: number): Request {
  return {
    wanted: HEADER.profileWanted,
    answered: HEADER.profileAnswered,
    about: [u32(HEADER.profileSteps, steps)],
  };
}

export interface Validation {
  readonly atIteration: number;
  /** One where it is absent. */
  readonly rounds?: number;
  readonly gemm: boolean;
  readonly ring: boolean;
  readonly tree: boolean;
  /** Members of each machine where there are several. */
  readonly stride?: number;
  readonly repeats: number;
  /** MiB of a transfer. */
  readonly mb: number;
  /** Who takes part ("0-248/8,5"); all where it is absent. */
  readonly ranks?: string;
  /** No rank tests for longer. */
  readonly limitS?: number;
}

/** null where it does not fit into the header. */
export function validationRequest(validation: Validation): Request | null {
  const text = JSON.stringify(validation);
  const bytes = Buffer.alloc(TEXT_BYTES.validation);
  if (Buffer.byteLength(text) >= bytes.length) return null;
  bytes.write(text, "utf8");
  return {
    wanted: HEADER.validationWanted,
    answered: HEADER.validationAnswered,
    about: [{ at: HEADER.validation, bytes }],
  };
}

export interface Asked {
  readonly ring: FoundRing;
  readonly number: number;
}

/** Writes the request into all rings at once. */
export function ask(
  rings: readonly FoundRing[],
  { wanted, answered, about = [] }: Request,
): { asked: Asked[]; troubles: Trouble[] } {
  const asked: Asked[] = [];
  const troubles = forEach(rings, (ring) => {
    const header = headerOf(ring);
    if (header === null) throw new Error("is no longer there");
    // Above both, in case an agent before us was killed between reading and writing.
    const last = Math.max(header.readUInt32LE(wanted), header.readUInt32LE(answered));
    const number = last >= 0xffff_ffff ? 1 : last + 1;
    asked.push({ ring, number });
    return [...about, u32(wanted, number)];
  });
  const failed = new Set(troubles.map(({ ring }) => ring));
  return { asked: asked.filter(({ ring }) => !failed.has(ring)), troubles };
}

/** Waits until all have answered, or the time is over; those that did not. */
export async function answers(
  asked: readonly Asked[],
  { answered }: Request,
  limitMs: number,
): Promise<Asked[]> {
  const end = performance.now() + limitMs;
  let open = [...asked];
  for (;;) {
    open = open.filter(({ ring, number }) => headerOf(ring)?.readUInt32LE(answered) !== number);
    if (open.length === 0 || performance.now() >= end) return open;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

function headerOf(ring: FoundRing): Buffer | null {
  try {
    const fd = openRing(ring);
    try {
      return headerNow(fd);
    } finally {
      closeSync(fd);
    }
  } catch {
    return null;
  }
}

function forEach(
  rings: readonly FoundRing[],
  words: (ring: FoundRing) => readonly Word[],
): Trouble[] {
  const troubles: Trouble[] = [];
  for (const ring of rings) {
    try {
      writeWords(ring.path, words(ring));
    } catch (error) {
      troubles.push({ ring, why: openingError(error).replace("be read", "be written") });
    }
  }
  return troubles;
}

function u64(at: number, value: bigint): Word {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return { at, bytes };
}

function u32(at: number, value: number): Word {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return { at, bytes };
}
