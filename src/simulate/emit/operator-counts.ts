/**
 * How many operators ranks have run in their groups: torch numbers them by that. Replicas that take fewer micro-batches
 * run fewer, and how many they take may change from one iteration to the next.
 */
import { NO_GROUP, type StageProgram } from "../cluster/program.ts";
import { runOf, type Shares } from "../cluster/shares.ts";
import type { Simulation } from "../cluster/times.ts";

export class OperatorCounts {
  readonly #simulation: Simulation;
  /** By stage and replica, then role. */
  readonly #counts: Float64Array;

  constructor(simulation: Simulation) {
    const { spec } = simulation;
    this.#simulation = simulation;
    this.#counts = new Float64Array(spec.pp * spec.dp * NO_GROUP);
  }

  /** A whole iteration is over. */
  add({ skipped }: Shares): void {
    const { spec, lanes, programs } = this.#simulation;
    const replicaSize = lanes.lanes / spec.dp;
    programs.forEach((program, stage) => {
      for (let replica = 0; replica < spec.dp; replica++) {
        const more = countsOf(program, skipped[replica * replicaSize]!);
        const at = (stage * spec.dp + replica) * NO_GROUP;
        for (let role = 0; role < NO_GROUP; role++) this.#counts[at + role]! += more[role]!;
      }
    });
  }

  /** So many operators of a role's group the rank has run. */
  of(rank: number, role: number): number {
    const { spec, lanes } = this.#simulation;
    const stage = Math.floor(rank / lanes.lanes);
    const replica = Math.floor(((rank % lanes.lanes) * spec.dp) / lanes.lanes);
    return this.#counts[(stage * spec.dp + replica) * NO_GROUP + role]!;
  }
}

const known = new WeakMap<StageProgram, Map<number, Float64Array>>();

/** By role: operators of one iteration. */
function countsOf(program: StageProgram, skipped: number): Float64Array {
  const bySkipped = known.get(program) ?? new Map<number, Float64Array>();
  known.set(program, bySkipped);
  const found = bySkipped.get(skipped);
  if (found) return found;
  const counts = new Float64Array(NO_GROUP);
  for (const op of runOf(program, skipped).ops)
    if (program.role[op]! < NO_GROUP) counts[program.role[op]!]!++;
  bySkipped.set(skipped, counts);
  return counts;
}
