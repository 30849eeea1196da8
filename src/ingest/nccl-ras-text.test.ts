import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ncclRasText } from "./nccl-ras-text.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";

const HEAD = `NCCL version 2.28.9 compiled with CUDA 13.0
CUDA runtime version 13000, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          8            1          8        8

Communicators... (0.001s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
`;

// From our own recordings hang3 and oom2.
const HANG3 = `${HEAD}    0         1         1         8         8         8   RUNNING      OK
    1         2         1         2         2         3   RUNNING  MISMATCH
    2        10         1         2         2         8   RUNNING      OK

Errors
======

Warnings
========

#1-0 (282e0592126c6ef2) MISMATCH
  Communicator ranks have different AllReduce operation counts
  Rank 0 has launched up to operation 256 -- GPU 0 managed by process 703 on node 127.0.0.1
  Rank 1 has launched up to operation 240 -- GPU 0 managed by process 705 on node 127.0.0.1

`;
const OOM2 = `${HEAD}    0         1         1         7         8         7   RUNNING  INCOMPLETE
    1         2         1         1         2         2   RUNNING  INCOMPLETE,ERROR

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 2514 on node 127.0.0.1 managing GPU 0

#0-0 (af0d5620118d3c7f) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 2 -- GPU 0 managed by process 2514 on node 127.0.0.1

#1-0 (3f9a278f100babe6) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 1 -- GPU 0 managed by process 2514 on node 127.0.0.1

#1-0 (3f9a278f100babe6) ERROR
  Asynchronous error on 1 rank
  Rank 0 reported Remote process error -- GPU 0 managed by process 2512 on node 127.0.0.1

Warnings
========

`;

// Wording that our recordings do not have, after NCCL's print statements.
const VARIANTS = `${HEAD}    0         1         4       7-8        32        30   RUNNING  INCOMPLETE,ERROR,MISMATCH
    1         1         1         4         4         4     ABORT  MISMATCH

The outlier node:
  Node 10.0.0.9 running processes 1,2

Errors
======

INCOMPLETE
  Missing communicator data from 2 job processes
  Process 90 on node fe80::1 managing GPUs 0,1 (NVML 4,5)
  [could not find information on 1 process]

DEAD
  2 job processes are considered dead (unreachable via the RAS network)
  Process 91 on node 10.0.0.1 managing GPU 2
  Process 92 on node 10.0.0.2 managing GPU 3

#0-0 (27a079b828ff1a75) INCOMPLETE
  Missing communicator data from 2 ranks
  Rank 3 -- GPU 2 (NVML 6) managed by process 91 on node 10.0.0.1
  Rank 7 -- [process information not found]

#0-0 (27a079b828ff1a75) ERROR
  Initialization errors on 2 ranks
  2 ranks reported System error
  Rank 4 -- GPU 4 managed by process 94 on node 10.0.0.1
  Rank 5 -- GPU 5 managed by process 95 on node 10.0.0.1
  Asynchronous error on 1 rank
  Rank 6 reported Unhandled CUDA error -- GPU 6 managed by process 96 on node 10.0.0.1

Warnings
========

TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllGather operation counts
  28 ranks have launched up to operation 640
  2 ranks have launched up to operation 641
  Rank 12 -- GPU 4 managed by process 32 on node 10.0.0.1
  Rank 13 -- GPU 5 managed by process 33 on node 10.0.0.1

  Communicator ranks have different Broadcast operation counts
  29 ranks have not launched any operations
  Rank 0 has launched up to operation 1 -- GPU 0 managed by process 30 on node 10.0.0.1

#1-0 (0000000000000abc) MISMATCH
  Communicator ranks have different status
  2 ranks have status ABORT
  Rank 2 has status RUNNING -- GPU 2 managed by process 42 on node 10.0.0.3
  Rank 3 has status NOCOMM -- GPU 3 managed by process 43 on node 10.0.0.3
  Communicator ranks have different AllReduce operation counts
  2 ranks have launched up to operation 9
  Rank 2 has not launched any operations -- GPU 2 managed by process 42 on node 10.0.0.3
`;

