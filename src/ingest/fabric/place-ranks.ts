/**
 * Which NIC and switch each rank hangs on, from what the fabric's own sources say of its machine. A rank whose NIC is known
 * is looked up by it; else NICs serve GPUs in their order, where the numbers allow only one such order.
 */
import { groupBy } from "../../base/group-by.ts";
import { count } from "../../base/text.ts";
import type { FabricPort } from "../../model/fabric.ts";
import type { Rank } from "../../model/ids.ts";
import type { RankInfo } from "../../model/job.ts";
import { shortName } from "../../model/machine-names.ts";

/** Networks that carry no training. */
const MANAGEMENT = /(?:^|[-_.])(?:mgmt|management|oob|bmc|ipmi)(?:[-_.\d]|$)/i;

export function placeOnFabric(
  ranks: Map<Rank, RankInfo>,
  ports: readonly FabricPort[],
  missing: string[],
): void {
  if (ports.length === 0) return;
  const byMachine = groupBy(
    ports.filter(({ leaf, nic }) => !MANAGEMENT.test(leaf ?? "") && !MANAGEMENT.test(nic ?? "")),
    ({ machine }) => shortName(machine),
  );
  const onMachine = groupBy(
    [...ranks.values()].filter(({ machine }) => machine !== null),
    ({ machine }) => shortName(machine!),
  );
  const unknown: string[] = [];
  const inOrder: string[] = [];
  const undecided: string[] = [];
  for (const [machine, own] of onMachine) {
    const known = byMachine.get(machine);
    if (!known) unknown.push(machine);
    if (!known) continue;
    const guess = byOrder(own, known);
    let isGuessed = false;
    for (const rank of own) {
      // What the user says in the job file stands.
      if (rank.leaf !== null) continue;
      const found = byName(rank, known) ?? whole(known) ?? guess.get(rank.rank) ?? null;
      if (found && found === guess.get(rank.rank)) isGuessed = true;
      if (found) ranks.set(rank.rank, placed(rank, found));
      else undecided.push(machine);
    }
    if (isGuessed) inOrder.push(machine);
  }
  const names = (list: readonly string[]): string => {
    const all = [...new Set(list)];
    return `${count(all.length, "machine")} (${all.slice(0, 3).join(", ")}${all.length > 3 ? ", …" : ""})`;
  };
  if (unknown.length > 0)
    missing.push(`what describes the network does not name ${names(unknown)} of the job`);
  if (inOrder.length > 0)
    missing.push(`on ${names(inOrder)} NICs are taken to serve GPUs in their order`);
  if (undecided.length > 0)
    missing.push(`on ${names(undecided)} nothing says which NIC serves which GPU`);
}

function placed(rank: RankInfo, port: FabricPort): RankInfo {
  const { nic } = port;
  return {
    ...rank,
    nic: rank.nic ?? (nic === null ? null : `${rank.machine}/${nic}`),
    leaf: switchOf(port),
  };
}

/** What machines of a rack, or NICs of a rail, share is a switch, whatever its name. */
function switchOf({ leaf, rack, rail }: FabricPort): string | null {
  if (leaf !== null) return leaf;
  return rail !== null ? `rail ${rail}` : rack !== null ? `rack ${rack}` : null;
}

function byName({ nic }: RankInfo, ports: readonly FabricPort[]): FabricPort | null {
  const own = plain(nic?.split("/").at(-1) ?? "");
  return (own !== "" && ports.find((port) => port.nic !== null && plain(port.nic) === own)) || null;
}

/** The subnet manager numbers adapters from 1, the kernel from 0. */
function plain(nic: string): string {
  return nic
    .replace(/^HCA-(\d+)$/, (_, n: string) => `mlx5_${Number(n) - 1}`)
    .replace(/\/\d+$/, "");
}

/** The one switch that all of a machine hangs on; which NIC it is does not matter then. */
function whole(ports: readonly FabricPort[]): FabricPort | null {
  const named = ports.filter(({ leaf, rail }) => leaf !== null || rail !== null);
  const all = named.length > 0 ? named : ports;
  const one = all[0]!;
  if (new Set(all.map(switchOf)).size > 1) return null;
  return all.length === 1 ? one : { ...one, nic: null };
}

function byOrder(ranks: readonly RankInfo[], ports: readonly FabricPort[]): Map<Rank, FabricPort> {
  const nics = ports
    .filter(({ nic, rail }) => nic !== null || rail !== null)
    .toSorted((a, b) => inNaturalOrder(a.rail ?? a.nic!, b.rail ?? b.nic!));
  const own = ranks.toSorted((a, b) => (a.gpu ?? a.rank) - (b.gpu ?? b.rank));
  const fits =
    nics.length > 0 &&
    (own.length % nics.length === 0 || (own.length > 0 && nics.length % own.length === 0));
  if (!fits) return new Map();
  return new Map(
    own.map(({ rank }, k) => [rank, nics[Math.floor((k * nics.length) / own.length)]!]),
  );
}

function inNaturalOrder(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}
