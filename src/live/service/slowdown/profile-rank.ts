/**
 * Has one rank of a job whose code became slower profile some steps (FLARE: detailed traces on demand), and keeps the trace with
 * the incident. All ranks run the code, so one is enough; the job goes on meanwhile, a little slower.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { errorText } from "../../../base/errors.ts";
import type { Finding } from "../../../model/finding.ts";
import type { Rank } from "../../../model/ids.ts";
import type { Verdict } from "../../../model/verdict.ts";
import type { DiagnosisEnv } from "./diagnose-incident.ts";
import type { Diagnosis, ProfileDecision } from "../job/job-events.ts";

const STEPS = 3;
const WAIT_MS = 60_000;
const PATIENCE_MS = 10_000;
const TRACE_BYTES = 48 << 20;

/** null where there is no profile. */
export async function profileRank(
  { run, verdict }: ProfileDecision,
  parent: string,
  nowMs: number,
  env: DiagnosisEnv,
): Promise<Diagnosis | null> {
  const ranks = [...run.ranks.keys()].sort((a, b) => a - b);
  const rank = ranks.find((one) => {
    const { agent, state } = run.ranks.get(one)!;
    return state === "running" && env.canAsk(agent, "profile");
  });
  if (rank === undefined || !(await env.makeRoom(TRACE_BYTES))) return null;
  const { agent, agentRun } = run.ranks.get(rank)!;
  const about = { job: run.job, run: agentRun, ranks: [rank], steps: STEPS, waitMs: WAIT_MS };
  const reply = await env
    .ask(agent, { ask: "profile", ...about }, WAIT_MS + PATIENCE_MS)
    .catch((error: unknown) => ({ kind: "refused", why: errorText(error) }) as const);
  const [file] = reply.kind === "evidence" ? reply.files : [];
  if (!file) {
    const why = reply.kind === "refused" ? reply.why : "it left no trace";
    env.log(`job ${run.job}: rank ${rank} was not profiled: ${why}`);
    return null;
  }
  const time = new Date(nowMs).toISOString().replace(/[:.]/g, "-");
  const folder = join(parent, `${time}-${run.job}-profile`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(folder, basename(file.name)), file.bytes, { mode: 0o600 });
  return { verdict: withProfile(verdict, rank, join(folder, basename(file.name))), folder };
}

function withProfile(verdict: Verdict, rank: Rank, path: string): Verdict {
  const says = `rank ${rank} was profiled for ${STEPS} steps; the trace is kept with the incident: faultline trace ${path}`;
  const finding: Omit<Finding, "accuses" | "clears"> = {
    id: `f${verdict.findings.length + 1}`,
    method: "traces/regression",
    says,
    weight: 0,
    at: [],
    data: { fact: "remark" },
  };
  return { ...verdict, findings: [...verdict.findings, finding] };
}
