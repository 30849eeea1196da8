/** Machines that take no part in the job, though they are monitored with it: login nodes, spares. They are compared apart. */
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import { exporterOf } from "./absence.ts";
import { median } from "../../maths/robust.ts";

const LEAST_WORKERS = 3;
const WITHOUT_GPUS = "machines without GPUs";
const SPARES = "machines that never worked";
/** Of what the others hold: less is nothing. */
const HELD_SHARE = 0.1;
const WORKED_DUTY = 5;

export function withoutOutsiders(fleet: Fleet): Fleet {
  const { machines, grids } = fleet;
  const gpu = grids.filter((grid) => exporterOf(grid) === "gpu");
  const hasAny = (list: readonly MetricGrid[], m: number): boolean =>
    list.some((grid) => Number.isFinite(highest(grid, m)));
  // One that is not seen at all is dead, not outside.
  const hasGpu = machines.map((_, m) => hasAny(gpu, m) || !hasAny(grids, m));
  const isSpare = sparesOf(fleet);
  const workers = machines.filter((_, m) => hasGpu[m] && !isSpare[m]).length;
  const outside = machines.filter((_, m) => !hasGpu[m] || isSpare[m]);
  if (outside.length === 0 || workers < LEAST_WORKERS) return fleet;
  const roles = [...fleet.roles, WITHOUT_GPUS, SPARES];
  const role = fleet.role.map((r, m) =>
    isSpare[m] ? roles.length - 1 : hasGpu[m] ? r : roles.length - 2,
  );
  const named = outside.slice(0, 4).join(", ") + (outside.length > 4 ? ", …" : "");
  const what = `${named} took no part in the job (no GPUs, or idle all the time with nothing in their memory) and ${outside.length === 1 ? "is" : "are"} not held against the others`;
  return { ...fleet, role, roles, missing: [...fleet.missing, what] };
}

export function isOutsider({ role, roles }: Fleet, machine: number): boolean {
  const name = roles[role[machine]!];
  return name === WITHOUT_GPUS || name === SPARES;
}

/** GPU memory tells: a process that is stuck keeps it. */
function sparesOf({ machines, grids }: Fleet): boolean[] {
  const memory = grids.find(({ metric }) => metric === "gpu-memory-used");
  const duty = grids.find(({ metric }) => metric === "gpu-duty-cycle");
  if (!memory || !duty) return machines.map(() => false);
  const held = machines.map((_, m) => highest(memory, m));
  const usual = median(held.filter((value) => Number.isFinite(value)));
  return machines.map(
    (_, m) =>
      Number.isFinite(held[m]!) && held[m]! < HELD_SHARE * usual && highest(duty, m) < WORKED_DUTY,
  );
}

/** -Infinity where it has no sample. */
function highest({ high, ticks }: MetricGrid, m: number): number {
  let most = -Infinity;
  for (let at = m * ticks; at < (m + 1) * ticks; at++) if (high[at]! > most) most = high[at]!;
  return most;
}
