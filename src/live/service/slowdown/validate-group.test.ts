import { describe, expect, it } from "vitest";
import type { Verdict } from "../../../model/verdict.ts";
import type { AgentReply, AgentRequest } from "../../wire/messages.ts";
import type { DiagnosisEnv } from "./diagnose-incident.ts";
import type { ValidateDecision } from "../job/job-events.ts";
import type { JobRun } from "../job/job-run.ts";
import { validateGroup } from "./validate-group.ts";

const YES: AgentReply = { kind: "evidence", files: [], troubles: [] };

/** Ranks 0 to 2 with an agent each. `slow`: at which tries a test finds somebody, and whom. */
function drill(
  answer: (agent: string, request: AgentRequest) => AgentReply,
  {
    rounds = 1,
    slow = {},
    stride = 1,
    canRead = false,
    whole = new Promise<AgentReply>(() => undefined),
  }: {
    rounds?: number;
    slow?: Record<number, number[]>;
    stride?: number;
    canRead?: boolean;
    /** What the tests themselves are answered with, where reports of some rounds can be read. */
    whole?: Promise<AgentReply>;
  } = {},
) {
  const asked: [agent: string, ask: string][] = [];
  const iterations = new Set<number>();
  const strides = new Set<number>();
  let tries = 0;
  const run = {
    job: "job",
    gpus: 3,
    lastIteration: 100,
    ranks: new Map(
      [0, 1, 2].map((rank) => [
        rank,
        { agent: `a${rank}`, machine: `m${rank}`, agentRun: "r", state: "running" },
      ]),
    ),
  };
  const decision = {
    run: run as Partial<JobRun> as JobRun,
    iterationMs: 1000,
    limitMs: 5000,
    tests: {
      groups: [[0, 1, 2]],
      stride,
      rounds,
      verdictWith: () => {
        run.lastIteration += 20;
        const ranks = slow[++tries];
        const fact = ranks ? "tested-slow" : "tested-alike";
        const findings = [{ says: fact, data: { fact } }];
        const suspects = ranks ? [{ ranks }] : [];
        return Promise.resolve({
          verdict: { findings, suspects } as unknown as Verdict,
          reports: [{ tookMs: 7 }],
        });
      },
    },
  } as unknown as ValidateDecision;
  const env = {
    canAsk: (_: string, word: string) => word !== "read-tests" || canRead,
    ask: (agent: string, request: AgentRequest) => {
      asked.push([agent, request.ask]);
      if (request.ask === "validate") {
        iterations.add(request.atIteration);
        strides.add(request.stride);
      }
      // The whole answer comes after all rounds.
      return canRead && request.ask === "validate"
        ? whole
        : Promise.resolve(answer(agent, request));
    },
  } as Partial<DiagnosisEnv> as DiagnosisEnv;
  return { asked, iterations, strides, done: validateGroup(decision, env) };
}

describe("tests of a group", () => {
  it("are asked of nobody before all agents have said that they can", async () => {
    const { asked, done } = drill((agent, { ask }) =>
      agent === "a2" && ask === "prepare-tests" ? { kind: "refused", why: "no probe" } : YES,
    );
    expect((await done).validation).toMatchObject({
      isNamed: false,
      outcome: "not tested: no probe",
    });
    expect(asked.map(([, ask]) => ask)).toEqual([
      "prepare-tests",
      "prepare-tests",
      "prepare-tests",
    ]);
  });

  it("run once where the job is slow all the time", async () => {
    const { asked, done } = drill(() => YES);
    expect((await done).validation).toMatchObject({ isNamed: false, tookMs: 7, costGpuMs: 21 });
    expect(asked.filter(([, ask]) => ask === "validate")).toHaveLength(3);
  });

  it("are repeated at later iterations where it is slow now and then, until they find it or have tried enough", async () => {
    const second = drill(() => YES, { rounds: 8, slow: { 2: [0, 1] } });
    expect((await second.done).validation.isNamed).toBe(true);
    expect([...second.iterations]).toEqual([104, 124]);
    expect((await second.done).validation).toMatchObject({ tookMs: 14, costGpuMs: 42 });
    const never = drill(() => YES, { rounds: 8 });
    expect((await never.done).validation.isNamed).toBe(false);
    expect(never.iterations.size).toBe(6);
  });

  it("are not repeated where one of them cannot take part any more: the others would wait for it", async () => {
    let prepared = 0;
    const { asked, done } = drill(
      (agent, { ask }) =>
        ask === "prepare-tests" && agent === "a2" && ++prepared === 2
          ? { kind: "refused", why: "its process has ended" }
          : YES,
      { rounds: 8 },
    );
    expect((await done).validation).toMatchObject({ isNamed: false, tookMs: 7 });
    expect(asked.filter(([, ask]) => ask === "validate")).toHaveLength(3);
  });

  it("are told of after the round that names somebody, and cost what all rounds do", async () => {
    const file = { name: "rank0.validation.json", bytes: new Uint8Array() };
    const { asked, done } = drill(
      (_, { ask }) => (ask === "read-tests" ? { ...YES, files: [file] } : YES),
      {
        rounds: 8,
        slow: { 2: [0, 1] },
        canRead: true,
      },
    );
    // 7 ms in two rounds, 8 rounds in all.
    expect((await done).validation).toMatchObject({ isNamed: true, tookMs: 28, costGpuMs: 84 });
    expect(asked.filter(([, ask]) => ask === "read-tests")).toHaveLength(6);
  });

  it("are waited for to the end where an agent has no reports of the rounds so far", async () => {
    let ends: (reply: AgentReply) => void = () => undefined;
    const whole = new Promise<AgentReply>((resolve) => (ends = resolve));
    const { asked, done } = drill(() => YES, {
      rounds: 8,
      slow: { 1: [0, 1] },
      canRead: true,
      whole,
    });
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    expect(asked.filter(([, ask]) => ask === "read-tests")).toHaveLength(3);
    ends(YES);
    expect((await done).validation.isNamed).toBe(true);
  });

  it("of a group with several ranks of a machine lead from rail to rail, too", async () => {
    const one = drill(() => YES, { stride: 4 });
    await one.done;
    expect([...one.strides]).toEqual([4]);
  });
});
