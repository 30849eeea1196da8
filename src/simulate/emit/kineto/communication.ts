/**
 * How torch and NCCL name an operator in a trace: CPU operator, annotation, kernel, and the arguments
 * that the kernel shares with `record_param_comms` (torch/csrc/profiler/util.cpp, saveNcclMeta).
 */
import type { ClusterGroups } from "../../cluster/groups.ts";
import type { Simulation } from "../../cluster/times.ts";
import * as P from "../../cluster/program.ts";

export interface Communication {
  /** `c10d::allreduce_`, and the annotation `nccl:all_reduce`. */
  readonly op: string;
  readonly annotation: string;
  readonly kernel: string;
  readonly dims: readonly number[];
  readonly type: string;
  readonly scalars: readonly string[];
  /** On the kernel; without "Seq", which differs by iteration. */
  readonly kernelArgs: string;
  /** What `record_param_comms` has on top. */
  readonly cpuArgs: string;
  readonly block: number;
  /** Of its group. */
  readonly role: number;
}

const STORAGE = "(ncclDevKernelArgsStorage<4096ul>)";
interface Words {
  readonly collective: string;
  readonly op: string;
  readonly annotation: string;
  readonly kernel: string;
}
const WORDS: readonly Words[] = [
  {
    collective: "_allgather_base",
    op: "c10d::_allgather_base_",
    annotation: "nccl:_all_gather_base",
    kernel: "ncclDevKernel_AllGather_RING_LL",
  },
  {
    collective: "_reduce_scatter_base",
    op: "c10d::_reduce_scatter_base_",
    annotation: "nccl:_reduce_scatter_base",
    kernel: "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
  },
  {
    collective: "allreduce",
    op: "c10d::allreduce_",
    annotation: "nccl:all_reduce",
    kernel: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
  },
  {
    collective: "all_to_allv",
    op: "c10d::alltoall_base_",
    annotation: "nccl:all_to_all",
    kernel: "ncclDevKernel_SendRecv",
  },
  { collective: "send", op: "c10d::send", annotation: "", kernel: "ncclDevKernel_SendRecv" },
  { collective: "recv", op: "c10d::recv_", annotation: "", kernel: "ncclDevKernel_SendRecv" },
];

/** torch cuts lists off after this many (kTruncatLength). */
const LIST_LENGTH = 30;

export function listText(values: readonly number[]): string {
  if (values.length <= LIST_LENGTH) return `[${values.join(", ")}]`;
  return `[${values.slice(0, LIST_LENGTH).join(", ")}, ...]`;
}

export function groupsOfRank(
  groups: ClusterGroups,
  rank: number,
): { name: string; desc: string; ranks: readonly number[] }[] {
  const roles = [P.WORLD, P.TP, P.CP, P.DP, P.EP, P.PP, P.EMBEDDING];
  const own = new Set(roles.map((role) => groups.groupOf(rank, role)));
  return [...own]
    .map((index) => groups.groups[index])
    .filter((group) => group?.ranks.includes(rank) === true)
    .map((group) => ({ name: group!.name, desc: group!.desc, ranks: group!.ranks }));
}

/** All operators of a rank's program; null where it only computes. */
export function communications(
  simulation: Simulation,
  groups: ClusterGroups,
  rank: number,
): (Communication | null)[] {
  const { lanes, programs } = simulation;
  const stage = Math.floor(rank / lanes.lanes);
  const program = programs[stage]!;
  const receivers = new Map<number, number>();
  for (const other of programs)
    for (let op = 0; op < other.count; op++)
      if (other.peerStage[op] === stage) receivers.set(other.peerOp[op]!, other.stage);
  return Array.from({ length: program.count }, (_, op) => {
    const role = program.role[op]!;
    const kind = program.kind[op]!;
    if (role === P.NO_GROUP) return null;
    const peerStage =
      kind === P.RECV ? program.peerStage[op]! : kind === P.SEND ? receivers.get(op)! : -1;
    const peer = peerStage < 0 ? -1 : peerStage * lanes.lanes + (rank % lanes.lanes);
    const group = groups.groups[groups.groupOf(rank, role)]!;
    return describe(simulation, group, rank, { role, kind, peer, bytes: program.bytes[op]! });
  });
}

function describe(
  { spec }: Simulation,
  group: { readonly name: string; readonly desc: string; readonly ranks: readonly number[] },
  rank: number,
  op: {
    role: number;
    kind: number;
    peer: number;
    bytes: number;
  },
): Communication {
  const words = WORDS[op.kind]!;
  const { ranks } = group;
  const isWorld = op.role === P.WORLD;
  const elements = Math.max(1, Math.round(op.bytes / (isWorld ? 4 : 2)));
  const input = op.kind === P.REDUCE_SCATTER ? elements * ranks.length : elements;
  const output = op.kind === P.ALL_GATHER ? elements * ranks.length : elements;
  const share = Math.floor(elements / ranks.length);
  const split = op.kind === P.ALL_TO_ALL ? listText(Array.from(ranks, () => share)) : "[]";
  const here = ranks.indexOf(rank);
  const there = ranks.indexOf(op.peer);
  const arrow = op.kind === P.SEND ? "->" : "<-";
  const isP2p = op.peer >= 0;
  const peer = isP2p ? `, "${op.kind === P.SEND ? "Dst" : "Src"} Rank": ${op.peer}` : "";
  const stride = ranks.length > 1 ? ranks[1]! - ranks[0]! : 1;
  const isEven = input % spec.hidden === 0;
  const shared =
    `"Collective name": "${words.collective}", "In msg nelems": ${input}, "Out msg nelems": ${output}, ` +
    `"Group size": ${ranks.length}, "dtype": "${isWorld ? "Float" : "BFloat16"}", ` +
    `"In split size": "${split}", "Out split size": "${split}", "Process Group Name": "${group.name}", ` +
    `"Process Group Description": "${group.desc}", "Process Group Ranks": "${listText(ranks)}"${peer}`;
  return {
    op: words.op,
    annotation: isP2p ? `nccl:${words.collective} ${here}${arrow}${there}` : words.annotation,
    kernel: (isWorld ? words.kernel.replace("bf16", "f32") : words.kernel) + STORAGE,
    dims: isEven ? [input / spec.hidden, 1, spec.hidden] : [input],
    type: isWorld ? "float" : "c10::BFloat16",
    // torch passes the other side as the rank of a P2P operator.
    scalars: [String(isP2p ? there : here), String(ranks[0]), String(stride), String(ranks.length)],
    kernelArgs: shared,
    cpuArgs: `${shared}, "Rank": ${isP2p ? there : here}, "Global rank start": ${ranks[0]}, "Global rank stride": ${stride}`,
    block: op.kind >= P.ALL_TO_ALL ? 640 : 288,
    role: op.role,
  };
}
