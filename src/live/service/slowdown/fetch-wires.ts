/** How long sends over the network were on the wire, of all agents of a running job that know. */
import { groupBy } from "../../../base/group-by.ts";
import type { LiveJob } from "../../../ingest/live-job.ts";
import type { Rank } from "../../../model/ids.ts";
import type { WireTime, WireTimes } from "../../../model/wire-times.ts";
import type { AgentReply, WireReply } from "../../wire/messages.ts";
import type { DiagnosisEnv } from "./diagnose-incident.ts";
import type { JobRun } from "../job/job-run.ts";

/** An agent answers from memory: one that takes longer is as good as gone. */
const PATIENCE_MS = 5000;

export async function fetchWireTimes(
  run: Pick<JobRun, "job" | "ranks">,
  live: LiveJob,
  iterations: Float64Array,
  { ask, canAsk }: Pick<DiagnosisEnv, "ask" | "canAsk">,
): Promise<WireTimes> {
  const links = new Map<string, WireTime>();
  const fetch = async (agent: string, agentRun: string, ranks: readonly Rank[]): Promise<void> => {
    const about = { job: run.job, run: agentRun, ranks, iterations: [...iterations] };
    const reply = await ask(agent, { ask: "wire", ...about }, PATIENCE_MS).catch(
      (): AgentReply => ({ kind: "refused", why: "no answer" }),
    );
    if (reply.kind === "wire") addLinks(links, reply, ranks, live, iterations.length);
  };
  const agents = groupBy([...run.ranks.values()], ({ agent }) => agent);
  await Promise.all(
    [...agents].map(async ([agent, own]) => {
      const ranks = own.map(({ report }) => report.rank);
      if (canAsk(agent, "wire")) await fetch(agent, own[0]!.agentRun, ranks);
    }),
  );
  // By ranks, whichever agent answered first.
  return { iterations, links: [...links.values()].sort((a, b) => a.from - b.from || a.to - b.to) };
}

/** A direction's times in all groups together; what names ranks of another agent, or nobody, is left out. */
function addLinks(
  links: Map<string, WireTime>,
  { rank: ranks, group, peer, ms }: WireReply,
  own: readonly Rank[],
  { groupIds, job }: LiveJob,
  iterations: number,
): void {
  const isOwn = new Set(own);
  for (const [k, rank] of ranks.entries()) {
    const members = job.groups[groupIds.get(rank)?.[group[k]!] ?? -1]?.ranks;
    const to = peer[k]! < -1 ? members?.[-2 - peer[k]!] : peer[k]!;
    if (to === undefined || to < 0 || to === rank || !isOwn.has(rank) || to >= job.worldSize)
      continue;
    const key = `${rank} ${to}`;
    const known = links.get(key);
    const times = Float64Array.from(ms.subarray(k * iterations, (k + 1) * iterations));
    if (known) for (const [i, one] of times.entries()) known.ms[i] = sum(known.ms[i]!, one);
    else links.set(key, { from: rank, to, ms: times });
  }
}

/** Of what is known. */
function sum(a: number, b: number): number {
  return Number.isNaN(a) ? b : Number.isNaN(b) ? a : a + b;
}
