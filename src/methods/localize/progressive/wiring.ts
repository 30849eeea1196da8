/** Where ranks hang in the network, as far as that is known. */
import type { Rank } from "../../../model/ids.ts";

export interface Wiring {
  machineOf(this: void, rank: Rank): number | string;
  /** null where nothing tells. */
  leafOf(this: void, rank: Rank): number | string | null;
}

/** Inside a machine no NIC takes part. */
export function passesNic(ranks: readonly Rank[], { machineOf }: Wiring): boolean {
  return ranks.some((rank) => machineOf(rank) !== machineOf(ranks[0]!));
}
