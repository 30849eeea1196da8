import { describe, expect, it } from "vitest";
import { diagnoseFiles } from "../../../test/support/in-memory.ts";
import type { WatchdogReport } from "../../model/log.ts";
import { findLogMismatches } from "./log-mismatch.ts";

function report(rank: number, call: Partial<WatchdogReport> = {}): WatchdogReport {
  return {
    rank,
    file: `rank${rank}.log`,
    line: 1,
    timeMs: null,
    group: "5",
    desc: "TENSOR_PARALLEL_1",
    groupRank: rank,
    seq: 41,
    op: "_ALLGATHER_BASE",
    numelIn: 64,
    numelOut: 256,
    enqueued: 41,
    completed: 40,
    ...call,
  };
}

const OTHER = { op: "ALLREDUCE", numelIn: 1, numelOut: 1 };
const said = (reports: readonly WatchdogReport[]): string[] =>
  findLogMismatches(reports).map(({ ranks, isDecided }) => `${ranks.join()} ${isDecided}`);

describe("ranks that issued something else under the same number of a group", () => {
  it("are named where most of the group agree", () => {
    expect(said([report(0), report(1), report(2, OTHER), report(3)])).toEqual(["2 true"]);
    const [mismatch] = findLogMismatches([report(0), report(1), report(2, OTHER), report(3)]);
    expect(mismatch!.why).toBe(
      "rank 2 issued ALLREDUCE of 1 elements as #41 of TENSOR_PARALLEL_1, where 3 other ranks issued _ALLGATHER_BASE of 64 to 256 elements",
    );
  });

  it("are named where only the size differs, of operators that need the same", () => {
    const half = { numelIn: 32, numelOut: 128 };
    expect(said([report(0), report(1), report(2, half), report(3)])).toEqual(["2 true"]);
    const split = (rank: number, numelIn: number): WatchdogReport =>
      report(rank, { op: "ALLTOALL_BASE", numelIn });
    expect(said([split(0, 9), split(1, 9), split(2, 5), split(3, 9)])).toEqual([]);
  });

  it("are named together where it is one against one", () => {
    expect(said([report(0), report(1, OTHER)])).toEqual(["0,1 false"]);
  });

  it("are named one against one, if other groups of the kind issue what the other did", () => {
    const elsewhere = { group: "6", desc: "TENSOR_PARALLEL_2" };
    const two = [report(0), report(1, OTHER)];
    expect(said([...two, report(2, elsewhere)])).toEqual(["1 true"]);
    expect(said([...two, report(2, { ...elsewhere, ...OTHER })])).toEqual(["0 true"]);
    // Both are usual, or the other group is of another kind.
    expect(
      said([...two, report(2, elsewhere), report(3, { ...elsewhere, ...OTHER, seq: 42 })]),
    ).toEqual(["0,1 false"]);
    expect(said([...two, report(2, { group: "6", desc: "DATA_PARALLEL_2" })])).toEqual([
      "0,1 false",
    ]);
  });

  it("are not compared across numbers, groups, transfers, or groups that share a name", () => {
    expect(said([report(0), report(1), report(2, { ...OTHER, seq: 42 })])).toEqual([]);
    expect(said([report(0), report(1), report(2, { ...OTHER, group: "6" })])).toEqual([]);
    expect(said([report(0), report(1), report(2, { ...OTHER, group: "" })])).toEqual([]);
    expect(said([report(0, { op: "SEND" }), report(1), report(2, OTHER)])).toEqual([]);
    expect(said([report(0), report(1), report(2, { ...OTHER, groupRank: 0 })])).toEqual([]);
  });

  it("are judged by the last that each rank tells of: it may have been restarted", () => {
    const reports = [report(2, OTHER), report(0), report(1), report(2), report(3)];
    expect(said(reports)).toEqual([]);
  });
});

describe("a job of which there are only logs", () => {
  const log = (rank: number, op: string, numel: number): { name: string; bytes: Uint8Array } => {
    const at = (ms: number): string => `[rank${rank}]:[E1115 00:42:01.${ms}000000 ProcessGroupNCCL`;
    const text = `2026-11-15 00:41:37.409 [INFO] [rank${rank}] initializing torch distributed, world size 4
${at(742)}.cpp:689] [Rank ${rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, OpType=${op}, NumelIn=${numel}, NumelOut=${numel}, Timeout(ms)=12000) ran for 12007 milliseconds before timing out.
${at(743)}.cpp:2303] [PG ID 1 PG GUID 5(TENSOR_PARALLEL_0) Rank ${rank}]  failure detected by watchdog at work sequence id: 41 PG status: last enqueued work: 41, last completed work: 40
`;
    return { name: `logs/rank${rank}.log`, bytes: Buffer.from(text) };
  };

  it("hangs of the rank that issued something else", async () => {
    const verdict = await diagnoseFiles([
      log(0, "ALLREDUCE", 1024),
      log(1, "ALLREDUCE", 512),
      log(2, "ALLREDUCE", 1024),
      log(3, "ALLREDUCE", 1024),
    ]);
    expect(verdict.kind).toBe("hang");
    expect(verdict.suspects).toMatchObject([{ ranks: [1], cause: "collective-mismatch" }]);
    expect(verdict.victims).toEqual([0, 2, 3]);
  });
});
