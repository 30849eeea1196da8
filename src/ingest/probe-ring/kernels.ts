/**
 * The ring's matrix products and operators as kernels of a trace (FLARE §4.1: selective tracing), so that FLOPS,
 * bandwidth and issue latencies are known without a profiler. Only what has ended and was timed by the GPU is in it.
 */
import { COMPUTE, LAUNCH, type RankKernels, type TraceGroup } from "../../model/kernels.ts";
import type { FlightDump } from "../../model/operators.ts";
import { kernelRows, Kinds, type KernelRows } from "./kernel-rows.ts";
import { ascendingOrder } from "./natural-order.ts";
import type { Records } from "./records.ts";
import type { RingBytes } from "./ring-bytes.ts";
import type { Rank } from "../../model/ids.ts";
import type { RankDump } from "../../model/job.ts";

type About = Pick<RankKernels, "rank" | "worldSize" | "host"> & { readonly gpu: number | null };

/** null where nothing was timed. */
export function readKernels(
  ring: RingBytes,
  records: Records,
  apis: readonly string[],
  dump: FlightDump,
  about: About,
): RankKernels | null {
  const kinds = new Kinds();
  const rows = kernelRows(ring, records, apis, dump.ops, kinds);
  return rows && build(rows, kinds, dump, about);
}

function build(rows: KernelRows, kinds: Kinds, dump: FlightDump, about: About): RankKernels {
  const n = rows.count;
  const byStart = ascendingOrder(rows.startNs.subarray(0, n));
  const byIssue = ascendingOrder(rows.issuedNs.subarray(0, n));
  const launchOf = new Int32Array(n);
  byIssue.forEach((row, i) => (launchOf[row] = i));
  const floats = (column: ArrayLike<number>, order: Int32Array): Float64Array =>
    picked(new Float64Array(order.length), column, order);
  const ints = (column: ArrayLike<number>, order: Int32Array): Int32Array =>
    picked(new Int32Array(order.length), column, order);
  const products = byStart.filter((row) => rows.shape[row]! >= 0);
  const productOf = new Int32Array(n).fill(-1);
  products.forEach((row, i) => (productOf[row] = i));
  const spoken = byStart.filter((row) => rows.op[row]! >= 0);
  const collectiveOf = new Int32Array(n).fill(-1);
  spoken.forEach((row, i) => (collectiveOf[row] = i));
  const { ops, groups } = dump;
  const dtypes = ops.dtypes.map((type) => kinds.name(type));
  const spokenOps = ints(rows.op, spoken);
  return {
    file: dump.file,
    rank: about.rank,
    worldSize: about.worldSize,
    backend: "nccl",
    host: about.host,
    epochNs: dump.epochNs,
    isCut: false,
    coverage: "instrumented",
    devices: [],
    names: kinds.names,
    gpu: {
      count: n,
      startNs: floats(rows.startNs, byStart),
      durNs: floats(rows.durNs, byStart),
      name: ints(rows.name, byStart),
      kind: picked(new Uint8Array(n), rows.kind, byStart),
      device: new Int32Array(n).fill(about.gpu ?? 0),
      stream: ints(rows.stream, byStart),
      launch: ints(launchOf, byStart),
      correlation: new Uint32Array(n),
      collective: ints(collectiveOf, byStart),
      matrixOp: ints(productOf, byStart),
    },
    calls: {
      count: n,
      startNs: floats(rows.issuedNs, byIssue),
      durNs: new Float64Array(n),
      name: ints(rows.name, byIssue),
      kind: new Uint8Array(n).fill(LAUNCH),
      thread: new Int32Array(n),
      correlation: new Uint32Array(n),
    },
    hostEvents: {
      count: 0,
      startNs: new Float64Array(0),
      durNs: new Float64Array(0),
      name: new Int32Array(0),
      kind: new Uint8Array(0),
      thread: new Int32Array(0),
    },
    steps: {
      count: 0,
      number: new Float64Array(0),
      startNs: new Float64Array(0),
      durNs: new Float64Array(0),
    },
    matrixOps: {
      count: products.length,
      startNs: floats(rows.startNs, products),
      durNs: floats(rows.durNs, products),
      name: ints(rows.name, products),
      shape: ints(rows.shape, products),
      thread: new Int32Array(products.length),
    },
    shapes: kinds.shapes,
    collectives: {
      count: spoken.length,
      operation: ints(rows.name, spoken),
      group: ints(ops.group, spokenOps),
      inputNumel: floats(ops.inputNumel, spokenOps),
      outputNumel: floats(ops.outputNumel, spokenOps),
      dtype: spokenOps.map((op) => dtypes[ops.dtype[op]!] ?? -1),
      groupSize: spokenOps.map((op) => groups[ops.group[op]!]?.own?.size ?? 0),
      seq: Float64Array.from(spokenOps, (op) => (ops.isP2p[op] === 1 ? NaN : ops.seq[op]!)),
      // Ranks of the group, until build-job knows its members.
      peer: ints(ops.peer, spokenOps),
    },
    groups: groups.map(({ name, desc }) => ({ name, desc, ranks: null })),
  };
}

/** Whether the GPU's own work was traced; communication alone is in the dump as well. */
export function hasCompute({ coverage, gpu }: RankKernels): boolean {
  return coverage !== "instrumented" || gpu.kind.includes(COMPUTE);
}

function picked<T extends Int32Array | Float64Array | Uint8Array>(
  into: T,
  column: ArrayLike<number>,
  order: Int32Array,
): T {
  for (let i = 0; i < order.length; i++) into[i] = column[order[i]!]!;
  return into;
}

/**
 * The members of a ring's communicators, once build-job knows them, for the bandwidth metric.
 */
export function withMembers(kernels: RankKernels, dumps: ReadonlyMap<Rank, RankDump>): RankKernels {
  const dump = kernels.rank === null ? undefined : dumps.get(kernels.rank)?.dump;
  if (kernels.coverage !== "instrumented" || dump?.file !== kernels.file) return kernels;
  const groups = kernels.groups.map((group, index): TraceGroup => {
    const known = dump.groups[index];
    const isWhole = known?.ranks && known.ranks.length === known.own?.size;
    return isWhole ? { ...group, ranks: known.ranks } : group;
  });
  const { collectives } = kernels;
  const peer = collectives.peer.map((place, row) =>
    place < 0 ? place : (groups[collectives.group[row]!]?.ranks?.[place] ?? -1),
  );
  return { ...kernels, groups, collectives: { ...collectives, peer } };
}
