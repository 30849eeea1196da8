import type { SimGroup } from "../../../src/simulate/flight/rank-records.ts";
import type { Layout, Membership } from "./layout.ts";
import { buildGroups, memberships } from "./layout.ts";
import type { Op } from "../../../src/simulate/flight/op.ts";
import type { ProgramOptions } from "./program.ts";
import { rankProgram } from "./program.ts";

/** A job without faults: every rank's program and the groups that it runs in. */
export interface SimJob {
  readonly layout: Layout;
  readonly groups: readonly SimGroup[];
  /** Per rank its groups, in the order of joining. */
  readonly joined: readonly (readonly Membership[])[];
  readonly programs: readonly (readonly Op[])[];
}

/** The lab's script on a small model. */
export const DEFAULT_PROGRAM: Omit<ProgramOptions, "iterations"> = {
  microBatches: 4,
  layers: 2,
  schedule: "gpipe",
  tensor: "all_reduce",
  data: "all_reduce",
  embedding: false,
  experts: false,
  expertSync: false,
  world: "none",
  loadSync: false,
  pipelineWarmUp: false,
  sequence: 512,
  hidden: 1024,
};

export function buildJob(
  layout: Layout,
  options: ProgramOptions,
  seed: number,
  unusedGroups = false,
): SimJob {
  const groups = buildGroups(layout, { ...options, unused: unusedGroups });
  const joined = memberships(layout, groups);
  const programs = joined.map((own, rank) => rankProgram(rank, layout, own, options, seed));
  return { layout, groups, joined, programs };
}
