import { describe, expect, it } from "vitest";
import type { Rank } from "../model/ids.ts";
import type { RankInfo } from "../model/job.ts";
import type { LogFailure, NcclProcess } from "../model/log.ts";
import { withKernelRanks } from "./kernel-ranks.ts";

/** Two ranks on each of two machines; pids and PCI addresses are the same on both. */
const RANKS: RankInfo[] = [0, 1, 2, 3].map((rank) => ({
  rank,
  machine: `node${rank >> 1}.cluster.local`,
  gpu: rank & 1,
  pid: 100 + (rank & 1),
  nic: null,
  leaf: null,
}));
const PROCESSES = new Map<Rank, NcclProcess>(
  RANKS.map(({ rank, machine, pid, gpu }) => [
    rank,
    {
      host: machine!,
      hostId: machine!,
      pid: pid!,
      commRank: rank,
      commSize: 4,
      commId: "",
      gpu: gpu!,
      busId: gpu === 0 ? "1b000" : "9D000",
    },
  ]),
);

const said = (text: string, file = "logs/dmesg.node1.log"): LogFailure => ({
  rank: null,
  file,
  line: 1,
  timeMs: null,
  role: "own",
  cause: "gpu-error",
  signature: "nvidia.xid.62",
  text,
  at: null,
});
const rankOf = (
  text: string,
  file?: string,
  ranks: readonly RankInfo[] = RANKS,
  processes: ReadonlyMap<Rank, NcclProcess> = PROCESSES,
): Rank | null => withKernelRanks([said(text, file)], ranks, processes)[0]!.rank;

const NOBODY = "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";

describe("a line of a kernel's log", () => {
  it("is about the rank whose process it names, on its own machine", () => {
    const xid = "NVRM: Xid (PCI:0000:1b:00): 62, pid=101, name=python, halted";
    expect(rankOf(xid)).toBe(3);
    expect(rankOf(xid, "node0/kern.log")).toBe(1);
    expect(rankOf("NVRM: Xid (PCI:0000:1b:00): 62, pid='100', name=python, halted")).toBe(2);
    expect(rankOf("Out of memory: Killed process 101 (python) total-vm:1kB")).toBe(3);
  });

  it("is about the rank on the GPU of its PCI address, where it names no process that is known", () => {
    expect(rankOf(`NVRM: Xid (PCI:0000:9d:00): 79, ${NOBODY}`)).toBe(3);
    expect(rankOf("NVRM: Xid (PCI:0000:1b:00): 62, pid=7, name=python, halted")).toBe(2);
    expect(rankOf(`NVRM: Xid (PCI:0001:1b:00): 79, ${NOBODY}`)).toBeNull();
  });

  it("is about nobody where the machine is unknown, or several ranks fit", () => {
    const xid = "NVRM: Xid (PCI:0000:1b:00): 62, pid=101, name=python, halted";
    expect(rankOf(xid, "logs/kern.txt")).toBeNull();
    expect(rankOf(xid, "logs/dmesg.node7.log")).toBeNull();
    expect(rankOf(`NVRM: Xid (PCI:0000:1b:00): 79, ${NOBODY}`, undefined, RANKS, new Map())).toBe(
      null,
    );
    // Two processes share one GPU.
    const shared = new Map([...PROCESSES].map(([rank, one]) => [rank, { ...one, busId: "1b000" }]));
    expect(
      rankOf(`NVRM: Xid (PCI:0000:1b:00): 79, ${NOBODY}`, undefined, RANKS, shared),
    ).toBeNull();
  });

  it("of the out-of-memory killer is about a rank, or no failure of this job where all of its processes there are known", () => {
    const both = [
      "oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/x,task=python,pid=101,uid=0",
      "Memory cgroup out of memory: Killed process 101 (python) total-vm:1kB",
    ];
    const kept = (lines: readonly string[], ranks = RANKS): (Rank | null)[] =>
      withKernelRanks(
        lines.map((line) => said(line)),
        ranks,
        PROCESSES,
      ).map(({ rank }) => rank);
    expect(kept(both)).toEqual([3, 3]);
    expect(kept(both.map((line) => line.replace("101", "999")))).toEqual([]);
    // It may be a rank's process that is not known, or a loader's worker.
    const unknown = RANKS.map((one) => (one.rank === 2 ? { ...one, pid: null } : one));
    expect(kept(["Killed process 999 (python)"], unknown)).toEqual([null]);
    expect(kept(["Killed process 999 (pt_data_worker)"])).toEqual([null]);
  });

  it("that a rank wrote itself stays its own", () => {
    const own = { ...said("Killed process 101 (python)"), rank: 0 };
    expect(withKernelRanks([own], RANKS, PROCESSES)[0]!.rank).toBe(0);
  });
});
