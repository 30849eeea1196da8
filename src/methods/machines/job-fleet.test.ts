import { expect, it } from "vitest";
import { buildJob } from "../../ingest/build-job.ts";
import { parseJobFile } from "../../ingest/job-file.ts";
import type { Job } from "../../model/job.ts";
import { jobHints } from "./job-fleet.ts";

const MACHINES = ["node0", "node1", "node2", "node3"];

/** Four machines of four ranks in two stages; of some ranks nothing tells the stage. */
function stages(unknown: readonly number[]): (string | undefined)[] {
  const ranks = Array.from({ length: 16 }, (_, rank) => ({ rank, machine: `node${rank >> 2}` }));
  const job = buildJob([], parseJobFile({ worldSize: 16, ranks }, "job.json"));
  const known = [...job.ranks].map(([rank, facts]) => {
    const stage = unknown.includes(rank) ? null : rank >> 3;
    return [rank, { ...facts, stage }] as const;
  });
  const { stageOf } = jobHints({ ...job, ranks: new Map(known) } satisfies Job, MACHINES);
  return MACHINES.map((name) => stageOf!.get(name));
}

it("a machine keeps its stage where a rank's log is lost", () => {
  const all = ["stage 0", "stage 0", "stage 1", "stage 1"];
  expect(stages([])).toEqual(all);
  expect(stages([2])).toEqual(all);
  expect(stages([0, 1, 2])).toEqual([undefined, ...all.slice(1)]);
});
