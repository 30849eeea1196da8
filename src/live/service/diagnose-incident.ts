/** What takes time about an incident: the search for who makes a job slow, and the evidence of one that stands still. */
import { join } from "node:path";
import { diagnoseSlowDown } from "../../pipeline/live-slowdown.ts";
import { collectFromAgents, diagnoseFolder, removeOldFolders } from "./evidence-collector.ts";
import type {
  CollectDecision,
  ConnectedAgents,
  Diagnosis,
  LocalizeDecision,
} from "./job-events.ts";
import { operatorFetcher, type AskAgent } from "./fetch-operators.ts";

export interface DiagnosisEnv {
  readonly ask: AskAgent;
  readonly connected: ConnectedAgents;
  /** Bytes of answers so far. */
  fetchedBytes(this: void): number;
  /** Machine → incidents it had of late. */
  incidents(this: void): Promise<ReadonlyMap<string, number>>;
  log(this: void, line: string): void;
  trouble(this: void, line: string): void;
}

const NEVER = new AbortController().signal;
const MOST_TROUBLES = 8;

export async function localizeSlowdown(
  { run, suspicion, since, isAgain }: LocalizeDecision,
  env: DiagnosisEnv,
): Promise<Diagnosis & { readonly bytes: number }> {
  const { slowFrom, beforeMs, afterMs } = suspicion;
  const points = run.compared(slowFrom, beforeMs, afterMs, isAgain);
  const live = run.known();
  const reachable = [...run.ranks.values()]
    .filter(({ agent, state }) => env.connected.has(agent) && state !== "gone")
    .map(({ report }) => report.rank)
    .sort((a, b) => a - b);
  const before = env.fetchedBytes();
  const started = performance.now();
  const { verdict, picture, rounds, readBytes, totalBytes } = await diagnoseSlowDown(
    {
      live,
      reachable,
      points,
      slowFrom,
      beforeMs,
      afterMs,
      series: run.series(since),
      incidents: await env.incidents(),
    },
    operatorFetcher(run, live, points.iterations, env.ask),
    { signal: NEVER, progress: () => undefined },
  );
  const bytes = env.fetchedBytes() - before;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const share = totalBytes > 0 ? `${((100 * readBytes) / totalBytes).toFixed(2)} %` : "all";
  env.log(
    `job ${run.job}: slow since iteration ${slowFrom}; searched in ${rounds} rounds and ${seconds} s, ${bytes} bytes fetched, ${share} of the operators: ${verdict.summary}`,
  );
  return { verdict, picture, bytes };
}

/** In a folder of its own, named by the time, so that the oldest come first. */
export async function diagnoseStandstill(
  { run, kind }: CollectDecision,
  parent: string,
  nowMs: number,
  env: DiagnosisEnv,
): Promise<Diagnosis> {
  const time = new Date(nowMs).toISOString().replace(/[:.]/g, "-");
  const agents = [...new Set([...run.ranks.values()].map(({ agent }) => agent))].filter((agent) =>
    env.connected.has(agent),
  );
  const folder = join(parent, `${time}-${run.job}-${kind}`);
  const evidence = await collectFromAgents(run, folder, agents, env.ask, await env.incidents());
  for (const line of evidence.troubles.slice(0, MOST_TROUBLES))
    env.trouble(`job ${run.job}: ${line}`);
  env.log(`job ${run.job}: ${evidence.files} files of evidence in ${evidence.folder}`);
  const { verdict, picture } = await diagnoseFolder(evidence.folder);
  await removeOldFolders(parent);
  return { verdict, picture, folder: evidence.folder };
}
