/** How the hang methods speak of operators and places. */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Frame } from "../../model/operators.ts";
import { COMPLETED } from "../../model/operators.ts";
import type { WaitGraph } from "./wait-graph.ts";

interface AnyOp {
  readonly group: number;
  readonly seq: number;
  readonly isP2p: boolean;
  readonly key?: string;
  readonly arrived?: readonly Rank[];
  readonly peer?: Rank;
  readonly isSend?: boolean;
}

/** "all_reduce #489 of TENSOR_PARALLEL_1", "send from rank 2 to rank 6". */
export function describeOp(job: Job, op: AnyOp): string {
  const group = job.groups[op.group];
  const label = group ? group.desc || `group ${group.name}` : "an unknown group";
  if (op.isP2p) {
    const pair = op.key ? /:(\d+)>(\d+)$/.exec(op.key) : null;
    if (pair) return `the transfer from rank ${pair[1]} to rank ${pair[2]} (${label})`;
    return `a ${op.isSend ? "send to" : "receive from"} rank ${op.peer} (${label})`;
  }
  return `${nameOf(job, op)} #${op.seq} of ${label}`;
}

function nameOf(job: Job, op: AnyOp): string {
  for (const rank of op.arrived ?? job.groups[op.group]?.ranks ?? []) {
    const dump = job.dumps.get(rank);
    if (!dump) continue;
    const { ops } = dump.dump;
    for (let i = ops.count - 1; i >= 0; i--) {
      if (ops.seq[i] === op.seq && !ops.isP2p[i] && dump.groupIds[ops.group[i]!] === op.group) {
        return ops.names[ops.name[i]!]!;
      }
    }
  }
  return "collective";
}

/** The line of the user's own program that issued an operator: "train.py:164 in train_step". */
export function codeLine(job: Job, rank: Rank, op: number): string | null {
  const frames = op >= 0 ? job.dumps.get(rank)?.dump.frames.get(op) : undefined;
  return frames ? ownLine(frames) : null;
}

/** The innermost frame outside installed packages. */
export function ownLine(frames: readonly Frame[]): string | null {
  const frame = frames.find(({ file }) => !isLibrary(file)) ?? frames[0];
  if (!frame) return null;
  return `${frame.file.slice(frame.file.lastIndexOf("/") + 1)}:${frame.line} in ${frame.func}`;
}

function isLibrary(file: string): boolean {
  return /site-packages|dist-packages|\/lib\/python\d|^<|\/torch\//.test(file);
}

/** What the rank completed last, and from which line. */
export function lastOperator(
  job: Job,
  rank: Rank,
): { last: string | null; lastCode: string | null } {
  const dump = job.dumps.get(rank);
  const ops = dump?.dump.ops;
  for (let i = (ops?.count ?? 0) - 1; i >= 0; i--) {
    if (ops!.state[i] !== COMPLETED) continue;
    const group = job.groups[dump!.groupIds[ops!.group[i]!]!];
    const name = ops!.names[ops!.name[i]!]!;
    const number = ops!.isP2p[i] ? "" : ` #${ops!.seq[i]}`;
    const code = codeLine(job, rank, i);
    const from = code ? ` (${code})` : "";
    return {
      last: `${name}${number} of ${group?.desc || group?.name || "?"}${from}`,
      lastCode: code,
    };
  }
  return { last: null, lastCode: null };
}

/** When the first of the stuck operators was issued, ISO; null where the dumps have no times. */
export function waitingSince(job: Job, graph: WaitGraph): string | null {
  let first: bigint | null = null;
  for (const rank of graph.stuckIn.keys()) {
    const dump = job.dumps.get(rank)?.dump;
    const head = graph.states.get(rank)?.heads[0];
    if (!dump || !head || head.op < 0) continue;
    const created = dump.ops.createdNs[head.op]!;
    if (!Number.isFinite(created)) continue;
    const at = dump.epochNs + BigInt(Math.round(created));
    if (first === null || at < first) first = at;
  }
  return first === null ? null : new Date(Number(first / 1_000_000n)).toISOString();
}
