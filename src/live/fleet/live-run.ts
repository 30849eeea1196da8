/** One start of a rehearsed job: its ranks, and the simulation that is played into their rings as time goes by. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ClusterSpec } from "../../simulate/cluster/spec.ts";
import type { IterationTimes } from "../../simulate/cluster/times.ts";
import { moment, thisMachine, type Machine } from "../agent/process-state.ts";
import { fateOf } from "./fault-board.ts";
import { flightOf, type Flight } from "./flight.ts";
import { startRank, type LiveRank } from "./live-rank.ts";
import { PlayedJob } from "./played-job.ts";
import { rankGroups } from "./rank-groups.ts";
import { RankWorkPlan, type RankWork } from "./rank-work.ts";
import { parsedTests, simulatedReport } from "./simulated-tests.ts";
import { stageOperators } from "./stage-operators.ts";

export interface LiveRunOptions {
  readonly spec: ClusterSpec;
  readonly everyMs: number | null;
  readonly speed: number;
  readonly job: string;
  /** Distinguishes starts of the job; below 2^31. */
  readonly runNumber: number;
  /** Folders of the machines are made below it. */
  readonly folder: string;
  /** Whose clocks it goes by; this machine's by default. */
  readonly machine?: Machine;
}

/** Ranks of a job whose work beside communication is played: of more, one machine cannot keep pace. */
const MOST_WORKING = 256;
const BEAT_NS = 1e9;
const EXCEPTION = 1;

export class LiveRun {
  readonly played: PlayedJob;
  readonly machines: readonly { readonly machine: string; readonly folder: string }[];
  readonly run: string;
  readonly ranks: readonly LiveRank[];
  /** When the job began, CLOCK_MONOTONIC in nanoseconds. */
  readonly startNs: number;
  readonly #machine: Machine;
  #flights: Flight[] = [];
  readonly #looked = new Map<number, number>();
  readonly #plans: readonly RankWorkPlan[] | null;
  /** By rank: when it was done with the last iteration, simulated. */
  #endNs: Float64Array;

  private constructor(
    played: PlayedJob,
    machines: LiveRun["machines"],
    run: string,
    ranks: readonly LiveRank[],
    machine: Machine,
    startNs: number,
  ) {
    this.#machine = machine;
    this.played = played;
    this.machines = machines;
    this.run = run;
    this.ranks = ranks;
    this.startNs = startNs;
    const { simulation } = played;
    this.#endNs = new Float64Array(ranks.length);
    this.#plans =
      ranks.length > MOST_WORKING
        ? null
        : ranks.map(({ rank }) => new RankWorkPlan(simulation, rank));
  }

  static async start(options: LiveRunOptions): Promise<LiveRun> {
    const { spec, everyMs, speed, job, runNumber, folder, machine = thisMachine() } = options;
    const run = `run-${runNumber.toString(36)}`;
    // A clock that is set stands still meanwhile.
    const clocks = options.machine
      ? { realtimeNs: machine.realtimeNs(), monotonicNs: machine.monotonicNs() }
      : moment(machine);
    const startMs = Number(clocks.realtimeNs / 1000n) / 1000;
    const played = new PlayedJob({ spec, everyMs, speed, startMs });
    const { simulation, groups } = played;
    const { topology, lanes } = simulation;
    const machines = Array.from({ length: topology.machines }, (_, i) => {
      const name = topology.machineName(i);
      const own = join(folder, name);
      mkdirSync(own, { recursive: true, mode: 0o700 });
      return { machine: name, folder: own };
    });
    const layouts = simulation.programs.map((_, stage) => stageOperators(simulation, stage));
    const ranks: LiveRank[] = [];
    try {
      for (let rank = 0; rank < spec.gpus; rank++) {
        const layout = layouts[Math.floor(rank / lanes.lanes)]!;
        ranks.push(
          await startRank({
            played,
            rank,
            layout,
            groups: rankGroups(simulation, groups, layout, rank),
            job,
            run,
            runNumber,
            folder: machines[topology.machineOf(rank)]!.folder,
            clocks,
          }),
        );
      }
    } catch (error) {
      await Promise.all(ranks.map(closeRank));
      throw error;
    }
    return new LiveRun(played, machines, run, ranks, machine, Number(clocks.monotonicNs));
  }

