/**
 * The first line of operators.flop (docs/formats/operators.md), turned into what a stage's first rank does: its
 * groups, and for each operator of an iteration what the table says of it, apart from times.
 */
import { MAX_RANKS } from "../../model/ids.ts";
import type { DumpGroup } from "../../model/operators.ts";

export const SCHEMA = "faultline.operators/1";

export interface FlopHeader {
  readonly epochNs: bigint;
  readonly gpus: number;
  readonly lanes: number;
  readonly stages: readonly FlopStage[];
}

export interface FlopStage {
  /** Operators of an iteration, those that do not communicate included. */
  readonly count: number;
  /** The stage's first rank. */
  readonly rank: number;
  readonly groups: readonly DumpGroup[];
  /** By operator; null where it does not communicate. */
  readonly operators: readonly (FlopOperator | null)[];
}

export interface FlopOperator {
  /** Index into the stage's groups. */
  readonly group: number;
  readonly name: string;
  readonly bytes: number;
  readonly isP2p: boolean;
  readonly isSend: boolean;
  /** Group rank of the other side; -1 for collectives. */
  readonly peer: number;
}

/** How a Megatron-like script describes the groups of a role, as the simulator names them. */
const ROLES: ReadonlyMap<string, string> = new Map([
  ["default_pg", "world"],
  ["TENSOR_MODEL_PARALLEL_GROUP", "tp"],
  ["CONTEXT_PARALLEL_GROUP", "cp"],
  ["DATA_PARALLEL_GROUP_WITH_CP", "dp"],
  ["EXPERT_MODEL_PARALLEL_GROUP", "ep"],
  ["PIPELINE_MODEL_PARALLEL_GROUP", "pp"],
  ["EMBEDDING_GROUP", "embedding"],
]);

interface Program {
  readonly kind: readonly string[];
  readonly role: readonly string[];
  readonly bytes: readonly number[];
  readonly peerStage: readonly number[];
  readonly peerOp: readonly number[];
}

/** Null where the line is not such a header. */
export function parseHeader(line: string): FlopHeader | null {
  let root: unknown;
  try {
    root = JSON.parse(line);
  } catch {
    return null;
  }
  const { schema, epochNs, gpus, lanes, kinds, roles, groups, stages } = fields(root);
  if (schema !== SCHEMA || typeof epochNs !== "string" || !/^\d{1,20}$/.test(epochNs)) return null;
  if (!isCount(gpus) || !isCount(lanes) || lanes === 0 || gpus > MAX_RANKS) return null;
  if (!isTexts(kinds) || !isTexts(roles) || !Array.isArray(stages)) return null;
  if (stages.length === 0 || stages.length * lanes !== gpus) return null;
  const programs: Program[] = [];
  for (const stage of stages) {
    const program = programOf(fields(stage), kinds, roles);
    if (!program) return null;
    programs.push(program);
  }
  const known = firstRanksGroups(Array.isArray(groups) ? groups : [], lanes);
  const receivers = receiversOf(programs);
  return {
    epochNs: BigInt(epochNs),
    gpus,
    lanes,
    stages: programs.map((program, stage) =>
      stageOf(program, stage, lanes, known, receivers.get(stage)),
    ),
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

interface Membership {
  readonly group: DumpGroup;
  /** The rank's place in the group. */
  readonly place: number;
}

/** "rank role" → its group, for the first rank of each stage. */
function firstRanksGroups(groups: readonly unknown[], lanes: number): Map<string, Membership> {
  const found = new Map<string, Membership>();
  for (const item of groups) {
    const { name, desc, ranks } = fields(item);
    if (typeof name !== "string" || typeof desc !== "string" || !isNumbers(ranks)) continue;
    const role = ROLES.get(desc.replace(/_\d+$/, ""));
    if (role === undefined) continue;
    const group = dumpGroup(name, desc, ranks);
    ranks.forEach((rank, place) => {
      if (rank % lanes !== 0) return;
      const key = `${rank} ${role}`;
      if (!found.has(key)) found.set(key, { group, place });
    });
  }
  return found;
}

function stageOf(
  program: Program,
  stage: number,
  lanes: number,
  known: ReadonlyMap<string, Membership>,
  receivers: ReadonlyMap<number, number> | undefined,
): FlopStage {
  const groups: DumpGroup[] = [];
  const groupOfRole = new Map<string, number>();
  const groupOf = (role: string): number => {
    const seen = groupOfRole.get(role);
    if (seen !== undefined) return seen;
    const group = known.get(`${stage * lanes} ${role}`)?.group ?? dumpGroup(role, role, null);
    groups.push(group);
    groupOfRole.set(role, groups.length - 1);
    return groups.length - 1;
  };
  const operators = program.kind.map((kind, op): FlopOperator | null => {
    if (kind === "compute") return null;
    const role = program.role[op]!;
    const group = groupOf(role);
    const bytes = program.bytes[op]!;
    const isSend = kind === "send";
    if (!isSend && kind !== "recv") {
      return { group, name: kind, bytes, isP2p: false, isSend, peer: -1 };
    }
    const other = isSend ? (receivers?.get(op) ?? -1) : program.peerStage[op]!;
    // Where the group is not known a stage's number stands for its rank in the pipeline.
    const { ranks } = groups[group]!;
    const placeOf = (of: number): number =>
      ranks ? (known.get(`${of * lanes} ${role}`)?.place ?? -1) : of;
    const peer = placeOf(other);
    const name = peer < 0 ? kind : `${kind} ${placeOf(stage)}${isSend ? "->" : "<-"}${peer}`;
    return { group, name, bytes, isP2p: true, isSend, peer };
  });
  return { count: operators.length, rank: stage * lanes, groups, operators };
}

/** Stage → its sends → the stage that receives each: only recvs say to whom they belong. */
function receiversOf(programs: readonly Program[]): Map<number, Map<number, number>> {
  const receivers = new Map<number, Map<number, number>>();
  programs.forEach(({ kind, peerStage, peerOp }, receiver) => {
    kind.forEach((name, op) => {
      if (name !== "recv") return;
      const sender = receivers.get(peerStage[op]!) ?? new Map<number, number>();
      receivers.set(peerStage[op]!, sender.set(peerOp[op]!, receiver));
    });
  });
  return receivers;
}

function dumpGroup(name: string, desc: string, ranks: readonly number[] | null): DumpGroup {
  return { name, desc, ranks, enqueued: -1, started: -1, completed: -1 };
}

function fields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
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
