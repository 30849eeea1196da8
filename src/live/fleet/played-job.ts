/**
 * A simulated job in real time: one iteration of the engine after the other, each when its turn has come, the simulated
 * time stretched so that a healthy iteration takes as long as was asked for.
 */
import { quietIterationNs, severitiesFromCosts } from "../../simulate/cluster/costs.ts";
import { drawDurations } from "../../simulate/cluster/durations.ts";
import { simulate } from "../../simulate/cluster/engine.ts";
import { clusterGroups, type ClusterGroups } from "../../simulate/cluster/groups.ts";
import type { ClusterSpec } from "../../simulate/cluster/spec.ts";
import type { IterationTimes, Simulation } from "../../simulate/cluster/times.ts";
import { FaultBoard } from "./fault-board.ts";

export interface PlayedJobOptions {
  /** `iterations` counts: give Number.MAX_SAFE_INTEGER for a job without an end. */
  readonly spec: ClusterSpec;
  /** What a healthy iteration takes; null: what the simulation says, `speed` times as fast. */
  readonly everyMs: number | null;
  readonly speed?: number;
  /** When the job starts, milliseconds since 1970. */
  readonly startMs: number;
  /** What a replica may be told to take; the spec's own where it is absent. */
  readonly mostMicroBatches?: number | undefined;
}

/**
 * Whoever is so many healthy iterations late does not catch up: the job begins its next iteration later, which looks as if all
 * ranks had stood still. On a busy laptop that must be rare.
 */
const MOST_LATE = 3;
const LEAST_LATE_MS = 6000;

export class PlayedJob {
  readonly simulation: Simulation;
  readonly groups: ClusterGroups;
  readonly board: FaultBoard;
  /** Real nanoseconds of a simulated one. */
  readonly scale: number;
  readonly everyMs: number;
  readonly startedMs: number;
  readonly #iterations: Generator<IterationTimes>;
  /** When the simulated clock showed 0. */
  #zeroMs: number;
  /** When the first rank is done with the last iteration, so that the next one begins; simulated. */
  #dueNs = 0;
  #isOver = false;
  /** Milliseconds by which the job was put off because nobody computed it in time. */
  lateMs = 0;
  /** The last iteration that was computed; its arrays are the engine's. */
  last: IterationTimes | null = null;

  constructor({ spec, everyMs, speed = 1, startMs, mostMicroBatches }: PlayedJobOptions) {
    const drawn = drawDurations(severitiesFromCosts(spec));
    this.simulation = simulate(drawn, mostMicroBatches === undefined ? {} : { mostMicroBatches });
    this.groups = clusterGroups(this.simulation);
    this.board = new FaultBoard(this.simulation);
    const healthyNs = quietIterationNs(spec, []);
    this.scale = everyMs === null ? 1 / speed : (everyMs * 1e6) / healthyNs;
    this.everyMs = (healthyNs * this.scale) / 1e6;
    this.startedMs = this.#zeroMs = startMs;
    this.#iterations = this.simulation.iterations((iteration) =>
      this.board.steer(iteration, this.wallMs(this.#dueNs)),
    );
  }

  /** No iteration comes any more: the last one hangs, or was the spec's last. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get isHung(): boolean {
    return this.last?.endNs === Infinity;
  }

  /** Milliseconds since 1970 of a simulated moment of the iteration that was computed last, or of the next. */
  wallMs(ns: number): number {
    return this.#zeroMs + (ns * this.scale) / 1e6;
  }

  /** The next iteration where it has begun by now, else null. Its arrays are reused by the next call. */
  next(nowMs: number): IterationTimes | null {
    if (this.#isOver) return null;
    const lateMs = nowMs - this.wallMs(this.#dueNs);
    if (lateMs < 0) return null;
    if (lateMs > Math.max(LEAST_LATE_MS, MOST_LATE * this.everyMs)) {
      this.#zeroMs += lateMs;
      this.lateMs += lateMs;
    }
    const { value, done } = this.#iterations.next();
    if (done) {
      this.#isOver = true;
      return null;
    }
    const times = value;
    this.last = times;
    this.#dueNs = times.rankEndNs.reduce((first, end) => Math.min(first, end), Infinity);
    this.board.computed(times.iteration, this.wallMs(times.endNs));
    if (times.endNs === Infinity) this.#isOver = true;
    return times;
  }
}
