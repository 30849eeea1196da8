/** What an incident is drawn from: a job and its verdict → story, metrics, log lines, kernels. Never throws. */
import { errorText } from "../base/errors.ts";
import { judge as judgeTraces } from "../methods/traces/regression-method.ts";
import { profileRun } from "../methods/traces/profile-run.ts";
import { timelinePicture } from "../methods/traces/pictures/timeline.ts";
import { machinesOfJob } from "./machines.ts";
import type { Env, Job } from "../model/job.ts";
import type { MachinePicture } from "../model/machine-picture.ts";
import type { IncidentPicture, LogExcerpt, StackExcerpt, Story } from "../model/picture.ts";
import type { TimelinePicture } from "../model/trace-picture.ts";
import type { Verdict } from "../model/verdict.ts";
import { hangStory } from "../verdict/story/hang-story.ts";
import { logExcerpts } from "../verdict/story/log-excerpts.ts";
import { stackExcerpts } from "../verdict/story/stack-excerpts.ts";
import { slowStory } from "../verdict/story/slow-story.ts";

const MOST_METRICS = 12;

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
  const { story } = made;
  const { lacks } = parts;
  return { schema: SCHEMA, story, metrics, logs, stacks, timeline, lacks };
}

const SCHEMA = "faultline.picture/1";

interface ToldStory {
  readonly story: Story | null;
  readonly lacks: readonly string[];
}

const NO_STORY: ToldStory = { story: null, lacks: [] };

function storyOf(job: Job, verdict: Verdict): ToldStory {
  const { kind } = verdict;
  if (kind === "fail-slow") return slowStory(job, verdict);
  if (kind !== "hang" && kind !== "crash") return NO_STORY;
  const told = hangStory(job, verdict);
  // A process that died says more than the ranks that waited for it: no loss where there is no story.
  return kind === "hang" ? told : { ...told, lacks: [] };
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

/** Of a running job, of which nothing is read but what its verdict says. */
export function pictureOfSlowDown(job: Job, verdict: Verdict): IncidentPicture {
  return { schema: SCHEMA, ...storyOf(job, verdict), metrics: [], logs: [], timeline: null };
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
