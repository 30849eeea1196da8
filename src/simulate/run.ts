/** A whole simulation into an output: the library call behind `faultline simulate`. */
import { severitiesFromCosts } from "./cluster/costs.ts";
import { drawDurations } from "./cluster/durations.ts";
import { simulate } from "./cluster/engine.ts";
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

/** `onIteration` sees each iteration as it comes: progress. */
export function runSimulation(
  spec: ClusterSpec,
  emit: readonly string[],
  output: Output,
  onIteration: (times: IterationTimes) => void = () => undefined,
): SimulationSummary {
  const simulation = simulate(drawDurations(severitiesFromCosts(spec)));
  const emitters: Emitter[] = emit.map((name) => EMITTERS[name]!(simulation, output));
  writeTruth(simulation, output);
  const iterationMs: number[] = [];
  let iterations = 0;
  for (const times of simulation.iterations()) {
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
