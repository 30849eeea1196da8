/** What people know of machines afterwards: which was at fault and when, and when nothing was wrong. */
import type { Cause } from "./cause.ts";

export interface MachineLabel {
  /** null: all machines, which were healthy then. */
  readonly machine: string | null;
  readonly fromS: number;
  readonly toS: number;
  readonly isFaulty: boolean;
  readonly cause: Cause | null;
}

/** What a site's labels taught (faultline machines train --labels). */
export interface SiteMetrics {
  readonly schema: "faultline.machine-priorities/1";
  /** Metrics in the order in which Minder asks for them (§4.3). */
  readonly order: readonly string[];
  /** Minder's threshold of a metric, as a normal score. */
  readonly scores: Readonly<Record<string, number>>;
  /** Deviations of a metric below these are no evidence for the default method, in units of what peers differ by. */
  readonly sigmas: Readonly<Record<string, number>>;
  readonly labels: { readonly faulty: number; readonly healthy: number };
}
