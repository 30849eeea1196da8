/**
 * Python calls beside kernels, linked by time (FLARE §4.2): both rings of a process are on its monotonic clock, so that
 * one shift puts them on one line.
 */
import {
  DATA_LOADER,
  GARBAGE_COLLECTION,
  HOST_SYNCHRONIZE,
  PYTHON_FUNCTION,
  type HostEvents,
  type RankKernels,
  type StepMarks,
} from "../../model/kernels.ts";
import {
  callPurpose,
  COLLECTION,
  ITERATION,
  type HostCalls,
  type ProbeProcess,
} from "../../model/probe.ts";

export function withHostEvents(kernels: RankKernels, python: ProbeProcess): RankKernels {
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
    shortPythonCalls: python.calls.count,
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
