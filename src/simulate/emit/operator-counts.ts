/** How many operators ranks have run in their groups: torch numbers them by that. */
import { NO_GROUP, type StageProgram } from "../cluster/program.ts";
import type { Simulation } from "../cluster/times.ts";

/** Operators of a role's group that a rank has run before this iteration. */
export type RanBefore = (rank: number, role: number) => number;

/** Every iteration is the whole program, on every rank of a stage. */
export function ranBefore({ lanes, programs }: Simulation, iteration: number): RanBefore {
  const counts = programs.map(countsOf);
  return (rank, role) => (iteration - 1) * counts[Math.floor(rank / lanes.lanes)]![role]!;
}

const known = new WeakMap<StageProgram, Int32Array>();

/** By role: operators of one iteration. */
function countsOf(program: StageProgram): Int32Array {
  const found = known.get(program);
  if (found) return found;
  const counts = new Int32Array(NO_GROUP);
  for (const role of program.role) if (role < NO_GROUP) counts[role]!++;
  known.set(program, counts);
  return counts;
}
