/** Where ranks hang in the network, as far as that is known. */
import type { Rank } from "../../../model/ids.ts";
import type { Job } from "../../../model/job.ts";

/** What machines have, where nothing tells. */
const USUAL_GPUS = 8;

export interface Wiring {
  machineOf(this: void, rank: Rank): number | string;
  /** null where nothing tells. */
  leafOf(this: void, rank: Rank): number | string | null;
}

/** Inside a machine no NIC takes part. */
export function passesNic(ranks: readonly Rank[], { machineOf }: Wiring): boolean {
  return ranks.some((rank) => machineOf(rank) !== machineOf(ranks[0]!));
}

/** Where a job's ranks hang in the network, from what its files say. */
export function wiringOf({ ranks }: Job): Wiring {
  return {
    machineOf: (rank: Rank) => ranks.get(rank)?.machine ?? Math.floor(rank / USUAL_GPUS),
    leafOf: (rank: Rank) => ranks.get(rank)?.leaf ?? null,
  };
}
