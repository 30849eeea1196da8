/**
 * What a machine's metrics mean in a job that stands still. Such a job is not slow: who sends pauses then does not carry
 * anything any more, and a GPU that is unlike those that spin in a collective does not work. What was so long before the
 * job stopped did not stop it.
 */
import type { Cause } from "../../model/cause.ts";
import { isWatchdogTimeout } from "../../model/connections.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { StackDump } from "../../model/stacks.ts";
import { COMPLETED } from "../../model/operators.ts";
import { catalogMetric } from "../../model/metric-catalog.ts";
import type { Deviation, FaultyMachine, MachineReport, Phase } from "../../model/machine-report.ts";

/** Phases are smoothed over half a minute, and samples come every half minute; a ramp adds to it. */
const SLACK_S = 90;

/** The halt that the data end with, or after which the job was gone. */
export function haltOf({ phases }: Pick<MachineReport, "phases">): Phase | null {
  return phases.findLast(({ what }) => what === "halt") ?? null;
}

/** Whether something began with the halt and was there in it. */
export function cameWith(
  { fromS, toS }: Pick<Deviation, "fromS" | "toS">,
  halt: Pick<Phase, "fromS">,
): boolean {
  return fromS >= halt.fromS - SLACK_S && toS > halt.fromS;
}

/** The same machine with what came with the halt only; null where it was unlike long before, and no more than that. */
export function atHalt(faulty: FaultyMachine, halt: Phase): FaultyMachine | null {
  const [sudden, earlier] = [true, false].map((isSudden) =>
    faulty.deviations.filter((one) => cameWith(one, halt) === isSudden),
  );
  // What was so before, and was seen again in the halt, is not new.
  const deviations = sudden!.filter(
    ({ metric, direction }) =>
      !earlier!.some((one) => one.metric === metric && one.direction === direction),
  );
  // A metric that is not of the catalog is a device or a machine that is not there any more.
  const mayDecide = ({ metric }: Deviation): boolean => catalogMetric(metric)?.decides ?? true;
  return deviations.some(mayDecide) ? { ...faulty, deviations } : null;
}

const OF_NETWORK = [
  "pfc-tx-packet-rate",
  "port-transmit-wait",
  "ecn-packet-rate",
  "cnp-packet-rate",
  "tcp-rdma-throughput",
];
/** What a GPU does. Its clock, power and heat follow from that. */
const OF_WORK = [
  "gpu-duty-cycle",
  "gpu-graphics-engine-activity",
  "gpu-sm-activity",
  "gpu-fp-engine-activity",
  "gpu-memory-bandwidth",
  "gpu-power-draw",
  "gpu-clocks",
];

/** `deviations`: those that came with the halt; `ranks`: whose processes are meant. */
export function causeAtHalt(
  job: Job,
  deviations: readonly Deviation[],
  ranks: readonly Rank[],
): Cause {
  const is = (metric: string, direction: Deviation["direction"]): boolean =>
    deviations.some((one) => one.metric === metric && one.direction === direction);
  if (is("gpus", "absent") || is("xid-errors", "high")) return "gpu-error";
  if (is("reporting", "absent")) return "process-gone";
  if (is("infiniband-port-state", "low") || is("nics", "absent")) return "network-hang";
  if (is("gpu-memory-used", "low") || (is("cpu-usage", "low") && is("memory-usage", "low")))
    return "process-gone";
  if (is("gpu-duty-cycle", "low") || is("gpu-graphics-engine-activity", "low"))
    return whyIdle(job, ranks, is("cpu-usage", "low"));
  // Busy all the time, and yet unlike those that wait in a collective: a kernel that does not end.
  if (deviations.some(({ metric }) => OF_WORK.includes(metric))) return "gpu-hang";
  if (deviations.some(({ metric }) => OF_NETWORK.includes(metric))) return "network-hang";
  if (is("cpu-usage", "high")) return "cpu-stall";
  if (is("memory-usage", "high")) return "host-memory";
  return "unknown";
}

/**
 * A GPU without work while the others spin. Where an operator of its own is pending, or the watchdog saw one time out, its
 * process has given it work; where there is none, it came no more to that, and one that did not even answer the call for
 * a dump does not run.
 */
function whyIdle(job: Job, ranks: readonly Rank[], isCpuLow: boolean): Cause {
  const isPending = (rank: Rank): boolean =>
    job.dumps.get(rank)?.dump.ops.state.some((state) => state !== COMPLETED) === true;
  if (ranks.some(isPending)) return "gpu-hang";
  const timedOut = new Set(
    job.failures.flatMap((one) => (isWatchdogTimeout(one) ? (one.rank ?? []) : [])),
  );
  if (ranks.some((rank) => timedOut.has(rank))) return "gpu-hang";
  const logs = ranks.flatMap((rank) => job.logs.get(rank) ?? []);
  if (timedOut.size > 0 && logs.length > 0 && logs.length === ranks.length)
    return logs.every(({ dumpLine }) => dumpLine === 0) ? "process-stopped" : "cpu-stall";
  if (ranks.length === 1 && standsWithMost(job, ranks[0]!)) return "gpu-hang";
  return isCpuLow ? "process-stopped" : "cpu-stall";
}

/** Whether its Python stands where most others' does: it waits for its GPU, as they do for theirs. */
function standsWithMost({ stacks }: Job, rank: Rank): boolean {
  const own = innermost(stacks.get(rank));
  if (own === null || stacks.size < LEAST_STACKS) return false;
  let same = 0;
  for (const dump of stacks.values()) if (innermost(dump) === own) same++;
  return same * 2 > stacks.size;
}

const LEAST_STACKS = 4;

function innermost(dump: StackDump | undefined): string | null {
  const thread = dump?.threads.find(({ isMain, frames }) => isMain && frames.length > 0);
  const frame = thread?.frames[0];
  return frame ? `${frame.file}:${frame.line} ${frame.func}` : null;
}
