/** Both ends of the WebSocket carrier against each other, and the service's end against strangers. */
import { once } from "node:events";
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { encodeHello, encodeReport } from "./codec.ts";
import { FRAME, writeFrame } from "./frame.ts";
import { type AgentReply, type EvidenceReply, LIMITS } from "./messages.ts";
import { beatOf, eventOf, pointsOf } from "../../../test/support/live/messages.ts";
import {
  type Heard,
  hear,
  helloOf,
  linkOptions,
  startService,
  type TestService,
} from "../../../test/support/live/bus.ts";
import type { AgentBusHandlers, AgentLink, AgentLinkOptions } from "./transport.ts";
import { openWebSocketLink } from "./ws-agent.ts";
import type { ServeAgentsOptions } from "./ws-bus.ts";
import { until } from "../../../test/support/until.ts";

const QUICK = { firstBackoffMs: 5, longestBackoffMs: 50, pingMs: 50, deadMs: 1000 };
const opened: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

async function service(
  heard: Heard,
  over: Partial<ServeAgentsOptions> = {},
  port = 0,
): Promise<TestService> {
  const one = await startService(heard, over, port);
  opened.push(async () => await one.stop());
  return one;
}

function link(url: string, over: Partial<AgentLinkOptions> = {}): AgentLink {
  const one = openWebSocketLink(linkOptions(url, over), QUICK);
  opened.push(async () => await one.close());
  return one;
}

function iterations(heard: Heard): number[] {
  return heard.reports.flatMap(({ report }) =>
    report.kind === "points" ? [...report.iteration] : [],
  );
}

/** A client without manners. */
async function rude(
  url: string,
): Promise<{ socket: WebSocket; closed: Promise<[number, string]> }> {
  const socket = new WebSocket(`${url}/agent`);
  const closed = new Promise<[number, string]>((resolve) => {
    socket.on("close", (code, reason) => resolve([code, reason.toString()]));
  });
  socket.on("error", () => {});
  opened.push(() => socket.terminate());
  await once(socket, "open");
  return { socket, closed };
}

