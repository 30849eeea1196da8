/** What a CPU was in at every moment, as far as it concerns the GPU, and the calls by name. */
import { unionOf, without, type Intervals } from "../../../maths/intervals.ts";
import * as K from "../../../model/kernels.ts";
import { CPU_ACTIVITIES, type CpuActivity, type NamedSpan } from "../../../model/trace-picture.ts";

const OF_CALL: Readonly<Record<number, CpuActivity>> = {
  [K.LAUNCH]: "launch",
  [K.GRAPH_LAUNCH]: "launch",
  [K.COPY]: "launch",
  [K.SYNCHRONIZE]: "synchronization",
  [K.ALLOCATE]: "memory-management",
  [K.FREE]: "memory-management",
};

const OF_HOST_EVENT: Readonly<Record<number, CpuActivity>> = {
  [K.DATA_LOADER]: "dataloader",
  [K.GARBAGE_COLLECTION]: "garbage-collection",
};

/** Copies of pageable memory block until the GPU is done: they are synchronisations, as in stalls.ts. */
function ofCall({ calls }: K.RankKernels, row: number): CpuActivity | undefined {
  const isLongCopy = calls.kind[row] === K.COPY && calls.durNs[row]! >= K.LONG_CALL_NS;
  return isLongCopy ? "synchronization" : OF_CALL[calls.kind[row]!];
}

/** Disjoint: of what happens at once, on several threads or nested, the first in the list counts. */
export function cpuActivities(trace: K.RankKernels): Record<CpuActivity, Intervals> {
  const { calls, hostEvents } = trace;
  let taken: Intervals | null = null;
  const found = new Map<CpuActivity, Intervals>();
  for (const activity of CPU_ACTIVITIES) {
    const ofCalls = unionOf(
      calls.startNs,
      calls.durNs,
      calls.count,
      (row) => ofCall(trace, row) === activity,
    );
    const ofHost = unionOf(
      hostEvents.startNs,
      hostEvents.durNs,
      hostEvents.count,
      (row) => OF_HOST_EVENT[hostEvents.kind[row]!] === activity,
    );
    const all = both(ofCalls, ofHost);
    found.set(activity, taken ? without(all, taken) : all);
    taken = taken ? both(taken, all) : all;
  }
  return Object.fromEntries(found) as Record<CpuActivity, Intervals>;
}

function both(a: Intervals, b: Intervals): Intervals {
  if (b.start.length === 0) return a;
  if (a.start.length === 0) return b;
  const all = [...a.start.keys()]
    .map((i) => [a.start[i]!, a.end[i]!] as const)
    .concat([...b.start.keys()].map((i) => [b.start[i]!, b.end[i]!] as const))
    .toSorted((x, y) => x[0] - y[0]);
  return unionOf(
    Float64Array.from(all, ([start]) => start),
    Float64Array.from(all, ([start, end]) => end - start),
    all.length,
    () => true,
  );
}

/** The longest calls between two times that are no launches, in the order of time. */
export function longestCalls(
  trace: K.RankKernels,
  fromNs: number,
  toNs: number,
  most: number,
): NamedSpan[] {
  const found: { activity: CpuActivity; name: number; startNs: number; durNs: number }[] = [];
  const look = (
    table: K.RuntimeCalls | K.HostEvents,
    activityOf: (row: number) => CpuActivity | undefined,
  ): void => {
    for (let row = 0; row < table.count && table.startNs[row]! < toNs; row++) {
      const [startNs, durNs] = [table.startNs[row]!, table.durNs[row]!];
      if (startNs + durNs <= fromNs) continue;
      const activity = activityOf(row);
      if (activity === undefined || activity === "launch") continue;
      found.push({ activity, name: table.name[row]!, startNs, durNs });
      // Never more than a few in hand: a step may have a hundred thousand of them.
      if (found.length > 8 * most) keepLongest();
    }
  };
  const keepLongest = (): void => {
    found.sort((a, b) => b.durNs - a.durNs);
    found.length = Math.min(found.length, most);
  };
  look(trace.calls, (row) => ofCall(trace, row));
  look(trace.hostEvents, (row) => OF_HOST_EVENT[trace.hostEvents.kind[row]!]);
  keepLongest();
  return found
    .toSorted((a, b) => a.startNs - b.startNs)
    .map(({ activity, name, startNs, durNs }) => ({
      activity,
      name: trace.names[name] ?? "",
      startMs: (startNs - fromNs) / 1e6,
      durMs: durNs / 1e6,
    }));
}
