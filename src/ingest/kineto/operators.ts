/**
 * Communication kernels of one rank as operators, for those who ask which rank makes a job slow. Only kernels that say
 * which group they belong to (PyTorch 2.4 and later, NCCL): without it nobody knows whom they wait for.
 */
import { getOrInsert } from "../../base/group-by.ts";
import { COMMUNICATION, type RankKernels } from "../../model/kernels.ts";
import { COMPLETED, type DumpGroup, type OperatorLog } from "../../model/operators.ts";
import { allocateColumns } from "../operator-columns.ts";

/** null where there are none. */
export function operatorsOf(
  trace: RankKernels,
  format: string,
  pid: number | null,
): OperatorLog | null {
  const { gpu, calls, collectives, groups } = trace;
  const issuedNs = (event: number): number => {
    const launch = gpu.launch[event]!;
    return launch < 0 ? NaN : calls.startNs[launch]!;
  };
  const events: number[] = [];
  for (let i = 0; i < gpu.count; i++) {
    const row = gpu.collective[i]!;
    if (gpu.kind[i] === COMMUNICATION && row >= 0 && collectives.group[row]! >= 0) events.push(i);
  }
  if (events.length === 0) return null;
  // In the order of issue; kernels of one graph, or without a launch, by when they started.
  const at = (event: number): number => {
    const issued = issuedNs(event);
    return Number.isNaN(issued) ? gpu.startNs[event]! : issued;
  };
  events.sort((a, b) => at(a) - at(b) || gpu.startNs[a]! - gpu.startNs[b]! || a - b);

  const n = events.length;
  const numbers = numberer();
  const dtypes = numberer();
  const counted = new Int32Array(groups.length);
  const countedP2p = new Int32Array(groups.length);
  const hasSeq = groupsWithSeq(trace);
  const ops = allocateColumns(n);
  // A trace begins somewhere in the job: only the job's own numbers tell where.
  ops.recordId.fill(NaN);
  ops.state.fill(COMPLETED);
  ops.peer.fill(-1);
  ops.dtype.fill(-1);
  for (let i = 0; i < n; i++) {
    const event = events[i]!;
    const row = gpu.collective[event]!;
    const group = collectives.group[row]!;
    const operation = trace.names[collectives.operation[row]!] ?? "";
    const isSend = operation === "send";
    const isP2p = isSend || operation === "recv";
    ops.group[i] = group;
    ops.isP2p[i] = isP2p ? 1 : 0;
    ops.isSend[i] = isSend ? 1 : 0;
    if (isP2p) {
      const { ranks } = groups[group]!;
      const peer = ranks?.indexOf(collectives.peer[row]!) ?? -1;
      const own = trace.rank === null ? -1 : (ranks?.indexOf(trace.rank) ?? -1);
      ops.peer[i] = peer;
      ops.p2pSeq[i] = ++countedP2p[group]!;
      // As the flight recorder names them, with ranks of the group.
      const ends = peer < 0 || own < 0 ? "" : ` ${own}${isSend ? "->" : "<-"}${peer}`;
      ops.name[i] = numbers.of(`${operation}${ends}`);
    } else {
      ops.seq[i] = hasSeq[group] ? collectives.seq[row]! : ++counted[group]!;
      ops.name[i] = numbers.of(operatorName(operation));
    }
    ops.createdNs[i] = issuedNs(event);
    ops.startedNs[i] = gpu.startNs[event]!;
    ops.completedNs[i] = gpu.startNs[event]! + gpu.durNs[event]!;
    ops.durationMs[i] = gpu.durNs[event]! / 1e6;
    ops.inputNumel[i] = collectives.inputNumel[row]!;
    ops.outputNumel[i] = collectives.outputNumel[row]!;
    const dtype = trace.names[collectives.dtype[row]!];
    if (dtype !== undefined) ops.dtype[i] = dtypes.of(dtype);
  }
  const { file, rank, host, epochNs } = trace;
  const dumpGroups = groups.map(({ name, desc, ranks }): DumpGroup => {
    return { name, desc, ranks, enqueued: -1, started: -1, completed: -1 };
  });
  const table = { count: n, ...ops, names: numbers.texts, dtypes: dtypes.texts };
  const hasSequence = hasSeq.every(Boolean);
  return { file, format, rank, host, pid, groups: dumpGroups, ops: table, epochNs, hasSequence };
}

/** The job's own numbers match between ranks wherever their traces begin; counting from the first does only at times. */
function groupsWithSeq({ collectives, groups, names }: RankKernels): boolean[] {
  const has = groups.map(() => true);
  for (let row = 0; row < collectives.count; row++) {
    const group = collectives.group[row]!;
    const operation = names[collectives.operation[row]!];
    if (group < 0 || operation === "send" || operation === "recv") continue;
    const seq = collectives.seq[row]!;
    if (!(seq >= 0 && seq <= 0x7fffffff)) has[group] = false;
  }
  return has;
}

/** "_allgather_base" → "_all_gather_base", as the flight recorder has it. */
function operatorName(operation: string): string {
  return operation.replace(/all(reduce|gather|toall)/, (_, what: string) =>
    what === "toall" ? "all_to_all" : `all_${what}`,
  );
}

function numberer(): { readonly texts: string[]; of(text: string): number } {
  const texts: string[] = [];
  const known = new Map<string, number>();
  return {
    texts,
    of(text) {
      const number = getOrInsert(known, text, () => texts.push(text) - 1);
      return number;
    },
  };
}
