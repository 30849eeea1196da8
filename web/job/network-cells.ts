/** Links, NICs and switches under suspicion as places in a matrix of machines; machines share a place where they are many. */
import type { Incident } from "../live/api.ts";
import type { RankTable } from "./rank-table.ts";

export interface NetworkCells {
  /** Places on either side of the matrix, at most MOST_PLACES. */
  readonly places: number;
  readonly machines: number;
  /** What the places stand for: "node000", "node000 – node015". */
  readonly names: readonly string[];
  /** Between which places something is slow. */
  readonly links: readonly { readonly from: number; readonly to: number; readonly says: string }[];
  /** Places with a slow NIC or behind a slow switch. */
  readonly ends: readonly { readonly at: number; readonly says: string }[];
}

const MOST_PLACES = 48;
const MOST_MARKS = 200;

/** null where no part of the network is suspected, or the job has one machine. */
export function networkCells(
  table: Pick<RankTable, "machine" | "rowOf">,
  incidents: readonly Incident[],
): NetworkCells | null {
  const suspects = incidents
    .flatMap(({ verdict }) => verdict?.suspects ?? [])
    .filter(({ type, cause }) => NETWORK.includes(type) || cause === "network-slow");
  if (suspects.length === 0) return null;
  const machines = [...new Set(table.machine)].filter((name) => name !== "");
  // node9 before node10.
  machines.sort(new Intl.Collator("en", { numeric: true }).compare);
  if (machines.length < 2) return null;
  const each = Math.ceil(machines.length / MOST_PLACES);
  const placeOf = new Map(machines.map((name, i) => [name, Math.floor(i / each)]));
  const places = Math.ceil(machines.length / each);
  const names = Array.from({ length: places }, (_, place) => {
    const [first, last] = [machines[place * each]!, machines[(place + 1) * each - 1]];
    return each === 1 || first === last ? first : `${first} – ${last ?? machines.at(-1)!}`;
  });
  const links: { from: number; to: number; says: string }[] = [];
  const ends: { at: number; says: string }[] = [];
  for (const { type, ranks, machine, name, link } of suspects.slice(0, MOST_MARKS)) {
    const of = ranks.map((rank) => table.machine[table.rowOf.get(rank) ?? -1] ?? "");
    const touched = [...new Set([...of, machine ?? ""])].filter((one) => placeOf.has(one));
    const says = name ?? (link ? link.join(" – ") : touched.join(" – "));
    if (type === "link" && touched.length === 2) {
      const [from, to] = touched.map((one) => placeOf.get(one)!) as [number, number];
      links.push({ from, to, says });
    } else for (const one of touched) ends.push({ at: placeOf.get(one)!, says });
  }
  return { places, machines: machines.length, names, links, ends };
}

const NETWORK: readonly string[] = ["link", "nic", "switch"];
