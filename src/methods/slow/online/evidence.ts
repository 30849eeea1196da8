/** Evidence that a rank, or its wire, is slow since the beginning of a window, as log odds against chance. */
import { effectOf, logShiftOdds, type Tails } from "../../../maths/shift-odds.ts";
import { MEDIAN_ERROR } from "../levels.ts";
import type { Usual } from "./baseline.ts";
import type { Kind } from "./kinds.ts";
import type { PastShifts } from "./past-shifts.ts";
import type { Window } from "./windows.ts";

/** What healthy ranks' distances usually do is worth so many ranks seen at the moment. */
const USUAL_WORTH = 3;
/** As many blocks as the usual noise of all ranks is worth beside a rank's own. */
const POOL_BLOCKS = 6;
/** Beside a slow rank distances may change by so much of its own; the others show whether they do. */
const BESIDE = 0.1;
/** A shift of fewer deviations cannot outweigh the prior: its odds are not worked out. */
const FEWEST_SIGMAS = 2;
/** What iterations do by themselves, and faults add to them: parts of their length. */
const PACE_CHANCE = 0.1;
const PACE_TAILS: Tails = [[2, 1]];
const PACE_EFFECT = effectOf(0, 0.3);

export class Evidence {
  readonly windows: readonly Window[];
  /** By window and place: the shift of the series that agrees with the rank best. */
  readonly shifts: readonly Float32Array[];
  readonly #index: number;
  readonly #kind: Kind;
  readonly #past: PastShifts;
  readonly #squares: number[] = [];
  readonly #known: number[] = [];

  /** `index`: of the kind among all. */
  constructor(kind: Kind, index: number, windows: readonly Window[], past: PastShifts) {
    this.#kind = kind;
    this.#index = index;
    this.windows = windows;
    this.#past = past;
    const ranks = kind.references.first.length - 1;
    this.shifts = windows.map((window) => {
      const { surest } = window.usual[index]!;
      const shift = window.shift[index]!;
      const own = new Float32Array(ranks);
      let squares = 0;
      let known = 0;
      for (let place = 0; place < ranks; place++) {
        const growth = surest[place]! < 0 ? NaN : shift[surest[place]!]!;
        own[place] = growth;
        if (Number.isNaN(growth)) continue;
        known++;
        if (growth > 0) squares += growth * growth;
      }
      this.#squares.push(squares);
      this.#known.push(known);
      return own;
    });
  }

  get kind(): Kind {
    return this.#kind;
  }

  /** Of the kind among all. */
  get index(): number {
    return this.#index;
  }

  /** Of iterations that grew, whoever made them. */
  pace(w: number): number {
    const { pace, usual } = this.windows[w]!;
    const growth = usual[0]!.pace / Math.max(1e-9, pace) - 1;
    return logShiftOdds(growth, PACE_CHANCE, PACE_TAILS, PACE_EFFECT);
  }

  /** -Infinity where it is hardly away from its peers. `assumed`: places that are slow by assumption: no chance. */
  apart(w: number, place: number, assumed: readonly number[] = []): number {
    const { references, effect } = this.#kind;
    const { surest } = this.#usual(w);
    const growth = this.shifts[w]![place]!;
    if (!(growth > effect.least)) return -Infinity;
    const chance = this.#chance(w, place, assumed);
    const scale = this.#scale(w, surest[place]!, chance);
    if (growth < FEWEST_SIGMAS * scale) return -Infinity;
    const log = logShiftOdds(growth, scale, this.#past.tails, effect);
    // The others it is compared with may only speak against it.
    const { first } = references;
    let against = 0;
    for (let s = first[place]!; s < first[place + 1]!; s++) {
      const other = this.windows[w]!.shift[this.#index]![s]!;
      if (s === surest[place] || Number.isNaN(other)) continue;
      const odds = logShiftOdds(other, this.#scale(w, s, chance), this.#past.tails, effect);
      against = Math.min(against, odds);
    }
    return log + against;
  }

  /** How far a rank moved away from all ranks. */
  beyondAll(w: number, place: number): number {
    return this.windows[w]!.shift[this.#index]![this.#kind.references.first[place]!]!;
  }

  /**
   * Of a set of ranks that moved so far together, as this one of them did: chance is what other sets do, whose growths have this
   * sum of squares.
   */
  ofMany(w: number, place: number, growth: number, squares: number, others: number): number {
    const { references, effect, usualChance } = this.#kind;
    if (!(growth > effect.least)) return -Infinity;
    const chance = (USUAL_WORTH * usualChance ** 2 + 2 * squares) / (USUAL_WORTH + others);
    const scale = this.#scale(w, references.first[place]!, chance);
    return logShiftOdds(growth, scale, this.#past.tails, effect);
  }

  /** What grew, in scales of chance. */
  scaled(w: number): number[] {
    const { surest } = this.#usual(w);
    const found: number[] = [];
    for (const [place, growth] of this.shifts[w]!.entries())
      if (growth > 0)
        found.push(growth / this.#scale(w, surest[place]!, this.#chance(w, place, [])));
    return found;
  }

  #usual(w: number): Usual {
    return this.windows[w]!.usual[this.#index]!;
  }

  /** What distances do by chance: those of the others now, but for some, and its own before. */
  #chance(w: number, place: number, leftOut: readonly number[]): number {
    const shifts = this.shifts[w]!;
    const own = shifts[place]!;
    let squares = this.#squares[w]! - (own > 0 ? own * own : 0);
    let others = this.#known[w]! - 1;
    let beside = 0;
    for (const other of leftOut) {
      const growth = shifts[other]!;
      if (other === place || Number.isNaN(growth)) continue;
      others--;
      if (growth > 0) squares -= growth * growth;
      beside = Math.max(beside, BESIDE * growth);
    }
    const worth = USUAL_WORTH + others;
    const usual = this.#kind.usualChance ** 2 + beside ** 2;
    const now = (USUAL_WORTH * usual + 2 * Math.max(0, squares)) / worth;
    const past = this.#past.of(this.windows[w]!.blocks, place);
    const before = (worth * now + 2 * past.worth * past.square) / (worth + past.worth);
    return Math.max(now, before);
  }

  #scale(w: number, s: number, chance: number): number {
    const { blocks } = this.windows[w]!;
    const usual = this.#usual(w);
    const own = usual.sigma[s]! ** 2;
    const pooled =
      (POOL_BLOCKS * usual.pool ** 2 + usual.blocks * own) / (POOL_BLOCKS + usual.blocks);
    const error = MEDIAN_ERROR ** 2 * usual.inflation[s]! * (1 / usual.blocks + 1 / blocks);
    return Math.sqrt(chance + error * pooled);
  }
}
