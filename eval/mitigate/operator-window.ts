/** The operators of the latest iterations, as the file that `faultline diagnose` would be given. */
import { emitOperators } from "../../src/simulate/emit/operators.ts";
import { memoryOutput } from "../../test/support/simulate/memory-output.ts";
import { writeTruth } from "../../src/simulate/emit/truth.ts";
import type { IterationTimes, Simulation } from "../../src/simulate/cluster/times.ts";

const KEPT = 24;

export class OperatorWindow {
  readonly #simulation: Simulation;
  readonly #kept: IterationTimes[] = [];

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  push(times: IterationTimes): void {
    const stages = times.stages.map(({ issueNs, startNs, endNs }) => ({
      issueNs: issueNs.slice(),
      startNs: startNs.slice(),
      endNs: endNs.slice(),
    }));
    this.#kept.push({ ...times, stages });
    if (this.#kept.length > KEPT) this.#kept.shift();
  }

  /** Without the truth, of course. */
  files({ topology }: IterationTimes): { name: string; bytes: Uint8Array }[] {
    const output = memoryOutput();
    const simulation = { ...this.#simulation, topology };
    const emitter = emitOperators(simulation, output);
    for (const times of this.#kept) emitter.iteration(times);
    emitter.end();
    writeTruth(simulation, output);
    return [...output.bytes]
      .filter(([name]) => name !== "truth.json")
      .map(([name, bytes]) => ({ name, bytes }));
  }
}