  /** Writes everything that has happened by now. */
  step(nowNs = Number(this.#machine.monotonicNs())): void {
    const { played } = this;
    const nowMs = played.startedMs + (nowNs - this.startNs) / 1e6;
    for (let times = played.next(nowMs); times !== null; times = played.next(nowMs)) {
      const zeroNs = this.startNs + (played.wallMs(0) - played.startedMs) * 1e6;
      const work = this.#workOf(times);
      const before = this.#flights.at(-1) ?? null;
      this.#flights.push(flightOf(times, zeroNs, played.scale, before, work));
    }
    const struck = played.isHung ? played.board.struckIn(played.last!.iteration) : null;
    let oldest = Infinity;
    for (const one of this.ranks) {
      if (!one.isStruck) one.tape.play(this.#flights, nowNs);
      oldest = Math.min(oldest, one.tape.iteration);
      const fault = struck?.get(one.rank);
      if (fault && one.tape.isStuck && !one.isStruck) this.#strike(one, fateOf(fault), nowNs);
      this.#beat(one, nowNs);
      this.#test(one);
    }
    // The one before the oldest is needed for when the next begins.
    this.#flights = this.#flights.filter(
      ({ iteration }) => iteration >= Math.min(oldest, this.#flights.at(-1)!.iteration),
    );
  }

  /** Before the engine goes on, because its arrays are reused. */
  #workOf(times: IterationTimes): readonly RankWork[] | null {
    const { board } = this.played;
    if (this.#plans === null) return null;
    const work = this.#plans.map((plan, rank) => plan.of(times, this.#endNs[rank]!, board.specs));
    this.#endNs = Float64Array.from(times.rankEndNs);
    return work;
  }

  /** Processes end and rings are removed; folders stay, agents look into them. */
  async close(): Promise<void> {
    await Promise.all(this.ranks.map(closeRank));
  }

  /** All ranks end as a job that is done: in order. */
  finish(): void {
    const nowNs = Number(this.#machine.monotonicNs());
    for (const one of this.ranks) {
      if (one.isStruck) continue;
      for (const ring of one.rings) ring.end("exit", 0, nowNs, "");
      one.process.kill();
      one.isStruck = true;
    }
  }

  #strike(one: LiveRank, fate: ReturnType<typeof fateOf>, nowNs: number): void {
    one.isStruck = true;
    if (fate === "stopped") {
      one.process.stop();
      return;
    }
    if (fate === "crashed")
      for (const ring of one.rings)
        ring.end("exception", EXCEPTION, nowNs, "RuntimeError: simulated failure of this rank\n");
    one.process.kill();
  }

  /** As the probe does at the end of an iteration: who is past it must not begin. */
  #test({ rank, rings, tape, isStruck }: LiveRank): void {
    // Every rank is looked at once an iteration.
    if (isStruck || this.#looked.get(rank) === tape.iteration) return;
    this.#looked.set(rank, tape.iteration);
    const ring = rings.at(-1)!;
    ring.refuseProfile();
    const wanted = ring.testsWanted;
    if (wanted === null) return;
    const tests = parsedTests(wanted.text);
    const over = tape.iteration - 1;
    const last = tests ? tests.atIteration + (tests.rounds ?? 1) - 1 : -1;
    if (tests && over < tests.atIteration) return;
    if (tests && over <= last) {
      const { simulation, board } = this.played;
      const rounds = over - tests.atIteration + 1;
      const soFar = tests.rounds === undefined ? tests : { ...tests, rounds };
      const nowMs = Number(this.#machine.realtimeNs()) / 1e6;
      const report = simulatedReport(simulation, board.specs, rank, soFar, nowMs);
      const path = `${ring.path}.validation.json`;
      writeFileSync(`${path}.part`, JSON.stringify(report), { mode: 0o600 });
      renameSync(`${path}.part`, path);
      if (over < last) return;
    }
    ring.testsDone(wanted.number);
  }

  /** A process' own thread says that it lives, as long as it does. */
  #beat(one: LiveRank, nowNs: number): void {
    if (one.isStruck) return;
    for (const ring of one.rings) {
      if (nowNs - ring.beatNs < BEAT_NS) continue;
      ring.beat(nowNs, this.#machine.realtimeNs());
    }
  }
}

async function closeRank(one: LiveRank): Promise<void> {
  for (const ring of one.rings) {
    ring.close();
    rmSync(ring.path, { force: true });
    rmSync(`${ring.path}.validation.json`, { force: true });
  }
  await one.process.close();
}
