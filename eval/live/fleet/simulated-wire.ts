/** How long sends of simulated machines were on the wire, as their agents answer. */
import type { RankGroup } from "../../../src/live/fleet/rank-groups.ts";
import { peerOf, sentOf } from "../../../src/live/fleet/sent-on-wire.ts";
import type { WireReply, WireRequest } from "../../../src/live/wire/messages.ts";
import type { SimulatedFleet } from "./simulated-fleet.ts";

interface Entry {
  readonly rank: number;
  readonly group: number;
  readonly peer: number;
  readonly ms: Float64Array;
}

export function simulatedWire(
  fleet: SimulatedFleet,
  groups: ReadonlyMap<number, readonly RankGroup[]>,
  { ranks, iterations }: WireRequest,
  nowMs: number,
): WireReply {
  const entries = ranks.flatMap((rank) => {
    const own = groups.get(rank);
    return own ? entriesOf(fleet, own, rank, iterations, nowMs) : [];
  });
  return {
    kind: "wire",
    rank: Int32Array.from(entries, (one) => one.rank),
    group: Int32Array.from(entries, (one) => one.group),
    peer: Int32Array.from(entries, (one) => one.peer),
    ms: Float32Array.from(entries.flatMap(({ ms }) => [...ms])),
  };
}

function entriesOf(
  fleet: SimulatedFleet,
  own: readonly RankGroup[],
  rank: number,
  iterations: readonly number[],
  nowMs: number,
): Entry[] {
  const { scale } = fleet.played;
  const layout = fleet.stageOf(rank);
  const entries = new Map<string, Entry>();
  for (const [k, iteration] of iterations.entries()) {
    const held = fleet.held.of(iteration);
    if (held === null || !(held.endMs[rank]! <= nowMs)) continue;
    const sentNs = sentOf(fleet.played, layout, own, rank, iteration);
    for (let place = 0; place < layout.count; place++) {
      const peer = peerOf(fleet.played.simulation, own, layout, place, rank);
      if (peer < 0) continue;
      const index = own.findIndex(({ role }) => role === layout.role[place]);
      const key = `${index} ${peer}`;
      let entry = entries.get(key);
      if (!entry) {
        entry = { rank, group: index, peer, ms: new Float64Array(iterations.length).fill(NaN) };
        entries.set(key, entry);
      }
      entry.ms[k] = (entry.ms[k]! || 0) + (sentNs(place) * scale) / 1e6;
    }
  }
  return [...entries.values()];
}
