/** One job as people see it: its health, its pace, what it has lost. */
import { shareWords, type Shares } from "../microbatches/jobs.ts";
import type { LeasedJob } from "../lease/leased-job.ts";
import type { Service } from "../service.ts";
import type { JobView } from "../view.ts";

export function jobView(leased: LeasedJob, service: Service): JobView {
  const { job, run, seenMs, saved } = leased;
  const { nowMs, silentMs } = service.options;
  return {
    job,
    run: saved.run,
    startedMs: saved.startedMs,
    seenMs,
    worldSize: saved.worldSize,
    ranks: run?.ranks.size ?? 0,
    machines: run?.machines ?? 0,
    health: healthOf(leased, nowMs() - seenMs > silentMs),
    lastIteration: Number.isFinite(saved.lastIteration) ? saved.lastIteration : -1,
    levelMs: run && run.levelMs > 0 ? run.levelMs : null,
    baselineMs: saved.baselineMs,
    incident: leased.open[0]?.id ?? null,
    wastedGpuMs: leased.wastedGpuMs,
    lacks: [
      ...leased.missing(service.agents),
      ...sharesWords(service.microBatches.shares(job)),
      ...[service.clocks.words(run?.agents ?? []), service.data.says].filter((one) => one !== null),
    ],
  };
}

function sharesWords(shares: Shares | null): string[] {
  if (!shares?.isUneven) return [];
  return [
    `micro-batches are shared out by the replicas' speed (${shareWords(shares.taken)}): what was slow before stays open until they are equal again`,
  ];
}

function healthOf({ open, hasEnded, run }: LeasedJob, isSilent: boolean): JobView["health"] {
  const [worst] = open;
  if (worst?.kind === "crash") return "failed";
  if (worst?.kind === "hang") return "hung";
  if (hasEnded) return "ended";
  if (isSilent) return "silent";
  if (worst) return "slow";
  return run && run.levelMs > 0 ? "healthy" : "learning";
}

const EVERY_MS = 1000;
/** That a job was reported again is news only now and then. */
const SEEN_MS = 5000;

/** Lets an update of each job through about once a second while something changes, and none otherwise. */
export class JobUpdateThrottle {
  readonly #sent = new WeakMap<
    LeasedJob,
    { readonly atMs: number; readonly seenMs: number; readonly rest: string }
  >();

  /** Whether it is time to look at the job at all. */
  isDue(job: LeasedJob, nowMs: number): boolean {
    const sent = this.#sent.get(job);
    // A clock that is set back must not silence a job.
    return !sent || nowMs - sent.atMs >= EVERY_MS || nowMs < sent.atMs;
  }

  hasChanged(job: LeasedJob, view: JobView, nowMs: number): boolean {
    const { seenMs, ...others } = view;
    const rest = JSON.stringify(others);
    const sent = this.#sent.get(job);
    const hasChanged = sent?.rest !== rest || seenMs - sent.seenMs >= SEEN_MS;
    this.#sent.set(job, { atMs: nowMs, seenMs: hasChanged ? seenMs : sent.seenMs, rest });
    return hasChanged;
  }
}
