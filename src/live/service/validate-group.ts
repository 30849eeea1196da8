/**
 * Asks the ranks of one group to test their GPUs and links at one common iteration (Greyhound §4.3), and fuses what they
 * report into the verdict. The job waits for the tests, so nobody is asked unless all can answer.
 */
import { errorText } from "../../base/errors.ts";
import { count } from "../../base/text.ts";
import { factOf } from "../../model/facts.ts";
import type { Rank } from "../../model/ids.ts";
import type { IncidentValidation } from "../../model/incident.ts";
import type { Verdict } from "../../model/verdict.ts";
import type { AgentReply } from "../wire/messages.ts";
import { MOST_WAIT_MS } from "../wire/request-frame.ts";
import type { DiagnosisEnv } from "./diagnose-incident.ts";
import type { ValidateDecision } from "./job-events.ts";

export interface Validated {
  readonly validation: IncidentValidation;
  /** null where the tests say no more. */
  readonly verdict: Verdict | null;
}

const REPEATS = 3;
const TRANSFER_MB = 16;
/** Beside the iterations until the tests: for the way there and back, and a job that became slower meanwhile. */
const PATIENCE_MS = 10_000;

export async function validateGroup(
  { run, tests, atIteration, iterationMs, limitMs }: ValidateDecision,
  env: DiagnosisEnv,
): Promise<Validated> {
  const ranks = tests.groups.flat();
  const nothing = (why: string): Validated => ({
    validation: {
      ranks,
      atIteration,
      outcome: why,
      isNamed: false,
      tookMs: null,
      costGpuMs: null,
    },
    verdict: null,
  });
  const wanted = new Map<string, { agent: string; agentRun: string; group: readonly Rank[] }>();
  for (const [k, group] of tests.groups.entries())
    for (const rank of group) {
      const held = run.ranks.get(rank);
      if (!held || held.state !== "running" || !env.canAsk(held.agent, "validate"))
        return nothing(`not tested: the agent of rank ${rank} cannot be asked for tests`);
      wanted.set(`${held.agent} ${k}`, { agent: held.agent, agentRun: held.agentRun, group });
    }
  const iterations = Math.max(1, atIteration - run.lastIteration + 1);
  const waitMs = Math.min(
    MOST_WAIT_MS,
    Math.round(limitMs + iterations * iterationMs + PATIENCE_MS),
  );
  const replies = await Promise.all(
    [...wanted.values()].map(async ({ agent, agentRun, group }): Promise<AgentReply> => {
      const request = {
        ask: "validate",
        job: run.job,
        run: agentRun,
        group,
        atIteration,
        gemm: true,
        ring: true,
        tree: true,
        repeats: REPEATS,
        mb: TRANSFER_MB,
        limitMs,
        waitMs,
      } as const;
      try {
        return await env.ask(agent, request, waitMs + PATIENCE_MS);
      } catch (error) {
        return { kind: "refused", why: errorText(error) };
      }
    }),
  );
  const files = replies.flatMap((reply) => (reply.kind === "evidence" ? reply.files : []));
  const { verdict, reports } = await tests.verdictWith(files);
  if (reports.length === 0) {
    const why = replies.flatMap((reply) => (reply.kind === "refused" ? [reply.why] : []));
    return nothing(`the tests left no report${why.length > 0 ? `: ${why[0]}` : ""}`);
  }
  const slow = verdict.findings.filter((finding) => factOf(finding, "tested-slow"));
  const other = verdict.findings.find((one) => factOf(one, "tested-different", "tested-alike"));
  const took = reports.flatMap(({ tookMs }) => tookMs ?? []);
  const tookMs = took.length > 0 ? Math.max(...took) : null;
  const missing = ranks.length - reports.length;
  return {
    validation: {
      ranks,
      atIteration,
      outcome:
        ((slow[0] ?? other)?.says ?? `${count(reports.length, "rank")} tested themselves`) +
        (missing > 0 ? `; ${count(missing, "rank")} left no report` : ""),
      isNamed: slow.length > 0,
      tookMs,
      costGpuMs: tookMs === null ? null : tookMs * run.gpus,
    },
    verdict: slow.length > 0 ? verdict : null,
  };
}
