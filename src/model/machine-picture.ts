/** What plots of deviating metrics are drawn from: small, and worked out before anything is drawn. */

/** One metric of one machine beside its peers. */
export interface MachinePicture {
  readonly machine: string;
  readonly metric: string;
  readonly title: string;
  readonly unit: string;
  /** "gpu3", where one device stands out. */
  readonly device: string | null;
  /** Unix seconds of the middle of each point, the same count as below. */
  readonly timeS: readonly number[];
  /** null where there was no sample. */
  readonly value: readonly (number | null)[];
  /** Peers: the tenth, the middle and the ninetieth of a hundred; null where nobody reported. */
  readonly low: readonly (number | null)[];
  readonly middle: readonly (number | null)[];
  readonly high: readonly (number | null)[];
  /** The time in which it was unlike them; the same moment twice where it was not. */
  readonly fromS: number;
  readonly toS: number;
}
