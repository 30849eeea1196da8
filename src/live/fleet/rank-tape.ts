/**
 * Plays a rank's part into its two rings: each operator is appended when its CPU issues it, and changed when it starts
 * and ends. What never comes in the simulation never comes here, and so a hang looks like one.
 */
import { FLAG, KIND, NONE } from "../../ingest/probe-ring/layout.ts";
import type { Flight } from "./flight.ts";
import type { LiveRing } from "./live-ring.ts";
import { COLLECTIVE, type StageOperators } from "./stage-operators.ts";

export interface RankTapeOptions {
  readonly rank: number;
  readonly lanes: number;
  readonly layout: StageOperators;
  /** Communicator of a role in the native ring. */
  readonly commOf: ReadonlyMap<number, number>;
  readonly native: LiveRing;
  readonly python: LiveRing;
}

export class RankTape {
  readonly rank: number;
  readonly native: LiveRing;
  readonly python: LiveRing;
  readonly #layout: StageOperators;
  readonly #lanes: number;
  readonly #lane: number;
  readonly #commOf: ReadonlyMap<number, number>;
  /** By role: calls so far. */
  readonly #collectives = new Float64Array(16);
  readonly #transfers = new Float64Array(16);
  /** Operators under way: ticket, and what is still to come (0: has come). */
  #open = { ticket: [] as number[], startNs: [] as number[], endNs: [] as number[] };
  #place = 0;
  #iteration = 1;
  /** Ticket of the iteration that goes on; -1 between two. */
  #iterationTicket = -1;
  #isStuck = false;

  constructor({ rank, lanes, layout, commOf, native, python }: RankTapeOptions) {
    this.rank = rank;
    this.native = native;
    this.python = python;
    this.#layout = layout;
    this.#lanes = lanes;
    this.#lane = rank % lanes;
    this.#commOf = commOf;
  }

  /** The iteration that it is in. */
  get iteration(): number {
    return this.#iteration;
  }

  /** Whether its CPU will never issue anything more. */
  get isStuck(): boolean {
    return this.#isStuck;
  }

  /** Everything up to now; flights ascend by iteration and hold the one that this rank is in, if it has begun. */
  play(flights: readonly Flight[], nowNs: number): void {
    this.#settle(nowNs);
    for (const flight of flights) {
      if (flight.iteration < this.#iteration) continue;
      if (!this.#playOne(flight, nowNs)) break;
    }
    this.native.flush();
    this.python.flush();
  }

  /** Whether the rank is done with it. */
  #playOne(flight: Flight, nowNs: number): boolean {
    if (flight.beginNs[this.rank]! > nowNs) return false;
    if (this.#iterationTicket < 0) this.#beginIteration(flight);
    const { issueNs, startNs, endNs } = flight.stages[this.#layout.stage]!;
    for (; this.#place < this.#layout.count; this.#place++) {
      const at = this.#layout.op[this.#place]! * this.#lanes + this.#lane;
      const issuedNs = issueNs[at]!;
      // Left out by its replica.
      if (Number.isNaN(issuedNs)) continue;
      if (issuedNs > nowNs) {
        this.#isStuck = issuedNs === Infinity;
        return false;
      }
      this.#issue(this.#place, issuedNs, startNs[at]!, endNs[at]!, nowNs);
    }
    if (flight.endNs[this.rank]! > nowNs) return false;
    this.python.ended(this.#iterationTicket, flight.endNs[this.rank]!);
    this.#iterationTicket = -1;
    this.#iteration = flight.iteration + 1;
    this.#place = 0;
    return true;
  }

  #beginIteration({ iteration, beginNs }: Flight): void {
    this.#iterationTicket = this.python.append({
      kind: KIND.iteration,
      func: 0,
      dtype: 255,
      flags: 0,
      group: NONE,
      a: iteration,
      b: 0,
      c: 0,
      issuedNs: beginNs[this.rank]!,
      startedNs: beginNs[this.rank]!,
      endedNs: 0,
    });
  }

  #issue(place: number, issuedNs: number, startNs: number, endNs: number, nowNs: number): void {
    const { code, role, func, dtype, elements, peerStage } = this.#layout;
    const isCollective = code[place] === COLLECTIVE;
    const counts = isCollective ? this.#collectives : this.#transfers;
    const group = this.#commOf.get(role[place]!)!;
    const ticket = this.native.append({
      kind: isCollective ? KIND.collective : KIND.p2p,
      func: func[place]!,
      dtype: dtype[place]!,
      flags: FLAG.gpuStart | FLAG.gpuEnd,
      group,
      a: elements[place]!,
      b: ++counts[role[place]!]! % 2 ** 32,
      // Stages are ranks of a pipeline's group.
      c: Math.max(0, peerStage[place]!),
      issuedNs,
      startedNs: startNs <= nowNs ? startNs : 0,
      endedNs: endNs <= nowNs ? endNs : 0,
    });
    this.native.issued(group, isCollective);
    if (endNs <= nowNs) return;
    this.#open.ticket.push(ticket);
    this.#open.startNs.push(startNs <= nowNs ? 0 : startNs);
    this.#open.endNs.push(endNs);
  }

  #settle(nowNs: number): void {
    const { ticket, startNs, endNs } = this.#open;
    let kept = 0;
    for (let i = 0; i < ticket.length; i++) {
      if (startNs[i]! > 0 && startNs[i]! <= nowNs) {
        this.native.started(ticket[i]!, startNs[i]!);
        startNs[i] = 0;
      }
      if (endNs[i]! <= nowNs) {
        this.native.ended(ticket[i]!, endNs[i]!);
        continue;
      }
      ticket[kept] = ticket[i]!;
      startNs[kept] = startNs[i]!;
      endNs[kept++] = endNs[i]!;
    }
    ticket.length = startNs.length = endNs.length = kept;
  }
}
