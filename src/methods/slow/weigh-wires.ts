/**
 * Is a wire slow? The same comparison as of ranks: what communication over it takes once everybody is there, against wires that carry
 * the same, before and since. A NIC, a link, a machine's network and a leaf switch are sets of wires: what slows one slows all that go
 * through it. Evidence accumulates over iterations and wires (Holmes §4.4), and a device with a wire that is as usual is not slow.
 */
import { getOrInsert } from "../../base/group-by.ts";
import { median } from "../../maths/robust.ts";
import { effectOf, logShiftOdds } from "../../maths/shift-odds.ts";
import { othersMedian, type Account } from "./account.ts";
import { type Chance, chanceOf } from "./chance.ts";
import { type Compared, overMoments } from "./compare.ts";
import { shiftsAt } from "./shifts.ts";
import type { Wire } from "./wire-times.ts";

/** In logarithms of the ratio to the usual: what healthy wires do, and what a slow one adds. */
const USUAL_CHANCE = 0.2;
const LEAST_SLOWDOWN = 0.15;
const SLOW = effectOf(LEAST_SLOWDOWN, 0.7);
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
/** Leaving one of so many out changes nothing, where it is as usual itself. */
const MANY_WIRES = 30;

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
 * The same of a machine or a leaf switch that so many wires go through that they are each other's usual: by how much they grew, not over
 * their like, against what wires that do not go through it did by chance.
 */
export function oddsApart(through: readonly number[], { account, moments }: Compared): WireOdds {
  const { wires, blocks } = account;
  const own = new Float64Array(wires.length * blocks);
  for (const [w, { least }] of wires.entries())
    own.set(
      least.map((share) => Math.log(Math.max(NOTHING, share))),
      w * blocks,
    );
  const kinds = wires.map(({ isPair }) => (isPair ? 1 : 0));
  const odds = wires.map(() => new Float64Array(moments.length));
  const growths = wires.map(() => new Float64Array(moments.length));
  const isThrough = new Set(through);
  for (const [i, moment] of moments.entries()) {
    if (moment === 0) continue;
    const { growth, error } = shiftsAt(own, blocks, kinds, moment);
    const { variance, tails } = chanceOf(growth, (w) => isThrough.has(w), USUAL_CHANCE);
    for (const w of through) {
      growths[w]![i] = growth[w]!;
      odds[w]![i] = logShiftOdds(growth[w]!, Math.sqrt(variance + error[w]! ** 2), tails, SLOW);
    }
  }
  return { odds, growths };
}

