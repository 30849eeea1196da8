/**
 * The devices that a job's communication passes (Holmes §4.4, figure 13), from where its ranks stand. What is not known
 * is not invented: without leaves a link joins two ranks and stands for all that is between their NICs; without NICs
 * each rank has one of its own; without machines each rank has a CPU of its own, and every way leads over NICs.
 *
 * Links from leaf to spine are no devices: all flows of a leaf share them by a hash that no log holds, so nothing tells
 * them from the leaf.
 */
import type { Rank } from "../../../src/model/ids.ts";

/** As Table 1 (appendix A) counts them: NVLinks are links, leaves and spines are switches. */
export type DeviceKind = "gpu" | "cpu" | "nic" | "link" | "switch";

/** Names are unique within their kind. */
export interface RankPlace {
  readonly machine: string | null;
  readonly nic: string | null;
  readonly leaf: string | null;
}

export interface Device {
  readonly kind: DeviceKind;
  /** "gpu of rank 3", "cpu of node003", "nic node003/mlx5_1", "link 3–7", "nvlink 2–3", "leaf0", "spine". */
  readonly name: string;
  /** Whom it serves, ascending. */
  readonly ranks: readonly Rank[];
  /** C(d) of appendix D, NICs below it; 1 for what is no switch. */
  readonly nicsBelow: number;
}

export interface Devices {
  readonly gpuOf: (rank: Rank) => Device;
  readonly cpuOf: (rank: Rank) => Device;
  readonly nicOf: (rank: Rank) => Device;
  /** Devices of the network on the way, from one end to the other; none from a rank to itself. */
  readonly between: (a: Rank, b: Rank) => readonly Device[];
  /** Devices of the network that a collective of these ranks passes, each once. */
  readonly among: (ranks: readonly Rank[]) => readonly Device[];
}

interface DevicesOptions {
  /**
   * Which of them a flow takes is a hash that no log holds, so all lie on every way between two leaves. One node by
   * default: named ones would only share its place in the ranking.
   */
  readonly spines?: readonly string[];
}

/** `places` by rank; a rank beyond is one of which nothing is known. */
export function devicesOf(places: readonly RankPlace[], options: DevicesOptions = {}): Devices {
  const placeOf = (rank: Rank): RankPlace => places[rank] ?? NOWHERE;
  const ranksOf = (key: keyof RankPlace): Map<string, Rank[]> => {
    const found = new Map<string, Rank[]>();
    places.forEach((place, rank) => {
      const name = place[key];
      if (name === null) return;
      const known = found.get(name);
      if (known) known.push(rank);
      else found.set(name, [rank]);
    });
    return found;
  };
  const [byMachine, byNic, byLeaf] = [ranksOf("machine"), ranksOf("nic"), ranksOf("leaf")];
  const wired = places.flatMap(({ leaf }, rank) => (leaf === null ? [] : [rank]));
  const nicsOf = (ranks: readonly Rank[]): number =>
    Math.max(1, new Set(ranks.map((rank) => placeOf(rank).nic ?? rank)).size);

  // A device is one object, so that callers can sum by identity.
  const known = new Map<string, Device>();
  const device = (
    kind: DeviceKind,
    name: string,
    ranks: () => readonly Rank[],
    isSwitch = false,
  ): Device => {
    let found = known.get(name);
    if (!found) {
      const served = ranks();
      found = { kind, name, ranks: served, nicsBelow: isSwitch ? nicsOf(served) : 1 };
      known.set(name, found);
    }
    return found;
  };
  const gpuOf = (rank: Rank): Device => device("gpu", `gpu of rank ${rank}`, () => [rank]);
  const cpuOf = (rank: Rank): Device => {
    const { machine } = placeOf(rank);
    return machine === null
      ? device("cpu", `cpu of rank ${rank}`, () => [rank])
      : device("cpu", `cpu of ${machine}`, () => byMachine.get(machine)!);
  };
  const nicOf = (rank: Rank): Device => {
    const { nic } = placeOf(rank);
    return nic === null
      ? device("nic", `nic of rank ${rank}`, () => [rank])
      : device("nic", `nic ${nic}`, () => byNic.get(nic)!);
  };
  /** From a rank up to its leaf, as far as that is known. */
  const upwards = (rank: Rank): Device[] => {
    const { leaf } = placeOf(rank);
    const nic = nicOf(rank);
    if (leaf === null) return [nic];
    const cable = device("link", `link ${nic.name.replace(/^nic /, "")}–${leaf}`, () => nic.ranks);
    return [nic, cable, device("switch", leaf, () => byLeaf.get(leaf)!, true)];
  };
  const spines = (): Device[] =>
    (options.spines ?? ["spine"]).map((name) => device("switch", name, () => wired, true));
  const pair = (word: "link" | "nvlink", a: Rank, b: Rank): Device => {
    const ends = a < b ? [a, b] : [b, a];
    return device("link", `${word} ${ends.join("–")}`, () => ends);
  };

  const areTogether = (a: Rank, b: Rank): boolean =>
    placeOf(a).machine !== null && placeOf(a).machine === placeOf(b).machine;
  /** What is between two NICs besides their own cables and leaves. */
  const inTheMiddle = (a: Rank, b: Rank): Device[] => {
    const [here, there] = [placeOf(a).leaf, placeOf(b).leaf];
    if (here === null || there === null) return [pair("link", a, b)];
    return here === there ? [] : spines();
  };
  const between = (a: Rank, b: Rank): readonly Device[] => {
    if (a === b) return [];
    if (areTogether(a, b)) return [pair("nvlink", a, b)];
    return [...new Set([...upwards(a), ...inTheMiddle(a, b), ...upwards(b).reverse()])];
  };
  /**
   * Neighbours in a ring in the group's order are enough: whichever ranks are its neighbours, its own NIC, cable and leaf
   * are passed, so that all pairs would add only NVLinks and, without topology, links that the ring does not use (of n
   * ranks n links instead of n²). NCCL opens a ring a NIC, so in a group of several machines every member's NIC
   * counts, not only those where the ring in this order leaves a machine.
   */
  const among = (ranks: readonly Rank[]): readonly Device[] => {
    const found = new Set<Device>();
    const add = (devices: readonly Device[]): void => {
      for (const each of devices) found.add(each);
    };
    const leavesMachine = ranks.some((rank) => rank !== ranks[0] && !areTogether(ranks[0]!, rank));
    ranks.forEach((rank, i) => {
      if (leavesMachine) add(upwards(rank));
      // Two ranks have one way between them, not a ring of two.
      if (i > 0 || ranks.length > 2) add(between(ranks.at(i - 1)!, rank));
    });
    return [...found];
  };
  return { gpuOf, cpuOf, nicOf, between, among };
}

const NOWHERE: RankPlace = { machine: null, nic: null, leaf: null };
