/** Whose processes a cause is about: who wrote it, else whose the machine is, less those that only wait for others. */
import { rankWords } from "../../base/text.ts";
import { isWatchdogTimeout } from "../../model/connections.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { LogCause } from "../../model/log-report.ts";

/** Who says so must be few to be accused of it. */
const MOST_RANKS = 8;
const MOST_NODES = 2;
const BLOCKED = /task \S+:(\d{1,10}) blocked for more than/;

interface AccusedRanks {
  readonly ranks: readonly Rank[];
  /** What narrowed a machine down, for people; "" where nothing did. */
  readonly because: string;
  /** Whether all who could be meant are known to wait for others. */
  readonly isNobody?: boolean;
}

export function accusedRanks(
  job: Job,
  { ranks, nodes, category }: Pick<LogCause, "ranks" | "nodes" | "category">,
  kind: "hang" | "crash",
): AccusedRanks {
  if (ranks.length > 0) return { ranks: ranks.length <= MOST_RANKS ? [...ranks] : [], because: "" };
  if (nodes.length === 0 || nodes.length > MOST_NODES) return { ranks: [], because: "" };
  const on = [...job.ranks.values()]
    .filter(({ machine }) => machine !== null && nodes.includes(machine))
    .map(({ rank }) => rank)
    .sort((a, b) => a - b);
  // A network that does not carry anything holds everybody inside communication, and so tells nobody apart.
  if (kind !== "hang" || category !== "hardware.storage") return { ranks: on, because: "" };
  const blocked = blockedRanks(job, on);
  if (blocked.length > 0)
    return { ranks: blocked, because: `the kernel says that ${rankWords(blocked)} is blocked` };
  return outsideCommunication(job, on);
}

/** Processes that the kernel calls blocked; ids are unique on a machine only. */
function blockedRanks(job: Job, on: readonly Rank[]): Rank[] {
  const pids = new Set(
    job.failures.flatMap(({ role, text }) => {
      const pid = role === "stall" ? BLOCKED.exec(text)?.[1] : undefined;
      return pid === undefined ? [] : [Number(pid)];
    }),
  );
  if (pids.size === 0) return [];
  return on.filter((rank) => {
    const pid = job.ranks.get(rank)?.pid ?? job.stacks.get(rank)?.pid ?? null;
    return pid !== null && pids.has(pid);
  });
}

/** Who waits for storage has no operator that times out: those of the machine that had one wait for somebody else. */
function outsideCommunication(job: Job, on: readonly Rank[]): AccusedRanks {
  const waits = new Set(job.failures.filter(isWatchdogTimeout).map(({ rank }) => rank));
  const left = on.filter((rank) => !waits.has(rank));
  if (left.length === on.length) return { ranks: on, because: "" };
  if (left.length === 0)
    return {
      ranks: [],
      because: "but all ranks there wait in communication, as others do",
      isNobody: true,
    };
  return {
    ranks: left,
    because: `no operator of ${rankWords(left)} timed out, as others' there did`,
  };
}