describe("reports over a WebSocket", () => {
  it("come in order, once, and are acknowledged", async () => {
    const heard = hear();
    const { bus, url } = await service(heard);
    const one = link(url.replace("ws:", "http:"));
    for (let i = 0; i < 500; i++) one.send(pointsOf(1, "job", i));
    await one.flush(30_000);
    expect(one.bufferedBytes).toBe(0);
    expect(iterations(heard)).toEqual(Array.from({ length: 500 }, (_, i) => i));
    expect(bus.traffic.reports).toBe(500);
    expect(bus.agents).toEqual([helloOf("node-1")]);
    expect(heard.announced).toContain("job");
    await one.close();
    await until(() => heard.gone.includes("node-1"), "the agent is gone");
    expect(bus.agents).toEqual([]);
  });

  it("wait while there is no service, are sent again to a new one, and dropped ones are counted", async () => {
    const first = await service(hear());
    const port = Number(new URL(first.url).port);
    let connected = 0;
    const one = link(first.url, { bufferBytes: 20_000, onConnected: () => connected++ });
    await until(() => one.isConnected, "connected");
    await first.stop();
    await until(() => !one.isConnected, "noticed");
    one.send(eventOf("job", "kept"));
    for (let i = 0; i < 1000; i++) one.send(pointsOf(1, "job", i));
    expect(one.bufferedBytes).toBeLessThanOrEqual(20_000);
    const heard = hear();
    await service(heard, {}, port);
    await one.flush(30_000);
    expect(connected).toBe(2);
    const { dropped } = one;
    expect(dropped.points).toBeGreaterThan(800);
    const kept = Array.from({ length: 1000 - dropped.points }, (_, i) => i + dropped.points);
    expect(iterations(heard)).toEqual(kept);
    expect(heard.reports[0]?.report).toEqual(eventOf("job", "kept"));
  });

  it("that were taken but not acknowledged before a cut are not delivered twice", async () => {
    const heard = hear();
    const { url } = await service(heard);
    const gate = await cuttingProxy(Number(new URL(url).port));
    const one = link(gate.url);
    for (let i = 0; i < 300; i++) {
      one.send(pointsOf(1, "job", i));
      if (i % 20 === 19) {
        gate.cut();
        await until(() => one.isConnected, "there again");
      }
    }
    await one.flush(30_000);
    expect(gate.cuts()).toBeGreaterThan(5);
    expect(iterations(heard)).toEqual(Array.from({ length: 300 }, (_, i) => i));
  });

  it("hold back the sender when the service is slow, and hold little memory", async () => {
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    const heard = hear();
    const slow: AgentBusHandlers["report"] = async (hello, report) => {
      await gate;
      await heard.handlers.report(hello, report);
    };
    const { bus, url } = await service({ ...heard, handlers: { ...heard.handlers, report: slow } });
    const one = link(url, { bufferBytes: 64 << 20 });
    for (let i = 0; i < 400; i++) one.send(pointsOf(2000, "job", i * 2000));
    await until(() => bus.traffic.reports > 0, "something came");
    expect(bus.traffic.reports).toBe(1);
    release();
    await one.flush(60_000);
    expect(one.bufferedBytes).toBe(0);
    expect(iterations(heard)).toHaveLength(800_000);
  });

  it("that the service fails on are tried again, then left, and told", async () => {
    const heard = hear();
    let tries = 0;
    const failing: AgentBusHandlers["report"] = async (hello, report) => {
      if (report.kind === "event" && ++tries < 10) throw new Error("the disk is full");
      await heard.handlers.report(hello, report);
    };
    const { url } = await service({ ...heard, handlers: { ...heard.handlers, report: failing } });
    const one = link(url);
    one.send(eventOf("job", "x"));
    one.send(pointsOf(1));
    await one.flush(30_000);
    expect(tries).toBe(3);
    expect(iterations(heard)).toEqual([0]);
    expect(heard.troubles).toEqual([expect.stringContaining("the disk is full")]);
  });

  it("with times in the future are delivered: the service measures the agent's clock", async () => {
    const heard = hear();
    const { bus, url } = await service(heard);
    const one = link(url);
    one.send(pointsOf(2));
    one.send(beatOf("job", 3e12));
    await one.flush(30_000);
    expect(heard.reports.map(({ report }) => report.kind)).toEqual(["points", "beat"]);
    expect(bus.traffic.refused).toBe(0);
  });
});

describe("a pause of the whole process", () => {
  it("is no silence of the other: the connection lasts", async () => {
    const heard = hear();
    const { url } = await service(heard, { idleTimeoutMs: 600 });
    const troubles: string[] = [];
    const one = link(url, { onTrouble: (line) => troubles.push(line) });
    await until(() => one.isConnected, "connected");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, QUICK.deadMs + 500);
    one.send(pointsOf(1));
    await one.flush(30_000);
    expect(troubles).toEqual([]);
    expect(heard.gone).toEqual([]);
  });
});

