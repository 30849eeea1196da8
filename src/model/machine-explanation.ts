/** Everything that is known of one machine beside its peers: for users who doubt the answer. */
import type { JoinedName } from "./machine-names.ts";

export interface ExplainedMetric {
  readonly metric: string;
  readonly title: string;
  readonly unit: string;
  /** The exporter's names. */
  readonly source: string;
  readonly intervalS: number;
  /** Samples seen of those due, of this machine, 0..1. */
  readonly coverage: number;
  /** Medians over the time in which the job worked, of the device farthest to the side that harms; null: nothing seen. */
  readonly value: number | null;
  /** The same of its peers: the tenth, the middle and the ninetieth of a hundred. */
  readonly peers: { readonly low: number; readonly middle: number; readonly high: number } | null;
  /** "as its peers", or what was found. */
  readonly found: string;
}

export interface MachineExplanation {
  readonly machine: string;
  readonly role: string;
  /** How many it is compared with. */
  readonly peers: number;
  /** null: it goes by one name. */
  readonly names: JoinedName | null;
  readonly metrics: readonly ExplainedMetric[];
  /** What was not used, and why. */
  readonly leftOut: readonly { readonly what: string; readonly why: string }[];
}
