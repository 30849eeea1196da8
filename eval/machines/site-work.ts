/** One task as a site's Prometheus has it, through labels, names and scrapes, asked of our detector. */
import { buildJob } from "../../src/ingest/build-job.ts";
import { parseJobFile } from "../../src/ingest/job-file.ts";
import { MetricSetBuilder } from "../../src/ingest/metrics/metric-set-builder.ts";
import { findMachines } from "../../src/methods/machines/find-machines.ts";
import { jobFleet } from "../../src/methods/machines/job-fleet.ts";
import { drawSite, type SiteChoice } from "./fleet/draw-site.ts";
import { taskScene } from "./fleet/fleet-task.ts";
import { siteMachines, siteSeries, type SiteOptions } from "./fleet/site-samples.ts";
import { judgeAnswer, type JudgedAnswer } from "./judged-answer.ts";

export interface SiteInput {
  readonly seed: number;
  readonly isFaulty: boolean;
  readonly choice: SiteChoice;
}

export interface SiteOutcome {
  readonly seed: number;
  readonly isFaulty: boolean;
  readonly stepS: number;
  readonly deployment: string;
  readonly machines: number;
  readonly type: string | null;
  readonly isVisible: boolean;
  readonly answer: JudgedAnswer;
  readonly said: string;
}

const START_S = 1_794_700_800;

export function siteWork({ seed, isFaulty, choice }: SiteInput): SiteOutcome {
  const site = drawSite(seed, isFaulty, choice);
  const { scene, truth, pp } = taskScene(site.task);
  const options: SiteOptions = {
    deployment: site.deployment,
    seed,
    startS: START_S,
    restarts: site.restarts,
    late: site.late,
    ...(site.names ? { names: site.names } : {}),
  };
  const builder = new MetricSetBuilder();
  const add = (
    series: Iterable<{
      name: string;
      type: "gauge" | "counter" | "unknown";
      labels: Readonly<Record<string, string>>;
      timeS: Float64Array;
      value: Float64Array;
    }>,
  ): void => {
    for (const { name, type, labels, timeS, value } of series) {
      const id = builder.labelled(name, new Map(Object.entries(labels)), type);
      if (id >= 0) builder.addMany(id, timeS, value, timeS.length);
    }
  };
  add(siteSeries(scene, options));
  const machines = siteMachines(scene, options);
  if (site.tenant) {
    const other = taskScene(site.tenant).scene;
    add(siteSeries(other, { ...options, firstMachine: scene.machines }));
  }
  // The job's file is there where others share the cluster, and where stages differ.
  const isTold = !choice.untold && (site.tenant !== null || pp > 1);
  const jobFile = parseJobFile(
    isTold
      ? {
          parallel: { pp },
          rankOrder: "tp-dp-pp",
          ranks: machines.map((machine, rank) => ({ rank, machine, gpu: 0 })),
          worldSize: machines.length,
        }
      : {},
    "job.json",
  );
  const stageOf = (rank: number): number | null => (isTold ? truth.stageOf[rank]! : null);
  const metrics = builder.finish();
  const reading = {
    file: "metrics.prom",
    format: "open-metrics",
    rank: null,
    records: 1,
    defects: [],
    metrics,
  };
  const job = buildJob([reading], { ...jobFile, stageOf });
  const fleet = jobFleet(job)!;
  const { faulty } = findMachines(fleet);
  return {
    seed,
    isFaulty,
    stepS: site.task.stepS!,
    deployment: site.deployment,
    machines: machines.length,
    type: truth.fault?.type ?? null,
    isVisible:
      truth.fault === null ||
      truth.fault.type in { "slow-clock": 1, throttle: 1, "pcie-width": 1, "cpu-overload": 1 } ||
      truth.fault.shown.length > 0 ||
      truth.fault.states.length > 0 ||
      truth.fault.vanishes !== null,
    answer: judgeAnswer(faulty, { machines }, truth),
    said: faulty.map(({ machine, score, why }) => `${machine} ${score} ${why}`).join(" / "),
  };
}
