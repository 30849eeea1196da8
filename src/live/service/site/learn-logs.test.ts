import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { writeLogStore } from "../../../history/log-store-file.ts";
import { EMPTY_STORE, type LogStore } from "../../../model/log-store.ts";
import type { AgentReply, AgentRequest } from "../../wire/messages.ts";
import type { JobRun } from "../job/job-run.ts";
import { LogLearning } from "./learn-logs.ts";
import type { SiteStore } from "./site-store.ts";

let learnt: [string, readonly string[]][];
let asked: [string, AgentRequest][];
let troubles: string[];
beforeEach(() => {
  learnt = [];
  asked = [];
  troubles = [];
});

const store = {
  hasLearnt: async (job: string) => learnt.some(([one]) => one === job),
  learn: async (job: string, events: readonly string[]) => void learnt.push([job, events]),
  store: async (): Promise<LogStore> => EMPTY_STORE,
} as unknown as SiteStore;

function run(name: string, agents = 6, count = 100): JobRun {
  const ranksOf = (agent: string) => {
    const first = 4 * Number(agent.slice(1));
    return new Map([0, 1, 2, 3].map((k) => [first + k, { agentRun: `${agent}-run` }]));
  };
  const names = Array.from({ length: agents }, (_, i) => `a${i}`);
  return {
    job: "llama",
    run: name,
    iterations: { count },
    agents: names,
    ranksOf,
  } as unknown as JobRun;
}

function learning(
  files: readonly { name: string; bytes: Uint8Array }[],
  isGone = false,
): { ended: (run: JobRun) => Promise<void>; texts: string[] } {
  const texts: string[] = [];
  const made = new LogLearning(
    store,
    {
      ask: async (agent, request): Promise<AgentReply> => {
        asked.push([agent, request]);
        if (isGone) throw new Error("gone");
        return { kind: "evidence", files, troubles: [] };
      },
      connected: { has: (agent) => agent !== "a1" },
      log: () => undefined,
      trouble: (line) => void troubles.push(line),
    },
    async (logs, file) => {
      for (const name of readdirSync(logs)) texts.push(readFileSync(join(logs, name), "utf8"));
      await writeLogStore(file, { ...EMPTY_STORE, normal: { "step <NUM>": 1 } });
    },
  );
  return { ended: (one) => made.ended(one), texts };
}

const log = (text: string) => ({ name: "logs/../../x.log", bytes: Buffer.from(text) });
const ring = { name: "rings/x", bytes: Buffer.alloc(10) };

describe("learning from a job that ended well", () => {
  it("asks a few agents for the ends of a few logs, and keeps what is normal", async () => {
    const { ended, texts } = learning([log("step 1\n"), ring]);
    await ended(run("r1"));
    // a1 is not connected; four of the others are asked, two ranks each.
    expect(asked.map(([agent]) => agent)).toEqual(["a0", "a2", "a3", "a4"]);
    expect(asked[1]![1]).toMatchObject({
      ask: "evidence",
      run: "a2-run",
      ranks: [8, 9],
      stacks: false,
      logBytes: 512 << 10,
    });
    expect(texts).toEqual(["step 1\n", "step 1\n", "step 1\n", "step 1\n"]);
    expect(learnt).toEqual([["llama/r1", ["step <NUM>"]]]);
  });

  it("happens once for each run, one run at a time, and not for a short one", async () => {
    const { ended } = learning([log("step 1\n")]);
    await Promise.all([ended(run("r1")), ended(run("r2"))]);
    expect(learnt.map(([job]) => job)).toEqual(["llama/r1"]);
    await ended(run("r1"));
    await ended(run("r2"));
    await ended(run("r3", 6, 5));
    expect(learnt.map(([job]) => job)).toEqual(["llama/r1", "llama/r2"]);
  });

  it("is left where agents have no logs or do not answer, and bounded where they send much", async () => {
    await learning([ring]).ended(run("r1"));
    await learning([log("x")], true).ended(run("r2"));
    expect(learnt).toEqual([]);
    const much = learning([{ name: "logs/a", bytes: Buffer.alloc(3 << 20, 97) }]);
    await much.ended(run("r3"));
    expect(much.texts).toHaveLength(2);
    expect(troubles).toEqual([]);
  });
});
