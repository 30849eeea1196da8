/** The ring's communicators, connections and names. */
import { MAX_RANKS } from "../../model/ids.ts";
import type { Communicator, ConnectionTable } from "../../model/probe.ts";
import {
  COMMUNICATOR,
  COMMUNICATOR_BYTES,
  COMPLETE,
  CONNECTION,
  CONNECTION_BYTES,
  DESTROYED,
  NAME_BYTES,
} from "./layout.ts";
import { textAt, u64, type RingBytes } from "./ring-bytes.ts";

/** By index in the ring; null for an entry that is not complete, or says what cannot be. */
export function readCommunicators({
  view,
  bytes,
  communicators,
}: RingBytes): (Communicator | null)[] {
  return Array.from({ length: communicators.count }, (_, index) => {
    const at = communicators.offset + index * COMMUNICATOR_BYTES;
    const flags = view.getUint32(at + COMMUNICATOR.flags, true);
    const rank = view.getInt32(at + COMMUNICATOR.rank, true);
    const size = view.getInt32(at + COMMUNICATOR.size, true);
    if ((flags & COMPLETE) === 0 || size < 1 || size > MAX_RANKS || rank < 0 || rank >= size)
      return null;
    return {
      id: view
        .getBigUint64(at + COMMUNICATOR.id, true)
        .toString(16)
        .padStart(16, "0"),
      name: textAt(bytes, at + COMMUNICATOR.name, COMMUNICATOR.nameBytes),
      rank,
      size,
      collectives: u64(view, at + COMMUNICATOR.collectives),
      p2ps: u64(view, at + COMMUNICATOR.p2ps),
      isDestroyed: (flags & DESTROYED) !== 0,
    };
  });
}

export function readNames({ bytes, names }: RingBytes): string[] {
  return Array.from({ length: names.count }, (_, index) =>
    textAt(bytes, names.offset + index * NAME_BYTES, NAME_BYTES),
  );
}

/** `kept`: the ring's index of a communicator → the process' own; -1 for those that are not kept. */
export function readConnections(ring: RingBytes, kept: Int32Array): ConnectionTable {
  const { view, connections } = ring;
  const n = connections.count;
  const table = {
    communicator: new Int32Array(n),
    channel: new Uint8Array(n),
    isSend: new Uint8Array(n),
    peer: new Int32Array(n),
    begun: new Float64Array(n),
    finished: new Float64Array(n),
    opsBegun: new Float64Array(n),
    opsFinished: new Float64Array(n),
    bytes: new Float64Array(n),
    state: new Uint8Array(n),
    changedNs: new Float64Array(n),
  };
  let count = 0;
  for (let index = 0; index < n; index++) {
    const at = connections.offset + index * CONNECTION_BYTES;
    const communicator = kept[view.getUint16(at + CONNECTION.comm, true)] ?? -1;
    const peer = view.getInt32(at + CONNECTION.peer, true);
    if (communicator < 0 || peer < 0) continue;
    const begun = u64(view, at + CONNECTION.begun);
    const finished = u64(view, at + CONNECTION.finished);
    const i = count++;
    table.communicator[i] = communicator;
    table.channel[i] = view.getUint8(at + CONNECTION.channel);
    table.isSend[i] = view.getUint8(at + CONNECTION.isSend) === 0 ? 0 : 1;
    table.peer[i] = peer;
    table.begun[i] = begun;
    table.finished[i] = finished;
    table.opsBegun[i] = view.getUint32(at + CONNECTION.opsBegun, true);
    table.opsFinished[i] = view.getUint32(at + CONNECTION.opsFinished, true);
    table.bytes[i] = u64(view, at + CONNECTION.bytes);
    table.state[i] = begun > finished ? oldestState(view, at + CONNECTION.states, begun) : 0;
    table.changedNs[i] = ring.ns(at + CONNECTION.changedNs);
  }
  return { count, ...table };
}

/** Collectives and P2P share a connection here, so that steps need not end in order: the oldest that has a state counts. */
function oldestState(view: DataView, states: number, begun: number): number {
  for (let step = Math.max(0, begun - CONNECTION.stateCount); step < begun; step++) {
    const state = view.getUint8(states + (step % CONNECTION.stateCount));
    if (state !== 0) return state;
  }
  return 0;
}
