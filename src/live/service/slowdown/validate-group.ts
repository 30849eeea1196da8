/**
 * Asks the ranks of one group to test their GPUs and links at one common iteration (Greyhound §4.3), and fuses what they
 * report into the verdict. The job waits for the tests, so nobody is asked unless all have said that they can.
 */
import { errorText } from "../../../base/errors.ts";
import { count } from "../../../base/text.ts";
import { factOf } from "../../../model/facts.ts";
import type { Rank } from "../../../model/ids.ts";
import type { IncidentValidation } from "../../../model/incident.ts";
import type { Verdict } from "../../../model/verdict.ts";
import type { AgentReply, AgentRequest } from "../../wire/messages.ts";
import { MOST_WAIT_MS } from "../../wire/request-frame.ts";
import type { DiagnosisEnv } from "./diagnose-incident.ts";
import type { ValidateDecision } from "../job/job-events.ts";

export interface Validated {
  readonly validation: IncidentValidation;
  /** null where the tests say no more. */
  readonly verdict: Verdict | null;
}

const REPEATS = 3;
const TRANSFER_MB = 16;
/** Beside the iterations until the tests: for the way there and back, and a job that became slower meanwhile. */
const PATIENCE_MS = 10_000;
/** Milliseconds between the request and the tests, and iterations: every rank must have seen the request by then. */
const LEAD_MS = 4000;
const LEAD_ITERATIONS = 3;
/** What is slow now and then may be healthy whenever it is tested: so often it is tried, each time in several iterations. */
const MOST_TRIES = 6;

export async function validateGroup(
  decision: ValidateDecision,
  env: DiagnosisEnv,
): Promise<Validated> {
  const most = decision.tests.rounds > 1 ? MOST_TRIES : 1;
  let found: Validated | null = null;
  let tookMs: number | null = null;
  let costGpuMs: number | null = null;
  for (let tries = 0; tries < most; tries++) {
    const members = await confirmedMembers(decision, env);
    if (typeof members === "string") return found ?? untested(decision, members);
    const { isHealthy, validation, verdict } = await testOnce(decision, members, env);
    // The job paid for all of them.
    tookMs = added(tookMs, validation.tookMs);
    costGpuMs = added(costGpuMs, validation.costGpuMs);
    found = { verdict, validation: { ...validation, tookMs, costGpuMs } };
    if (!isHealthy) break;
  }
  return found!;
}

/**
 * A member that does not come keeps the others, and with them the job, waiting: all confirm before any is asked, each time,
 * for one may have gone since the last.
 */
async function confirmedMembers(
  decision: ValidateDecision,
  env: DiagnosisEnv,
): Promise<Member[] | string> {
  const { run, tests } = decision;
  const members = membersOf(decision, tests.groups, env);
  if (typeof members === "string") return members;
  const confirmed = await askAll(members, env, PATIENCE_MS, ({ agentRun, group }) => ({
    ask: "prepare-tests",
    job: run.job,
    run: agentRun,
    group,
  }));
  const refusal = confirmed.find((reply) => reply.kind === "refused");
  return refusal?.kind === "refused" ? `not tested: ${refusal.why}` : members;
}

function added(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : a + b;
}

interface Member {
  readonly agent: string;
  readonly agentRun: string;
  readonly group: readonly Rank[];
}

/** Each agent once a group; or why it cannot be tested. */
function membersOf(
  { run }: ValidateDecision,
  groups: readonly (readonly Rank[])[],
  env: DiagnosisEnv,
): Member[] | string {
  const members = new Map<string, Member>();
  for (const [k, group] of groups.entries())
    for (const rank of group) {
      const held = run.ranks.get(rank);
      const canAsk =
        held?.state === "running" &&
        ["prepare-tests", "validate"].every((word) => env.canAsk(held.agent, word));
      if (!canAsk) return `not tested: the agent of rank ${rank} cannot be asked for tests`;
      members.set(`${held.agent} ${k}`, { agent: held.agent, agentRun: held.agentRun, group });
    }
  return [...members.values()];
}

function untested({ run, tests }: ValidateDecision, why: string): Validated {
  const validation: IncidentValidation = {
    ranks: tests.groups.flat(),
    atIteration: run.lastIteration,
    outcome: why,
    isNamed: false,
    tookMs: null,
    costGpuMs: null,
  };
  return { validation, verdict: null };
}

