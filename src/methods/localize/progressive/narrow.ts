/**
 * From communication that is slow to the device that makes it so (Holmes §4.4 accumulates over the devices on the
 * way; here each device is a hypothesis): what a device serves must be slow, and nothing else. What else the
 * ranks of the slow group run tells NIC from link from switch.
 */
import { groupBy } from "../../../base/group-by.ts";
import type { Rank } from "../../../model/ids.ts";
import type { Group } from "../../../model/job.ts";
import type { MinimumDurations, Observation } from "./minimum-durations.ts";
import { crosses, MOST_MEMBERS, type Calm } from "./screen.ts";
import { passesNic, type Wiring } from "./wiring.ts";

export interface Device {
  readonly kind: "nic" | "link" | "machine-link" | "machine" | "leaf" | "group";
  /** "nic of rank 12", "link 3–35", "link node001–node003", "machine node001", "leaf 4". */
  readonly name: string;
  /** Ranks whose communication it serves, of those that were looked at. */
  readonly ranks: readonly Rank[];
  /** Observations for and against it. */
  readonly explains: number;
  readonly contradicts: number;
  /** Whether a device of another kind explains as much: the NIC at one end of a link. */
  readonly isAmbiguous: boolean;
}

/** Observations that may be wrong by chance, as a share. */
const TOLERATED = 0.1;
/** Ranks at slow links whose other groups are looked at. */
const MOST_ASKED = 8;

/** Looks at what the ranks of slow communication share with others, as far as that is needed. */
export function narrow(
  floors: MinimumDurations,
  groups: readonly Group[],
  calm: Calm,
  slow: readonly Rank[],
  wiring: Wiring,
): Device {
  const table = groupsOfRanks(groups);
  const look = (rank: Rank): void => {
    for (const { carriesP2p, ranks } of table.get(rank) ?? []) {
      if (!carriesP2p) continue;
      const at = ranks.indexOf(rank);
      for (const peer of [ranks[at - 1], ranks[at + 1]])
        if (peer !== undefined) floors.link(rank, peer);
    }
  };
  for (const rank of slow.length <= MOST_MEMBERS ? slow : []) look(rank);
  // What the ranks at slow links share with others; then everybody in a group that turns out slow.
  const atSlowLinks = new Set(
    floors.all.filter(({ isSlow, isLink }) => isSlow && isLink).flatMap(({ ranks }) => ranks),
  );
  for (const rank of [...(atSlowLinks.size > 0 ? atSlowLinks : slow)].slice(0, MOST_ASKED))
    for (const group of table.get(rank) ?? []) {
      const known = calm.get(group.role);
      if (!known || group.carriesP2p || !crosses(group, wiring)) continue;
      if (floors.group(group, [known.nth])?.isSlow && group.ranks.length > 2)
        for (const member of group.ranks) look(member);
    }
  return deviceOf(floors.all, slow, wiring);
}

/**
 * A device slows all that it serves by about as much; what is slower by a small part of that waits in a queue behind
 * others, and is not slow for the device's sake.
 */
const OF_SLOWEST = 0.15;

function plainlySlow(all: readonly Observation[]): Observation[] {
  const bad = all.filter(({ isSlow }) => isSlow);
  const most = bad.reduce((excess, { ratio }) => Math.max(excess, ratio - 1), 0);
  return bad.filter(({ ratio }) => ratio - 1 >= OF_SLOWEST * most);
}

