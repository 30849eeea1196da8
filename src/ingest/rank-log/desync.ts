/**
 * The report that PyTorch adds to a timeout with TORCH_NCCL_DESYNC_DEBUG=1: which ranks lag, and how far they are.
 * Defined in pytorch/pytorch: torch/csrc/distributed/c10d/TraceUtils.h (analyzeLaggingRanks, analyzeMissingRanks).
 */
const NOT_JOINED = /\[([\d, ]{1,2000})\] finished collective #(\d{1,15}), but didn't join/;
const NOT_FINISHED = /\[([\d, ]{1,2000})\] joined but didn't finish collective #(\d{1,15})/;
const NEVER_JOINED = /ranks \[([\d, ]{1,2000})\] are the lagging ranks that caused/;

export interface Lagging {
  /** Within the process group that the report is about. */
  readonly ranks: readonly number[];
  readonly enqueued: number;
  readonly completed: number;
}

export function laggingRanks(body: string): Lagging | null {
  if (!body.includes("collective #") && !body.includes("lagging ranks")) return null;
  const m = NOT_JOINED.exec(body) ?? NOT_FINISHED.exec(body) ?? NEVER_JOINED.exec(body);
  if (!m) return null;
  const seq = m[2] === undefined ? 0 : Number(m[2]);
  const completed = body.includes("didn't finish") ? Math.max(0, seq - 1) : seq;
  return { ranks: (m[1] as string).split(",").map(Number), enqueued: seq, completed };
}
