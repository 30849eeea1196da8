/** A training task's machines as a monitoring system sees them, with or without a fault: no engine, no text. */
import type { Fleet } from "../../../src/model/fleet.ts";
import { buildFleet } from "./build-fleet.ts";
import { Draw } from "./draw.ts";
import { faultActs, reactionOf } from "./fault-acts.ts";
import { completeFault, type FleetFault, type GivenFault } from "./faults.ts";
import { checkpointActs, drawJitters, oldXidActs, warmupActs, type Jitter } from "./jitters.ts";
import { jobClock } from "./job-clock.ts";
import { USUAL, type Nuisances } from "./nuisances.ts";
import { stageWork } from "./stage-levels.ts";
import { TaskScene } from "./task-scene.ts";
import { drawTelemetry, type TelemetryFault } from "./telemetry.ts";

export interface FleetTaskOptions {
  readonly machines: number;
  readonly gpusPerMachine?: number;
  /** Pipeline stages. */
  readonly pp?: number;
  /** How much slower the last stage is than the others; drawn from 1.1 to 2.1. */
  readonly lastRatio?: number;
  /** Whole seconds between samples. */
  readonly stepS?: number;
  readonly seconds: number;
  readonly iterationS?: number;
  readonly seed: number;
  readonly fault?: GivenFault | null;
  readonly nuisances?: Partial<Nuisances>;
  /** Ids of the catalog: what the site has. */
  readonly metrics?: readonly string[];
  readonly startS?: number;
}

export interface FleetTruth {
  readonly fault: FleetFault | null;
  readonly jitters: readonly Jitter[];
  readonly telemetry: readonly TelemetryFault[];
  readonly stageOf: Int32Array;
  readonly iterationS: number;
}

export interface FleetTask {
  readonly fleet: Fleet;
  readonly truth: FleetTruth;
}

export function fleetTask(options: FleetTaskOptions): FleetTask {
  const { scene, truth, pp } = taskScene(options);
  const digits = Math.max(4, String(options.machines - 1).length);
  const fleet = buildFleet(
    scene,
    {
      machines: Array.from(
        { length: options.machines },
        (_, machine) => `node${String(machine).padStart(digits, "0")}`,
      ),
      role: truth.stageOf,
      roles: Array.from({ length: pp }, (_, stage) => `stage ${stage}`),
    },
    options,
  );
  return { fleet, truth };
}

/** The task as a scene, for whoever wants series instead of grids. */
export function taskScene(options: FleetTaskOptions): {
  scene: TaskScene;
  truth: FleetTruth;
  pp: number;
} {
  const { machines, gpusPerMachine = 8, seconds, seed } = options;
  const stepS = Math.max(1, Math.round(options.stepS ?? 1));
  const draw = new Draw(seed, "task");
  const pp = Math.max(1, Math.min(options.pp ?? 1, machines));
  const nuisances: Nuisances = { ...USUAL, ...options.nuisances };
  const iterationS = options.iterationS ?? draw.magnitude(0, 2, 30);
  const stageOf = Int32Array.from({ length: machines }, (_, machine) =>
    Math.floor((machine * pp) / machines),
  );
  const fault = options.fault
    ? completeFault(options.fault, gpusPerMachine, iterationS, seed)
    : null;
  if (fault?.machines.some((machine) => machine < 0 || machine >= machines))
    throw new RangeError(`the fault names a machine that is none of the ${machines}`);
  const culprits = new Set(fault?.machines);
  const jittering = drawJitters(
    machines,
    gpusPerMachine,
    seconds,
    nuisances.jitters,
    culprits,
    seed,
  );
  const telemetry = drawTelemetry(machines, gpusPerMachine, seconds, nuisances, culprits, seed);
  const { halt, slowdown } = fault ? reactionOf(fault) : { halt: null, slowdown: null };
  const scene = new TaskScene({
    machines,
    gpusPerMachine,
    seconds,
    stepS,
    seed,
    nuisances,
    clock: jobClock(
      seconds,
      iterationS,
      nuisances,
      [...jittering.slowdowns, ...(slowdown ? [slowdown] : [])],
      halt,
      seed,
    ),
    stages: stageWork(pp, options.lastRatio ?? draw.within(1, 1.1, 2.1), seed),
    stageOf,
    acts: [
      ...(fault ? faultActs(fault, machines, seed) : []),
      ...jittering.acts,
      ...checkpointActs(nuisances, seconds, stageOf),
      ...warmupActs(nuisances, machines, seed),
      ...oldXidActs(nuisances, machines, gpusPerMachine, seed),
    ],
    telemetry,
  });
  return {
    scene,
    truth: { fault, jitters: jittering.jitters, telemetry, stageOf, iterationS },
    pp,
  };
}
