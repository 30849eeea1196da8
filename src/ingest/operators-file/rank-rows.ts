/** The operators of one rank, as blocks of operators.flop bring them. */
import { COMPLETED, SCHEDULED, STARTED, type OperatorLog } from "../../model/operators.ts";
import type { Block } from "./block-reader.ts";
import { emptyRow, GrowingColumns } from "./growing-columns.ts";
import type { FlopHeader, FlopStage } from "./header.ts";
import { rankCalls, type RankCalls } from "./rank-calls.ts";

/** Used for all operators of all ranks. */
const row = emptyRow();

export class RankRows {
  readonly #stage: FlopStage;
  readonly #epochNs: bigint;
  readonly #calls: RankCalls;
  readonly #columns = new GrowingColumns();
  /** By call. */
  readonly #names: Int32Array;
  /** By group: collectives and P2P operators so far, the way PyTorch counts them. */
  readonly #seq: Int32Array;
  readonly #p2pSeq: Int32Array;

  constructor(header: FlopHeader, stage: number, lane: number) {
    this.#stage = header.stages[stage]!;
    this.#epochNs = header.epochNs;
    this.#calls = rankCalls(header, stage, lane);
    this.#names = Int32Array.from(this.#calls.names, (name) => this.#columns.name(name, "unknown"));
    this.#seq = new Int32Array(this.#stage.roles.length);
    this.#p2pSeq = new Int32Array(this.#stage.roles.length);
  }

  get count(): number {
    return this.#columns.count;
  }

  add(block: Block, lane: number, room: number): { kept: number; left: number } {
    const { call, calls, bytes } = this.#stage;
    let kept = 0;
    let left = 0;
    for (let op = 0; op < call.length; op++) {
      const index = call[op]!;
      const at = op * block.lanes + lane;
      // What the CPU never issued (Infinity), or what its replica leaves out (NaN), is not in any recording.
      if (index < 0 || !Number.isFinite(block.issueNs[at])) continue;
      if (kept === room) {
        left++;
        continue;
      }
      const { group, isP2p, isSend } = calls[index]!;
      const start = finite(block.startNs[at]!);
      const end = finite(block.endNs[at]!);
      row.group = group;
      row.name = this.#names[index]!;
      row.seq = isP2p ? 0 : ++this.#seq[group]!;
      row.p2pSeq = isP2p ? ++this.#p2pSeq[group]! : 0;
      row.isP2p = isP2p;
      row.isSend = isSend;
      row.peer = this.#calls.peers[index]!;
      row.createdNs = block.issueNs[at]!;
      row.startedNs = start;
      row.completedNs = end;
      row.durationMs = (end - start) / 1e6;
      row.state = Number.isNaN(end) ? (Number.isNaN(start) ? SCHEDULED : STARTED) : COMPLETED;
      // Bytes: the file does not say of what type the elements are.
      row.inputNumel = bytes[op]!;
      this.#columns.add(row);
      kept++;
    }
    return { kept, left };
  }

  build(file: string, format: string): OperatorLog {
    const { rank, groups } = this.#calls;
    const ops = this.#columns.build(false);
    const epochNs = this.#epochNs;
    // Every rank is recorded from its first operator on, so that counting gives members the same numbers.
    const hasSequence = true;
    return { file, format, rank, host: "", pid: null, groups, ops, epochNs, hasSequence };
  }
}

/** Infinity is the simulator's "never". */
function finite(ns: number): number {
  return Number.isFinite(ns) ? ns : NaN;
}