describe("questions over a WebSocket", () => {
  const stretch = { fromIteration: 1, toIteration: 9 };
  const ask = { ask: "operators", job: "j", run: "r", rank: 0, ...stretch } as const;
  const links = (n: number, iterations: number): AgentReply => ({
    kind: "wire",
    rank: new Int32Array(n),
    group: new Int32Array(n),
    peer: new Int32Array(n),
    ms: new Float32Array(n * iterations).fill(2),
  });

  it("are answered, also with much, with refusals and while a report waits for the answer", async () => {
    const heard = hear();
    const answers: AgentReply[] = [];
    const askBack: AgentBusHandlers["report"] = async ({ agent }) => {
      const iterations = Array.from({ length: 250 }, (_, i) => i);
      answers.push(
        await bus.ask(agent, { ask: "wire", job: "j", run: "r", ranks: [0], iterations }, 20_000),
      );
    };
    const { bus, url } = await service({
      ...heard,
      handlers: { ...heard.handlers, report: askBack },
    });
    const one = link(url, {
      answer: async (request) => {
        if (request.ask === "wire") return links(6000, request.iterations.length);
        throw new Error("no such\u001b[2J ring");
      },
    });
    one.send(pointsOf(1));
    await one.flush(30_000);
    const [answer] = answers;
    expect(answer?.kind === "wire" && answer.ms.every((ms) => ms === 2)).toBe(true);
    expect(bus.traffic.replyBytes).toBeGreaterThan(6_000_000);
    expect(await bus.ask("node-1", ask, 5000)).toEqual({
      kind: "refused",
      why: "no such\ufffd[2J ring",
    });
  });

  it("about tests are answered with evidence, with and without files", async () => {
    const { bus, url } = await service(hear());
    const files: EvidenceReply["files"][number][] = [];
    const answer: EvidenceReply = { kind: "evidence", files, troubles: [] };
    const one = link(url, { answer: () => Promise.resolve(answer) });
    await until(() => one.isConnected, "connected");
    const about = { job: "j", run: "r", group: [0] };
    expect(await bus.ask("node-1", { ask: "prepare-tests", ...about }, 5000)).toEqual(answer);
    files.push({ name: "rank0.json", bytes: new Uint8Array(3) });
    const read = { ask: "read-tests", ...about, atIteration: 9, rounds: 1, waitMs: 1 } as const;
    expect(await bus.ask("node-1", read, 5000)).toMatchObject({ files: [{ name: "rank0.json" }] });
  });

  it("reject where nobody is, nobody answers, the answer is another one, or the agent goes", async () => {
    const heard = hear();
    const { bus, url } = await service(heard);
    await expect(bus.ask("node-9", ask, 1000)).rejects.toThrow(/not connected/);
    let reply = new Promise<AgentReply>(() => {});
    const one = link(url, { answer: () => reply });
    await until(() => one.isConnected, "connected");
    await expect(bus.ask("node-1", ask, 20)).rejects.toThrow(/no answer within 20 ms/);
    reply = Promise.resolve(links(1, 1));
    await expect(bus.ask("node-1", ask, 5000)).rejects.toThrow(/answered operators with wire/);
    reply = new Promise<AgentReply>(() => {});
    const asked = bus.ask("node-1", ask, 20_000);
    await Promise.all([expect(asked).rejects.toThrow(/gone/), one.close()]);
  });
});

