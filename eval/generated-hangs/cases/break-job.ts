import type { Random } from "../../../src/base/random.ts";
import { pick } from "../../../src/base/random.ts";
import type { Engine, Execution } from "./execute.ts";
import { execute, noFaults } from "./execute.ts";
import type { Culprit, RankFault } from "./faults.ts";
import { placeFault } from "./faults.ts";
import type { SimJob } from "./job.ts";
import type { Deviation, MismatchVariant } from "./mismatch.ts";
import { deviate, MISMATCH_VARIANTS } from "./mismatch.ts";

/** A run with its fault in it. */
export interface Broken {
  readonly execution: Execution;
  readonly culprits: readonly Culprit[];
  /** Per rank the operator from which a broken GPU reports nothing more. */
  readonly blindFrom: ReadonlyMap<number, number>;
  /** Of a mismatch: who left the program where. */
  readonly deviation: Deviation | null;
}

export function breakRanks(
  job: SimJob,
  healthy: Execution,
  fault: { kind: RankFault; iteration: number; culprits: number },
  engine: Engine,
  random: Random,
): Broken | null {
  const { kind, iteration, culprits } = fault;
  const placed = placeFault(kind, healthy, job.groups, iteration, culprits, random);
  if (placed === null) return null;
  const execution = execute(job.programs, job.groups, placed.faults, engine);
  return { execution, culprits: placed.culprits, blindFrom: placed.blindFrom, deviation: null };
}

export function breakProgram(
  job: SimJob,
  fault: { variant: MismatchVariant | undefined; iteration: number; culprits: number },
  engine: Engine,
  random: Random,
): Broken | null {
  const variant = fault.variant ?? pick(random, MISMATCH_VARIANTS);
  const { iteration, culprits } = fault;
  const deviation = deviate(job.programs, job.groups, iteration, variant, culprits, random);
  if (deviation === null) return null;
  const execution = execute(deviation.programs, job.groups, noFaults(job.programs.length), engine);
  const places = deviation.ranks.map((rank, i) => ({
    rank,
    index: deviation.indices[i] as number,
  }));
  return { execution, culprits: places, blindFrom: new Map(), deviation };
}