describe("RAS text", () => {
  it("gives the launch counts of a mismatch with the size from the table", () => {
    const { ras, defects } = readBytes(ncclRasText, "ncclras.txt", HANG3);
    expect(defects).toEqual([]);
    expect(ras).toMatchObject({ missingProcesses: [] });
    expect(ras?.communicators).toEqual([
      {
        hash: "282e0592126c6ef2",
        size: 2,
        missing: [],
        counts: [
          {
            commRank: 0,
            host: "127.0.0.1",
            pid: 703,
            gpu: 0,
            collective: "AllReduce",
            launched: 256,
          },
          {
            commRank: 1,
            host: "127.0.0.1",
            pid: 705,
            gpu: 0,
            collective: "AllReduce",
            launched: 240,
          },
        ],
        line: 26,
      },
    ]);
  });

  it("joins the blocks of one communicator and names the silent process", () => {
    const { ras } = readBytes(ncclRasText, "ncclras.txt", OOM2);
    expect(ras?.missingProcesses).toEqual([
      { commRank: -1, host: "127.0.0.1", pid: 2514, gpu: 0, state: "unresponsive" },
    ]);
    expect(ras?.communicators).toHaveLength(2);
    expect(ras?.communicators[1]).toMatchObject({
      size: 2,
      missing: [{ commRank: 1, pid: 2514, state: "unresponsive" }],
    });
  });

  it("reads every wording of the source", () => {
    const { ras, defects } = readBytes(ncclRasText, "x", VARIANTS);
    expect(defects).toEqual([]);
    expect(ras?.missingProcesses.map((p) => [p.pid, p.gpu, p.state])).toEqual([
      [90, 0, "unresponsive"],
      [91, 2, "dead"],
      [92, 3, "dead"],
    ]);
    const [big, small] = ras?.communicators ?? [];
    expect(big?.missing.map((m) => [m.commRank, m.pid, m.state])).toEqual([
      [3, 91, "dead"],
      [7, -1, "missing"],
    ]);
    expect(small?.missing).toMatchObject([{ commRank: 3, pid: 43, state: "missing" }]);
    expect(small?.counts.map((c) => [c.commRank, c.launched])).toEqual([
      [2, 0],
      [0, 9],
      [1, 9],
    ]);
  });

  it("adds the ranks that RAS only counts, where their number leaves no doubt", () => {
    const { ras } = readBytes(ncclRasText, "x", VARIANTS);
    const gathers = ras?.communicators[0]?.counts.filter((c) => c.collective === "AllGather") ?? [];
    expect(gathers.filter((c) => c.launched === 640).map((c) => c.commRank)).toHaveLength(28);
    expect(gathers.filter((c) => c.launched === 641).map((c) => c.pid)).toEqual([32, 33]);
    const other = VARIANTS.replace("28 ranks have", "27 ranks have");
    const counts = readBytes(ncclRasText, "x", other).ras?.communicators[0]?.counts ?? [];
    expect(counts.filter((c) => c.collective === "AllGather")).toHaveLength(2);
  });

  it("reads the wording of 2.24", () => {
    const old = OOM2.replace(
      "Rank 2 -- GPU 0 managed by process 2514 on node 127.0.0.1",
      "The missing ranks: 2,5",
    );
    expect(
      readBytes(ncclRasText, "x", old).ras?.communicators[0]?.missing.map((m) => m.commRank),
    ).toEqual([2, 5]);
  });

  it("keeps the last whole report of several", () => {
    const both = readBytes(ncclRasText, "x", HANG3 + OOM2);
    expect(both.ras?.communicators[0]?.hash).toBe("af0d5620118d3c7f");
    const cut = readBytes(ncclRasText, "x", HANG3 + OOM2.slice(0, 700));
    expect(cut.ras?.communicators[0]?.hash).toBe("282e0592126c6ef2");
    expect(cut.defects[0]?.what).toContain("cut off");
  });

  it("reads the same at every chunk size and survives a cut at every byte", () => {
    const [first, ...others] = readAtAllSizes(ncclRasText, "f", VARIANTS);
    for (const other of others) expect(other).toEqual(first);
    for (const reading of readCutEverywhere(ncclRasText, "f", VARIANTS))
      expect(reading.ras).toBeDefined();
  });

  it("survives random bytes and shuffled lines", () => {
    const lines = VARIANTS.split("\n");
    const shuffled = fc.array(fc.oneof(fc.constantFrom(...lines), fc.string()), { maxLength: 80 });
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (b) => void readBytes(ncclRasText, "f", b)),
    );
    fc.assert(
      fc.property(shuffled, (l) => void readBytes(ncclRasText, "f", `${HEAD}${l.join("\n")}`)),
    );
  });

  it("recognises its format and nothing else", () => {
    for (const text of [HANG3, OOM2, `$ ncclras -v\n${HANG3}`])
      expect(sniffs(ncclRasText, text)).toBe(true);
    for (const text of [
      "",
      "vm:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n",
      "Job summary\n",
    ]) {
      expect(sniffs(ncclRasText, text)).toBe(false);
    }
  });
});
