/** How the time of a simulated machine's ranks passed, slot by slot: what its agent would find in their rings. */
import {
  reportOf,
  type SlotRow,
  type WireRow,
} from "../../../src/live/agent/shares/shares-report.ts";
import { sweepSlot } from "../../../src/live/agent/shares/slot-sweep.ts";
import type { RankGroup } from "../../../src/live/fleet/rank-groups.ts";
import { COLLECTIVE } from "../../../src/live/fleet/stage-operators.ts";
import type { SharesReport } from "../../../src/live/wire/messages.ts";
import { SLOT_MS } from "../../../src/model/rank-shares.ts";
import type { SimulatedFleet } from "./simulated-fleet.ts";
import { sentOf } from "../../../src/live/fleet/sent-on-wire.ts";

/** Slots that are told at once, after a pause of the node. */
const MOST_SLOTS = 100;

/** Of one slot: nodes of a fleet take turns. */
const operators = {
  count: 0,
  issued: new Float64Array(0),
  started: new Float64Array(0),
  ended: new Float64Array(0),
};

/** Times of the operator at a place of a rank's program, milliseconds since 1970; NaN where it is left out. */
interface Times {
  issued(place: number): number;
  started(place: number): number;
  ended(place: number): number;
  /** For how long what it sends is on the wire. */
  sent(place: number): number;
}

export class SimulatedShares {
  readonly #fleet: SimulatedFleet;
  readonly #ranks: readonly number[];
  readonly #groups: ReadonlyMap<number, readonly RankGroup[]>;
  /** By rank: what was on the wire and is not told yet. */
  readonly #owedMs = new Map<number, number>();
  #next = NaN;

  constructor(
    fleet: SimulatedFleet,
    ranks: readonly number[],
    groups: ReadonlyMap<number, readonly RankGroup[]>,
  ) {
    this.#fleet = fleet;
    this.#ranks = ranks;
    this.#groups = groups;
  }

  /** Slots that are over; null where none is. */
  take(nowMs: number): SharesReport | null {
    const over = Math.floor(nowMs / SLOT_MS);
    if (!(over - this.#next < MOST_SLOTS)) this.#next = over;
    if (this.#next >= over) return null;
    const firstSlot = this.#next;
    const rows = this.#ranks.map((): SlotRow[] => []);
    for (; this.#next < over; this.#next++)
      for (const [i, rank] of this.#ranks.entries()) rows[i]!.push(this.#row(rank, this.#next));
    const { job, run } = this.#fleet;
    return reportOf({ job, run, ranks: this.#ranks, firstSlot }, rows, over - firstSlot);
  }

  #row(rank: number, slot: number): SlotRow {
    const from = slot * SLOT_MS;
    const to = from + SLOT_MS;
    const { count, code, role } = this.#fleet.stageOf(rank);
    const wires = new Map<number, { ms: number; count: number }>();
    let [issued, ended, sent] = [0, 0, 0];
    const all = this.#during(rank, from, to);
    makeRoom(all.length * count);
    for (const times of all)
      for (let place = 0; place < count; place++) {
        const [call, start, end] = [times.issued(place), times.started(place), times.ended(place)];
        if (!(call < to) || end < from) continue;
        if (call >= from) issued++;
        if (end < to) {
          ended++;
          sent += times.sent(place);
          if (code[place] === COLLECTIVE) addTo(wires, role[place]!, end - start);
        }
        const i = operators.count++;
        operators.issued[i] = call;
        operators.started[i] = start;
        operators.ended[i] = end;
      }
    const { inside, late, gpu } = sweepSlot(operators, from, to);
    return {
      slot,
      inside: inside / SLOT_MS,
      late: late / SLOT_MS,
      gpu: gpu / SLOT_MS,
      onWire: this.#onWire(rank, sent) / SLOT_MS,
      issued,
      ended,
      wires: this.#wires(rank, wires),
    };
  }

  /** What was on the wire for longer than the slot is told in the next ones, as agents do. */
  #onWire(rank: number, sentMs: number): number {
    const owed = (this.#owedMs.get(rank) ?? 0) + sentMs;
    const now = Math.min(SLOT_MS, owed);
    this.#owedMs.set(rank, owed - now);
    return now;
  }

  #wires(rank: number, wires: ReadonlyMap<number, { ms: number; count: number }>): WireRow[] {
    return [...wires].flatMap(([role, { ms, count }]) => {
      const group = this.#groups.get(rank)!.find((one) => one.role === role);
      return group && group.size > 1 ? [{ key: group.key, ms: ms / count, count }] : [];
    });
  }

  /** Iterations of the rank that have something to do with this time, the oldest first; the last may hang. */
  #during(rank: number, from: number, to: number): Times[] {
    const { held, hung, played } = this.#fleet;
    const { lanes } = played.simulation.lanes;
    const layout = this.#fleet.stageOf(rank);
    const { stage, op } = layout;
    const lane = this.#fleet.laneOf(rank);
    const found: Times[] = [];
    for (let iteration = held.last; iteration >= held.first; iteration--) {
      const { startMs, endMs, stages } = held.of(iteration)!;
      if (endMs[rank]! < from) break;
      if (startMs > to) continue;
      const columns = stages[stage]!;
      const sentNs = sentOf(played, layout, this.#groups.get(rank)!, rank, iteration);
      const at = (place: number): number => place * lanes + lane;
      found.unshift({
        issued: (place) => startMs + columns.issueMs[at(place)]!,
        started: (place) => startMs + columns.startMs[at(place)]!,
        ended: (place) => startMs + columns.startMs[at(place)]! + columns.durationMs[at(place)]!,
        sent: (place) => (sentNs(place) * played.scale) / 1e6,
      });
    }
    if (hung !== null) {
      const { issueNs, startNs, endNs } = hung.stages[stage]!;
      const at = (place: number): number => op[place]! * lanes + lane;
      const wall = (ns: number): number => played.wallMs(ns);
      found.push({
        issued: (place) => wall(issueNs[at(place)]!),
        started: (place) => wall(startNs[at(place)]!),
        ended: (place) => wall(endNs[at(place)]!),
        sent: () => 0,
      });
    }
    return found;
  }
}

function makeRoom(most: number): void {
  operators.count = 0;
  if (operators.issued.length >= most) return;
  operators.issued = new Float64Array(most);
  operators.started = new Float64Array(most);
  operators.ended = new Float64Array(most);
}

function addTo(wires: Map<number, { ms: number; count: number }>, role: number, ms: number): void {
  const wire = wires.get(role) ?? { ms: 0, count: 0 };
  wires.set(role, wire);
  wire.ms += ms;
  wire.count++;
}
