/** What a stage's program means on one of its ranks: with whom it communicates, and what its calls are named. */
import type { DumpGroup } from "../../model/operators.ts";
import type { FlopHeader } from "./header.ts";
import { groupNamed } from "./role-groups.ts";

export interface RankCalls {
  readonly rank: number;
  /** By role of the stage. */
  readonly groups: readonly DumpGroup[];
  /** By call of the stage: as the flight recorder names it, "send 0->1" with ranks of the group. */
  readonly names: readonly string[];
  /** By call: group rank of the other side; -1 for collectives and where it is unknown. */
  readonly peers: Int32Array;
}

export function rankCalls(header: FlopHeader, stage: number, lane: number): RankCalls {
  const { lanes, groups: byRole } = header;
  const { calls, roles } = header.stages[stage]!;
  const rank = stage * lanes + lane;
  const groups = roles.map((role) => {
    const of = byRole.get(role);
    return of?.groups[of.groupOf[rank]!] ?? groupNamed(role, role, null);
  });
  const peers = new Int32Array(calls.length).fill(-1);
  const names = calls.map(({ kind, group, isP2p, isSend, peerStage }, index) => {
    if (!isP2p) return kind;
    // Where the group is not known a stage's number stands for its rank in the pipeline.
    const isKnown = groups[group]!.ranks !== null;
    const place = (of: number): number =>
      isKnown ? placeBeside(header, roles[group]!, rank, of * lanes + lane) : of;
    const peer = peerStage < 0 ? -1 : place(peerStage);
    peers[index] = peer;
    return peer < 0 ? kind : `${kind} ${place(stage)}${isSend ? "->" : "<-"}${peer}`;
  });
  return { rank, groups, names, peers };
}

/** The other rank's place in a rank's group of a role; -1 where it is in another. */
function placeBeside({ groups }: FlopHeader, role: string, rank: number, other: number): number {
  const { groupOf, placeOf } = groups.get(role)!;
  return groupOf[other] === groupOf[rank] ? placeOf[other]! : -1;
}
