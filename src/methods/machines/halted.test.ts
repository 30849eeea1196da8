import { describe, expect, it } from "vitest";
import { buildJob } from "../../ingest/build-job.ts";
import { parseJobFile } from "../../ingest/job-file.ts";
import type { Job } from "../../model/job.ts";
import type { LogFailure, RankLog } from "../../model/log.ts";
import type { Deviation, FaultyMachine, MachineReport } from "../../model/machine-report.ts";
import { findMachines } from "./find-machines.ts";
import { machineFindings } from "./machine-method.ts";
import { EPOCH_S, testFleet, type Change } from "../../../test/support/methods/fleet.ts";

const STOP_S = 600;

/** Four machines of four ranks, a GPU and a NIC each. */
const job = buildJob(
  [],
  parseJobFile(
    {
      worldSize: 16,
      ranks: Array.from({ length: 16 }, (_, rank) => ({
        rank,
        machine: `node${rank >> 2}`,
        gpu: rank % 4,
        nic: `node${rank >> 2}/mlx5_${rank % 4}`,
      })),
    },
    "job.json",
  ),
);

/** Ranks whose own operator timed out, and what logs there are beside: whether they answered the call for a dump. */
function logged(timedOut: readonly number[], answered: Readonly<Record<number, boolean>>): Job {
  const failures: Partial<LogFailure>[] = timedOut.map((rank) => ({
    rank,
    role: "echo",
    signature: "torch.watchdog.timeout",
  }));
  const logs = Object.entries(answered).map(([key, did]): [number, Partial<RankLog>] => {
    const rank = Number(key);
    return [rank, { rank, dumpLine: did ? 9 : 0 }];
  });
  return {
    ...job,
    failures: failures as LogFailure[],
    logs: new Map(logs) as unknown as Job["logs"],
  };
}

const off = (
  metric: string,
  direction: Deviation["direction"],
  device: string | null,
  fromS = STOP_S,
): Deviation => ({
  metric,
  direction,
  device,
  value: 1,
  peers: 9,
  fromS,
  toS: 1200,
  sigmas: 20,
});

function accused(of: Job, deviations: readonly Deviation[], isHalted = true) {
  const faulty: FaultyMachine = {
    machine: "node1",
    metric: deviations[0]!.metric,
    score: 0.8,
    sinceS: deviations[0]!.fromS,
    untilS: null,
    role: "all",
    order: 1,
    why: "something",
    deviations,
  };
  const report: MachineReport = {
    method: "peers",
    machines: 4,
    fromS: 0,
    toS: 1200,
    metrics: [],
    faulty: [faulty],
    followers: [],
    telemetry: [],
    jitter: [],
    jittersLeftOut: 0,
    phases: isHalted ? [{ what: "halt", fromS: STOP_S, toS: 1200 }] : [],
    missing: [],
  };
  const { type, ranks, cause, weight } = machineFindings(of, report)[0]!.accuses[0]!;
  return `${type} ${ranks.join()} ${cause} ${weight}`;
}

const idle = [off("gpu-duty-cycle", "low", "gpu2"), off("gpu-clocks", "low", "gpu2")];

