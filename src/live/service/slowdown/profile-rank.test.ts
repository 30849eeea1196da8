import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import type { FoundRegression } from "../../../model/regression.ts";
import { regressionVerdict } from "../../../pipeline/live-regression.ts";
import type { AgentReply, AgentRequest } from "../../wire/messages.ts";
import type { DiagnosisEnv } from "./diagnose-incident.ts";
import { JobRun } from "../job/job-run.ts";
import { newJobState, openSlowdowns, type JobState } from "../job/job-state.ts";
import type { JobDecision, JobEvent } from "../job/job-events.ts";
import { reduceJob } from "../job/job-reducer.ts";
import { profileRank } from "./profile-rank.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-profile-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const NOW = 1_795_000_000_000;
const FOUND: FoundRegression = {
  cause: "synchronization",
  part: "synchronization",
  sinceMs: NOW - 60_000,
  stepMs: 1200,
  healthyStepMs: 1000,
  partMs: 300,
  healthyPartMs: 100,
  machines: 2,
  of: 2,
};
const BLANK = { gpu: 0, pid: 1, nic: null, leaf: null, stage: null, groups: [] };
const REPORT = { kind: "job", job: "llm", run: "r1", startedMs: NOW - 1e6, worldSize: 4 } as const;
const connected = { has: () => true };

function runOf(): JobRun {
  const run = new JobRun({ ...REPORT, ranks: [] }, null);
  for (const m of [1, 0]) {
    const ranks = [2 * m, 2 * m + 1].map((rank) => ({ ...BLANK, rank }));
    run.take(`m${m}`, `m${m}`, { ...REPORT, ranks }, connected);
  }
  return run;
}

async function profiled(
  reply: AgentReply,
  knows: (agent: string) => boolean,
): Promise<{ asked: AgentRequest[]; found: Awaited<ReturnType<typeof profileRank>> }> {
  const asked: AgentRequest[] = [];
  const env = {
    canAsk: (agent: string) => knows(agent),
    makeRoom: () => Promise.resolve(true),
    ask: (_agent: string, request: AgentRequest) => {
      asked.push(request);
      return Promise.resolve(reply);
    },
    log: () => undefined,
  } as unknown as DiagnosisEnv;
  const run = runOf();
  const verdict = regressionVerdict(run.known().job, FOUND);
  const decision = { do: "profile", run, id: "i", verdict } as const;
  return { asked, found: await profileRank(decision, folder, NOW, env) };
}

it("one rank is profiled, and the trace is kept with the incident", async () => {
  const files = [{ name: "llm.r0.1.python.ring.kineto.json.gz", bytes: Buffer.from("trace") }];
  const { asked, found } = await profiled({ kind: "evidence", files, troubles: [] }, () => true);
  expect(asked).toMatchObject([{ ask: "profile", job: "llm", run: "r1", ranks: [0], steps: 3 }]);
  const [name] = readdirSync(found!.folder!);
  expect(readFileSync(join(found!.folder!, name!), "utf8")).toBe("trace");
  expect(found!.verdict.findings.at(-1)!.says).toContain("rank 0 was profiled for 3 steps");
});

it("older agents are not asked, and a refusal changes nothing", async () => {
  const refused = { kind: "refused", why: "no" } as const;
  expect((await profiled(refused, (agent) => agent === "m1")).asked).toMatchObject([
    { ranks: [2] },
  ]);
  expect(await profiled(refused, () => false)).toEqual({ asked: [], found: null });
});

/** A job of four ranks in which a regression is found. */
function regression(before: (state: JobState) => JobState = (state) => state): {
  state: JobState;
  decisions: readonly JobDecision[];
} {
  const options = {
    hangMs: 30_000,
    pauseMs: 900_000,
    relapseMs: 600_000,
    validation: { mostRanks: 8, everyMs: 1_800_000, limitMs: 1000 },
  };
  let state = newJobState("llm", null, null, options);
  const put = (event: Omit<JobEvent, "nowMs"> & object): readonly JobDecision[] => {
    const reduced = reduceJob(state, { ...event, nowMs: NOW } as JobEvent);
    state = reduced.state;
    return reduced.decisions;
  };
  const ranks = [0, 1].map((rank) => ({ ...BLANK, rank }));
  put({
    type: "job",
    agent: "m0",
    machine: "m0",
    report: { ...REPORT, ranks },
    connected,
  } as never);
  state = before(state);
  const verdict = regressionVerdict(state.run!.known().job, FOUND);
  const decisions = put({ type: "regression", verdict, sinceMs: FOUND.sinceMs } as never);
  return { state, decisions };
}

it("a regression opens an incident and asks for a profile, unless there was one a short while ago", () => {
  const { state, decisions } = regression();
  expect(openSlowdowns(state)).toMatchObject([{ kind: "regression", onsetMs: FOUND.sinceMs }]);
  expect(decisions.map((one) => one.do)).toEqual(["profile", "save"]);
  const again = regression((known) => ({ ...known, testedMs: NOW - 60_000 }));
  expect(again.decisions.map((one) => one.do)).toEqual(["save"]);
  const off = regression((known) => ({
    ...known,
    options: { ...known.options, validation: null },
  }));
  expect(off.decisions.map((one) => one.do)).toEqual(["save"]);
});

it("a slowdown that began with the regression is the same incident, others that did are withdrawn", () => {
  const incident = (id: string, onsetMs: number): object => ({
    ...openSlowdowns(regression().state)[0]!,
    id,
    kind: "fail-slow",
    onsetMs,
  });
  const { state } = regression((known) => ({
    ...known,
    slow: incident("second", FOUND.sinceMs + 20_000) as never,
    besides: [
      incident("first", FOUND.sinceMs - 20_000) as never,
      incident("older", FOUND.sinceMs - 600_000) as never,
    ],
  }));
  // The confirmation is being saved; the withdrawal waits for it.
  expect(openSlowdowns(state).map(({ id, kind }) => `${id} ${kind}`)).toEqual([
    "second fail-slow",
    "first regression",
    "older fail-slow",
  ]);
  expect(state.steps).toMatchObject([{ step: "resolve-one", id: "second", ending: "withdrawn" }]);
});
