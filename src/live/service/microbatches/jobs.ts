/** The jobs that a controller knows: what each was given for which iteration, and what has been changed and why. */
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
import { Refusal } from "../view.ts";

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
  /** What the replicas were told last. */
  readonly given: readonly number[];
  /** Oldest first; the last MOST_CHANGES. */
  readonly changes: readonly JobChange[];
}

interface JobRecord {
  run: string;
  readonly shape: JobShape;
  readonly even: readonly number[];
  readonly pastRuns: string[];
  follower: AllocationFollower;
  /** Iteration → counts that were given out for it. */
  readonly given: Map<number, readonly number[]>;
  /** What was given out last. */
  lastGiven: readonly number[];
  isUneven: boolean;
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
/** A job that asked within this time will ask again. */
const ASKING_MS = 600_000;
/** A report that is further ahead of the last one is a mistake, and would make all that follow look old. */
const MOST_AHEAD = 1_000_000;

export interface Jobs {
  names(): readonly string[];
  plan(job: string, run: string, iteration: number, shape: JobShape): Plan;
  report(job: string, run: string, report: IterationReport, shape: JobShape): void;
  state(job: string): JobState;
  /** What suits the replicas' speeds, and what they take at present; null where the job does not ask (any more). */
  shares(job: string): Shares | null;
  /** The shares that its replicas were given last; null where they are equal, or it does not ask (any more). */
  unevenShares(job: string): string | null;
}

export interface Shares {
  readonly best: readonly number[];
  readonly taken: readonly number[];
  readonly weights: readonly number[];
  readonly isUneven: boolean;
  /** Whether what suits is given out. */
  readonly isAllowed: boolean;
}

/** What may be given out: the counts that suit, equal ones, or none but those that were given last. */
export type Permission = "best" | "even" | "as-before";

export interface JobsEnv {
  nowMs(): number;
  onChange(change: JobChange): void;
  /** Asked for each plan; where it is absent, what suits is given out. */
  permission?(job: string): Permission;
  /** The replicas take other shares from the next iterations on. */
  onGiven?(job: string, counts: readonly number[]): void;
}

/**
 * A job exists from its first request on, with the shape that it tells; `run` tells its starts apart, since after a
 * restart iterations count from a checkpoint again, and replicas may sit on other machines.
 */
export function makeJobs(env: JobsEnv): Jobs {
  const jobs = new Map<string, JobRecord>();

  const forgetBefore = (timeMs: number): void => {
    for (const [name, { heardMs }] of jobs) if (heardMs <= timeMs) jobs.delete(name);
  };

  const enter = (name: string, run: string, shape: JobShape): JobRecord => {
    const known = jobs.get(name);
    const heardMs = env.nowMs();
    if (known?.run === run) {
      if (!isSame(known.shape, shape))
        throw new Refusal(409, `run ${run} of job ${name} shares out ${shapeWords(known.shape)}`);
      known.heardMs = heardMs;
      return known;
    }
    if (known?.pastRuns.includes(run))
      throw new Refusal(409, `run ${run} of job ${name} has been replaced by ${known.run}`);
    if (!known && jobs.size >= MOST_JOBS) forgetBefore(heardMs - FORGOTTEN_MS);
    if (!known && jobs.size >= MOST_JOBS)
      throw new Refusal(429, `there are ${MOST_JOBS} jobs already`);
    const even = evenAllocation(shape);
    const record: JobRecord = {
      run,
      shape,
      even,
      pastRuns: known ? [...known.pastRuns, known.run].slice(-MOST_PAST_RUNS) : [],
      follower: followAllocation(shape),
      given: new Map(),
      lastGiven: even,
      isUneven: false,
      changes: known?.changes ?? [],
      latest: Infinity,
      heardMs,
    };
    jobs.set(name, record);
    return record;
  };

  const permissionOf = (name: string): Permission => env.permission?.(name) ?? "best";

  const permitted = (name: string, { even, follower, lastGiven }: JobRecord) => {
    const permission = permissionOf(name);
    if (permission === "as-before") return lastGiven;
    return permission === "even" ? even : follower.state().counts;
  };

  const isAsking = ({ heardMs }: JobRecord): boolean => env.nowMs() - heardMs <= ASKING_MS;

  const give = (record: JobRecord, counts: readonly number[]): boolean => {
    const isNew = counts.some((count, i) => count !== record.lastGiven[i]);
    record.lastGiven = counts;
    if (isNew) record.isUneven = counts.some((count, i) => count !== record.even[i]);
    return isNew;
  };

  return {
    names: () => [...jobs.keys()],
    plan(name, run, iteration, shape) {
      const record = enter(name, run, shape);
      const { given } = record;
      let counts = given.get(iteration);
      if (counts === undefined) {
        counts = permitted(name, record);
        given.set(iteration, counts);
        if (given.size > MOST_GIVEN) given.delete(given.keys().next().value!);
        if (give(record, counts)) env.onGiven?.(name, counts);
      }
      return { iteration, counts, weights: weightsOf(counts, shape) };
    },
    report(name, run, report, shape) {
      const record = enter(name, run, shape);
      const { changes, latest } = record;
      if (report.iteration - latest > MOST_AHEAD)
        throw new Refusal(
          400,
          `iteration ${report.iteration} is more than ${MOST_AHEAD} after the last one, ${latest}`,
        );
      // A service that was restarted in the middle of a job takes over what is in force there.
      if (latest === Infinity && record.given.size === 0) give(record, report.counts);
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
      const { run, shape, follower, lastGiven, changes } = record;
      return { job: name, run, ...shape, ...follower.state(), given: lastGiven, changes };
    },
    shares(name) {
      const record = jobs.get(name);
      if (!record || !isAsking(record)) return null;
      const { follower, lastGiven, isUneven } = record;
      const { counts: best, weights } = follower.state();
      const isAllowed = permissionOf(name) !== "even";
      return { best, weights, taken: lastGiven, isUneven, isAllowed };
    },
    unevenShares(name) {
      const record = jobs.get(name);
      return record?.isUneven && isAsking(record) ? record.lastGiven.join() : null;
    },
  };
}

function isSame(a: JobShape, b: JobShape): boolean {
  return (
    a.groups === b.groups &&
    a.total === b.total &&
    a.multipleOf === b.multipleOf &&
    a.bubble === b.bubble
  );
}

function shapeWords({ groups, total, multipleOf, bubble }: JobShape): string {
  return `${total} micro-batches to ${groups} replicas (multiples of ${multipleOf}, bubble ${bubble})`;
}

/** Shares that are written out. */
const LISTED = 16;

export function shareWords(counts: readonly number[]): string {
  return `${counts.slice(0, LISTED).join(", ")}${counts.length > LISTED ? ", …" : ""}`;
}
