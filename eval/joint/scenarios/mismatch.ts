/**
 * A rank that calls something else than its peers. In the engine its GPU stops at the operator, so that all the others
 * enter it and none leaves; here the rank enters too, with a call of its own.
 */
import { STARTED } from "../../../src/model/operators.ts";
import { hash } from "../../../src/simulate/cluster/noise.ts";
import type { StageProgram } from "../../../src/simulate/cluster/program.ts";
import type { Kind, Op } from "../../../src/simulate/flight/op.ts";
import { isP2p, shapeOf } from "../../../src/simulate/flight/op.ts";
import type { RankRecords } from "../../../src/simulate/flight/rank-records.ts";

/** A debug check that one rank alone runs into, or a tensor of another length: the two that mailing lists are full of. */
export type MismatchForm = "other-call" | "other-size";

export function mismatchForm(seed: number, program: StageProgram, op: number): MismatchForm {
  const isPair = program.peerStage[op]! >= 0 || program.kind[op] === 4;
  return !isPair && hash(seed, 0x3a5, 0, 0) % 2 === 0 ? "other-call" : "other-size";
}

const TIMEOUT_NS = 600e9;

/** What the rank recorded. */
export function alteredRecords(records: RankRecords, form: MismatchForm): RankRecords {
  const at = records.state.findIndex((state) => state < STARTED);
  if (at < 0) return records;
  const op = altered(records.ops[at]!, form);
  const ops = records.ops.with(at, op);
  const state = records.state.slice();
  const startedNs = records.startedNs.slice();
  state[at] = STARTED;
  startedNs[at] = records.createdNs[at]! + TIMEOUT_NS;
  const status = new Map(records.status);
  const counters = status.get(op.group);
  if (counters)
    status.set(op.group, {
      ...counters,
      started: isP2p(op) ? records.p2pSeq[at]! : records.seq[at]!,
    });
  return { ...records, ops, state, startedNs, status };
}

function altered(op: Op, form: MismatchForm): Op {
  if (form === "other-size") {
    const halved = (size: readonly number[]): number[] =>
      size.map((n, i) => (i === 0 ? Math.max(1, Math.floor(n / 2)) : n));
    return { ...op, shape: shapeOf(halved(op.shape.input), halved(op.shape.output)) };
  }
  const kind: Kind = op.kind === "all_reduce" ? "_all_gather_base" : "all_reduce";
  return { ...op, kind, shape: shapeOf([1]), dtype: "Float", site: "extra" };
}

const OP_TYPES = [
  "_ALLGATHER_BASE",
  "_REDUCE_SCATTER_BASE",
  "ALLREDUCE",
  "ALLTOALL_BASE",
  "SEND",
  "RECV",
];

/** The same in what the rank's watchdog says of the operator. */
export function alteredLog(
  text: string,
  program: StageProgram,
  op: number,
  form: MismatchForm,
): string {
  const was = OP_TYPES[program.kind[op]!];
  return text.replaceAll(
    /OpType=([A-Z_]+), NumelIn=(\d+), NumelOut=(\d+)/g,
    (whole, type: string, input: string, output: string) => {
      if (type !== was) return whole;
      if (form === "other-call")
        return `OpType=${was === "ALLREDUCE" ? "_ALLGATHER_BASE" : "ALLREDUCE"}, NumelIn=1, NumelOut=1`;
      return `OpType=${type}, NumelIn=${Math.floor(Number(input) / 2)}, NumelOut=${Math.floor(Number(output) / 2)}`;
    },
  );
}
