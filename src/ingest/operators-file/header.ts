/**
 * The first line of operators.flop (docs/formats/operators.md): the program that all ranks of a stage run in an
 * iteration, and the groups. What that makes of each rank is in ../operators-file.ts.
 */
import { getOrInsert } from "../../base/group-by.ts";
import { MAX_RANKS } from "../../model/ids.ts";
import { roleGroups, type RoleGroups } from "./role-groups.ts";
import { fieldsOf, parseFields } from "../../base/json.ts";

export const SCHEMA = "faultline.operators/1";

export interface FlopHeader {
  readonly epochNs: bigint;
  readonly gpus: number;
  readonly lanes: number;
  readonly stages: readonly FlopStage[];
  /** Role → its groups; roles without groups in the header are absent. */
  readonly groups: ReadonlyMap<string, RoleGroups>;
}

export interface FlopStage {
  /** Operators of an iteration, those that do not communicate included. */
  readonly count: number;
  readonly communicating: number;
  /** By operator, index into `calls`; -1 where it does not communicate. */
  readonly call: Int32Array;
  /** By operator. */
  readonly bytes: Float64Array;
  readonly calls: readonly FlopCall[];
  /** What `FlopCall.group` counts: each rank has one group of each role. */
  readonly roles: readonly string[];
}

/** What operators of a program have in common, whichever rank runs it. */
interface FlopCall {
  readonly kind: string;
  readonly group: number;
  readonly isP2p: boolean;
  readonly isSend: boolean;
  /** Stage of the other side of a transfer; -1 for collectives, and where no recv belongs to a send. */
  readonly peerStage: number;
}

interface Program {
  readonly kind: readonly string[];
  readonly role: readonly string[];
  readonly bytes: readonly number[];
  readonly peerStage: readonly number[];
  readonly peerOp: readonly number[];
}

/** Null where the line is not such a header. */
export function parseHeader(line: string): FlopHeader | null {
  const { schema, epochNs, gpus, lanes, kinds, roles, groups, stages } = parseFields(line) ?? {};
  if (schema !== SCHEMA || typeof epochNs !== "string" || !/^\d{1,20}$/.test(epochNs)) return null;
  if (!isCount(gpus) || !isCount(lanes) || lanes === 0 || gpus > MAX_RANKS) return null;
  if (!isTexts(kinds) || !isTexts(roles) || !Array.isArray(stages)) return null;
  if (stages.length === 0 || stages.length * lanes !== gpus) return null;
  const programs: Program[] = [];
  for (const stage of stages) {
    const program = programOf(fieldsOf(stage) ?? {}, kinds, roles);
    if (!program) return null;
    programs.push(program);
  }
  const receivers = receiversOf(programs);
  return {
    epochNs: BigInt(epochNs),
    gpus,
    lanes,
    stages: programs.map((program, stage) => stageOf(program, receivers.get(stage))),
    groups: roleGroups(Array.isArray(groups) ? groups : [], gpus),
  };
}

function programOf(
  stage: Readonly<Record<string, unknown>>,
  kinds: readonly string[],
  roles: readonly string[],
): Program | null {
  const { kind, role, bytes, peerStage, peerOp } = stage;
  if (!isNumbers(kind) || !isNumbers(role) || !isNumbers(bytes)) return null;
  if (!isNumbers(peerStage) || !isNumbers(peerOp)) return null;
  const lists = [role, bytes, peerStage, peerOp];
  if (lists.some((list) => list.length !== kind.length)) return null;
  return {
    kind: kind.map((index) => kinds[index] ?? "compute"),
    role: role.map((index) => roles[index] ?? "none"),
    bytes,
    peerStage,
    peerOp,
  };
}

function stageOf(program: Program, receivers: ReadonlyMap<number, number> | undefined): FlopStage {
  const count = program.kind.length;
  const call = new Int32Array(count).fill(-1);
  const calls: FlopCall[] = [];
  const roles: string[] = [];
  const known = new Map<string, number>();
  for (let op = 0; op < count; op++) {
    const kind = program.kind[op]!;
    if (kind === "compute") continue;
    const role = program.role[op]!;
    const isSend = kind === "send";
    const isP2p = isSend || kind === "recv";
    const peerStage = !isP2p ? -1 : isSend ? (receivers?.get(op) ?? -1) : program.peerStage[op]!;
    const key = `${kind} ${role} ${peerStage}`;
    let index = known.get(key);
    if (index === undefined) {
      if (!roles.includes(role)) roles.push(role);
      index = calls.push({ kind, group: roles.indexOf(role), isP2p, isSend, peerStage }) - 1;
      known.set(key, index);
    }
    call[op] = index;
  }
  const communicating = call.reduce((sum, index) => sum + (index < 0 ? 0 : 1), 0);
  return { count, communicating, call, bytes: Float64Array.from(program.bytes), calls, roles };
}

/** Stage → its sends → the stage that receives each: only recvs say to whom they belong. */
function receiversOf(programs: readonly Program[]): Map<number, Map<number, number>> {
  const receivers = new Map<number, Map<number, number>>();
  programs.forEach(({ kind, peerStage, peerOp }, receiver) => {
    kind.forEach((name, op) => {
      if (name !== "recv") return;
      getOrInsert(receivers, peerStage[op]!, () => new Map<number, number>()).set(
        peerOp[op]!,
        receiver,
      );
    });
  });
  return receivers;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0;
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => typeof item === "number");
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
