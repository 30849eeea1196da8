/**
 * How far each machine is from its peers, block by block: its distance from the middle of its role, less the standing
 * difference that it always had. The middle is a median and the spread a median of distances, so that culprits, even
 * several, move neither.
 */
import { groupBy } from "../../base/group-by.ts";
import { select } from "../../maths/quickselect.ts";
import { TO_DEVIATION } from "../../maths/robust.ts";
import type { Blocks } from "./blocks.ts";
import { changeLimit } from "./limits.ts";
import { FEW, Group, type PeerOptions } from "./peer-group.ts";

/** Fewer machines than this in a role have no middle of their own: their changes are compared with the whole job's. */
const LEAST_PEERS = 3;
/** Where peers differ by nothing at all, this share of a material deviation is taken for noise. */
const LEAST_NOISE = 0.05;
/** A culprit is so many times as far out as the outer quarter. */
const FAR = 2.5;

export interface PeerDeviations {
  readonly blocks: Blocks;
  /** Machine m in block b at m · count + b: signed, on the metric's scale; NaN where nothing was seen. */
  readonly deviation: Float32Array;
  /** The same without taking its own habit off: how far it is from its peers as they are. */
  readonly distance: Float32Array;
  /** By role and block: how far one must be off to be unlike its peers. */
  readonly limit: Float32Array;
  /** The same in units of what peers differ by. */
  readonly noise: Float32Array;
  /** Blocks in which a quarter of the machines and more are far from the rest: nobody is named then. */
  readonly crowdedBlocks: number;
  /** By machine: how much its own deviation jumps from block to block. */
  readonly jumps: Float32Array;
  readonly role: Int32Array;
}

export function peerDeviations(blocks: Blocks, options: PeerOptions): PeerDeviations {
  const { role, roles, material } = options;
  const { count } = blocks;
  const deviation = new Float32Array(blocks.value.length).fill(NaN);
  const distance = new Float32Array(blocks.value.length).fill(NaN);
  const everybody = Array.from(role, (_, m) => m);
  const all = new Group(blocks, everybody, options);
  const members = groupBy(everybody, (m) => role[m]!);
  const alone = [...members.values()].filter((list) => list.length < LEAST_PEERS).flat();
  for (const list of members.values()) {
    if (list.length >= LEAST_PEERS)
      new Group(blocks, list, options).fromMiddle(deviation, distance);
  }
  // Of two, the harmful side tells who it is, where there is one.
  const enough = options.harm === "both" ? LEAST_PEERS : 2;
  if (alone.length > 0 && everybody.length >= enough) all.fromOwnPast(deviation, distance, alone);
  // Roles differ in level, not in noise: many machines tell it better than a few.
  const ofAll = all.spreads(deviation);
  const outer = all.outer(deviation);
  const strict = changeLimit(everybody.length, blocks.window);
  let crowdedBlocks = 0;
  for (let b = 0; b < count; b++) {
    const usual = Math.max(material, strict * Math.max(ofAll[b]!, LEAST_NOISE * material));
    if (options.isMasked[b] === 0 && outer[b]! > usual) crowdedBlocks++;
  }
  const limit = new Float32Array(roles * count);
  const noise = new Float32Array(roles * count);
  for (const [r, list] of members) {
    const own = list.length > FEW ? new Group(blocks, list, options).spreads(deviation) : ofAll;
    for (let b = 0; b < count; b++) {
      const at = r * count + b;
      noise[at] = Math.max(own[b]!, ofAll[b]!, LEAST_NOISE * material);
      limit[at] = Math.max(material, strict * noise[at], FAR * outer[b]!);
    }
  }
  return {
    blocks,
    deviation,
    distance,
    limit,
    noise,
    crowdedBlocks,
    jumps: jumpsOf(blocks, deviation, role.length),
    role,
  };
}

/** Levels that shift once do not count: it is the median of the differences between neighbours. */
function jumpsOf(
  { count, window }: Blocks,
  deviation: Float32Array,
  machines: number,
): Float32Array {
  const jumps = new Float32Array(machines);
  const scratch = new Float64Array(count);
  for (let m = 0; m < machines; m++) {
    let seen = 0;
    for (let b = 1; b < count; b++) {
      const jump = Math.abs(deviation[m * count + b]! - deviation[m * count + b - 1]!);
      if (jump === jump) scratch[seen++] = jump;
    }
    // The difference of two is √2 as wide as one.
    // Neighbours that share their samples differ by that much less.
    const shared = Math.sqrt(window);
    if (seen > 0)
      jumps[m] = (shared * TO_DEVIATION * select(scratch, 0, seen, seen >> 1)) / Math.SQRT2;
  }
  return jumps;
}
