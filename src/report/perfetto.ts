/**
 * All ranks in one trace that Perfetto opens (ui.perfetto.dev, chrome://tracing): Chrome's JSON of complete events, a
 * process a rank, clocks aligned. Written piece by piece, so that memory does not grow with the traces. Times count
 * from the first event, because a reader that takes them as doubles loses nanoseconds of times since 1970.
 */
import type { Rank } from "../model/ids.ts";
import type * as K from "../model/kernels.ts";
import type { RankClock } from "../model/trace-picture.ts";

const PIECE = 1 << 16;
const GPU_CATEGORIES = ["kernel", "communication", "gpu_memcpy", "gpu_memset"] as const;
const HOST_CATEGORIES = [
  "user_annotation",
  "dataloader",
  "garbage_collection",
  "synchronize",
  "python_function",
] as const;

/** Streams stand below threads, steps above. */
const STEP_TRACK = 0;
const THREAD_TRACK = 100;
const STREAM_TRACK = 200;

export function* perfettoPieces(
  traces: readonly (readonly [Rank, K.RankKernels])[],
  clocks: readonly RankClock[],
): Generator<string> {
  const aheadNs = new Map(clocks.map(({ rank, aheadNs: ns }) => [rank, Math.round(ns)]));
  const firstEpochNs = traces.reduce(
    (least, [, { epochNs }]) => (epochNs < least ? epochNs : least),
    traces[0]?.[1].epochNs ?? 0n,
  );
  const shiftOf = (rank: Rank, { epochNs }: K.RankKernels): number =>
    Number(epochNs - firstEpochNs) - (aheadNs.get(rank) ?? 0);
  let firstNs = Infinity;
  for (const [rank, trace] of traces)
    firstNs = Math.min(firstNs, earliestNs(trace) + shiftOf(rank, trace));
  if (!Number.isFinite(firstNs)) firstNs = 0;

  yield header(firstEpochNs + BigInt(Math.round(firstNs)), clocks);
  let piece = "";
  let isFirst = true;
  const tracks = new Map<string, number>();
  const named = new Set<Rank>();
  for (const [rank, trace] of traces) {
    if (!named.has(rank)) {
      named.add(rank);
      piece += `${isFirst ? "" : ",\n"}${processWords(rank, trace, aheadNs.get(rank) ?? 0)}`;
      isFirst = false;
    }
    const track = trackOf(rank, tracks, (words) => (piece += `,\n${words}`));
    for (const event of eventsOf(rank, trace, shiftOf(rank, trace) - firstNs, track)) {
      piece += `,\n${event}`;
      if (piece.length < PIECE) continue;
      yield piece;
      piece = "";
    }
  }
  yield `${piece}\n]}\n`;
}

function header(baseNs: bigint, clocks: readonly RankClock[]): string {
  const offsets = Object.fromEntries(
    clocks.map(({ rank, aheadNs }) => [`rank ${rank}`, `${micros(aheadNs)} us`]),
  );
  const other = {
    tool: "faultline",
    clocks: "aligned by the ends of shared communication; taken off each rank's times:",
    ...offsets,
  };
  return `{"displayTimeUnit":"ms","baseTimeNanoseconds":${baseNs},"otherData":${JSON.stringify(other)},"traceEvents":[\n`;
}

/** Tables are in the order of their starts, so the first row of each is enough. */
function earliestNs({ gpu, calls, hostEvents, steps, matrixOps }: K.RankKernels): number {
  return [gpu, calls, hostEvents, steps, matrixOps].reduce(
    (least, { count, startNs }) => (count > 0 ? Math.min(least, startNs[0]!) : least),
    Infinity,
  );
}

function processWords(rank: Rank, { host }: K.RankKernels, aheadNs: number): string {
  const meta = (name: string, args: object): string =>
    JSON.stringify({ ph: "M", pid: rank, tid: 0, ts: 0, name, args });
  return [
    meta("process_name", { name: host === "" ? `rank ${rank}` : `rank ${rank} on ${host}` }),
    meta("process_labels", { labels: `clock ${micros(aheadNs)} us, taken off` }),
    meta("process_sort_index", { sort_index: rank }),
  ].join(",\n");
}

