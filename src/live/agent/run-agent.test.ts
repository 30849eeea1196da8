import { afterEach, describe, expect, it } from "vitest";
import type { AgentRequest, BeatReport, JobReport, Report } from "../wire/messages.ts";
import type { AgentLink, AgentLinkOptions } from "../wire/transport.ts";
import type { Node } from "./node.ts";
import { runAgent, startAgent, type AgentOptions, type AgentSaying } from "./run-agent.ts";

const JOB: JobReport = {
  kind: "job",
  job: "j",
  run: "r",
  startedMs: 1,
  worldSize: 1,
  ranks: [],
};
const beat = (nowMs: number): BeatReport => ({
  kind: "beat",
  nowMs,
  jobs: [
    {
      job: "j",
      run: "r",
      alive: 1,
      stopped: [],
      gone: [],
      silentMs: 0,
      openOperators: 0,
      lastIteration: nowMs,
    },
  ],
  dropped: { reports: 0, points: 0 },
});
const REQUEST: AgentRequest = {
  ask: "wire",
  job: "j",
  run: "r",
  ranks: [0],
  iterations: [],
};

class TestLink implements AgentLink {
  isConnected = false;
  dropped = { reports: 0, points: 0 };
  bufferedBytes = 0;
  readonly sent: Report[] = [];
  readonly calls: string[] = [];
  readonly options: AgentLinkOptions;
  constructor(options: AgentLinkOptions) {
    this.options = options;
  }
  send(report: Report): void {
    this.sent.push(report);
  }
  async flush(withinMs: number): Promise<void> {
    this.calls.push(`flush ${withinMs}`);
  }
  async close(): Promise<void> {
    this.calls.push("close");
  }
}

class TestNode implements Node {
  ticks = 0;
  isClosed = false;
  fails = false;
  tick(nowMs: number): readonly Report[] {
    this.ticks++;
    if (this.fails) throw new Error("broken");
    return [beat(nowMs)];
  }
  introduce(): readonly Report[] {
    return [JOB];
  }
  async answer(): Promise<never> {
    throw new Error("no such thing");
  }
  close(): void {
    this.isClosed = true;
  }
}

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

function start(options: Partial<AgentOptions> = {}) {
  const node = new TestNode();
  const said: AgentSaying[] = [];
  let link!: TestLink;
  const agent = startAgent(node, {
    link: {
      url: "ws://nowhere",
      token: null,
      ca: null,
      bufferBytes: 1,
      hello: { protocol: 1, agent: "a", machine: "a", boot: "b", version: "0" },
    },
    openLink: (of) => (link = new TestLink(of)),
    onSay: (what) => said.push(what),
    tickMs: 5,
    beatMs: 1e9,
    ...options,
  });
  ends.push(() => agent.stop());
  return { agent, node, said, link };
}

describe("the agent", () => {
  it("introduces itself after every connection, and looks again and again", async () => {
    const { node, link, said } = start();
    await expect.poll(() => node.ticks).toBeGreaterThan(2);
    expect(link.sent.filter(({ kind }) => kind === "job")).toEqual([]);
    link.options.onConnected();
    await expect.poll(() => link.sent.filter(({ kind }) => kind === "job")).toEqual([JOB]);
    link.options.onConnected();
    await expect.poll(() => link.sent.filter(({ kind }) => kind === "job")).toEqual([JOB, JOB]);
    expect(said).toEqual([{ event: "connected" }, { event: "connected" }]);
  });

  it("beats as often as it is told, with what was dropped", async () => {
    let now = 10_000;
    const { node, link, said } = start({ beatMs: 2000, now: () => now });
    const ticks = async (more: number): Promise<void> => {
      const until = node.ticks + more;
      await expect.poll(() => node.ticks).toBeGreaterThanOrEqual(until);
    };
    await ticks(3);
    expect(link.sent).toMatchObject([{ kind: "beat", nowMs: 10_000 }]);
    link.dropped = { reports: 2, points: 70 };
    now += 2000;
    await ticks(3);
    expect(link.sent.slice(1)).toMatchObject([
      { kind: "beat", jobs: [{ lastIteration: 12_000 }], dropped: { reports: 2, points: 70 } },
    ]);
    expect(said).toEqual([{ event: "dropped", reports: 2, points: 70 }]);
    // A clock that was set back must not silence it.
    now = 5000;
    await ticks(3);
    expect(link.sent).toHaveLength(3);
  });

  it("survives a node that breaks, and refuses what it cannot answer", async () => {
    const { node, link, said } = start();
    node.fails = true;
    await expect.poll(() => said.length).toBeGreaterThan(0);
    expect(said[0]).toMatchObject({ event: "trouble" });
    expect(await link.options.answer(REQUEST)).toEqual({ kind: "refused", why: "no such thing" });
    node.fails = false;
    const before = node.ticks;
    await expect.poll(() => node.ticks).toBeGreaterThan(before + 1);
  });

  it("ends in order: a last look, handed over, closed", async () => {
    const { agent, node, link } = start({ flushMs: 700 });
    const before = node.ticks;
    await agent.stop();
    expect(node.ticks).toBe(before + 1);
    expect(link.calls).toEqual(["flush 700", "close"]);
    expect(node.isClosed).toBe(true);
    await agent.stop();
    expect(link.calls).toHaveLength(2);
  });

  it("runs until it is told to end", async () => {
    const stop = new AbortController();
    const node = new TestNode();
    let link!: TestLink;
    const running = runAgent(node, {
      link: {
        url: "",
        token: null,
        ca: null,
        bufferBytes: 1,
        hello: { protocol: 1, agent: "a", machine: "a", boot: "b", version: "0" },
      },
      openLink: (of) => (link = new TestLink(of)),
      onSay: () => {},
      tickMs: 5,
      stop: stop.signal,
    });
    await expect.poll(() => node.ticks).toBeGreaterThan(1);
    stop.abort();
    await running;
    expect(link.calls.at(-1)).toBe("close");
  });
});
