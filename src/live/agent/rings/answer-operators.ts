/** Answers about single operators, from the records that are kept. */
import { RECORD } from "../../../ingest/probe-ring/layout.ts";
import { LIMITS, type AgentReply, type OperatorsRequest } from "../../wire/messages.ts";
import { COLLECTIVE, type KeptOperators } from "./kept-operators.ts";
import type { RankTrack } from "../iterations/rank-track.ts";
import { whole } from "./ring-header.ts";

/** Bytes of an element, by NCCL's numbers of types; NaN beyond them. */
const ELEMENT_BYTES = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1];
/** Bytes of one operator in a reply: what is asked for must fit into one. */
const OPERATOR_BYTES = 1 + 3 * 4 + 4 * 8;
const MOST_OPERATORS = Math.floor((LIMITS.replyBytes - (1 << 20)) / OPERATOR_BYTES);

export type TrackOf = (rank: number) => RankTrack | null;
/** Global rank of a place in a group, by the group's key; -1 where it is not known here. */
export type MemberOf = (key: string, place: number) => number;

export function refused(why: string): AgentReply {
  return { kind: "refused", why };
}

/** As messages.ts says: the global rank, -2 - place where only that is known, -1 for collectives. */
function peerOf(track: RankTrack, operators: KeptOperators, i: number, of: MemberOf): number {
  if (operators.op[i] === COLLECTIVE) return -1;
  const { bytes, at, communicator } = operators;
  return memberAt(track, communicator[i]!, bytes.readInt32LE(at[i]! + RECORD.c), of);
}

/** The global rank of a place in a communicator, -2 - place where only that is known, -1 where it is none. */
export function memberAt(
  track: RankTrack,
  communicator: number,
  place: number,
  of: MemberOf,
): number {
  const group = track.groups.list[track.groups.indexOf(communicator)];
  if (group === undefined || place < 0 || place >= group.size) return -1;
  const member = of(group.key, place);
  return member >= 0 ? member : -2 - place;
}

/** Only iterations that are whole: operators between which others are missing would be taken for all. */
export function answerOperators(
  { rank, fromIteration, toIteration }: OperatorsRequest,
  trackOf: TrackOf,
  memberOf: MemberOf,
): AgentReply {
  const track = trackOf(rank);
  if (track === null) return refused(`rank ${rank} is not on this machine`);
  const held = track.heldIterations
    .filter((number) => number >= fromIteration && number <= toIteration)
    .map((number) => track.index.get(number)!)
    .filter((one) => track.operators(one)!.isWhole);
  if (held.length === 0)
    return refused(`iterations ${fromIteration} to ${toIteration} of rank ${rank} are not held`);
  const parts = held.map((one) => track.operators(one)!);
  const n = parts.reduce((sum, { count }) => sum + count, 0);
  if (n > MOST_OPERATORS) return refused(`${n} operators are more than a reply holds`);
  // A whole millisecond, so that the epoch is exact.
  const offsetNs = track.clockOffsetNs;
  const epochMs = Math.floor((held[0]!.startNs + offsetNs) / 1e6);
  const baseNs = held[0]!.startNs - (track.realMs(held[0]!.startNs) - epochMs) * 1e6;
  const reply = {
    kind: "operators" as const,
    iteration: Float64Array.from(held, ({ iteration }) => iteration),
    from: new Int32Array(held.length),
    to: new Int32Array(held.length),
    startMs: Float64Array.from(held, ({ startNs }) => track.realMs(startNs)),
    durationMs: Float64Array.from(held, ({ startNs, endNs }) => (endNs - startNs) / 1e6),
    epochMs,
    op: new Uint8Array(n),
    group: new Int32Array(n),
    peer: new Int32Array(n),
    seq: new Int32Array(n),
    bytes: new Float64Array(n),
    createdNs: new Float64Array(n),
    startedNs: new Float64Array(n),
    completedNs: new Float64Array(n),
  };
  let to = 0;
  for (const [k, part] of parts.entries()) {
    reply.from[k] = to;
    for (let i = 0; i < part.count; i++, to++) {
      const place = part.at[i]!;
      const time = (field: number): number => {
        const ns = whole(part.bytes, place + field);
        return ns === 0 ? NaN : ns - baseNs;
      };
      reply.op[to] = part.op[i]!;
      reply.group[to] = track.groups.indexOf(part.communicator[i]!);
      reply.peer[to] = peerOf(track, part, i, memberOf);
      reply.seq[to] = part.bytes.readUInt32LE(place + RECORD.b) & 0x7fff_ffff;
      const each = ELEMENT_BYTES[part.bytes[place + RECORD.dtype]!] ?? NaN;
      reply.bytes[to] = whole(part.bytes, place + RECORD.a) * each;
      reply.createdNs[to] = time(RECORD.issuedNs);
      reply.startedNs[to] = time(RECORD.startedNs);
      reply.completedNs[to] = time(RECORD.endedNs);
    }
    reply.to[k] = to;
  }
  return reply;
}
