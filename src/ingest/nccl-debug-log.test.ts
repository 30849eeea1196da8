import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ncclDebugLog } from "./nccl-debug-log.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";
import { runs } from "../../test/support/cases.ts";

// Excerpts of our own recording oom2, rank 4.
const OOM2 = `vm:2516:2516 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to lo
vm:2516:2516 [0] NCCL INFO NCCL version 2.28.9+cuda13.0
vm:2516:2516 [0] NCCL INFO ncclCommInitRankConfig comm 0x2b770220 rank 4 nranks 8 cudaDev 0 nvmlDev 0 busId 60 commId 0xaf0d5620118d3c7f - Init START
vm:2516:2516 [0] NCCL INFO NCCL_HOSTID set by environment to node004
vm:2516:2516 [0] NCCL INFO ncclCommInitRankConfig comm 0x2b770220 rank 4 nranks 8 cudaDev 0 nvmlDev 0 busId 60 commId 0xaf0d5620118d3c7f - Init COMPLETE
vm:2516:2516 [0] NCCL INFO Init timings - ncclCommInitRankConfig: rank 4 nranks 8 total 0.44 (kernels 0.38, alloc 0.00, bootstrap 0.04)
vm:2516:2516 [0] NCCL INFO ncclCommSplit comm 0x32f51bb0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 60 parent 0x2b770220 splitCount 3 color 1264593998 key 0- Init START
vm:2516:2516 [0] NCCL INFO ncclCommSplit comm 0x32f51bb0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 60 parent 0x2b770220 splitCount 3 color 1264593998 key 0 - Init COMPLETE

[2026-11-15 00:47:31] vm:2516:2740 [0] misc/socket.cc:72 NCCL WARN socketProgress: Connection closed by remote peer localhost<59430>
vm:2516:2740 [0] NCCL INFO misc/socket.cc:845 -> 6
[2026-11-15 00:47:32] vm:2516:2726 [0] misc/socket.cc:72 NCCL WARN socketProgress: Connection closed by remote peer localhost<48254>
`;