export function wireOdds({ account, moments }: Compared): WireOdds {
  const { wires, blocks } = account;
  const { over, hasPeers } = ratiosOf(account);
  const kinds = wires.map(({ isPair }) => (isPair ? 1 : 0));
  const odds = wires.map(() => new Float64Array(moments.length));
  const growths = wires.map(() => new Float64Array(moments.length));
  for (const [i, moment] of moments.entries()) {
    const shifts = shiftsAt(over, blocks, kinds, moment);
    for (const isPair of [true, false]) {
      const some = wires.flatMap((wire, w) => (wire.isPair === isPair ? [w] : []));
      // Since before the record begins only its like tells whether a wire is slow.
      const known = moment === 0 ? some.filter((w) => hasPeers[w]) : some;
      const shifted = Float64Array.from(known, (w) => shifts.growth[w]!);
      const usual = chanceOf(shifted, () => false, USUAL_CHANCE);
      for (const [at, w] of known.entries()) {
        growths[w]![i] = shifted[at]!;
        odds[w]![i] = oddsOf(at, known, shifted, usual, shifts.error[w]!, wires);
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

/** Of one wire at one moment, against what others of its sort do by chance then. */
function oddsOf(
  at: number,
  known: readonly number[],
  growths: Float64Array,
  usual: Chance,
  error: number,
  wires: readonly Wire[],
): number {
  const growth = growths[at]!;
  if (Number.isNaN(growth)) return 0;
  const own = wires[known[at]!]!.places;
  const isLeftOut = (i: number): boolean => {
    const other = known[i]!;
    if (i === at) return true;
    return (
      growths[i]! > SAME_REASON * growth &&
      wires[other]!.places.some((place) => own.includes(place))
    );
  };
  const isPlain = growth < LEAST_SLOWDOWN && usual.count > MANY_WIRES;
  const { variance, tails } = isPlain ? usual : chanceOf(growths, isLeftOut, USUAL_CHANCE);
  const odds = logShiftOdds(growth, Math.sqrt(variance + error ** 2), tails, SLOW);
  // What is hardly longer than usual is no slow wire, however quiet wires are.
  return growth < LEAST_SLOWDOWN / 2 ? Math.min(0, odds) : odds;
}

/** Logarithm of what a wire takes over the median of its like; of a wire without its like by itself. */
function ratiosOf({ wires, blocks }: Account): {
  readonly over: Float64Array;
  readonly hasPeers: readonly boolean[];
} {
  const all = new Float64Array(wires.length * blocks);
  for (const [w, { least }] of wires.entries()) all.set(least, w * blocks);
  const over = all.map((share) => Math.log(Math.max(NOTHING, share)));
  const kinds = new Map<string, number[]>();
  for (const [w, { kind }] of wires.entries()) getOrInsert(kinds, kind, () => []).push(w);
  const hasPeers = wires.map(() => false);
  for (const alike of kinds.values()) {
    if (alike.length < 2) continue;
    const usual = othersMedian(all, alike, blocks);
    for (const [m, w] of alike.entries()) {
      hasPeers[w] = true;
      for (let k = 0; k < blocks; k++)
        over[w * blocks + k]! -= Math.log(Math.max(NOTHING, usual[m * blocks + k]!));
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

type Ends = (ends: readonly number[]) => boolean;

/** Devices with the wires that go through them. What does not leave a machine goes through none of them. */
class Devices {
  readonly #wires: readonly Wire[];
  readonly #outside: readonly number[];
  readonly #found = new Set<string>();
  readonly #byWires = new Map<string, Device>();

  constructor({ wires }: Account, where: readonly Place[]) {
    this.#wires = wires;
    this.#outside = wires.flatMap(({ places }, w) => {
      const machines = new Set(places.map((place) => where[place]!.machine));
      return machines.size > 1 || machines.has(null) ? [w] : [];
    });
  }

  /** Of several devices that the same wires go through nothing tells which it is: they are one, with all their ends. */
  add(kind: Device["kind"], name: string, places: readonly number[], isThrough: Ends): void {
    if (this.#found.has(`${kind} ${name}`)) return;
    this.#found.add(`${kind} ${name}`);
    const wires = this.#outside.filter((w) => isThrough(this.#wires[w]!.places));
    // What one wire alone goes through is that wire.
    if (wires.length < 2) return;
    const key = wires.join();
    const same = this.#byWires.get(key);
    if (!same) this.#byWires.set(key, { kind, name, places, wires, among: 1 });
    else if (same.kind === kind || same.kind === "link") {
      const all = [...new Set([...same.places, ...places])].sort((a, b) => a - b);
      this.#byWires.set(key, { ...same, kind: "link", places: all, among: same.among + 1 });
    }
  }

  get all(): Device[] {
    return [...this.#byWires.values()];
  }
}

/** NICs at the ends of slow wires, and the links between two machines that slow transfers go over. */
export function endsOf(
  slow: readonly number[],
  account: Account,
  where: readonly Place[],
): Device[] {
  const devices = new Devices(account, where);
  for (const w of slow) {
    const { places } = account.wires[w]!;
    for (const place of places)
      devices.add("nic", `${place}`, [place], (ends) => ends.includes(place));
    const [a = null, b = null] = places.map((place) => where[place]!.machine);
    if (places.length === 2 && a !== null && b !== null && a !== b)
      devices.add("machine-link", [a, b].sort().join("–"), places, (ends) => {
        const machines = ends.map((end) => where[end]!.machine);
        return machines.includes(a) && machines.includes(b);
      });
  }
  return devices.all;
}

/** Machines and leaf switches: the network of all ranks at one of them. */
export function sitesOf(account: Account, where: readonly Place[]): Device[] {
  const devices = new Devices(account, where);
  for (const key of ["machine", "leaf"] as const) {
    const names = new Set(where.map((place) => place[key]));
    for (const name of names) {
      if (name === null || names.size < 2) continue;
      const under = where.flatMap((each, p) => (each[key] === name ? [p] : []));
      // The network of one rank alone is its NIC.
      if (under.length < 2) continue;
      devices.add(key, name, under, (ends) => {
        const inside = ends.filter((end) => where[end]![key] === name).length;
        // What leaves a machine goes through its leaf switch, also to another machine below that.
        return inside > 0 && (key === "leaf" || inside < ends.length);
      });
    }
  }
  return devices.all;
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
