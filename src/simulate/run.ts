/** A whole simulation into an output: the library call behind `faultline simulate`. */
import { severitiesFromCosts } from "./cluster/costs.ts";
import { drawDurations } from "./cluster/durations.ts";
import { simulate, type SimulateOptions } from "./cluster/engine.ts";
import type { Steer } from "./cluster/steering.ts";
import type { IterationTimes } from "./cluster/times.ts";
import type { ClusterSpec } from "./cluster/spec.ts";
import type { Emitter, Output } from "./emit/emitter.ts";
import { EMITTERS } from "./emit/emitters.ts";
import { writeTruth } from "./emit/truth.ts";

interface SimulationSummary {
  readonly iterations: number;
  readonly operators: number;
  /** Milliseconds an iteration; the last one is missing where the job stopped in it. */
  readonly iterationMs: readonly number[];
  readonly stopped: boolean;
}

/** Who may change what the job does between two iterations, and how far (cluster/steering.ts). */
export interface Control extends SimulateOptions {
  readonly steer?: Steer;
}

/**
 * `onIteration` sees each iteration as it comes: progress, or a live service. What it makes of it `control.steer`, asked
 * before the next, can apply.
 */
export function runSimulation(
  spec: ClusterSpec,
  emit: readonly string[],
  output: Output,
  onIteration: (times: IterationTimes) => void = () => undefined,
  control: Control = {},
): SimulationSummary {
  const simulation = simulate(drawDurations(severitiesFromCosts(spec)), control);
  const emitters: Emitter[] = emit.map((name) => EMITTERS[name]!(simulation, output));
  writeTruth(simulation, output);
  const iterationMs: number[] = [];
  let iterations = 0;
  for (const times of simulation.iterations(control.steer)) {
    iterations = times.iteration;
    if (times.endNs !== Infinity) iterationMs.push((times.endNs - times.startNs) / 1e6);
    for (const emitter of emitters) emitter.iteration(times);
    onIteration(times);
  }
  for (const emitter of emitters) emitter.end();
  const { lanes } = simulation.lanes;
  const operators = simulation.programs.reduce((sum, { count }) => sum + count * lanes, 0);
  return { iterations, operators, iterationMs, stopped: iterationMs.length < iterations };
}
