/** Our detector, whole and without its pieces. */
import { CONTINUITY_S, findMachines } from "../../src/methods/machines/find-machines.ts";
import { ALL_MACHINES } from "../../src/methods/machines/roles.ts";
import type { Fleet } from "../../src/model/fleet.ts";
import type { FaultyMachine } from "../../src/model/machine-report.ts";
import { catalogMetric } from "../../src/model/metric-catalog.ts";
import { denoised } from "./denoised.ts";

export const OURS = "ours";
/** In the order of the table. The two filters drop answers, where a switch in the detector would also find others. */
export const PIECES = {
  "without roles": "all machines in one role",
  "without the halt search":
    "filter: machines that only the search within halts named are left out",
  "without kinds":
    "filter: one metric must have lasted 240 s by itself (a state 60 s, absence as it is), however many agree",
  "with VAE":
    "every grid but states as Minder's models reconstruct it; tasks of up to 200 machines",
} as const;
export const SAME_TASKS = "ours, same tasks";
const MOST_FOR_VAE = 200;

type Named = readonly FaultyMachine[];

export function oursAndPieces(fleet: Fleet, withPieces: boolean): Record<string, Named> {
  const { faulty } = findMachines(fleet);
  if (!withPieces) return { [OURS]: faulty };
  const oneRole = { ...fleet, role: new Int32Array(fleet.machines.length), roles: [ALL_MACHINES] };
  return {
    [OURS]: faulty,
    "without roles": fleet.roles.length > 1 ? findMachines(oneRole).faulty : faulty,
    "without the halt search": faulty.filter((one) => !isOfHaltSearch(one)),
    "without kinds": faulty.filter(lastsByItself),
    ...(fleet.machines.length <= MOST_FOR_VAE
      ? { "with VAE": findMachines(denoised(fleet)).faulty, [SAME_TASKS]: faulty }
      : {}),
  };
}

/** It asks for less than a limit in sigmas, and gives none. */
function isOfHaltSearch({ deviations }: FaultyMachine): boolean {
  return deviations.every(({ sigmas }) => Number.isNaN(sigmas));
}

function lastsByItself({ deviations }: FaultyMachine): boolean {
  return deviations.some(({ metric, direction, fromS, toS }) => {
    const known = catalogMetric(metric);
    const needS = known?.group === "state" ? CONTINUITY_S / 4 : CONTINUITY_S;
    return direction === "absent" || ((known?.decides ?? true) && toS - fromS >= needS);
  });
}
