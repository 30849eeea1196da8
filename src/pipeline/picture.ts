/** What an incident is drawn from: a job and its verdict → story, what-if, metrics, log lines, kernels. Never throws. */
import { errorText } from "../base/errors.ts";
import { timeBreakdowns } from "../methods/localize/time-breakdown.ts";
import { judge as judgeTraces } from "../methods/traces/regression-method.ts";
import { liveTimeBreakdowns } from "../methods/localize/live-time-breakdown.ts";
import type { SlowIterations } from "../methods/localize/slow-iterations.ts";
import { profileRun } from "../methods/traces/profile-run.ts";
import { timelinePicture } from "../methods/traces/pictures/timeline.ts";
import { machinesOfJob } from "./machines.ts";
import type { Rank } from "../model/ids.ts";
import type { Env, Job } from "../model/job.ts";
import type { LivePoints } from "../model/live-points.ts";
import type { MachinePicture } from "../model/machine-picture.ts";
import type { IncidentPicture, LogExcerpt, StackExcerpt, Story, WhatIf } from "../model/picture.ts";
import type { RankOperators } from "../model/rank-operators.ts";
import type { TimelinePicture } from "../model/trace-picture.ts";
import type { Verdict } from "../model/verdict.ts";
import { MOST_BARS } from "../verdict/story/fetched-ranks.ts";
import { hangStory } from "../verdict/story/hang-story.ts";
import { logExcerpts } from "../verdict/story/log-excerpts.ts";
import { stackExcerpts } from "../verdict/story/stack-excerpts.ts";
import type { OwnTime } from "../verdict/story/own-times.ts";
import { type StoryInput, slowStory } from "../verdict/story/slow-story.ts";
import { slowSpan } from "../verdict/story/story-iterations.ts";
import { replayedWhatIf, slowWhatIf } from "../verdict/story/what-if.ts";

const MOST_METRICS = 12;
/** Ranks whose own times are compared for the what-if; the localizer looks at more only to find one. */
const MOST_COMPARED = 1024;
/** Ranks whose operators a story may ask agents for, members of one group, and operators of a rank: about a megabyte. */
const MOST_FETCHED = 320;
const MOST_MEMBERS = 24;
const MOST_OPERATORS = 25_000;
const AT_ONCE = 32;

/** What has been drawn already and need not be worked out again. */
export interface Drawn {
  readonly machines?: readonly MachinePicture[];
  readonly timeline?: TimelinePicture | null;
}

/** Of a job whose files have been read. */
export async function pictureOfJob(
  job: Job,
  verdict: Verdict,
  env: Env,
  drawn: Drawn = {},
): Promise<IncidentPicture> {
  env.progress("drawing", 0, 1);
  const parts = new Parts();
  const made = await parts.part("the story", NO_STORY, () => storyOf(job, verdict));
  parts.lack(made.lacks);
  const metrics = await parts.part("metrics", [], async () =>
    firstOf(verdict, drawn.machines ?? (await machinesOf(job))),
  );
  const logs = await parts.part("log lines", [], () => logExcerpts(job, verdict));
  const stacks = await parts.part("stacks", [], () => stackExcerpts(job, verdict));
  const timeline = await parts.part("the timeline", null, () =>
    drawn.timeline === undefined ? timelineOf(job) : drawn.timeline,
  );
  env.progress("drawing", 1, 1);
  const { story, whatIf } = made;
  const { lacks } = parts;
  return { schema: SCHEMA, story, whatIf, metrics, logs, stacks, timeline, lacks };
}

const SCHEMA = "faultline.picture/1";

interface StoryResult {
  readonly story: Story | null;
  readonly whatIf: WhatIf | null;
  readonly lacks: readonly string[];
}

const NO_STORY: StoryResult = { story: null, whatIf: null, lacks: [] };

async function storyOf(job: Job, verdict: Verdict): Promise<StoryResult> {
  if (verdict.kind === "hang" || verdict.kind === "crash") {
    const { story, lacks } = hangStory(job, verdict);
    // A process that died says more than the ranks that waited for it: no loss where there is no story.
    return { story, whatIf: null, lacks: verdict.kind === "hang" ? lacks : [] };
  }
  const replayed = replayedWhatIf(verdict);
  if (verdict.kind !== "fail-slow") return { ...NO_STORY, whatIf: replayed };
  const { rankOperators } = job;
  const { ranks } = rankOperators;
  return await slowParts(
    {
      job,
      verdict,
      span: slowSpan(verdict),
      ranks,
      operatorsOf: (wanted) => Promise.resolve(wanted.map((rank) => rankOperators.fetch(rank))),
      ownTimesOf: (some) => timeBreakdowns(some, job.groups),
      mostRanks: Infinity,
      mostMembers: MOST_BARS,
    },
    replayed,
    () =>
      timeBreakdowns(
        ranks.slice(0, MOST_COMPARED).flatMap((rank) => rankOperators.fetch(rank) ?? []),
        job.groups,
      ),
  );
}

