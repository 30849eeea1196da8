/** The jobs that a controller knows: what each was told for which iteration, and what has been changed and why. */
import {
  type AllocationChange,
  type AllocationFollower,
  type AllocationState,
  evenAllocation,
  followAllocation,
  type IterationReport,
  type JobShape,
  weightsOf,
} from "./allocation.ts";

export interface Plan {
  readonly iteration: number;
  readonly counts: readonly number[];
  /** What each replica's mean gradient is multiplied with before replicas are averaged. */
  readonly weights: readonly number[];
}

export interface JobChange extends AllocationChange {
  readonly job: string;
  readonly timeMs: number;
}

export interface JobState extends AllocationState, JobShape {
  readonly job: string;
  readonly run: string;
  /** Oldest first; the last MOST_CHANGES. */
  readonly changes: readonly JobChange[];
}

/** What a request asks of the jobs that cannot be granted; the status is HTTP's. */
export class Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

interface JobRecord {
  run: string;
  readonly pastRuns: string[];
  follower: AllocationFollower;
  /** Iteration → counts that were given out for it. */
  readonly given: Map<number, readonly number[]>;
  readonly changes: JobChange[];
  /** The highest iteration that was reported; Infinity before there is one. */
  latest: number;
  /** When the job last asked or reported. */
  heardMs: number;
}

/** Bounds of what is kept, so that no stream of requests fills the memory. */
const MOST_JOBS = 64;
const MOST_GIVEN = 10_000;
const MOST_CHANGES = 1000;
const MOST_PAST_RUNS = 100;
/** A job that is not heard of for so long makes room where a new one needs it. */
const FORGOTTEN_MS = 24 * 3600 * 1000;
/** A report that is further ahead of the last one is a mistake, and would make all that follow look old. */
const MOST_AHEAD = 1_000_000;

export interface Jobs {
  names(): readonly string[];
  plan(job: string, run: string, iteration: number): Plan;
  report(job: string, run: string, report: IterationReport): void;
  state(job: string): JobState;
}

/**
 * All jobs of a controller have one shape. A job exists from its first request on; `run` tells its starts apart, since
 * after a restart iterations count from a checkpoint again, and replicas may sit on other machines.
 */
export function makeJobs(
  shape: JobShape,
  env: { nowMs(): number; onChange(change: JobChange): void },
): Jobs {
  evenAllocation(shape); // Throws where the shape is not possible.
  const jobs = new Map<string, JobRecord>();

  const forgetBefore = (timeMs: number): void => {
    for (const [name, { heardMs }] of jobs) if (heardMs <= timeMs) jobs.delete(name);
  };

  const enter = (name: string, run: string): JobRecord => {
    const known = jobs.get(name);
    const heardMs = env.nowMs();
    if (known?.run === run) {
      known.heardMs = heardMs;
      return known;
    }
    if (known?.pastRuns.includes(run))
      throw new Refusal(409, `run ${run} of job ${name} has been replaced by ${known.run}`);
    if (!known && jobs.size >= MOST_JOBS) forgetBefore(heardMs - FORGOTTEN_MS);
    if (!known && jobs.size >= MOST_JOBS)
      throw new Refusal(429, `there are ${MOST_JOBS} jobs already`);
    const record: JobRecord = {
      run,
      pastRuns: known ? [...known.pastRuns, known.run].slice(-MOST_PAST_RUNS) : [],
      follower: followAllocation(shape),
      given: new Map(),
      changes: known?.changes ?? [],
      latest: Infinity,
      heardMs,
    };
    jobs.set(name, record);
    return record;
  };

  return {
    names: () => [...jobs.keys()],
    plan(name, run, iteration) {
      const { given, follower } = enter(name, run);
      let counts = given.get(iteration);
      if (counts === undefined) {
        ({ counts } = follower.state());
        given.set(iteration, counts);
        if (given.size > MOST_GIVEN) given.delete(given.keys().next().value!);
      }
      return { iteration, counts, weights: weightsOf(counts, shape) };
    },
    report(name, run, report) {
      const record = enter(name, run);
      const { changes, latest } = record;
      if (report.iteration - latest > MOST_AHEAD)
        throw new Refusal(
          400,
          `iteration ${report.iteration} is more than ${MOST_AHEAD} after the last one, ${latest}`,
        );
      // The first of a run may be any: jobs resume where a checkpoint was.
      record.latest = latest === Infinity ? report.iteration : Math.max(latest, report.iteration);
      const change = record.follower.report(report);
      if (change === null) return;
      const told = { job: name, timeMs: env.nowMs(), ...change };
      changes.push(told);
      if (changes.length > MOST_CHANGES) changes.shift();
      env.onChange(told);
    },
    state(name) {
      const record = jobs.get(name);
      if (!record) throw new Refusal(404, `no job ${name} has asked yet`);
      const { run, follower, changes } = record;
      return { job: name, run, ...shape, ...follower.state(), changes };
    },
  };
}
