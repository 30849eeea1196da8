/** One job as people see it: how it is, how fast, what it has lost. */
import type { LeasedJob } from "./leased-job.ts";
import type { Service } from "./service.ts";
import type { JobView } from "./view.ts";

export function jobView(held: LeasedJob, service: Service): JobView {
  const { watch, job } = held;
  const { memory, run } = watch;
  const { seenMs } = watch;
  const levelMs = run && run.levelMs > 0 ? run.levelMs : null;
  return {
    job,
    run: memory.run,
    startedMs: memory.startedMs,
    seenMs,
    worldSize: memory.worldSize,
    ranks: run?.ranks.size ?? 0,
    machines: run?.machines ?? 0,
    health: healthOf(held, service.options.nowMs() - seenMs > service.options.silentMs),
    lastIteration: Number.isFinite(memory.lastIteration) ? memory.lastIteration : -1,
    levelMs,
    baselineMs: memory.baselineMs,
    incident: watch.open[0]?.id ?? null,
    wastedGpuMs: watch.wastedGpuMs,
    lacks: watch.lacks((agent) => service.isThere(agent)),
  };
}

function healthOf({ watch }: LeasedJob, isSilent: boolean): JobView["health"] {
  const [worst] = watch.open;
  if (worst?.kind === "crash") return "failed";
  if (worst?.kind === "hang") return "hung";
  if (watch.hasEnded) return "ended";
  if (isSilent) return "silent";
  if (worst) return "slow";
  return watch.run && watch.run.levelMs > 0 ? "healthy" : "learning";
}