async function slowParts(
  input: StoryInput,
  replayed: WhatIf | null,
  ownTimes: () => ReadonlyMap<Rank, OwnTime>,
): Promise<StoryResult> {
  const { story, lacks, iterations } = await slowStory(input);
  if (replayed || !iterations) return { story, whatIf: replayed, lacks };
  const whatIf = slowWhatIf(input.verdict, iterations, ownTimes());
  const why = "No what-if: the suspect's cost cannot be separated from the others'.";
  return { story, whatIf, lacks: whatIf ? lacks : [...lacks, why] };
}

/** What the culprit itself left: its stack and its log lines, for a reader who has no picture. */
export interface OwnWords {
  readonly stacks: readonly StackExcerpt[];
  readonly logs: readonly LogExcerpt[];
}

export function ownWords(job: Job, verdict: Verdict): OwnWords {
  const ranks = new Set(verdict.suspects.flatMap((one) => one.ranks));
  // What a rank says of others, every rank says: a time-out, a closed connection, a dump that was asked for.
  const echoes = new Set(
    job.failures.flatMap(({ role, file, line }) => (role === "echo" ? [`${line} ${file}`] : [])),
  );
  const logs = logExcerpts(job, verdict).filter(
    ({ rank, file, lines }) =>
      rank !== null &&
      ranks.has(rank) &&
      lines.some(({ isKey, line }) => isKey && !echoes.has(`${line} ${file}`)),
  );
  return { stacks: stackExcerpts(job, verdict), logs };
}

export interface SlowDownPicture {
  readonly job: Job;
  readonly verdict: Verdict;
  readonly points: LivePoints;
  readonly slow: SlowIterations;
  readonly reachable: readonly Rank[];
  /** null where its agent does not answer. */
  operatorsOf(this: void, rank: Rank): Promise<RankOperators | null>;
}

/** Of a running job that became slow: operators come from its agents, as far as the story asks for them. */
export async function pictureOfSlowDown({
  job,
  verdict,
  points,
  slow,
  reachable,
  operatorsOf,
}: SlowDownPicture): Promise<IncidentPicture> {
  const parts = new Parts();
  const span = { from: slow.from, until: null };
  const input: StoryInput = {
    job,
    verdict,
    span,
    ranks: reachable,
    async operatorsOf(ranks) {
      const found: (RankOperators | null)[] = [];
      for (let from = 0; from < ranks.length; from += AT_ONCE)
        found.push(...(await Promise.all(ranks.slice(from, from + AT_ONCE).map(operatorsOf))));
      return found.map((one) => (one && one.ops.count <= MOST_OPERATORS ? one : null));
    },
    ownTimesOf: (ranks) => timeBreakdowns(ranks, job.groups),
    mostRanks: MOST_FETCHED,
    mostMembers: MOST_MEMBERS,
  };
  const made = await parts.part("the story", NO_STORY, () =>
    slowParts(input, null, () => liveTimeBreakdowns(points, slow)),
  );
  parts.lack(made.lacks);
  const { story, whatIf } = made;
  const { lacks } = parts;
  return { schema: SCHEMA, story, whatIf, metrics: [], logs: [], timeline: null, lacks };
}

/** What fails is said; the rest is drawn. */
class Parts {
  readonly lacks: string[] = [];

  lack(why: readonly string[]): void {
    this.lacks.push(...why);
  }

  async part<T>(what: string, otherwise: T, make: () => T | Promise<T>): Promise<T> {
    try {
      return await make();
    } catch (error) {
      this.lacks.push(`${what} could not be drawn: ${errorText(error)}`);
      return otherwise;
    }
  }
}

async function machinesOf(job: Job): Promise<readonly MachinePicture[]> {
  return (job.metrics?.length ?? 0) > 0 ? ((await machinesOfJob(job))?.pictures ?? []) : [];
}

/** Suspects' machines first. */
function firstOf(
  { suspects }: Verdict,
  pictures: readonly MachinePicture[],
): readonly MachinePicture[] {
  const blamed = new Set(suspects.flatMap(({ machine, name }) => [machine, name]));
  return pictures
    .toSorted((a, b) => Number(blamed.has(b.machine)) - Number(blamed.has(a.machine)))
    .slice(0, MOST_METRICS);
}

function timelineOf({ kernels = [], traceBaseline = [] }: Job): TimelinePicture | null {
  const run = profileRun(kernels, "");
  if (!run) return null;
  return timelinePicture(kernels, run, judgeTraces(run, traceBaseline).regressions);
}

/** As JSON, numbers to three places; columns are lists. */
export function pictureJson(picture: IncidentPicture): string {
  const round = (value: number): number => Math.round(value * 1000) / 1000;
  return JSON.stringify(picture, (_, value: unknown) => {
    if (typeof value === "number") return Number.isInteger(value) ? value : round(value);
    return value instanceof Float32Array ? Array.from(value, round) : value;
  });
}
