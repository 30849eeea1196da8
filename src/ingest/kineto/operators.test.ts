import { describe, expect, test } from "vitest";
import { buildJob } from "../build-job.ts";
import { kineto } from "../kineto.ts";
import { readBytes } from "../../../test/support/ingest/reader-contract.ts";
import { event, HEADER, ONE_STEP, trace } from "../../../test/support/ingest/kineto-traces.ts";

const read = (events: readonly string[], top = HEADER) =>
  readBytes(kineto, "kineto.rank5.json", trace(events, top));
const logOf = (events: readonly string[], top = HEADER) => read(events, top).operators![0]!;

/** An all-reduce: its launch, and its kernel. */
function allReduce(
  correlation: number,
  issued: number,
  start: number,
  args: object = {},
): string[] {
  return [
    event({ cat: "cuda_runtime", name: "cudaLaunchKernelExC", ts: issued, args: { correlation } }),
    event({
      cat: "kernel",
      name: "ncclDevKernel_AllReduce_Sum_f32_TREE_LL(x)",
      ts: start,
      dur: 2500,
      pid: 0,
      tid: 7,
      args: {
        correlation,
        "Collective name": "allreduce",
        "Group size": 2,
        dtype: "Float",
        "Process Group Name": "1",
        "Process Group Ranks": "[2, 3]",
        ...args,
      },
    }),
  ];
}

describe("operators out of a trace", () => {
  test("carry issue, start and end, sizes, type and group", () => {
    const { ops, groups, rank, epochNs, pid } = logOf(ONE_STEP);
    expect([rank, pid, epochNs]).toEqual([3, 100, 1790857026001000001n]);
    expect(Array.from(ops.name, (name) => ops.names[name])).toEqual(["all_reduce", "send 0->1"]);
    expect([...ops.createdNs]).toEqual([30_000, 40_000]);
    expect([...ops.startedNs]).toEqual([110_000, 111_000]);
    expect([...ops.completedNs]).toEqual([610_250, 133_783]);
    expect(ops.durationMs[0]).toBeCloseTo(0.50025, 6);
    expect([...ops.isP2p]).toEqual([0, 1]);
    expect([...ops.isSend]).toEqual([0, 1]);
    expect([...ops.peer]).toEqual([-1, 1]);
    expect([...ops.seq]).toEqual([1, 0]);
    expect([...ops.p2pSeq]).toEqual([0, 1]);
    expect([...ops.inputNumel]).toEqual([131072, 64]);
    expect(ops.dtypes[ops.dtype[0]!]).toBe("BFloat16");
    expect(groups.map(({ name, ranks }) => [name, ranks?.length])).toEqual([
      ["0", 8],
      ["9", 2],
    ]);
  });

  test("come in the order of issue, counted per group", () => {
    const { ops } = logOf([...allReduce(2, 200, 4000), ...allReduce(1, 100, 5000)]);
    expect([...ops.createdNs]).toEqual([-100_000, 0]);
    expect([...ops.startedNs]).toEqual([4_800_000, 3_800_000]);
    expect([...ops.seq]).toEqual([1, 2]);
  });

  test("have the job's own numbers where all kernels of a group carry them", () => {
    const numbered = [...allReduce(1, 1, 5, { Seq: 17 }), ...allReduce(2, 2, 6, { Seq: 18 })];
    const log = logOf(numbered);
    expect([[...log.ops.seq], log.hasSequence]).toEqual([[17, 18], true]);
    const counted = logOf([...numbered, ...allReduce(3, 3, 7)]);
    expect([[...counted.ops.seq], counted.hasSequence]).toEqual([[1, 2, 3], false]);
  });

  test("lack the issue where the trace lacks the launch", () => {
    const { ops } = logOf(allReduce(1, 1, 5).slice(1));
    expect([...ops.createdNs]).toEqual([NaN]);
    expect([...ops.startedNs]).toEqual([0]);
  });

  test("of a group whose list is cut have no members, unless it is the whole job", () => {
    const cut = { "Process Group Ranks": "[0, 1, ...]", "Group size": 8 };
    expect(logOf(allReduce(1, 1, 5, cut)).groups[0]!.ranks).toHaveLength(8);
    const part = { ...cut, "Group size": 4 };
    expect(logOf(allReduce(1, 1, 5, part)).groups[0]!.ranks).toBeNull();
  });

  test("are none where kernels do not say their group", () => {
    const silent = event({
      cat: "kernel",
      name: "ncclKernel_AllReduce_RING_LL_Sum_float(x)",
      ts: 1,
    });
    expect(read([silent]).operators).toBeUndefined();
  });

  test("find their groups in a job that has nothing but traces", () => {
    const job = buildJob([read(ONE_STEP)], null);
    expect(job.kernels).toHaveLength(1);
    expect(job.worldSize).toBe(8);
    expect(job.groups.map(({ name, ranks }) => [name, ranks])).toEqual([
      ["0", [0, 1, 2, 3, 4, 5, 6, 7]],
      ["9", [3, 7]],
    ]);
  });
});
