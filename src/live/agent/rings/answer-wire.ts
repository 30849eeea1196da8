/** For how long a rank's sends over the network were on the wire, by whom they went to: from its records and connections. */
import { getOrInsert } from "../../../base/group-by.ts";
import {
  CONNECTION,
  CONNECTION_BYTES,
  CONNECTION_CAPACITY,
  HEADER,
  RECORD,
  WIRE,
  wireMs,
} from "../../../ingest/probe-ring/layout.ts";
import type { AgentReply, WireRequest } from "../../wire/messages.ts";
import { type MemberOf, memberAt, type TrackOf } from "./answer-operators.ts";
import type { RingFollower } from "./follow-ring.ts";
import { COLLECTIVE, RECEIVING } from "./kept-operators.ts";
import type { RankTrack } from "../iterations/rank-track.ts";
import { whole } from "./ring-header.ts";

/** The record's number of the algorithm. */
const RING = 1;

interface Entry {
  readonly rank: number;
  readonly group: number;
  readonly peer: number;
  readonly ms: Float64Array;
}

export function answerWire(
  { ranks, iterations }: WireRequest,
  trackOf: TrackOf,
  memberOf: MemberOf,
): AgentReply {
  const entries = [...new Set(ranks)].flatMap((rank) => {
    const track = trackOf(rank);
    return track === null ? [] : entriesOf(track, iterations, memberOf);
  });
  return {
    kind: "wire",
    rank: Int32Array.from(entries, ({ rank }) => rank),
    group: Int32Array.from(entries, ({ group }) => group),
    peer: Int32Array.from(entries, ({ peer }) => peer),
    ms: Float32Array.from(entries.flatMap(({ ms }) => [...ms])),
  };
}

function entriesOf(track: RankTrack, iterations: readonly number[], memberOf: MemberOf): Entry[] {
  const nextOf = track.native === null ? null : ringNeighbours(track.native);
  /** By communicator and place in it; null where that is nobody. */
  const entries = new Map<number, Entry | null>();
  for (const [k, number] of iterations.entries()) {
    const indexed = track.index.get(number);
    const operators = indexed && track.operators(indexed);
    if (!operators?.isWhole) continue;
    const { bytes, at, op, communicator, count } = operators;
    for (let i = 0; i < count; i++) {
      const ms = wireMs(bytes.readUInt16LE(at[i]! + WIRE));
      if (Number.isNaN(ms) || op[i] === RECEIVING) continue;
      const isCollective = op[i] === COLLECTIVE;
      if (isCollective && bytes[at[i]! + RECORD.d] !== RING) continue;
      const of = communicator[i]!;
      const place = (isCollective ? nextOf?.get(of) : bytes.readInt32LE(at[i]! + RECORD.c)) ?? -1;
      const key = of * 2 ** 32 + place;
      let entry = entries.get(key);
      if (entry === undefined) {
        const peer = memberAt(track, of, place, memberOf);
        const unknown = new Float64Array(iterations.length).fill(NaN);
        const group = track.groups.indexOf(of);
        entry = peer === -1 ? null : { rank: track.rank, group, peer, ms: unknown };
        entries.set(key, entry);
      }
      if (entry) entry.ms[k] = (entry.ms[k]! || 0) + ms;
    }
  }
  return [...entries.values()].filter((entry) => entry !== null);
}

/** A ring's data all go to one member; a tree's share of a communicator that also runs rings is small. */
const MOST_OF_IT = 0.9;

/**
 * By communicator, the member that nearly all goes to that this one sends over the network: the next one of its ring. None
 * where several get much (trees, several rails): records do not tell which of them took the time.
 */
function ringNeighbours(follower: RingFollower): Map<number, number> {
  const { header } = follower;
  const count = Math.min(
    header.readUInt32LE(HEADER.connectionCount),
    header.readUInt32LE(HEADER.connectionCapacity),
    CONNECTION_CAPACITY,
  );
  const table = Buffer.alloc(count * CONNECTION_BYTES);
  if (!follower.readAt(table, header.readUInt32LE(HEADER.connectionsOffset))) return new Map();
  const sent = new Map<number, Map<number, number>>();
  for (let from = 0; from < table.length; from += CONNECTION_BYTES) {
    if (table[from + CONNECTION.isSend] !== 1) continue;
    const communicator = table.readUInt16LE(from + CONNECTION.comm);
    const peer = table.readInt32LE(from + CONNECTION.peer);
    const peers = getOrInsert(sent, communicator, () => new Map<number, number>());
    peers.set(peer, (peers.get(peer) ?? 0) + whole(table, from + CONNECTION.bytes));
  }
  const next = new Map<number, number>();
  for (const [communicator, peers] of sent) {
    const all = [...peers.values()].reduce((sum, bytes) => sum + bytes, 0);
    for (const [peer, bytes] of peers) if (bytes >= MOST_OF_IT * all) next.set(communicator, peer);
  }
  return next;
}
