/** Jobs that an agent has ranks of: announced while they run, and each rank can be asked by its subject. */
import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import { LIMITS, NAME, type Report } from "./messages.ts";
import { subjects } from "./nats-connect.ts";

export interface NatsJobs {
  /** Learns from what the agent reports. */
  note(report: Report): void;
  names(): Iterable<string>;
  has(job: string): boolean;
  attach(nc: NatsConnection): void;
  detach(): void;
  respond(nc: NatsConnection, message: Msg): void;
}

export function createNatsJobs(respond: (nc: NatsConnection, message: Msg) => void): NatsJobs {
  const jobs = new Map<string, Map<number, Subscription | null>>();
  let nc: NatsConnection | null = null;

  const listen = (job: string, rank: number): Subscription | null => {
    const at = nc;
    if (at === null) return null;
    return at.subscribe(subjects.askRank(job, rank), {
      callback: (error, message) => {
        if (error === null) respond(at, message);
      },
    });
  };
  const leave = (job: string): void => {
    for (const subscription of jobs.get(job)?.values() ?? []) subscription?.unsubscribe();
    jobs.delete(job);
  };

  return {
    respond,
    note(report) {
      if (report.kind === "beat") {
        const named = new Set(report.jobs.map(({ job }) => job));
        for (const job of jobs.keys()) if (!named.has(job)) leave(job);
        for (const job of named) if (NAME.test(job) && !jobs.has(job)) jobs.set(job, new Map());
      } else if (report.kind === "job" && NAME.test(report.job)) {
        const before = jobs.get(report.job) ?? new Map<number, Subscription | null>();
        const now = new Map<number, Subscription | null>();
        for (const { rank } of report.ranks.slice(0, LIMITS.ranksPerAgent)) {
          now.set(rank, before.get(rank) ?? listen(report.job, rank));
        }
        for (const [rank, subscription] of before) if (!now.has(rank)) subscription?.unsubscribe();
        jobs.set(report.job, now);
      }
    },
    names: () => jobs.keys(),
    has: (job) => jobs.has(job),
    attach(to) {
      nc = to;
      for (const [job, ranks] of jobs)
        for (const rank of ranks.keys()) ranks.set(rank, listen(job, rank));
    },
    detach() {
      nc = null;
      for (const ranks of jobs.values()) for (const rank of ranks.keys()) ranks.set(rank, null);
    },
  };
}
