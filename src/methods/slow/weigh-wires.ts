/**
 * Is a wire slow? The same comparison as of ranks: what communication over it takes once everybody is there, against wires that carry
 * the same, before and since. A NIC, a link, a machine's network and a leaf switch are sets of wires: what slows one slows all that go
 * through it. Evidence accumulates over iterations and wires (Holmes §4.4), and a device with a wire that is as usual is not slow.
 */
import { groupBy } from "../../base/group-by.ts";
import { median } from "../../maths/robust.ts";
import { effectOf, logShiftOdds, type Tails } from "../../maths/shift-odds.ts";
import { othersMedian, type Account } from "./account.ts";
import { chanceBeside } from "./chance.ts";
import { type Compared, overMoments } from "./compare.ts";
import { shiftsAt } from "./shifts.ts";

/** In logarithms of the ratio to the usual: what healthy wires do, and what a slow one adds. */
const USUAL_CHANCE = 0.2;
const LEAST_SLOWDOWN = 0.15;
const SLOW = effectOf(LEAST_SLOWDOWN, 0.7);
const TAILS: Tails = [
  [4, 0.5],
  [16, 0.5],
];
/** A wire that costs less of an iteration is nobody's reason. */
const LEAST_COST = 0.004;
const NOBODYS = -5;
/** A shift more than half as large on a wire with a common end may have the same reason: it is no chance. */
const SAME_REASON = 0.5;
/** One wire alone may not decide for or against a device that many go through. */
const MOST_OF_ONE = 12;
/** Evidence from which on a wire makes those at its ends candidates. */
const CANDIDATE = 2;
const NOTHING = 1e-6;

export interface WireEvidence {
  readonly wires: readonly number[];
  readonly log: number;
  readonly moment: number;
  /** Times as long as usual; shares of a block that it costs. */
  readonly factor: number;
  readonly costs: number;
}

/** One by one, in the order of Account.wires: log odds at each moment, that iterations grew not counted, and how much longer it takes. */
export interface WireOdds {
  readonly odds: readonly Float64Array[];
  readonly growths: readonly Float64Array[];
}

/**
 * Each wire over its like. `through`: wires of a machine or a leaf switch, so many that they are each other's usual: those alone, by
 * how much they grew, against what the wires that do not go through it did by chance.
 */
export function wireOdds({ account, moments }: Compared, through?: ReadonlySet<number>): WireOdds {
  const { wires, blocks } = account;
  const { over, hasPeers } = through ? logsOf(account) : ratiosOf(account);
  const sorts = wires.map(({ isPair }) => (isPair ? 1 : 0));
  const odds = wires.map(() => new Float64Array(moments.length));
  const growths = wires.map(() => new Float64Array(moments.length));
  for (const [i, moment] of moments.entries()) {
    const { growth: all, error } = shiftsAt(over, blocks, sorts, moment);
    for (const sort of [0, 1]) {
      // Since before the record begins only its like tells whether a wire is slow.
      const known = [...wires.keys()].filter(
        (w) => sorts[w] === sort && (moment > 0 || hasPeers[w]!),
      );
      const shifts = Float64Array.from(known, (w) => all[w]!);
      const usual = chanceBeside(shifts, (at) => through?.has(known[at]!) === true, USUAL_CHANCE);
      for (const [at, w] of known.entries()) {
        const growth = shifts[at]!;
        if (Number.isNaN(growth) || through?.has(w) === false) continue;
        const { places } = wires[w]!;
        const isOfOneReason = (other: number): boolean =>
          shifts[other]! > SAME_REASON * growth &&
          wires[known[other]!]!.places.some((place) => places.includes(place));
        const isPlain = through !== undefined || growth < LEAST_SLOWDOWN;
        const chance = isPlain ? usual : chanceBeside(shifts, isOfOneReason, USUAL_CHANCE);
        const scale = Math.sqrt(chance(at).variance + error[w]! ** 2);
        const log = logShiftOdds(growth, scale, TAILS, SLOW);
        growths[w]![i] = growth;
        // What is hardly longer than usual is no slow wire, however quiet wires are.
        odds[w]![i] = growth < LEAST_SLOWDOWN / 2 ? Math.min(0, log) : log;
      }
    }
  }
  return { odds, growths };
}

/** Wires that are slow together, for one reason since one moment: a device's, or one alone. */
export function weighTogether(
  wires: readonly number[],
  { odds, growths }: WireOdds,
  { account, moments, pace }: Compared,
): WireEvidence {
  const logs = pace.map((log, i) => {
    let sum = log;
    for (const w of wires) sum += Math.min(MOST_OF_ONE, odds[w]![i]!);
    return sum;
  });
  const best = logs.indexOf(Math.max(...logs));
  const moment = moments[best]!;
  const factors = wires.map((w) => Math.exp(growths[w]![best]!));
  let costs = 0;
  for (const [n, w] of wires.entries())
    costs += median(account.wires[w]!.least.subarray(moment)) * (1 - 1 / Math.max(1, factors[n]!));
  const log = costs < LEAST_COST ? NOBODYS : overMoments(logs);
  return { wires, log, moment, factor: Math.max(...factors), costs };
}

interface Logs {
  readonly over: Float64Array;
  readonly hasPeers: boolean[];
}

