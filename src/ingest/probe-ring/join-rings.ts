/**
 * Readings of rings, made to agree before a job is built of them: rings of other runs are left out, ranks that a ring
 * did not know are filled in, and what Python did is put beside the kernels of its process.
 */
import type { Rank } from "../../model/ids.ts";
import {
  callPurpose,
  COLLECTION,
  ITERATION,
  type ProbeProcess,
  type HostCalls,
} from "../../model/probe.ts";
import type { Reading } from "../../model/reading.ts";
import { chooseRings } from "./choose-rings.ts";
import {
  DATA_LOADER,
  GARBAGE_COLLECTION,
  HOST_SYNCHRONIZE,
  PYTHON_FUNCTION,
  type HostEvents,
  type RankKernels,
  type StepMarks,
} from "../../model/kernels.ts";

export function joinRings(readings: readonly Reading[], missing: string[]): readonly Reading[] {
  const probes = readings.flatMap((reading) => reading.probes ?? []);
  if (probes.length === 0) return readings;
  const { rankOf } = chooseRings(probes, missing);
  const chosen = readings.map((reading) => {
    const [probe] = reading.probes ?? [];
    if (!probe) return reading;
    if (!rankOf.has(probe.file)) return bare(reading);
    const rank = rankOf.get(probe.file) ?? null;
    return rank === reading.rank ? reading : withRank(reading, rank);
  });
  const pythonOf = new Map<string, ProbeProcess>();
  for (const { probes: [probe] = [] } of chosen)
    if (probe && probe.calls.count > 0) pythonOf.set(processKey(probe), probe);
  return oneSource(chosen, missing).map((reading) => {
    const [probe] = reading.probes ?? [];
    const python = probe && reading.kernels ? pythonOf.get(processKey(probe)) : undefined;
    if (!python) return reading;
    return { ...reading, kernels: reading.kernels!.map((one) => withHostEvents(one, python)) };
  });
}

function processKey({ host, pid }: ProbeProcess): string {
  return `${host}:${pid}`;
}

/** What is left of a ring that is not used: that it was there. */
function bare({ file, format, rank, records, defects }: Reading): Reading {
  return { file, format, rank, records, defects };
}

function withRank(reading: Reading, rank: Rank | null): Reading {
  const set = <T>(list: readonly T[] | undefined): T[] | undefined =>
    list?.map((one) => ({ ...one, rank }));
  const { probes, series, kernels, failures } = reading;
  return {
    ...reading,
    rank,
    ...(probes ? { probes: set(probes)! } : {}),
    ...(series ? { series: set(series)! } : {}),
    ...(kernels ? { kernels: set(kernels)! } : {}),
    ...(failures ? { failures: set(failures)! } : {}),
  };
}

/**
 * Operators come from rings or from the flight recorder, never from both: their groups have other names and their
 * sequence numbers count other things, so that ranks of two sources cannot be compared. Rings are taken where they saw
 * as many ranks: they say when they were copied, so that a running job is distinguished from one that hangs, and how far each
 * connection is. The flight recorder is, where it alone timed operators or saw more ranks.
 */
function oneSource(readings: readonly Reading[], missing: string[]): readonly Reading[] {
  const isRing = (reading: Reading): boolean => reading.probes !== undefined;
  const ringRanks = new Set<Rank>();
  const recorded = new Set<Rank>();
  let ringTiming = false;
  let recordedTiming = false;
  for (const reading of readings) {
    for (const { timing, isCut } of reading.dumps ?? []) {
      if (isRing(reading)) {
        if (reading.rank !== null) ringRanks.add(reading.rank);
        ringTiming ||= timing;
      } else if (!isCut) {
        if (reading.rank !== null) recorded.add(reading.rank);
        recordedTiming ||= timing;
      }
    }
  }
  if (ringRanks.size === 0 || recorded.size === 0) return readings;
  const ringsWin =
    ringRanks.size > recorded.size ||
    (ringRanks.size === recorded.size && (ringTiming || !recordedTiming));
  missing.push(
    ringsWin
      ? `${ringRanks.size} ranks left rings, ${recorded.size} flight-recorder dumps: operators are taken from the rings`
      : `${recorded.size} ranks left flight-recorder dumps, ${ringRanks.size} rings: operators are taken from the flight recorder`,
  );
  return readings.map((reading) => {
    if (!reading.dumps || isRing(reading) === ringsWin) return reading;
    const { dumps: _, ...rest } = reading;
    return rest;
  });
}

/**
 * Python calls beside kernels, linked by time (FLARE §4.2): both rings of a process are on its monotonic clock, so that
 * one shift puts them on one line.
 */
function withHostEvents(kernels: RankKernels, python: ProbeProcess): RankKernels {
  const shiftNs = Number(python.epochNs - kernels.epochNs);
  const names = [...kernels.names];
  const firstName = names.push(...python.calls.names) - python.calls.names.length;
  const collection = names.push("gc") - 1;
  return {
    ...kernels,
    names,
    hostEvents: eventsOf(python.calls, shiftNs, firstName, collection),
    steps: stepsOf(python.calls, shiftNs),
    // Only what was asked for is traced.
  };
}

function eventsOf(
  calls: HostCalls,
  shiftNs: number,
  firstName: number,
  collection: number,
): HostEvents {
  const rows = endedRows(calls, (kind) => kind !== ITERATION);
  const kinds = calls.names.map(kindOf);
  return {
    count: rows.length,
    startNs: Float64Array.from(rows, (row) => calls.startNs[row]! + shiftNs),
    durNs: Float64Array.from(rows, (row) => calls.endNs[row]! - calls.startNs[row]!),
    name: Int32Array.from(rows, (row) =>
      calls.kind[row] === COLLECTION ? collection : firstName + Math.max(0, calls.name[row]!),
    ),
    kind: Uint8Array.from(rows, (row) =>
      calls.kind[row] === COLLECTION
        ? GARBAGE_COLLECTION
        : (kinds[calls.name[row]!] ?? PYTHON_FUNCTION),
    ),
    thread: Int32Array.from(rows, (row) => calls.thread[row]!),
  };
}

function kindOf(name: string): number {
  const purpose = callPurpose(name);
  if (purpose === "dataloader") return DATA_LOADER;
  if (purpose === "synchronization") return HOST_SYNCHRONIZE;
  return purpose === "garbage-collection" ? GARBAGE_COLLECTION : PYTHON_FUNCTION;
}

function stepsOf(calls: HostCalls, shiftNs: number): StepMarks {
  const rows = endedRows(calls, (kind) => kind === ITERATION);
  return {
    count: rows.length,
    number: Float64Array.from(rows, (row) => calls.detail[row]!),
    startNs: Float64Array.from(rows, (row) => calls.startNs[row]! + shiftNs),
    durNs: Float64Array.from(rows, (row) => calls.endNs[row]! - calls.startNs[row]!),
  };
}

function endedRows(calls: HostCalls, isWanted: (kind: number) => boolean): number[] {
  const rows: number[] = [];
  for (let i = 0; i < calls.count; i++)
    if (isWanted(calls.kind[i]!) && Number.isFinite(calls.endNs[i]!)) rows.push(i);
  return rows;
}
