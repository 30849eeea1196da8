/** What wires that are slow come to: the NIC of a rank, a link, a group, a machine's network or a switch, as an accusation has it. */
import { rankWords } from "../../base/text.ts";
import type { Accusation } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job, RankInfo } from "../../model/job.ts";
import type { Device } from "./weigh-wires.ts";

export interface NetworkSuspect {
  readonly place: Required<Pick<Accusation, "type" | "ranks" | "link" | "name">>;
  readonly words: string;
}

/** `ranks`: at its ends. `device`: null where it is these ranks' wire. */
export function networkSuspect(
  ranks: readonly Rank[],
  job: Job,
  device: Pick<Device, "kind" | "name"> | null = null,
): NetworkSuspect {
  const { kind, name } = device ?? { kind: "wire", name: null };
  const at = (isThere: (info: RankInfo) => boolean): Rank[] =>
    [...job.ranks.values()].filter(isThere).map(({ rank }) => rank);
  const place = { type: "nic", ranks, link: null, name: null } as const;
  if (kind === "leaf")
    return {
      place: { ...place, type: "switch", ranks: at(({ leaf }) => leaf === name), name },
      words: `switch ${name}`,
    };
  if (kind === "machine")
    return {
      place: { ...place, ranks: at(({ machine }) => machine === name) },
      words: `the NICs of ${name}`,
    };
  if (kind === "machine-link") {
    const [a, b] = machinesOf(ranks, job) as [string, string];
    const own = at(({ machine }) => machine === a || machine === b);
    return {
      place: { ...place, type: "link", ranks: own, link: [a, b] },
      words: `the links between ${a} and ${b}`,
    };
  }
  const [first, second] = ranks;
  if (ranks.length === 2)
    return {
      place: { ...place, type: "link", link: [`rank:${first}`, `rank:${second}`] },
      words: `the link between ranks ${first} and ${second}`,
    };
  if (ranks.length > 2) return { place, words: `the group of ${rankWords(ranks)}` };
  const nic = job.ranks.get(first!)?.nic ?? null;
  return {
    place: { ...place, name: nic },
    words: `the NIC of rank ${first}${nic === null ? "" : ` (${nic})`}`,
  };
}

/** Where more than two ranks send slowly: the NICs of a machine, or the links between two; null where neither. */
export function betweenMachines(
  ranks: readonly Rank[],
  job: Job,
): Pick<Device, "kind" | "name"> | null {
  const machines = machinesOf(ranks, job);
  if (ranks.length <= 2) return null;
  if (machines.length === 1) return { kind: "machine", name: machines[0]! };
  return machines.length === 2 ? { kind: "machine-link", name: machines.join("–") } : null;
}

/** None where one of them is not known. */
function machinesOf(ranks: readonly Rank[], job: Job): string[] {
  const machines = new Set(ranks.map((rank) => job.ranks.get(rank)?.machine ?? null));
  return machines.has(null) ? [] : ([...machines] as string[]).sort();
}