function logsOf({ wires, blocks }: Account): Logs {
  const over = new Float64Array(wires.length * blocks);
  for (const [w, { least }] of wires.entries())
    for (let k = 0; k < blocks; k++) over[w * blocks + k] = Math.log(Math.max(NOTHING, least[k]!));
  return { over, hasPeers: wires.map(() => false) };
}

/** Logarithm of what a wire takes over the median of its like; of a wire without its like by itself. */
function ratiosOf(account: Account): Logs {
  const { wires, blocks } = account;
  const { over, hasPeers } = logsOf(account);
  const all = over.slice();
  const kinds = groupBy(wires.keys(), (w) => wires[w]!.kind);
  for (const alike of kinds.values()) {
    if (alike.length < 2) continue;
    const usual = othersMedian(all, alike, blocks);
    for (const [m, w] of alike.entries()) {
      hasPeers[w] = true;
      for (let k = 0; k < blocks; k++) over[w * blocks + k]! -= usual[m * blocks + k]!;
    }
  }
  return { over, hasPeers };
}

/** Something that several wires go through. */
export interface Device {
  readonly kind: "nic" | "link" | "machine" | "machine-link" | "leaf";
  readonly name: string;
  /** Places at its ends. */
  readonly places: readonly number[];
  readonly wires: readonly number[];
  /** Devices that the same wires go through: which of them it is, nothing tells. */
  readonly among: number;
}

/** Where ranks are; null where that is not known. */
export interface Place {
  readonly machine: string | null;
  readonly leaf: string | null;
}

type Candidate = Pick<Device, "kind" | "name" | "places"> & {
  readonly isThrough: (ends: readonly number[]) => boolean;
};

/**
 * Devices with the wires that go through them. What does not leave a machine goes through none. Of several devices that the same
 * wires go through nothing tells which it is: they are one, with all their ends.
 */
function withWires(
  candidates: readonly Candidate[],
  { wires }: Account,
  where: readonly Place[],
): Device[] {
  const outside = [...wires.keys()].filter((w) => {
    const machines = new Set(wires[w]!.places.map((place) => where[place]!.machine));
    return machines.size > 1 || machines.has(null);
  });
  const byWires = new Map<string, Device>();
  const byName = new Map(candidates.map((one) => [`${one.kind} ${one.name}`, one]));
  for (const { kind, name, places, isThrough } of byName.values()) {
    const own = outside.filter((w) => isThrough(wires[w]!.places));
    // What one wire alone goes through is that wire.
    if (own.length < 2) continue;
    const key = own.join();
    const same = byWires.get(key);
    if (!same) byWires.set(key, { kind, name, places, wires: own, among: 1 });
    else if (same.kind === kind || same.kind === "link") {
      const all = [...new Set([...same.places, ...places])].sort((a, b) => a - b);
      byWires.set(key, { ...same, kind: "link", places: all, among: same.among + 1 });
    }
  }
  return [...byWires.values()];
}

/** NICs at the ends of slow wires, and the links between two machines that slow transfers go over. */
export function endsOf(
  slow: readonly number[],
  account: Account,
  where: readonly Place[],
): Device[] {
  const machineOf = (place: number): string | null => where[place]!.machine;
  const candidates = slow.flatMap((w): Candidate[] => {
    const { places } = account.wires[w]!;
    const nics = places.map((place): Candidate => {
      return {
        kind: "nic",
        name: `${place}`,
        places: [place],
        isThrough: (e) => e.includes(place),
      };
    });
    const ends = places.flatMap((place) => machineOf(place) ?? []);
    if (places.length !== 2 || new Set(ends).size < 2) return nics;
    const isThrough: Candidate["isThrough"] = (others) => {
      const machines = new Set(others.map(machineOf));
      return ends.every((machine) => machines.has(machine));
    };
    return [...nics, { kind: "machine-link", name: ends.sort().join("–"), places, isThrough }];
  });
  return withWires(candidates, account, where);
}

/** Machines and leaf switches: the network of all ranks at one of them. */
export function sitesOf(account: Account, where: readonly Place[]): Device[] {
  const candidates = (["machine", "leaf"] as const).flatMap((kind) => {
    const under = groupBy(where.keys(), (place) => where[place]![kind]);
    return [...under].flatMap(([name, places]): Candidate[] => {
      // The network of one rank alone is its NIC.
      if (name === null || under.size < 2 || places.length < 2) return [];
      const isThrough: Candidate["isThrough"] = (ends) => {
        const inside = ends.filter((end) => where[end]![kind] === name).length;
        // What leaves a machine goes through its leaf switch, also to another machine below that.
        return inside > 0 && (kind === "leaf" || inside < ends.length);
      };
      return [{ kind, name, places, isThrough }];
    });
  });
  return withWires(candidates, account, where);
}

/** A wire whose slowness may be that of something behind it. */
export function isCandidate({ log }: WireEvidence): boolean {
  return log > CANDIDATE;
}

/** Whether several of a device's wires became slow at its moment, and most of them: one alone is that wire. */
export function isShared(
  { wires, moment }: WireEvidence,
  { odds }: WireOdds,
  moments: Int32Array,
): boolean {
  const at = moments.indexOf(moment);
  const slow = wires.filter((w) => odds[w]![at]! > CANDIDATE).length;
  return slow > 1 && 2 * slow >= wires.length;
}