function askAll(
  members: readonly Member[],
  env: DiagnosisEnv,
  patienceMs: number,
  requestOf: (member: Member) => AgentRequest,
): Promise<AgentReply[]> {
  return Promise.all(
    members.map(async (member): Promise<AgentReply> => {
      try {
        return await env.ask(member.agent, requestOf(member), patienceMs);
      } catch (error) {
        return { kind: "refused", why: errorText(error) };
      }
    }),
  );
}

async function testOnce(
  decision: ValidateDecision,
  members: readonly Member[],
  env: DiagnosisEnv,
): Promise<Validated & { readonly isHealthy: boolean }> {
  const { run, tests, iterationMs, limitMs } = decision;
  const ranks = [...new Set(members.flatMap(({ group }) => group))];
  const lead = Math.max(LEAD_ITERATIONS, Math.ceil(LEAD_MS / iterationMs));
  const atIteration = run.lastIteration + lead;
  const { rounds, stride } = tests;
  const iterations = lead + rounds;
  const waitMs = Math.min(
    MOST_WAIT_MS,
    Math.round(limitMs + iterations * iterationMs + PATIENCE_MS),
  );
  const asked = askAll(members, env, waitMs + PATIENCE_MS, ({ agentRun, group }) => ({
    ask: "validate",
    job: run.job,
    run: agentRun,
    group,
    atIteration,
    rounds,
    // Again and again only what was seen to be slow is tested: the job waits.
    gemm: rounds === 1,
    ring: true,
    tree: rounds === 1,
    stride,
    repeats: REPEATS,
    mb: TRANSFER_MB,
    limitMs,
    waitMs,
  }));
  const early =
    rounds > 1 ? await foundEarly(decision, members, env, { atIteration, waitMs, asked }) : null;
  const replies = early ? [] : await asked;
  const files = replies.flatMap((reply) => (reply.kind === "evidence" ? reply.files : []));
  const { verdict, reports } = early ?? (await tests.verdictWith(files));
  if (reports.length === 0) {
    const why = replies.flatMap((reply) => (reply.kind === "refused" ? [reply.why] : []));
    const outcome = `the tests left no report${why.length > 0 ? `: ${why[0]}` : ""}`;
    return { ...untested(decision, outcome), isHealthy: false };
  }
  const slow = slowOf(verdict);
  const other = verdict.findings.find((one) => factOf(one, "tested-different", "tested-alike"));
  const took = reports.flatMap(({ tookMs }) => tookMs ?? []);
  // The job goes through the rounds that are left, whatever the first ones showed.
  const share = early ? rounds / early.rounds : 1;
  const tookMs = took.length > 0 ? Math.max(...took) * share : null;
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
    isHealthy: slow.length === 0,
  };
}

type Fused = Awaited<ReturnType<ValidateDecision["tests"]["verdictWith"]>>;

/** What the rounds so far show, as soon as they name somebody; null where the tests are over before they do. */
async function foundEarly(
  { run, tests }: ValidateDecision,
  members: readonly Member[],
  env: DiagnosisEnv,
  { atIteration, waitMs, asked }: Asked,
): Promise<(Fused & { readonly rounds: number }) | null> {
  if (!members.every(({ agent }) => env.canAsk(agent, "read-tests"))) return null;
  const over = asked.then(() => null);
  for (let rounds = 1; rounds < tests.rounds; rounds++) {
    const soFar = askAll(members, env, waitMs + PATIENCE_MS, ({ agentRun, group }) => ({
      ask: "read-tests",
      job: run.job,
      run: agentRun,
      group,
      atIteration,
      rounds,
      waitMs,
    }));
    const replies = await Promise.race([soFar, over]);
    // Of some ranks no report: the answer to the tests themselves says why.
    if (!replies?.every((one) => one.kind === "evidence" && one.files.length > 0)) return null;
    const fused = await tests.verdictWith(
      replies.flatMap((one) => (one.kind === "evidence" ? one.files : [])),
    );
    if (slowOf(fused.verdict).length > 0) return { ...fused, rounds };
  }
  return null;
}

interface Asked {
  readonly atIteration: number;
  readonly waitMs: number;
  readonly asked: Promise<readonly AgentReply[]>;
}

function slowOf({ findings }: Verdict): Verdict["findings"] {
  return findings.filter((finding) => factOf(finding, "tested-slow"));
}
