/** A job as the agents of its machines tell it: who its ranks are, and which groups they form. No operators. */
import type { Rank } from "../model/ids.ts";
import type { Job } from "../model/job.ts";
import type { OperatorTable } from "../model/operators.ts";
import type { Reading } from "../model/reading.ts";
import { buildJob } from "./build-job.ts";
import type { JobFile } from "./job-file.ts";

export interface LiveRank {
  readonly rank: Rank;
  readonly machine: string;
  readonly gpu: number | null;
  readonly pid: number | null;
  readonly nic: string | null;
  readonly leaf: string | null;
  readonly stage: number | null;
  readonly groups: readonly {
    /** The same on all members. */
    readonly key: string;
    readonly desc: string;
    readonly groupRank: number;
    readonly size: number;
    readonly ranks: readonly Rank[] | null;
  }[];
}

export interface LiveJob {
  readonly job: Job;
  /** Rank → its groups, by index in its own list, as ids of the job's. */
  readonly groupIds: ReadonlyMap<Rank, Int32Array>;
  /** Key of each of the job's groups. */
  readonly keys: readonly string[];
}

/** `jobFile`: what the user knows better. */
export function liveJob(
  name: string,
  worldSize: number,
  ranks: readonly LiveRank[],
  jobFile: JobFile | null,
): LiveJob {
  const leaves = new Map(jobFile?.leaves);
  const places = new Map(jobFile?.ranks);
  const stages = new Map<Rank, number>();
  for (const { rank, machine, gpu, nic, leaf, stage } of ranks) {
    const place = places.get(rank);
    places.set(rank, {
      machine: place?.machine ?? machine,
      gpu: place?.gpu ?? gpu,
      nic: place?.nic ?? nic,
    });
    if (nic !== null && leaf !== null && !leaves.has(nic)) leaves.set(nic, leaf);
    if (stage !== null) stages.set(rank, stage);
  }
  const known: JobFile = {
    name: jobFile?.name || name,
    worldSize: jobFile?.worldSize ?? (worldSize > 0 ? worldSize : null),
    ranks: places,
    leaves,
    microBatches: jobFile?.microBatches ?? null,
    incidents: jobFile?.incidents ?? null,
    machineNames: jobFile?.machineNames ?? null,
    ...(jobFile?.fabric ? { fabric: jobFile.fabric } : {}),
    stageOf: (rank) => jobFile?.stageOf(rank) ?? stages.get(rank) ?? null,
  };
  const built = buildJob(ranks.map(readingOf), known);
  const groupIds = new Map([...built.dumps].map(([rank, dump]) => [rank, dump.groupIds]));
  // No file says it: commands name the process.
  const pids = new Map(ranks.map(({ rank, pid }) => [rank, pid]));
  const named = new Map(
    [...built.ranks].map(([rank, of]) => [rank, { ...of, pid: of.pid ?? pids.get(rank) ?? null }]),
  );
  const none = { dumps: new Map(), places: new Map(), inputs: [], missing: [] };
  const job: Job = { ...built, ranks: named, ...none };
  return { job, groupIds, keys: job.groups.map((group) => group.name) };
}

function readingOf({ rank, machine, groups }: LiveRank): Reading {
  const file = `${machine}, rank ${rank}`;
  return {
    file,
    format: "live",
    rank,
    records: 0,
    defects: [],
    dumps: [
      {
        file,
        version: "",
        groups: groups.map(({ key, desc, groupRank, size, ranks }) => ({
          name: key,
          desc,
          ranks,
          // Without a list of members every rank that names the group is one.
          ...(ranks === null ? { own: { groupRank, size } } : {}),
          enqueued: 0,
          started: 0,
          completed: 0,
        })),
        ops: NO_OPERATORS,
        epochNs: 0n,
        timing: true,
        timeoutMs: 0,
        isCut: false,
        frames: new Map(),
      },
    ],
  };
}

const NO_OPERATORS: OperatorTable = {
  count: 0,
  group: new Int32Array(0),
  name: new Int32Array(0),
  seq: new Int32Array(0),
  p2pSeq: new Int32Array(0),
  recordId: new Float64Array(0),
  state: new Uint8Array(0),
  isP2p: new Uint8Array(0),
  peer: new Int32Array(0),
  isSend: new Uint8Array(0),
  createdNs: new Float64Array(0),
  startedNs: new Float64Array(0),
  completedNs: new Float64Array(0),
  durationMs: new Float32Array(0),
  inputNumel: new Float64Array(0),
  outputNumel: new Float64Array(0),
  dtype: new Int32Array(0),
  names: [],
  dtypes: [],
};
