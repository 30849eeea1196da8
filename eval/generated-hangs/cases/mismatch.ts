import type { Random } from "../../../src/base/random.ts";
import { pick, randomInt } from "../../../src/base/random.ts";
import type { SimGroup } from "../../../src/simulate/flight/rank-records.ts";
import type { Kind, Op, Shape } from "../../../src/simulate/flight/op.ts";
import { isP2p, shapeOf } from "../../../src/simulate/flight/op.ts";

export const MISMATCH_VARIANTS = ["skip", "type", "size", "dtype", "swap", "extra"] as const;
export type MismatchVariant = (typeof MISMATCH_VARIANTS)[number];

/** Where ranks leave the common program. */
export interface Deviation {
  readonly variant: MismatchVariant;
  readonly ranks: readonly number[];
  /** Index in each deviating rank's program, parallel to `ranks`; for a swap the earlier of the two. */
  readonly indices: readonly number[];
  /** For a swap the later of the two, else -1. */
  readonly other: number;
  readonly programs: readonly (readonly Op[])[];
}

/**
 * Makes one rank (or several of a large group) leave the program in one collective of `iteration`.
 * Null where the place drawn does not allow the variant. Whether the job hangs is for the caller to see.
 */
export function deviate(
  programs: readonly (readonly Op[])[],
  groups: readonly SimGroup[],
  iteration: number,
  variant: MismatchVariant,
  culprits: number,
  random: Random,
): Deviation | null {
  const rank = randomInt(random, programs.length);
  const ops = programs[rank] as readonly Op[];
  const places = [...ops.keys()].filter((i) => isShared(ops[i] as Op, groups, iteration));
  if (places.length === 0) return null;
  const index = pick(random, places);
  const op = ops[index] as Op;
  if (variant === "swap") return swap(programs, groups, rank, index, places, random);
  if (op.kind === "all_to_all" && (variant === "size" || variant === "dtype")) return null;
  const changed = changedOp(op, variant, groups[op.group] as SimGroup, random);
  const members = (groups[op.group] as SimGroup).ranks.filter((r) => r !== rank);
  // More than one deviates only where the majority still shows what was meant.
  const canBeMore = changed !== null && variant !== "extra" && members.length >= 2 * culprits;
  const more = canBeMore ? members.slice(0, culprits - 1) : [];
  const ranks = [rank, ...more].toSorted((a, b) => a - b);
  const edited = [...programs];
  const indices: number[] = [];
  for (const r of ranks) {
    const own = [...(programs[r] as readonly Op[])];
    const at = r === rank ? index : sameCall(own, op, callNumber(ops, index));
    const before = own[at] as Op;
    if (variant === "skip") removeAt(own, at);
    else if (variant === "extra") own.splice(at + 1, 0, { ...before, hostWait: 0, site: "extra" });
    else own[at] = { ...before, ...(changed as Partial<Op>) };
    edited[r] = own;
    indices.push(at);
  }
  return { variant, ranks, indices, other: -1, programs: edited };
}

function isShared(op: Op, groups: readonly SimGroup[], iteration: number): boolean {
  const group = groups[op.group] as SimGroup;
  return op.iteration === iteration && !isP2p(op) && !op.async && group.ranks.length > 1;
}

/** The fields that make the call another one; null for variants that change the order instead. */
function changedOp(
  op: Op,
  variant: MismatchVariant,
  group: SimGroup,
  random: Random,
): Partial<Op> | null {
  if (variant === "dtype") return { dtype: op.dtype === "BFloat16" ? "Float" : "BFloat16" };
  if (variant === "size") return { shape: otherSize(op.shape) };
  if (variant !== "type") return null;
  const base = op.kind === "all_reduce_barrier" ? "all_reduce" : op.kind;
  const kinds: Kind[] = ["all_reduce", "broadcast", "_all_gather_base"];
  const kind = pick(
    random,
    kinds.filter((k) => k !== base),
  );
  const { input } = op.shape;
  const [first, ...rest] = input;
  const gathered = [(first as number) * group.ranks.length, ...rest];
  return { kind, shape: shapeOf(input, kind === "_all_gather_base" ? gathered : input) };
}

/** A few rows more in the longest dimension, as a ragged last batch would make them. */
function otherSize(shape: Shape): Shape {
  const { input, output } = shape;
  const axis = input.indexOf(Math.max(...input));
  const before = input[axis] as number;
  const ratio = (output[axis] as number) / before;
  const after = before + 8;
  return shapeOf(input.with(axis, after), output.with(axis, Math.ceil(after * ratio)));
}

/** Two collectives of different groups change places; they must have somebody else in common to lock. */
function swap(
  programs: readonly (readonly Op[])[],
  groups: readonly SimGroup[],
  rank: number,
  index: number,
  places: readonly number[],
  random: Random,
): Deviation | null {
  const ops = programs[rank] as readonly Op[];
  const members = new Set(groups[ops[index]?.group as number]?.ranks);
  const partners = places.filter((i) => {
    const group = groups[ops[i]?.group as number] as SimGroup;
    const hasCommon = group.ranks.some((r) => r !== rank && members.has(r));
    return group.index !== ops[index]?.group && hasCommon;
  });
  if (partners.length === 0) return null;
  const partner = pick(random, partners);
  const [first, second] = index < partner ? [index, partner] : [partner, index];
  const own = [...ops];
  const a = ops[first] as Op;
  const b = ops[second] as Op;
  own[first] = { ...b, hostWait: a.hostWait };
  own[second] = { ...a, hostWait: b.hostWait };
  const edited = [...programs];
  edited[rank] = own;
  return { variant: "swap", ranks: [rank], indices: [first], other: second, programs: edited };
}

function removeAt(ops: Op[], index: number): void {
  const [removed] = ops.splice(index, 1);
  const next = ops[index];
  // The wait at the start of an iteration stays even when its first collective is skipped.
  if (removed && next && removed.hostWait !== 0)
    ops[index] = { ...next, hostWait: removed.hostWait };
}

/** How many calls in its group come before the operator. */
function callNumber(ops: readonly Op[], index: number): number {
  const { group } = ops[index] as Op;
  let count = 0;
  for (let i = 0; i < index; i++) if (ops[i]?.group === group) count++;
  return count;
}

function sameCall(ops: readonly Op[], op: Op, number: number): number {
  let count = 0;
  return ops.findIndex((o) => o.group === op.group && count++ === number);
}