describe("names", () => {
  it("are kept by whoever answers, given to a new boot when the old is dead", async () => {
    const heard = hear();
    const { url } = await service(heard);
    const troubles: string[] = [];
    const first = link(url);
    await until(() => first.isConnected, "connected");
    const onTrouble = (line: string): void => void troubles.push(line);
    const second = link(url, { hello: helloOf("node-1", "boot-2"), onTrouble });
    await until(() => troubles.length > 0, "refused");
    expect(troubles[0]).toMatch(/refuses node-1: another agent of this name/);
    expect(first.isConnected).toBe(true);
    await first.close();
    await until(() => second.isConnected, "its turn");
    second.send(pointsOf(1));
    await second.flush(10_000);
    expect(heard.reports[0]).toMatchObject({ agent: "node-1", boot: "boot-2" });
  });

  it("go over to the same boot's newer connection", async () => {
    const heard = hear();
    const { bus, url } = await service(heard);
    const old = await rude(url);
    old.socket.send(encodeHello(helloOf("node-1")));
    await until(() => heard.connected.length === 1, "there");
    const one = link(url);
    expect((await old.closed)[0]).toBe(4410);
    await until(() => one.isConnected, "connected");
    expect(heard.gone).toEqual([]);
    expect(bus.agents).toHaveLength(1);
  });

  it("that a token is not for are refused", async () => {
    const heard = hear();
    const { url } = await service(heard, {
      authorize: () => ({ name: "t", agent: "node-7", jobs: null }),
    });
    const { socket, closed } = await rude(url);
    socket.send(encodeHello(helloOf("node-1")));
    expect((await closed)[0]).toBe(4403);
    expect(heard.connected).toEqual([]);
    const one = link(url, { hello: helloOf("node-7") });
    await until(() => one.isConnected, "the right name");
  });

  it("report only the jobs that their token is for", async () => {
    const heard = hear();
    const { bus, url } = await service(heard, {
      authorize: () => ({ name: "t", agent: null, jobs: ["team-a-*"] }),
    });
    const one = link(url);
    const both = ["team-a-1", "team-b-1"].flatMap((job) => beatOf(job, 1).jobs);
    one.send({ ...beatOf("", 1), jobs: both });
    one.send({ ...pointsOf(1), job: "team-b-1" });
    one.send({ ...pointsOf(2), job: "team-a-1" });
    await one.flush(5000);
    const jobs = heard.reports.map(({ report }) =>
      report.kind === "beat" ? report.jobs.map(({ job }) => job) : report.job,
    );
    expect(jobs).toEqual([["team-a-1"], "team-a-1"]);
    expect(new Set(heard.announced)).toEqual(new Set(["team-a-1"]));
    expect(bus.traffic.refused).toBe(1);
    expect(heard.troubles).toEqual([
      "agent node-1.756635d2: its token is not for the job it reports",
    ]);
  });

  it("of tokens for some jobs are their own: nobody takes another's, or is asked in its place", async () => {
    const heard = hear();
    const { bus, url } = await service(heard, {
      authorize: ({ headers }) => {
        const team = (headers.authorization ?? "").replace("Bearer ", "");
        return { name: team, agent: null, jobs: team === "all" ? null : [`${team}-*`] };
      },
    });
    for (const team of ["all", "team-a", "team-b"])
      link(url, { token: team, hello: helloOf("node-1", `boot-${team}`) }).send({
        ...pointsOf(1),
        job: `${team}-1`,
      });
    await until(() => heard.reports.length === 3, "all three report");
    const nameOf = (team: string): string =>
      heard.reports.find(({ boot }) => boot === `boot-${team}`)!.agent;
    expect(nameOf("all")).toBe("node-1");
    expect(new Set(["all", "team-a", "team-b"].map(nameOf)).size).toBe(3);
    expect(bus.agents).toHaveLength(3);
  });

  it("are let go when their token has changed, and come again as it is now", async () => {
    const heard = hear();
    const known = new Map<string, readonly string[] | null>([
      ["a", null],
      ["b", null],
      ["c", ["x"]],
    ]);
    const { bus, url } = await service(heard, {
      authorize: ({ headers }) => {
        const name = (headers.authorization ?? "").replace("Bearer ", "");
        const jobs = known.get(name);
        return jobs === undefined
          ? { status: 401, why: "no such token" }
          : { name, agent: null, jobs };
      },
    });
    const troubles: string[] = [];
    for (const name of ["a", "b", "c"])
      link(url, {
        hello: helloOf(`node-${name}`),
        token: name,
        onTrouble: (line) => void troubles.push(`${name}: ${line}`),
      });
    await until(() => bus.agents.length === 3, "all there");
    known.delete("b");
    known.set("c", ["y"]);
    bus.recheck!();
    await until(() => heard.gone.length === 2, "two are gone");
    expect(new Set(heard.gone.map((name) => name.split(".")[0]))).toEqual(
      new Set(["node-b", "node-c"]),
    );
    await until(() => heard.connected.length === 4, "one is back");
    expect(heard.connected.at(-1)).toMatch(/^node-c\./);
    await until(() => troubles.some((line) => /^b: .*401|^b: .*token/.test(line)), "told");
  });
});

