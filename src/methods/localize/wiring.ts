/** Where a job's ranks hang in the network, from what its files say. */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { Wiring } from "./progressive/wiring.ts";

/** What machines have, where nothing tells. */
const USUAL_GPUS = 8;

export function wiringOf({ ranks }: Job): Wiring {
  return {
    machineOf: (rank: Rank) => ranks.get(rank)?.machine ?? Math.floor(rank / USUAL_GPUS),
    leafOf: (rank: Rank) => ranks.get(rank)?.leaf ?? null,
  };
}
