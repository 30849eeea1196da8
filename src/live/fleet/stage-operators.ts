/** What the ranks of a stage communicate in one iteration, by place: the program without its pure kernels. */
import * as P from "../../simulate/cluster/program.ts";
import type { Simulation } from "../../simulate/cluster/times.ts";

/** As OperatorsReply.op has them. */
export const COLLECTIVE = 0;
export const SENDING = 1;
export const RECEIVING = 2;

const BFLOAT16 = 9;
const FLOAT = 7;
/** The ring's functions, by the program's kind. */
const FUNCTIONS: readonly number[] = [2, 3, 1, 6, 1, 2];

export interface StageOperators {
  readonly stage: number;
  readonly count: number;
  /** By place: index in the program, COLLECTIVE, SENDING or RECEIVING, role, stage of the other side (-1: none). */
  readonly op: Int32Array;
  readonly code: Uint8Array;
  readonly role: Uint8Array;
  readonly peerStage: Int32Array;
  readonly bytes: Float64Array;
  /** As the ring has them (probe/RING.md): function, data type, elements. */
  readonly func: Uint8Array;
  readonly dtype: Uint8Array;
  readonly elements: Float64Array;
  /** How many collectives (transfers) of the same group came before it in the iteration. */
  readonly nth: Int32Array;
  /** By role: collectives and transfers of one iteration. */
  readonly collectivesOf: Int32Array;
  readonly transfersOf: Int32Array;
  /** Places of a role's collectives, and of sends to (receives from) a stage, ascending. */
  readonly byRole: readonly Int32Array[];
  readonly sendsTo: readonly Int32Array[];
  readonly recvsFrom: readonly Int32Array[];
}

export function stageOperators({ spec, programs }: Simulation, stage: number): StageOperators {
  const program = programs[stage]!;
  const receivers = new Map<number, number>();
  for (const other of programs)
    for (let op = 0; op < other.count; op++)
      if (other.peerStage[op] === stage) receivers.set(other.peerOp[op]!, other.stage);
  // A replica with its usual share leaves out the first micro-batches of a program that has more (shares.ts).
  const left = program.microBatch.reduce((most, m) => Math.max(most, m + 1), 0) - spec.microBatches;
  const isUsual = (i: number): boolean =>
    program.microBatch[i]! < 0 || program.microBatch[i]! >= left;
  const op = Int32Array.from(
    Array.from({ length: program.count }, (_, i) => i).filter(
      (i) => program.role[i] !== P.NO_GROUP && isUsual(i),
    ),
  );
  const count = op.length;
  const code = new Uint8Array(count);
  const role = new Uint8Array(count);
  const peerStage = new Int32Array(count).fill(-1);
  const nth = new Int32Array(count);
  const collectivesOf = new Int32Array(P.NO_GROUP);
  const transfersOf = new Int32Array(P.NO_GROUP);
  for (let place = 0; place < count; place++) {
    const at = op[place]!;
    const kind = program.kind[at]!;
    role[place] = program.role[at]!;
    code[place] = kind === P.SEND ? SENDING : kind === P.RECV ? RECEIVING : COLLECTIVE;
    if (kind === P.SEND) peerStage[place] = receivers.get(at)!;
    if (kind === P.RECV) peerStage[place] = program.peerStage[at]!;
    const counts = code[place] === COLLECTIVE ? collectivesOf : transfersOf;
    nth[place] = counts[role[place]!]!++;
  }
  const dtype = role.map((one) => (one === P.WORLD ? FLOAT : BFLOAT16));
  const bytes = Float64Array.from(op, (at) => program.bytes[at]!);
  const places = (isWanted: (place: number) => boolean): Int32Array =>
    Int32Array.from(Array.from({ length: count }, (_, place) => place).filter(isWanted));
  const stages = Array.from({ length: spec.pp }, (_, other) => other);
  return {
    stage,
    count,
    op,
    code,
    role,
    peerStage,
    bytes,
    func: Uint8Array.from(op, (at) => FUNCTIONS[program.kind[at]!]!),
    dtype,
    elements: bytes.map((n, place) =>
      Math.max(1, Math.round(n / (dtype[place] === FLOAT ? 4 : 2))),
    ),
    nth,
    collectivesOf,
    transfersOf,
    byRole: Array.from({ length: P.NO_GROUP }, (_, one) =>
      places((place) => role[place] === one && code[place] === COLLECTIVE),
    ),
    sendsTo: stages.map((other) =>
      places((place) => code[place] === SENDING && peerStage[place] === other),
    ),
    recvsFrom: stages.map((other) =>
      places((place) => code[place] === RECEIVING && peerStage[place] === other),
    ),
  };
}
