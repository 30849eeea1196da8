import { expect, it } from "vitest";
import { buildJob } from "../../ingest/build-job.ts";
import { parseJobFile } from "../../ingest/job-file.ts";
import type { Job } from "../../model/job.ts";
import { MetricSetBuilder } from "../../ingest/metrics/metric-set-builder.ts";
import { jobFleet, jobHints } from "./job-fleet.ts";

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

it("GPUs whose exporters nothing joins with the job's machines are kept", () => {
  const builder = new MetricSetBuilder();
  for (let m = 0; m < 6; m++) {
    const host = builder.series("node_load1", `node${m}`, "");
    const gpu = builder.series("DCGM_FI_DEV_GPU_UTIL", `dcgm-exporter-${"abcdef"[m]}`, "gpu0");
    for (let t = 0; t < 20; t++) {
      builder.add(host, 1_794_700_800 + 15 * t, 1);
      builder.add(gpu, 1_794_700_800 + 15 * t, 99);
    }
  }
  const ranks = MACHINES.map((machine, rank) => ({ rank, machine }));
  const job = buildJob([], parseJobFile({ worldSize: 4, ranks }, "job.json"));
  const fleet = jobFleet({ ...job, metrics: [builder.finish()] })!;
  expect(fleet.machines.filter((name) => name.startsWith("node"))).toEqual(MACHINES);
  expect(fleet.machines.filter((name) => name.startsWith("dcgm"))).toHaveLength(6);
});
