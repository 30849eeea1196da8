/** How far ranks moved away from their peers over the last blocks, for faults that may have begun so many blocks ago. */
import type { Usual } from "./baseline.ts";
import type { KeptBlock } from "./kept-block.ts";
import { SortedColumns } from "./sorted-columns.ts";

/** Blocks since a fault's onset that are weighed: a fault that grows slowly is seen by a longer one. */
const SHORT = [3, 4, 5, 6, 8];
const LONG = [11, 16, 24, 40];
const LENGTHS = [...SHORT, ...LONG];
const LONGEST = LENGTHS.at(-1)!;
/** Blocks from which what is usual is known well enough. */
const FEWEST_QUIET_BLOCKS = 12;
/** Of a window's blocks, those in which a rank must have been heard of. */
const HEARD = 2 / 3;
const FEWEST_HEARD = 3;

export interface Window {
  /** Its first block. */
  readonly from: KeptBlock;
  readonly blocks: number;
  /** Of onsets that it stands for. */
  readonly spanMs: number;
  /** By kind of comparison. */
  readonly usual: readonly Usual[];
  /** By kind and series: level of the window's distances less the usual one; NaN where the rank was not heard of. */
  readonly shift: readonly Float32Array[];
  readonly pace: number;
  /** NaN: not known. */
  readonly iterations: number;
}

/** Follows the last usable blocks. */
export class Windows {
  /** By kind and long length: few values are sorted sooner than kept sorted. */
  readonly #values: readonly (readonly SortedColumns[])[];

  /** By kind: how many series. */
  constructor(series: readonly number[]) {
    this.#values = series.map((count) => LONG.map((length) => new SortedColumns(count, length)));
  }

  /** `recent`: the newest last, behind those that were added before. */
  add(recent: readonly KeptBlock[]): void {
    const last = recent.at(-1)!;
    for (const [kind, all] of this.#values.entries())
      for (const [i, length] of LONG.entries()) {
        const gone = recent.at(-1 - length);
        all[i]!.move(gone?.apart[kind] ?? null, last.apart[kind]!);
      }
  }

  /** The newest of the recent blocks was taken back. */
  takeBack(recent: readonly KeptBlock[]): void {
    for (const columns of this.#values.flat()) columns.clear();
    const kept = recent.slice(-LONGEST);
    for (const k of kept.keys()) this.add(kept.slice(0, k + 1));
  }

  /** A fault did not begin before block `floor`. */
  since(recent: readonly KeptBlock[], floor: number): Window[] {
    const blocks = recent.slice(-LONGEST).reverse();
    const isKnown = (length: number): boolean => {
      const from = blocks[length - 1];
      if (from === undefined || from.number < floor || from.usual === null) return false;
      return from.usual[0]!.blocks >= FEWEST_QUIET_BLOCKS;
    };
    const lengths = LENGTHS.filter(isKnown);
    if (lengths.length === 0) return [];
    // By kind and length.
    const levels = this.#values.map((all, kind) => [
      ...shortLevels(blocks.slice(0, SHORT.at(-1)).map(({ apart }) => apart[kind]!)),
      ...all.map((values, i) => longLevels(values, LONG[i]!)),
    ]);
    return lengths.map((length): Window => {
      const i = LENGTHS.indexOf(length);
      const from = blocks[length - 1]!;
      const usual = from.usual!;
      const own = blocks.slice(0, length);
      return {
        from,
        blocks: length,
        spanMs: (i === 0 ? 1 : length - LENGTHS[i - 1]!) * from.block.lengthMs,
        usual,
        shift: levels.map((all, kind) => less(all[i]!, usual[kind]!.level)),
        pace: own.reduce((sum, { pace }) => sum + pace, 0) / length,
        iterations: own.reduce((sum, { block }) => sum + block.iterations, 0),
      };
    });
  }
}

function less(levels: Float32Array, usual: Float32Array): Float32Array {
  for (let s = 0; s < levels.length; s++) levels[s] = levels[s]! - usual[s]!;
  return levels;
}

const sorted = new Float64Array(SHORT.at(-1)!);

/** Of each short length the level of every series; NaN where too little is known. `newest` first. */
function shortLevels(newest: readonly Float32Array[]): Float32Array[] {
  const count = newest[0]!.length;
  const levels = SHORT.map(() => new Float32Array(count));
  for (let s = 0; s < count; s++) {
    let known = 0;
    let k = 0;
    for (let i = 0; i < SHORT.length; i++) {
      for (; k < SHORT[i]! && k < newest.length; k++) {
        const value = newest[k]![s]!;
        if (Number.isNaN(value)) continue;
        let at = known++;
        for (; at > 0 && sorted[at - 1]! > value; at--) sorted[at] = sorted[at - 1]!;
        sorted[at] = value;
      }
      const isKnown = known >= Math.max(FEWEST_HEARD, HEARD * SHORT[i]!);
      levels[i]![s] = isKnown ? lasting(known) : NaN;
    }
  }
  return levels;
}

/** The same as `lastingLevel` of ../levels.ts, of up to eight values that are sorted already. */
function lasting(known: number): number {
  if (known < 4) return sorted[0]!;
  if (known < 6) return sorted[1]!;
  return known < 8 ? sorted[2]! : (sorted[3]! + sorted[4]!) / 2;
}

function longLevels(values: SortedColumns, length: number): Float32Array {
  const levels = new Float32Array(values.series);
  for (let s = 0; s < levels.length; s++)
    levels[s] = values.known(s) >= HEARD * length ? values.median(s) : NaN;
  return levels;
}
