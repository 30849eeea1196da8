/** Puts the tables in order and draws the lines between them: kernel to launch, kernel to operator. */
import { COPY, type GpuEvents, GRAPH_LAUNCH, LAUNCH } from "../../model/kernels.ts";
import { orderOf } from "../growing-table.ts";
import type { TraceTables } from "./trace-tables.ts";

export function linkTables(tables: TraceTables) {
  const { gpu, calls, host, steps, collectives } = tables;
  const taken = {
    calls: { count: calls.count, ...calls.take(orderOf(calls.columns.startNs, calls.count)) },
    hostEvents: { count: host.count, ...host.take(orderOf(host.columns.startNs, host.count)) },
    steps: { count: steps.count, ...steps.take(orderOf(steps.columns.startNs, steps.count)) },
    collectives: { count: collectives.count, ...collectives.take(null) },
  };
  const opCount = tables.matrixOps.count;
  const opOrder = orderOf(tables.matrixOps.columns.startNs, opCount);
  const { externalId: opIds, ...ops } = tables.matrixOps.take(opOrder);
  const count = gpu.count;
  const { externalId, ...events } = gpu.take(orderOf(gpu.columns.startNs, count));
  const launch = findLaunches(events.correlation, taken.calls);
  const matrixOps = { count: opCount, ...ops };
  const matrixOp = isOwnNumber(externalId, events.correlation)
    ? findByNumber(
        numbered(opIds, () => true),
        opIds,
        externalId,
      )
    : nestInOperators(launch, taken.calls, matrixOps);
  const linked: GpuEvents = { count, ...events, launch, matrixOp };
  return { ...taken, gpu: linked, matrixOps };
}

/** Some releases (2022, 2023) wrote the correlation once more where the operator's number belongs. */
function isOwnNumber(externalId: Uint32Array, correlation: Uint32Array): boolean {
  return externalId.some((id, i) => id !== 0 && id !== correlation[i]);
}

interface Calls {
  readonly count: number;
  readonly startNs: Float64Array;
  readonly kind: Uint8Array;
  readonly thread: Int32Array;
  readonly correlation: Uint32Array;
}

function findLaunches(correlations: Uint32Array, calls: Calls): Int32Array {
  const isLaunch = (i: number): boolean => {
    const kind = calls.kind[i]!;
    return kind === LAUNCH || kind === GRAPH_LAUNCH || kind === COPY;
  };
  const launches = numbered(calls.correlation, isLaunch);
  return findByNumber(launches, calls.correlation, correlations);
}

/** An open hash table of the rows that pass, by their number; 0 is no number. Of equal ones the first counts. */
function numbered(numbers: Uint32Array, passes: (row: number) => boolean): Int32Array {
  let size = 16;
  while (size < 2 * numbers.length) size *= 2;
  const slots = new Int32Array(size).fill(-1);
  for (let row = 0; row < numbers.length; row++) {
    const number = numbers[row]!;
    if (number === 0 || !passes(row)) continue;
    let slot = slotOf(number, size);
    while (slots[slot]! >= 0 && numbers[slots[slot]!] !== number) slot = (slot + 1) & (size - 1);
    if (slots[slot]! < 0) slots[slot] = row;
  }
  return slots;
}

function findByNumber(slots: Int32Array, numbers: Uint32Array, wanted: Uint32Array): Int32Array {
  const found = new Int32Array(wanted.length).fill(-1);
  const size = slots.length;
  for (let i = 0; i < wanted.length; i++) {
    const number = wanted[i]!;
    if (number === 0) continue;
    let slot = slotOf(number, size);
    while (slots[slot]! >= 0 && numbers[slots[slot]!] !== number) slot = (slot + 1) & (size - 1);
    found[i] = slots[slot]!;
  }
  return found;
}

function slotOf(number: number, size: number): number {
  return (Math.imul(number, 0x9e3779b1) >>> 7) & (size - 1);
}

interface Ops {
  readonly count: number;
  readonly startNs: Float64Array;
  readonly durNs: Float64Array;
  readonly thread: Int32Array;
}

/** Kernels without their operator's number: it is the innermost one that ran on the launching thread at the launch. */
function nestInOperators(launch: Int32Array, calls: Calls, ops: Ops): Int32Array {
  const operatorOf = new Int32Array(calls.count).fill(-1);
  /** By thread: the operators running now, the outermost first. */
  const running = new Map<number, number[]>();
  let next = 0;
  for (let call = 0; call < calls.count; call++) {
    const now = calls.startNs[call]!;
    for (; next < ops.count && ops.startNs[next]! <= now; next++) {
      const stack = running.get(ops.thread[next]!) ?? [];
      if (stack.length === 0) running.set(ops.thread[next]!, stack);
      dropEnded(stack, ops, ops.startNs[next]!);
      stack.push(next);
    }
    const stack = running.get(calls.thread[call]!);
    if (!stack) continue;
    dropEnded(stack, ops, now);
    operatorOf[call] = stack.at(-1) ?? -1;
  }
  return launch.map((call) => (call < 0 ? -1 : operatorOf[call]!));
}

function dropEnded(stack: number[], { startNs, durNs }: Ops, now: number): void {
  while (stack.length > 0 && startNs[stack.at(-1)!]! + durNs[stack.at(-1)!]! < now) stack.pop();
}