describe("NCCL debug log", () => {
  it("introduces the process once a communicator, with a name for split ones that all members share", () => {
    const reading = readBytes(ncclDebugLog, "nccl.vm.2516", OOM2);
    expect(reading).toMatchObject({ rank: 4, format: "nccl-log", defects: [] });
    expect(reading.ncclProcesses).toEqual([
      {
        host: "vm",
        hostId: "node004",
        pid: 2516,
        commRank: 4,
        commSize: 8,
        commId: "af0d5620118d3c7f",
        gpu: 0,
        busId: "60",
      },
      expect.objectContaining({
        commRank: 0,
        commSize: 2,
        commId: "af0d5620118d3c7f/3/1264593998",
      }),
    ]);
  });

  it("takes a closed connection for an echo, told once", () => {
    expect(readBytes(ncclDebugLog, "x/nccl.rank6.log", OOM2).failures).toEqual([
      {
        rank: 6,
        file: "x/nccl.rank6.log",
        line: 10,
        timeMs: Date.UTC(2026, 10, 15, 0, 47, 31),
        role: "echo",
        cause: "process-gone",
        signature: "nccl.socket.closed-by-peer",
        text: "socketProgress: Connection closed by remote peer localhost<59430>",
        at: null,
        times: 2,
      },
    ]);
  });

  it.each([
    ["NET/IB : mlx5_0:1 Got async fatal event: port error", "own", "network-hang"],
    ["NET/IB : Got async event : port error", "own", "network-hang"],
    [
      "NET/IB: Got completion from peer 10.0.0.5<3> with status=12 opcode=129 len=0 vendor err 129",
      "echo",
      "unknown",
    ],
    [
      "NET/IB: Got completion from peer 10.0.0.5<3> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=0",
      "echo",
      "unknown",
    ],
    ["NET/IB: Got completion from peer 10.0.0.5<3> with status=2 opcode=0", "own", "network-hang"],
    ["Cuda failure 700 'an illegal memory access was encountered'", "own", "gpu-error"],
    ["Cuda failure 'out of memory'", "own", "gpu-memory"],
    [
      "Cuda failure 805 'MPS client failed to connect to the MPS control daemon'",
      "echo",
      "unknown",
    ],
    ["Duplicate GPU detected : rank 3 and rank 0 both on CUDA device f000", "own", "user-config"],
    ["socketPollConnect: connect to 10.0.0.9<1> returned Connection refused", "echo", "unknown"],
    ["Error while creating shared memory segment /dev/shm/nccl-x (size 7)", "own", "user-config"],
  ])("%s: %s, %s", (message, role, cause) => {
    const line = `h:9:10 [3] transport/x.cc:93 (net) NCCL WARN ${message}\n`;
    expect(readBytes(ncclDebugLog, "x", line).failures).toMatchObject([
      { role, cause, rank: null },
    ]);
  });

  it("passes over warnings that tell of no failure", () => {
    const line =
      "h:9:10 [3] x.cc:1 NCCL WARN NET/IB : mlx5_0:1 Got non-fatal async event: port active(9)\n";
    expect(readBytes(ncclDebugLog, "x", line).failures).toEqual([]);
  });

  it("takes a CUDA failure after a lost peer for its aftermath", () => {
    const text = `${OOM2}vm:2516:2516 [0] x.cc:1 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'\n`;
    expect(readBytes(ncclDebugLog, "x", text).failures?.map((f) => [f.signature, f.role])).toEqual([
      ["nccl.socket.closed-by-peer", "echo"],
      ["cuda.illegal-access", "echo"],
    ]);
  });

  it("gives every process of a mixed file its own rank", () => {
    const two = OOM2 + OOM2.replaceAll("2516", "2517").replaceAll("rank 4", "rank 5");
    const reading = readBytes(ncclDebugLog, "nccl.log", two);
    expect(reading.rank).toBeNull();
    expect(reading.failures?.map((f) => f.rank)).toEqual([4, 5]);
  });

  it("counts what a flood of warnings leaves out", () => {
    const lines = Array.from(
      { length: 5000 },
      (_, i) => `h:${i}:1 [0] x.cc:1 NCCL WARN Connection closed by remote peer`,
    );
    const reading = readBytes(ncclDebugLog, "x", lines.join("\n"));
    expect(reading.failures).toHaveLength(2000);
    expect(reading.defects[0]?.what).toContain("3000");
  });

  it("reads the same at every chunk size and survives a cut at every byte", () => {
    const [first, ...others] = readAtAllSizes(ncclDebugLog, "f", OOM2);
    for (const other of others) expect(other).toEqual(first);
    for (const reading of readCutEverywhere(ncclDebugLog, "f", OOM2, runs(5, 1)))
      expect(reading.format).toBe("nccl-log");
  });

  it("survives random bytes and mutated lines", () => {
    const lines = OOM2.split("\n");
    const mutated = fc
      .tuple(fc.constantFrom(...lines), fc.nat(200), fc.string())
      .map(([line, at, noise]) => line.slice(0, at) + noise + line.slice(at));
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (b) => void readBytes(ncclDebugLog, "f", b)),
    );
    fc.assert(
      fc.property(fc.array(mutated), (l) => void readBytes(ncclDebugLog, "f", l.join("\n"))),
    );
  });

  it("leaves a job's log with some NCCL lines to the log reader", () => {
    expect(sniffs(ncclDebugLog, OOM2)).toBe(true);
    const mixed =
      OOM2 + Array.from({ length: 30 }, (_, i) => ` iteration ${i}/ 100 | loss: 1`).join("\n");
    expect(sniffs(ncclDebugLog, mixed)).toBe(false);
    expect(sniffs(ncclDebugLog, "see NCCL INFO below\n")).toBe(false);
  });
});
