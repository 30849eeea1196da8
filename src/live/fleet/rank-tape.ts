/**
 * Plays a rank's part into its two rings: each operator is appended when its CPU issues it, and changed when it starts
 * and ends; calls of its CPU when they are over. What never comes in the simulation never comes here, and so a hang looks like one.
 */
import { FLAG, KIND, NONE } from "../../ingest/probe-ring/layout.ts";
import type { Flight } from "./flight.ts";
import type { LiveRecord, LiveRing } from "./live-ring.ts";
import type { HostCall, TracedProduct } from "./rank-work.ts";
import { COLLECTIVE, type StageOperators } from "./stage-operators.ts";

export interface RankTapeOptions {
  readonly rank: number;
  readonly lanes: number;
  readonly layout: StageOperators;
  /** Communicator of a role in the native ring. */
  readonly commOf: ReadonlyMap<number, number>;
  /** For how long its sends of an iteration are on the wire, by place in its program: real milliseconds. */
  sentMsOf(this: void, iteration: number): (place: number) => number;
  readonly native: LiveRing;
  readonly python: LiveRing;
}

/** Names of calls as the probe has them, by their place in the Python ring's table. */
export const CALL_NAMES = ["torch.utils.data@DataLoader.__next__", "torch.cuda@synchronize"];
export const PRODUCT_NAMES = ["cublasLtMatmul"];
const NAME_OF: Readonly<Record<HostCall, number>> = { load: 0, synchronize: 1, collect: NONE };

const NO_RECORD = {
  func: 0,
  dtype: 255,
  flags: 0,
  group: NONE,
  a: 0,
  b: 0,
  c: 0,
  endedNs: 0,
  sentMs: 0,
};

export class RankTape {
  readonly rank: number;
  readonly native: LiveRing;
  readonly python: LiveRing;
  readonly #layout: StageOperators;
  readonly #lanes: number;
  readonly #lane: number;
  readonly #commOf: ReadonlyMap<number, number>;
  readonly #sentMsOf: RankTapeOptions["sentMsOf"];
  /** Of the iteration that goes on. */
  #sentMs: (place: number) => number = () => 0;
  /** By role: calls so far. */
  readonly #collectives = new Float64Array(16);
  readonly #transfers = new Float64Array(16);
  /** Operators under way: ticket, and what is still to come (0: has come). */
  #open = { ticket: [] as number[], startNs: [] as number[], endNs: [] as number[] };
  #place = 0;
  #call = 0;
  #iteration = 1;
  /** Ticket of the iteration that goes on; -1 between two. */
  #iterationTicket = -1;
  #isStuck = false;

  constructor({ rank, lanes, layout, commOf, sentMsOf, native, python }: RankTapeOptions) {
    this.rank = rank;
    this.native = native;
    this.python = python;
    this.#layout = layout;
    this.#lanes = lanes;
    this.#lane = rank % lanes;
    this.#commOf = commOf;
    this.#sentMsOf = sentMsOf;
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
        this.#playCalls(flight, nowNs);
        return false;
      }
      const product = flight.work?.[this.rank]!.products.get(this.#layout.op[this.#place]!);
      if (product) this.#trace(product, issuedNs, flight, nowNs);
      this.#issue(this.#place, issuedNs, startNs[at]!, endNs[at]!, nowNs);
    }
    this.#playCalls(flight, nowNs);
    if (flight.endNs[this.rank]! > nowNs) return false;
    this.python.ended(this.#iterationTicket, flight.endNs[this.rank]!);
    this.#iterationTicket = -1;
    this.#iteration = flight.iteration + 1;
    this.#place = this.#call = 0;
    return true;
  }

  #playCalls({ work, at }: Flight, nowNs: number): void {
    const calls = work?.[this.rank]!.calls ?? [];
    for (; this.#call < calls.length; this.#call++) {
      const { what, fromNs, toNs } = calls[this.#call]!;
      if (at(toNs) > nowNs) return;
      this.python.append({
        ...NO_RECORD,
        kind: what === "collect" ? KIND.collection : KIND.pythonCall,
        group: NAME_OF[what],
        issuedNs: at(fromNs),
        startedNs: at(fromNs),
        endedNs: at(toNs),
      });
    }
  }

  #trace(
    { m, n, k, startNs, endNs }: TracedProduct,
    issuedNs: number,
    { at }: Flight,
    nowNs: number,
  ): void {
    const record = {
      ...NO_RECORD,
      kind: KIND.matrix,
      flags: FLAG.shim | FLAG.gpuStart | FLAG.gpuEnd,
      group: 0,
      a: m + n * 2 ** 32,
      b: k,
      c: 1,
      issuedNs,
    };
    this.#append(record, at(startNs), at(endNs), nowNs);
  }

  #beginIteration({ iteration, beginNs }: Flight): void {
    this.#sentMs = this.#sentMsOf(iteration);
    this.#iterationTicket = this.python.append({
      ...NO_RECORD,
      kind: KIND.iteration,
      a: iteration,
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
    const record = {
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
      sentMs: this.#sentMs(place),
    };
    this.#append(record, startNs, endNs, nowNs);
    this.native.issued(group, isCollective);
  }

  /** With what has come of it by now; the rest follows. */
  #append(
    record: Omit<LiveRecord, "startedNs" | "endedNs">,
    startNs: number,
    endNs: number,
    nowNs: number,
  ): void {
    const startedNs = startNs <= nowNs ? startNs : 0;
    const endedNs = endNs <= nowNs ? endNs : 0;
    const ticket = this.native.append({ ...record, startedNs, endedNs });
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