/** Numbers of tracks are unique in the file: viewers differ in whether processes may share them. */
function trackOf(rank: Rank, tracks: Map<string, number>, announce: (words: string) => void) {
  return (name: string, order: number): number => {
    const key = `${rank}|${name}`;
    const known = tracks.get(key);
    if (known !== undefined) return known;
    const tid = tracks.size + 1;
    tracks.set(key, tid);
    const meta = (what: string, args: object): void =>
      announce(JSON.stringify({ ph: "M", pid: rank, tid, ts: 0, name: what, args }));
    meta("thread_name", { name });
    meta("thread_sort_index", { sort_index: order });
    return tid;
  };
}

type Track = (name: string, order: number) => number;

function* eventsOf(
  rank: Rank,
  trace: K.RankKernels,
  shiftNs: number,
  track: Track,
): Generator<string> {
  const { gpu, calls, hostEvents, steps, matrixOps, devices } = trace;
  // Once a text, not once an event: a trace has few names and many events.
  const names = trace.names.map((name) => JSON.stringify(name));
  const event = (
    table: { readonly startNs: Float64Array; readonly durNs: Float64Array },
    row: number,
    tid: number,
    category: string,
    name: string,
    args: string,
  ): string => {
    const start = Math.max(0, Math.round(table.startNs[row]! + shiftNs));
    const dur = Math.max(0, Math.round(table.durNs[row]!));
    return `{"ph":"X","pid":${rank},"tid":${tid},"ts":${us(start)},"dur":${us(dur)},"cat":"${category}","name":${name}${args}}`;
  };
  const thread = (id: number): number => track(`thread ${id}`, THREAD_TRACK);

  for (let i = 0; i < steps.count; i++)
    yield event(
      steps,
      i,
      track("steps", STEP_TRACK),
      "step",
      `"ProfilerStep#${steps.number[i]}"`,
      "",
    );
  for (let i = 0; i < hostEvents.count; i++)
    yield event(
      hostEvents,
      i,
      thread(hostEvents.thread[i]!),
      HOST_CATEGORIES[hostEvents.kind[i]!] ?? "host",
      names[hostEvents.name[i]!]!,
      "",
    );
  for (let i = 0; i < matrixOps.count; i++)
    yield event(
      matrixOps,
      i,
      thread(matrixOps.thread[i]!),
      "cpu_op",
      names[matrixOps.name[i]!]!,
      "",
    );
  for (let i = 0; i < calls.count; i++)
    yield event(
      calls,
      i,
      thread(calls.thread[i]!),
      "cuda_runtime",
      names[calls.name[i]!]!,
      `,"args":{"correlation":${calls.correlation[i]}}`,
    );
  for (let i = 0; i < gpu.count; i++) {
    const device = devices.length > 1 ? `GPU ${gpu.device[i]} ` : "";
    const tid = track(`${device}stream ${gpu.stream[i]}`, STREAM_TRACK + gpu.stream[i]!);
    const category = GPU_CATEGORIES[gpu.kind[i]!] ?? "kernel";
    yield event(gpu, i, tid, category, names[gpu.name[i]!]!, gpuArgs(trace, i, names));
  }
}

function gpuArgs(
  { gpu, calls, collectives, groups }: K.RankKernels,
  row: number,
  names: readonly string[],
): string {
  const parts = [`"correlation":${gpu.correlation[row]}`];
  const launch = gpu.launch[row]!;
  if (launch >= 0) {
    const latencyNs = Math.max(0, Math.round(gpu.startNs[row]! - calls.startNs[launch]!));
    parts.push(`"issue latency us":${us(latencyNs)}`);
  }
  const of = gpu.collective[row]!;
  if (of >= 0) {
    const group = groups[collectives.group[of]!];
    const seq = collectives.seq[of]!;
    parts.push(`"operation":${names[collectives.operation[of]!] ?? '""'}`);
    if (group) parts.push(`"group":${JSON.stringify(group.desc === "" ? group.name : group.desc)}`);
    if (Number.isFinite(seq)) parts.push(`"seq":${seq}`);
    if (collectives.peer[of]! >= 0) parts.push(`"peer":${collectives.peer[of]}`);
  }
  return `,"args":{${parts.join()}}`;
}

/** Whole nanoseconds as microseconds, exactly. */
function us(ns: number): string {
  const rest = ns % 1000;
  return rest === 0 ? `${ns / 1000}` : `${Math.floor(ns / 1000)}.${String(rest).padStart(3, "0")}`;
}

/** "+8.671". */
export function micros(ns: number): string {
  return `${ns < 0 ? "" : "+"}${(ns / 1000).toFixed(3)}`;
}
