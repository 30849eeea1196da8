/** How far ranks moved away from their peers over the last blocks, for faults that may have begun so many blocks ago. */
import type { Usual } from "./baseline.ts";
import type { KeptBlock } from "./kept-block.ts";
import { SortedColumns } from "./sorted-columns.ts";

/** Blocks since a fault's onset that are weighed: a fault that grows slowly is seen by a longer one. */
const LENGTHS = [3, 4, 5, 6, 8, 11, 16, 24, 40];
export const LONGEST_WINDOW = LENGTHS.at(-1)!;
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
  /** By kind and length. */
  readonly #values: readonly (readonly SortedColumns[])[];

  /** By kind: how many series. */
  constructor(series: readonly number[]) {
    this.#values = series.map((count) => LENGTHS.map((length) => new SortedColumns(count, length)));
  }

  /** `recent`: the newest last, behind those that were added before. */
  add(recent: readonly KeptBlock[]): void {
    const last = recent.at(-1)!;
    for (const [kind, all] of this.#values.entries())
      for (const [i, length] of LENGTHS.entries()) {
        const gone = recent.at(-1 - length);
        all[i]!.move(gone?.apart[kind] ?? null, last.apart[kind]!);
      }
  }

  /** The newest of the recent blocks was taken back. */
  takeBack(recent: readonly KeptBlock[]): void {
    for (const columns of this.#values.flat()) columns.clear();
    for (let k = Math.max(0, recent.length - LONGEST_WINDOW); k < recent.length; k++)
      this.add(recent.slice(Math.max(0, recent.length - LONGEST_WINDOW), k + 1));
  }

  /** A fault did not begin before block `floor`. */
  since(recent: readonly KeptBlock[], floor: number): Window[] {
    const blocks = recent.slice(-LONGEST_WINDOW).reverse();
    return LENGTHS.flatMap((length, i) => {
      const from = blocks[length - 1];
      if (from === undefined || from.number < floor) return [];
      if (from.usual === null || from.usual[0]!.blocks < FEWEST_QUIET_BLOCKS) return [];
      const onsets = i === 0 ? 1 : length - LENGTHS[i - 1]!;
      let [pace, iterations] = [0, 0];
      for (let k = 0; k < length; k++) {
        pace += blocks[k]!.pace / length;
        iterations += blocks[k]!.block.iterations;
      }
      const shift = this.#values.map((all, kind) =>
        shiftsOf(all[i]!, length, from.usual![kind]!.level),
      );
      const spanMs = onsets * from.block.lengthMs;
      return [{ from, blocks: length, spanMs, usual: from.usual, shift, pace, iterations }];
    });
  }
}

function shiftsOf(values: SortedColumns, blocks: number, usual: Float32Array): Float32Array {
  const shift = new Float32Array(usual.length);
  const fewest = Math.max(FEWEST_HEARD, HEARD * blocks);
  for (let s = 0; s < shift.length; s++) {
    const known = values.known(s);
    shift[s] = known < fewest ? NaN : lastingLevel(values, s, known) - usual[s]!;
  }
  return shift;
}

/** The same as `lastingLevel` of ../levels.ts, of values that are sorted already. */
function lastingLevel(values: SortedColumns, s: number, known: number): number {
  if (known < 4) return values.at(s, 0);
  if (known < 6) return values.at(s, 1);
  return known < 8 ? values.at(s, 2) : values.median(s);
}
