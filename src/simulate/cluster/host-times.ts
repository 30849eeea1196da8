/** What a rank's CPU does before it issues an operator, and how long: the engine's sum once more, from the same hashes. */
import type { HostWork } from "./host-sites.ts";
import { fetchNs, gcPause, lookupNs } from "./noise.ts";
import { runOf } from "./shares.ts";
import type { IterationTimes, Simulation } from "./times.ts";

/** Simulated nanoseconds; 0 for what does not happen. */
export interface HostTimes {
  /** A batch from the data loader, and the look-up of its embeddings. */
  readonly fetchNs: number;
  readonly lookupNs: number;
  /** Garbage collection. */
  readonly collectNs: number;
  /** In this order, after the others and before the collection. */
  readonly sites: readonly {
    readonly what: HostWork;
    readonly drains: boolean;
    readonly ns: number;
  }[];
}

export function hostTimes(
  { spec, lanes, programs }: Simulation,
  { iteration, devices, shares }: IterationTimes,
  rank: number,
): (op: number) => HostTimes {
  const program = programs[Math.floor(rank / lanes.lanes)]!;
  const { loads, microBatch } = program;
  const { ops } = runOf(program, shares.skipped[rank % lanes.lanes]!);
  const pause = gcPause(spec.seed, rank, iteration, ops.length, spec.noise);
  const pausedOp = pause === null ? -1 : ops[pause.op]!;
  return (op) => ({
    fetchNs: loads[op]
      ? fetchNs(spec.seed, rank, microBatch[op]!, iteration, spec.noise) + devices.loadNs[rank]!
      : 0,
    lookupNs: loads[op]
      ? lookupNs(spec.seed, rank, microBatch[op]!, iteration, spec.embeddingNs)
      : 0,
    collectNs: devices.pauseNs[rank]! + (pausedOp === op ? pause!.ns : 0),
    sites: devices.sites
      .map((site) => ({ what: site.what, drains: site.drains, ns: site.ns(rank, op) }))
      .filter(({ ns }) => ns >= 0),
  });
}
