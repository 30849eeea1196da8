/** Simulated slow jobs with their verdict, for tests of what is told about them. */
import { jobOf, quietEnv } from "./in-memory.ts";
import { timeBreakdowns } from "../../src/methods/localize/time-breakdown.ts";
import type { Job } from "../../src/model/job.ts";
import type { Verdict } from "../../src/model/verdict.ts";
import { ask } from "../../src/pipeline/diagnose.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { completeSpec } from "../../src/simulate/cluster/spec.ts";
import { memoryOutput } from "./simulate/memory-output.ts";
import { runSimulation } from "../../src/simulate/run.ts";
import { fuse } from "../../src/verdict/fuse.ts";
import { MOST_BARS } from "../../src/verdict/story/fetched-ranks.ts";
import type { StoryInput } from "../../src/verdict/story/slow-story.ts";
import { slowSpan } from "../../src/verdict/story/story-iterations.ts";

interface SlowJob {
  readonly job: Job;
  readonly verdict: Verdict;
}

const known = new Map<string, Promise<SlowJob>>();

/** Sixteen GPUs; the same fault is simulated once. */
export function slowJob(fault: string): Promise<SlowJob> {
  const job = known.get(fault) ?? simulated(fault);
  known.set(fault, job);
  return job;
}

async function simulated(fault: string): Promise<SlowJob> {
  const output = memoryOutput();
  const spec = completeSpec({
    gpus: 16,
    tp: 2,
    pp: 2,
    gpusPerMachine: 4,
    machinesPerLeaf: 2,
    microBatches: 4,
    layersPerStage: 1,
    hidden: 8192,
    iterations: 18,
    seed: 5,
    faults: [parseFault(fault)],
  });
  runSimulation(spec, ["flight-recorder", "logs"], output);
  const job = jobOf([...output.bytes].map(([name, bytes]) => ({ name, bytes })));
  const { findings, didNotRun } = await ask(job, quietEnv);
  return { job, verdict: fuse(job, findings, didNotRun) };
}

export function storyInput(job: Job, verdict: Verdict): StoryInput {
  return {
    job,
    verdict,
    span: slowSpan(verdict),
    ranks: job.rankOperators.ranks,
    operatorsOf: (ranks) => Promise.resolve(ranks.map((rank) => job.rankOperators.fetch(rank))),
    ownTimesOf: (ranks) => timeBreakdowns(ranks, job.groups),
    mostRanks: Infinity,
    mostMembers: MOST_BARS,
  };
}
