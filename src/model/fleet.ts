/** A job's machines side by side: every metric on a grid of machines × ticks, the form in which they are compared. */

import type { JoinedName } from "./machine-names.ts";

export interface MetricGrid {
  /** Of the catalog, or a table's own word. */
  readonly metric: string;
  /** The exporter's names that it was made of, for people: "DCGM_FI_PROF_PCIE_TX_BYTES + …RX_BYTES". */
  readonly source: string;
  /** The sampling interval that was seen, and the grid's: ticks are startS + i · stepS. */
  readonly stepS: number;
  readonly startS: number;
  readonly ticks: number;
  /** Machine m at tick t is at m · ticks + t. NaN where there was no sample: never padded. */
  readonly mean: Float32Array;
  /** Least and greatest of its devices; the same array as `mean` where devices are not distinguished. */
  readonly low: Float32Array;
  readonly high: Float32Array;
  /** Which device that is: index into `devices`; null where devices are not distinguished. */
  readonly lowDevice: Uint8Array | null;
  readonly highDevice: Uint8Array | null;
  /** How many devices reported; null where devices are not distinguished. */
  readonly reporting: Uint8Array | null;
  readonly devices: readonly string[];
  /** Samples seen of those that were due, 0 to 1, over machines that have any and over all. */
  readonly coverage: number;
}

export interface Fleet {
  readonly machines: readonly string[];
  /** By machine: index into `roles`. Only machines of one role are alike (same pipeline stage, same hardware). */
  readonly role: Int32Array;
  readonly roles: readonly string[];
  readonly grids: readonly MetricGrid[];
  /** By machine, where it was seen before the grids begin: when it was last seen. A watched machine stays dead. */
  readonly lastSeenS?: Float64Array;
  /** Whether the job's file names all of these machines: nobody else's are among them. */
  readonly isJob?: boolean;
  /** A file ended in the middle: it is unknown which machines stopped reporting. */
  readonly isCut?: boolean;
  /** Which names were taken for one machine, and which stand for several and so for none. */
  readonly names?: { readonly joined: readonly JoinedName[]; readonly disputed: readonly string[] };
  /** What is missing or odd, a sentence each. */
  readonly missing: readonly string[];
}