describe("strangers", () => {
  const hello = encodeHello(helloOf("node-1"));
  const long = new Uint8Array(LIMITS.reportBytes + 8);
  const cases: [string, (Uint8Array | string)[], number][] = [
    ["junk", [Uint8Array.of(1, 2, 3)], 4400],
    ["text", ["hello"], 4400],
    ["a report before the hello", [encodeReport(1, pointsOf(1))], 4400],
    ["two hellos", [hello, hello], 4400],
    ["half a report", [hello, encodeReport(1, pointsOf(1)).subarray(0, -8)], 4400],
    ["a message beyond every bound", [hello, long], 1009],
  ];
  it.each(cases)("with %s are hung up on, and told of once", async (_, messages, code) => {
    const heard = hear();
    const { bus, url } = await service(heard);
    for (let i = 1; i <= 2; i++) {
      const { socket, closed } = await rude(url);
      for (const message of messages) socket.send(message);
      const [got, reason] = await closed;
      expect(got).toBe(code);
      if (code === 4400) expect(reason).not.toBe("");
      await until(() => bus.traffic.refused === i, "counted");
    }
    expect(heard.troubles).toHaveLength(1);
    expect(heard.reports).toEqual([]);
  });

  it("that send a kind of report which only later versions know are heard in everything else", async () => {
    const heard = hear();
    const { bus, url } = await service(heard);
    const { socket } = await rude(url);
    socket.send(hello);
    socket.send(writeFrame(FRAME.report, { kind: "weather", job: "job", run: "r", sequence: 1 }));
    socket.send(encodeReport(2, pointsOf(1)));
    await until(() => iterations(heard).length > 0, "points");
    expect([bus.traffic.refused, bus.agents.length]).toEqual([1, 1]);
    expect(heard.troubles).toEqual([expect.stringContaining("does not know was left out")]);
  });

  it("without a hello, or silent after it, are closed", async () => {
    const heard = hear();
    const { url } = await service(heard, { helloTimeoutMs: 50, idleTimeoutMs: 200 });
    const { closed } = await rude(url);
    expect((await closed)[0]).toBe(4408);
    const silent = new WebSocket(`${url}/agent`, { autoPong: false });
    opened.push(() => silent.terminate());
    await once(silent, "open");
    silent.send(hello);
    await once(silent, "close");
    await until(() => heard.gone.includes("node-1"), "gone");
  });

  it("without a token, at another path or beyond the most get an HTTP status", async () => {
    const heard = hear();
    const { url } = await service(heard, {
      mostAgents: 1,
      authorize: ({ headers }) =>
        headers.authorization === "Bearer good"
          ? { name: "t", agent: null, jobs: null }
          : { status: 401, why: "no token" },
    });
    const statusOf = async (at: string, token: string): Promise<string> => {
      const socket = new WebSocket(at, { headers: { authorization: `Bearer ${token}` } });
      opened.push(() => socket.terminate());
      const [error] = (await once(socket, "error")) as [Error];
      return error.message;
    };
    expect(await statusOf(`${url}/agent`, "bad")).toContain("401");
    expect(await statusOf(`${url}/other`, "good")).toContain("404");
    const one = link(url, { token: "good" });
    await until(() => one.isConnected, "connected");
    expect(await statusOf(`${url}/agent`, "good")).toContain("503");
    const troubles: string[] = [];
    const other = link(url, { token: "bad", onTrouble: (line) => void troubles.push(line) });
    await until(() => troubles.length > 0, "told");
    expect(troubles[0]).toContain("does not accept our token");
    expect(other.isConnected).toBe(false);
  });

  it("in place of the service do no harm to an agent", async () => {
    const server = createTcpServer((socket) => {
      socket.on("error", () => {});
      socket.end("SSH-2.0-OpenSSH\r\n");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    opened.push(() => server.close());
    const troubles: string[] = [];
    const { port } = server.address() as AddressInfo;
    const one = link(`ws://127.0.0.1:${port}`, { onTrouble: (line) => void troubles.push(line) });
    one.send(pointsOf(3));
    await until(() => troubles.length > 0, "told");
    expect(one.isConnected).toBe(false);
    expect(one.bufferedBytes).toBeGreaterThan(0);
    expect(() => openWebSocketLink(linkOptions("ftp://x"))).toThrow(/not the URL/);
  });

  it("that fall silent are noticed by the agent, which connects again", async () => {
    const heard = hear();
    const { url } = await service(heard);
    const gate = await cuttingProxy(Number(new URL(url).port));
    const troubles: string[] = [];
    const one = link(gate.url, { onTrouble: (line) => void troubles.push(line) });
    await until(() => one.isConnected, "connected");
    gate.freeze();
    await until(() => troubles.length > 0, "noticed");
    expect(troubles[0]).toContain("no sign of it");
    await until(() => one.isConnected, "there again");
  });
});

/** Passes bytes on, until it is told to cut or to stop passing. */
async function cuttingProxy(
  port: number,
): Promise<{ url: string; cut(): void; freeze(): void; cuts(): number }> {
  const pairs = new Set<Socket>();
  let cuts = 0;
  const server = createTcpServer((near) => {
    const far = connect(port, "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      pairs.add(from);
      from.on("error", () => {});
      from.on("close", () => {
        pairs.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.push(() => {
    for (const socket of pairs) socket.destroy();
    server.close();
  });
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      if (pairs.size > 0) cuts++;
      for (const socket of pairs) socket.destroy();
    },
    freeze() {
      for (const socket of pairs) {
        socket.unpipe();
        socket.pause();
      }
    },
    cuts: () => cuts,
  };
}
