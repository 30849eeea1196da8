/**
 * Do these stacks show a hang at all? Of a job that runs they are a moment's look: some ranks compute, the others wait
 * for them, and both will have changed places a second later. Stacks carry no time, so others must tell.
 */
import { CLOCK_TOLERANCE_MS, isWatchdogTimeout } from "../../model/connections.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { MetricSet } from "../../model/metrics.ts";
import type { IterationSeries } from "../../model/series.ts";
import { rankStates } from "./frontier.ts";
import { staleness } from "../../model/staleness.ts";

/** Why the job is thought to run, or to have ended well; null where nothing says so. `waiting`: in communication, by their stacks. */
export function runsBecause(job: Job, waiting: readonly Rank[]): string | null {
  if (job.failures.some(isWatchdogTimeout)) return null;
  if (nothingPending(job, waiting)) return "no operator is pending on the ranks that seem to wait";
  if (staleness(job) === "fresh") return "no operator has been pending for longer than two seconds";
  const logs = [...job.logs.values()];
  if (logs.length > 0 && logs.every(({ finished }) => finished))
    return "all logs say that training finished";
  return iterationsGoOn(job) ? "iterations were reported until monitoring ended" : null;
}

/** Who waits has issued what it waits in. A dump that is empty, or was not timed to its end, does not tell. */
function nothingPending(job: Job, waiting: readonly Rank[]): boolean {
  const dumped = waiting.filter((rank) => {
    const dump = job.dumps.get(rank)?.dump;
    return dump !== undefined && dump.ops.count > 0 && (dump.unknownEnds ?? 0) === 0;
  });
  if (dumped.length === 0) return false;
  const states = rankStates(job);
  return dumped.every((rank) => {
    const { heads, waitsUnseen, hiddenP2p } = states.get(rank)!;
    return heads.length === 0 && !waitsUnseen && hiddenP2p.length === 0;
  });
}

/** Between two reports nothing is reported; twice as long, for iterations that differ. */
const IDLE_REPORTS = 2;
/** How many reports tell how often there is one. */
const RECENT = 8;

/**
 * In a hang monitoring goes on and the log does not: its last iteration is long over at the newest sample. The newest
 * sample must be about as late as that iteration, or it tells nothing of what came after.
 */
function iterationsGoOn({ series, metrics = [] }: Job): boolean {
  const newest = newestSample(metrics.filter(({ isCut }) => isCut !== true));
  const report = lastReport(series);
  if (newest === null || report === null) return false;
  const sinceMs = newest.timeMs - report.timeMs;
  return (
    sinceMs >= -newest.everyMs - CLOCK_TOLERANCE_MS &&
    sinceMs <= IDLE_REPORTS * report.everyMs + CLOCK_TOLERANCE_MS
  );
}

interface Latest {
  readonly timeMs: number;
  /** How long it took from one to the next. */
  readonly everyMs: number;
}

/** The last iteration that any log or table reports. */
function lastReport(series: readonly IterationSeries[]): Latest | null {
  let last: Latest | null = null;
  for (const { basis, endMs } of series) {
    if (basis === "operators") continue;
    const ends = endMs.slice(-RECENT).filter(Number.isFinite);
    if (ends.length < 2 || ends.at(-1)! <= (last?.timeMs ?? -Infinity)) continue;
    last = { timeMs: ends.at(-1)!, everyMs: (ends.at(-1)! - ends[0]!) / (ends.length - 1) };
  }
  return last;
}

/** The newest sample of all, and how long before it the same series had another. */
function newestSample(sets: readonly MetricSet[]): Latest | null {
  let newest: Latest | null = null;
  for (const { start, timeS } of sets.flatMap(({ samples }) => samples)) {
    for (let series = 1; series < start.length; series++) {
      const at = start[series]! - 1;
      if (at <= start[series - 1]!) continue;
      const timeMs = timeS[at]! * 1000;
      if (timeMs <= (newest?.timeMs ?? -Infinity)) continue;
      newest = { timeMs, everyMs: timeMs - timeS[at - 1]! * 1000 };
    }
  }
  return newest;
}