describe("a machine of a job that stands still", () => {
  it("is not slow: a NIC that sends pauses carries nothing any more", () => {
    const pauses = [off("pfc-tx-packet-rate", "high", "mlx5_2")];
    expect(accused(job, pauses)).toBe("nic 6 network-hang 0.8");
    expect(accused(job, pauses, false)).toBe("nic 6 network-slow 0.8");
  });

  it("has a GPU that hangs, where one works otherwise than those that wait in a collective", () => {
    expect(accused(job, [off("gpu-sm-activity", "high", "gpu2")])).toBe("gpu 6 gpu-hang 0.8");
  });

  it("has a GPU that hangs, where its process gave it work that it does not do", () => {
    expect(accused(logged([0, 6, 9], { 6: true }), idle)).toBe("gpu 6 gpu-hang 0.8");
  });

  it("has a process that does not get there, or does not run, where no operator of its own timed out", () => {
    expect(accused(logged([0, 9], { 6: true }), idle)).toBe("rank 6 cpu-stall 0.8");
    expect(accused(logged([0, 9], { 6: false }), idle)).toBe("rank 6 process-stopped 0.8");
  });

  it("has a GPU that hangs, where its process stands where most do; elsewhere it does not get there", () => {
    const standing = (line: (rank: number) => number): Job => {
      const dump = (rank: number) => ({
        file: `rank${rank}.txt`,
        pid: rank,
        threads: [
          {
            name: "MainThread",
            isMain: true,
            status: "",
            frames: [{ func: "train_step", file: "train.py", line: line(rank) }],
            line: 1,
          },
        ],
      });
      const stacks = new Map(Array.from({ length: 16 }, (_, rank) => [rank, dump(rank)]));
      return { ...job, stacks };
    };
    expect(
      accused(
        standing(() => 181),
        idle,
      ),
    ).toBe("gpu 6 gpu-hang 0.8");
    expect(
      accused(
        standing((rank) => (rank === 6 ? 159 : 181)),
        idle,
      ),
    ).toBe("rank 6 cpu-stall 0.8");
  });

  it("is accused as a whole where all its GPUs, or all its NICs besides, are unlike", () => {
    const all = [off("gpu-duty-cycle", "low", null)];
    expect(accused(job, all)).toMatch(/^machine 4,5,6,7 /);
    expect(accused(job, [...idle, off("pfc-tx-packet-rate", "high", null)])).toMatch(
      /^machine 4,5,6,7 cpu-stall/,
    );
  });

  it("did hardly stop it, if it is only busier than others since", () => {
    expect(accused(job, [off("cpu-usage", "high", null)])).toMatch(/cpu-stall 0.32/);
    expect(accused(job, [off("cpu-usage", "high", null)], false)).toMatch(/cpu-stall 0.8$/);
  });

  it("did not stop it, if it was slow long before; what came with the halt tells", () => {
    const slow = off("gpu-clocks", "low", "gpu2", 100);
    expect(accused(job, [slow])).toBe("machine 4,5,6,7 gpu-slow 0.32000000000000006");
    // Seen once more in the halt.
    expect(accused(job, [slow, off("gpu-clocks", "low", "gpu2")])).toMatch(/gpu-slow 0.32/);
    // Warmer or cooler is no reason by itself.
    expect(accused(job, [slow, off("gpu-temperature", "low", "gpu2")])).toMatch(/gpu-slow 0.32/);
    expect(accused(job, [slow, off("infiniband-port-state", "low", "mlx5_2")])).toMatch(
      /network-hang 0.8$/,
    );
  });
});

describe("who stopped a job is looked for", () => {
  const earlier: Change[] = [
    { machine: 5, device: 1, metric: "gpu-clocks", fromS: 100, to: () => 1100 },
    { machine: 5, device: 1, metric: "gpu-temperature", fromS: 100, to: () => 90 },
  ];
  const pausing: Change = { machine: 2, metric: "pfc-tx-packet-rate", fromS: 500, to: () => 150 };
  const found = (changes: readonly Change[]) =>
    findMachines(testFleet({ machines: 8, haltS: 500, changes }))
      .faulty.map(({ machine, sinceS }) => `${machine} ${sinceS - EPOCH_S < 300}`)
      .sort();

  it("though another machine was unlike long before", () => {
    expect(found(earlier)).toEqual(["node005 true"]);
    expect(found([...earlier, pausing])).toEqual(["node002 false", "node005 true"]);
  });

  it("by a few pauses, where nobody sends anything", () => {
    expect(found([pausing])).toEqual(["node002 false"]);
    expect(found([{ ...pausing, to: () => 40 }])).toEqual([]);
  });
});
