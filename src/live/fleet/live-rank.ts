/** A rank of a rehearsal: a process, two rings, and what is played into them. */
import { join } from "node:path";
import type { Simulation } from "../../simulate/cluster/times.ts";
import { LiveRing } from "./live-ring.ts";
import type { RankGroup } from "./rank-groups.ts";
import { RankProcess } from "./rank-process.ts";
import { RankTape } from "./rank-tape.ts";
import type { StageOperators } from "./stage-operators.ts";

/** Iterations that a native ring holds at least. */
const ITERATIONS = 32;
const PYTHON_RECORDS = 1024;
const MOST_RECORDS = 65_536;

export interface LiveRankOptions {
  readonly simulation: Simulation;
  readonly rank: number;
  readonly layout: StageOperators;
  readonly groups: readonly RankGroup[];
  readonly job: string;
  readonly run: string;
  /** The same on all ranks of the run, and another at each start: what communicators' ids are made of. */
  readonly runNumber: number;
  readonly folder: string;
  readonly clocks: { readonly realtimeNs: bigint; readonly monotonicNs: bigint };
}

export interface LiveRank {
  readonly rank: number;
  readonly process: RankProcess;
  readonly tape: RankTape;
  readonly rings: readonly LiveRing[];
  /** Whether its fate has been carried out. */
  isStruck: boolean;
}

export async function startRank(options: LiveRankOptions): Promise<LiveRank> {
  const { simulation, rank, layout, groups, job, run, runNumber, folder, clocks } = options;
  const { spec, topology, lanes } = simulation;
  const host = topology.machineName(topology.machineOf(rank));
  const process = await RankProcess.start({
    FAULTLINE_JOB: job,
    FAULTLINE_RUN: run,
    RANK: String(rank),
    WORLD_SIZE: String(spec.gpus),
  });
  const rings: LiveRing[] = [];
  const open = (writer: "native" | "python", records: number): LiveRing => {
    const ring = new LiveRing({
      path: join(folder, `${job}.r${rank}.${process.pid}.${writer}.ring`),
      writer,
      rank,
      worldSize: spec.gpus,
      pid: process.pid,
      startTicks: process.startTicks,
      gpu: topology.gpuOf(rank),
      host,
      job,
      ...(writer === "python" ? { library: "Python 3.12.3 torch 2.11.0", source: "python" } : {}),
      madeAtNs: clocks.realtimeNs,
      monotonicNs: clocks.monotonicNs,
      records,
      communicators:
        writer === "python"
          ? []
          : groups.map(({ index, groupRank, size, desc }) => ({
              id: (BigInt(runNumber) << 32n) | BigInt(index + 1),
              rank: groupRank,
              size,
              name: desc,
            })),
    });
    rings.push(ring);
    return ring;
  };
  try {
    const wanted = 2 ** Math.ceil(Math.log2(layout.count * ITERATIONS));
    const native = open("native", Math.min(MOST_RECORDS, wanted));
    const python = open("python", PYTHON_RECORDS);
    const commOf = new Map(groups.map(({ role }, comm) => [role, comm]));
    const tape = new RankTape({ rank, lanes: lanes.lanes, layout, commOf, native, python });
    return { rank, process, tape, rings, isStruck: false };
  } catch (error) {
    for (const ring of rings) ring.close();
    await process.close();
    throw error;
  }
}