/** The device that explains what is slow; the group or pair `slow` itself where none does. */
export function deviceOf(
  all: readonly Observation[],
  slow: readonly Rank[],
  wiring: Wiring,
): Device {
  const bad = plainlySlow(all);
  const otherwise = asSlow(bad, slow, wiring);
  if (bad.length === 0) return otherwise;
  const plainly = new Set(bad);
  const judge = (serves: (observation: Observation) => boolean): [number, number] => {
    let explains = 0;
    let contradicts = 0;
    for (const observation of all) {
      const isPlain = plainly.has(observation);
      if (serves(observation) && isPlain) explains++;
      else if (serves(observation) !== isPlain) contradicts++;
    }
    return [explains, contradicts];
  };
  const devices: Device[] = [];
  const suggest = (
    kind: Device["kind"],
    name: string,
    ranks: readonly Rank[],
    serves: (observation: Observation) => boolean,
  ): void => {
    const [explains, contradicts] = judge(serves);
    devices.push({
      kind,
      name,
      ranks: ranks.toSorted(inOrder),
      explains,
      contradicts,
      isAmbiguous: false,
    });
  };
  const passes = ({ ranks }: Observation): boolean => passesNic(ranks, wiring);
  const concerned = [
    ...new Set(bad.filter((o) => o.ranks.length <= 64 || bad.length === 1).flatMap((o) => o.ranks)),
  ];
  for (const { ranks, isLink } of bad)
    if (isLink || ranks.length === 2)
      suggest("link", `link ${ranks.join("–")}`, ranks, (o) =>
        ranks.every((rank) => o.ranks.includes(rank)),
      );
  for (const rank of concerned)
    suggest("nic", `nic of rank ${rank}`, [rank], (o) => o.ranks.includes(rank) && passes(o));
  // All NICs of a machine, or all that runs between two: a cable, a PCIe switch, a wrong route. One slow group does not show it.
  const suggestShared: typeof suggest = (kind, name, ranks, serves) => {
    if (new Set(bad.filter(serves).map((one) => one.ranks.join())).size > 1)
      suggest(kind, name, ranks, serves);
  };
  const byMachine = groupBy(concerned, wiring.machineOf);
  const reaches = ({ ranks }: Observation, machine: Machine): boolean =>
    ranks.some((rank) => wiring.machineOf(rank) === machine);
  for (const [a, b] of machinePairs(bad, wiring)) {
    const ranks = [...(byMachine.get(a) ?? []), ...(byMachine.get(b) ?? [])];
    if (ranks.length > 2)
      suggestShared("machine-link", `link ${a}–${b}`, ranks, (o) => reaches(o, a) && reaches(o, b));
  }
  for (const [machine, ranks] of byMachine)
    if (ranks.length > 1)
      suggestShared(
        "machine",
        `machine ${machine}`,
        ranks,
        (o) => reaches(o, machine) && passes(o),
      );
  for (const leaf of new Set(concerned.map((rank) => wiring.leafOf(rank)))) {
    if (leaf === null) continue;
    const under = (rank: Rank): boolean => wiring.leafOf(rank) === leaf;
    const ranks = concerned.filter(under);
    const name = typeof leaf === "number" ? `leaf ${leaf}` : leaf;
    if (ranks.length > 1) suggest("leaf", name, ranks, (o) => o.ranks.some(under) && passes(o));
  }
  // Fewest contradictions, then what explains most; among equals the smallest device, which comes first.
  devices.sort((a, b) => a.contradicts - b.contradicts || b.explains - a.explains);
  const [first] = devices;
  if (!first || first.contradicts > Math.max(1, TOLERATED * bad.length)) return otherwise;
  const equal = devices.filter(
    ({ explains, contradicts }) => explains === first.explains && contradicts === first.contradicts,
  );
  const alike = equal.filter(({ kind }) => kind === first.kind);
  // Which NIC of a ring is slow no operator of the ring tells; without another witness it is all of them.
  if (alike.length > 1 && first.kind !== "link") return together(alike);
  const isLink = first.kind === "link" || first.kind === "machine-link";
  return { ...first, isAmbiguous: isLink && equal.length > alike.length };
}

/**
 * The pair or group that is slowest, with all groups that are slow across the same machines: something between these
 * machines is slow. What else is slow has no part in it, and speaks against it.
 */
function asSlow(bad: readonly Observation[], slow: readonly Rank[], wiring: Wiring): Device {
  const machinesOf = (ranks: readonly Rank[]): string =>
    [...new Set(ranks.map((rank) => String(wiring.machineOf(rank))))].toSorted().join();
  const isAcross = passesNic(slow, wiring);
  const alike = bad.filter(({ ranks }) =>
    isAcross
      ? machinesOf(ranks) === machinesOf(slow)
      : ranks.length === slow.length && ranks.every((rank) => slow.includes(rank)),
  );
  const ranks = [...new Set([...slow, ...alike.flatMap((one) => one.ranks)])].sort(inOrder);
  const [explains, contradicts] = [alike.length, bad.length - alike.length];
  const isLink = ranks.length === 2;
  const name = isLink ? `link ${ranks.join("–")}` : `a group of ${ranks.length} ranks`;
  const kind = isLink ? "link" : "group";
  return { kind, name, ranks, explains, contradicts, isAmbiguous: false };
}

const inOrder = (a: Rank, b: Rank): number => a - b;

type Machine = ReturnType<Wiring["machineOf"]>;

/** Machines that slow communication of two machines runs between, each pair once. */
function machinePairs(bad: readonly Observation[], wiring: Wiring): [Machine, Machine][] {
  const pairs = new Map<string, [Machine, Machine]>();
  for (const { ranks } of bad) {
    const [a, b, ...more] = new Set(ranks.map(wiring.machineOf));
    if (a === undefined || b === undefined || more.length > 0) continue;
    pairs.set([String(a), String(b)].toSorted().join(), [a, b]);
  }
  return [...pairs.values()];
}

/** One of several that explain as much. The little that speaks against each of them was tolerated, and says nothing about all. */
function together(alike: readonly Device[]): Device {
  const ranks = [...new Set(alike.flatMap((device) => device.ranks))].sort(inOrder);
  const name = `one of ${alike.map((device) => device.name).join(", ")}`;
  return { ...alike[0]!, kind: "group", name, ranks, contradicts: 0 };
}

/** Built once: a job of 8,192 ranks has tens of thousands of groups. */
function groupsOfRanks(groups: readonly Group[]): Map<Rank, Group[]> {
  const table = new Map<Rank, Group[]>();
  for (const group of groups)
    for (const rank of group.ranks) {
      const known = table.get(rank);
      if (known) known.push(group);
      else table.set(rank, [group]);
    }
  return table;
}
