import { describe, expect, it } from "vitest";
import { factOf } from "../../model/facts.ts";
import type { Env, Job } from "../../model/job.ts";
import type { NewFinding } from "../../model/finding.ts";
import { pipelinePasses, type PipelineSpec } from "../../../test/support/methods/pipeline-job.ts";
import { buildJob } from "../../ingest/build-job.ts";
import { ask } from "../../pipeline/diagnose.ts";
import { fuse } from "../../verdict/fuse.ts";
import { withIterations } from "../methods.ts";
import { makeSeries } from "../../../test/support/methods/series.ts";
import { slowLink } from "./slow-link-method.ts";

const SPEC: PipelineSpec = {
  stages: 4,
  microBatches: 8,
  iterations: 12,
  schedule: "1f1b",
  blocking: true,
  passMs: () => 25,
  transferMs: (from, to, iteration) => (Math.min(from, to) === 2 && iteration >= 7 ? 62 : 2),
  clockMs: (stage) => 100 * stage,
  noise: 0.01,
  seed: 3,
};

const env: Env = { signal: new AbortController().signal, progress: () => {} };

function findings(stageOperations: Job["stageOperations"]): NewFinding[] {
  const job = { stageOperations, iterations: [] } as Partial<Job> as Job;
  expect(slowLink.applies(job)).toBe(true);
  return [...(slowLink.run(job, env) as Iterable<NewFinding>)];
}

describe("the slow link of a job", () => {
  it("is accused as a link, with both ranks, its delay and where to look", () => {
    const [finding, ...others] = findings(pipelinePasses(SPEC));
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      at: [{ file: "rank2.log" }, { file: "rank3.log" }],
      data: { slowDown: false, iteration: 7, until: null },
      accuses: [
        {
          kind: "fail-slow",
          type: "link",
          ranks: [2, 3],
          link: ["rank:2", "rank:3"],
          cause: "network-slow",
          weight: finding!.weight,
        },
      ],
    });
    expect(finding!.says).toMatch(
      /^tensors between rank 2 and rank 3 take (59|60|61)\.\d ms longer \(both ways; 2\.0 ms before\) from iteration 7, even/,
    );
    expect(finding!.weight).toBeGreaterThan(0.8);
    expect(factOf(finding!, "slow-link")!.delayMs).toBeCloseTo(60, -1);
  });

  it("is not asked for where nobody logs passes, nor found where nothing slowed down", () => {
    expect(slowLink.applies({ stageOperations: [] as Job["stageOperations"] } as Job)).toBe(false);
    const other = pipelinePasses(SPEC).map((table) => ({ ...table, format: "stage-timeline" }));
    expect(slowLink.applies({ stageOperations: other as Job["stageOperations"] } as Job)).toBe(
      false,
    );
    expect(findings(pipelinePasses({ ...SPEC, transferMs: () => 2 }))).toEqual([]);
  });

  it("is one of two in the verdict, though both meet at a rank", async () => {
    const isSlow = (from: number, to: number): boolean => Math.min(from, to) > 0;
    const stageOperations = pipelinePasses({
      ...SPEC,
      transferMs: (from, to, iteration) => (isSlow(from, to) && iteration >= 7 ? 62 : 2),
    });
    const reading = { file: "passes.log", format: "stage-passes", rank: null, records: 1 };
    const job = withIterations(buildJob([{ ...reading, defects: [], stageOperations }], null));
    const { findings: found, didNotRun } = await ask(job, env);
    const links = fuse(job, found, didNotRun).suspects.map(({ ranks }) => ranks.join("–"));
    expect(links.sort()).toEqual(["1–2", "2–3"]);
  });

  it("says when it began, also where no log is there or it is too short to say", async () => {
    const reading = { file: "passes.log", format: "stage-passes", rank: null, records: 1 };
    const whenOf = async (
      stageOperations: Job["stageOperations"],
      tookMs: readonly number[],
    ): Promise<number | null> => {
      const series = {
        ...makeSeries({ level: (i) => tookMs[i - 1]!, to: tookMs.length }),
        endMs: new Float64Array(tookMs.length).fill(NaN),
      };
      const readings = [{ ...reading, defects: [], stageOperations, series: [series] }];
      const job = withIterations(buildJob(readings, null));
      expect(job.iterations.flatMap(({ changePoints }) => changePoints)).toEqual([]);
      const { findings: found, didNotRun } = await ask(job, env);
      return fuse(job, found, didNotRun).when.iteration;
    };
    const passes = pipelinePasses(SPEC);
    expect(await whenOf(passes, [])).toBe(7);
    // Those through host memory are counted by themselves: the log knows, once it is asked.
    const throughHost = passes.map((table) => ({ ...table, format: "stage-passes-cpu" }));
    const printed = [26_000, 1860, 1320, 1325, 1425, 1425, 1430, 1790, 1680, 1680, 1690, 1670];
    expect(await whenOf(throughHost as Job["stageOperations"], printed)).toBe(8);
    expect(await whenOf(throughHost as Job["stageOperations"], [])).toBeNull();
  });
});
