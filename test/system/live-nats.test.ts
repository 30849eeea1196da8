/** Agents and services over a real NATS cluster, while brokers die. */
import { once } from "node:events";
import { connect as connectTcp, createServer, type AddressInfo, type Socket } from "node:net";
import { jetstream } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { decodeFrame, encodeReport, encodeRequest } from "../../src/live/wire/codec.ts";
import { openAgentLink } from "../../src/live/wire/link.ts";
import type { AgentReply } from "../../src/live/wire/messages.ts";
import { connectNatsBus, type NatsBusOptions } from "../../src/live/wire/nats-bus.ts";
import { fenceDocument, readDocument, store } from "../../src/live/wire/nats-documents.ts";
import { type Heard, hear, helloOf, linkOptions } from "../support/live/bus.ts";
import { beatOf, eventOf, jobOf, pointsOf } from "../support/live/messages.ts";
import {
  type AgentBus,
  type AgentLink,
  type AgentLinkOptions,
  type Coordinator,
  type Lease,
  LeaseLost,
} from "../../src/live/wire/transport.ts";
import { type NatsBroker, type NatsCluster, startNats, whyNoNats } from "../support/nats-server.ts";
import { until } from "../support/until.ts";

describe.skipIf(whyNoNats !== "")(`a NATS cluster of three${whyNoNats}`, () => {
  let cluster: NatsCluster;
  const opened: (() => unknown)[] = [];
  let boots = 0;
  beforeAll(async () => {
    cluster = await startNats(3, { token: "secret" });
  });
  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });
  afterAll(async () => {
    await cluster?.stop();
  });

  async function service(
    heard: Heard,
    over: Partial<NatsBusOptions> = {},
  ): Promise<{ bus: AgentBus; coordinator: Coordinator }> {
    const one = await connectNatsBus({
      url: cluster.url,
      token: "secret",
      handlers: heard.handlers,
      nowMs: Date.now,
      server: "service-1",
      ...over,
    });
    opened.push(async () => await one.bus.close());
    return one;
  }
  function agent(name: string, over: Partial<AgentLinkOptions> = {}): AgentLink {
    const hello = helloOf(name, `boot-${++boots}`);
    const one = openAgentLink(linkOptions(cluster.url, { token: "secret", hello, ...over }));
    opened.push(async () => await one.close());
    return one;
  }

  it("carries reports, announcements, presence and questions", async () => {
    const heard = hear();
    const { bus } = await service(heard);
    let introductions = 0;
    const [links, iterations] = [3000, Array.from({ length: 200 }, (_, i) => i)];
    const many: AgentReply = {
      kind: "wire",
      rank: new Int32Array(links),
      group: new Int32Array(links),
      peer: new Int32Array(links),
      ms: new Float32Array(links * iterations.length).fill(3),
    };
    const one = agent("node-1", {
      bufferBytes: 32 << 20,
      onConnected: () => introductions++,
      answer: async (request) => {
        if (request.ask === "wire") return many;
        throw new Error("no such ring");
      },
    });
    one.send(jobOf("job-a", [3, 4]));
    one.send(beatOf("job-a", 5));
    one.send(pointsOf(40_000, "job-a"));
    one.send(eventOf("job-b", "of another job"));
    await one.flush(30_000);
    expect(one.bufferedBytes).toBe(0);
    await bus.follow("job-a");
    await until(() => heard.reports.length >= 3, "all of the job");
    expect(heard.reports.map(({ report }) => report.kind)).toEqual(["job", "beat", "points"]);
    expect(heard.reports[2]?.report).toMatchObject({ job: "job-a", run: "run" });
    const { report } = heard.reports[2]!;
    expect(report.kind === "points" && report.iteration.at(-1)).toBe(39_999);
    const other = await service(hear(), { server: "service-2" });
    await until(async () => {
      await other.bus.unfollow("job-a");
      await other.bus.follow("job-a");
      return introductions > 1;
    }, "introduced to who follows later");
    // Whoever follows a job answers for it, whichever service is asked.
    await other.bus.unfollow("job-a");
    expect(await other.bus.askWatcher!("job-a", "{}", 10_000)).toBe("job-a: {}");
    await expect(other.bus.askWatcher!("job-b", "{}", 1000)).rejects.toThrow();
    await until(() => heard.announced.includes("job-a"), "announced");
    await until(() => heard.connected.includes("node-1"), "present");
    expect(bus.agents).toEqual([helloOf("node-1", "boot-1")]);

    const run = { job: "job-a", run: "run" };
    const reply = await bus.ask("node-1", { ask: "wire", ...run, ranks: [0], iterations }, 10_000);
    expect(reply.kind === "wire" && reply.ms.every((ms) => ms === 3)).toBe(true);
    expect(bus.traffic.replyBytes).toBeGreaterThan(2_400_000);
    const stretch = {
      ask: "operators",
      ...run,
      rank: 3,
      fromIteration: 1,
      toIteration: 2,
    } as const;
    expect(await bus.ask("node-1", stretch, 10_000)).toEqual({
      kind: "refused",
      why: "no such ring",
    });
    await expect(bus.ask("node-9", stretch, 10_000)).rejects.toThrow(/not connected/);

    // By job and rank, as any client of the cluster may ask; and what nobody may say.
    const nc = await connect({ servers: cluster.url.split(","), token: "secret" });
    opened.push(async () => await nc.close());
    const answer = await nc.request("faultline.v1.ask.job-a.4", encodeRequest(7, stretch));
    expect(decodeFrame(answer.data)).toMatchObject({ type: "reply", id: 7 });
    const before = heard.reports.length;
    const js = jetstream(nc);
    const lie = encodeReport(1, pointsOf(1, "job-a"), helloOf("node-1"));
    await js.publish("faultline.v1.report.job-a.node-2", lie);
    await js.publish("faultline.v1.report.job-a.node-3", Uint8Array.of(1, 2, 3));
    const astray = encodeReport(1, pointsOf(1, "job-x"), helloOf("node-4"));
    await js.publish("faultline.v1.report.job-a.node-4", astray);
    await until(() => bus.traffic.refused === 3, "refused");
    expect(heard.troubles).toHaveLength(3);
    // The same again, long after the broker would have known it.
    const again = encodeReport(1, pointsOf(1, "job-a"), helloOf("node-5"));
    await js.publish("faultline.v1.report.job-a.node-5", again);
    await js.publish("faultline.v1.report.job-a.node-5", again);
    one.send(eventOf("job-a", "last"));
    await until(() => heard.reports.at(-1)?.report.kind === "event", "the last");
    const since = heard.reports.slice(before).filter(({ agent }) => agent === "node-5");
    expect(since).toHaveLength(1);
  });

  it("loses and doubles nothing while a broker dies, and hands over a lease within its time", async () => {
    const heard = [hear(), hear()] as const;
    const gate = await freezer(cluster.brokers[0]!);
    const first = await service(heard[0], { url: gate.url, server: "service-1" });
    const second = await service(heard[1], { server: "service-2" });
    const held = await first.coordinator.claim("job-c");
    expect(await second.coordinator.claim("job-c")).toBeNull();
    await held!.write({ incident: 1 });
    await second.bus.follow("job-c");
    const agents = ["node-1", "node-2", "node-3"].map((name) =>
      agent(name, { bufferBytes: 32 << 20 }),
    );
    let sent = 0;
    const load = setInterval(() => {
      for (const one of agents) one.send(pointsOf(1, "job-c", sent));
      sent++;
    }, 10);
    opened.push(() => clearInterval(load));
    await until(() => heard[1].reports.length > 100, "under load");

    // The holder stops in its tracks, and with it the broker that keeps the leases.
    const broker = (await cluster.leaderOf("KV_FAULTLINE_LEASES"))!;
    let lost = 0;
    held!.onLost(() => lost++);
    gate.freeze();
    await broker.kill();
    const from = performance.now();
    let taken: Lease | null = null;
    let together = 0;
    await until(async () => {
      taken ??= await second.coordinator.claim("job-c");
      if (taken !== null && held!.isHeld) together++;
      return taken !== null;
    }, "taken over");
    console.info(`taken over after ${Math.round(performance.now() - from)} ms`);
    expect(together).toBe(0);
    expect(lost).toBe(1);
    expect(await second.coordinator.read("job-c")).toEqual({ incident: 1 });
    await taken!.write({ incident: 2 });
    await expect(held!.write({ incident: 0 })).rejects.toThrow(LeaseLost);
    expect(await second.coordinator.read("job-c")).toEqual({ incident: 2 });
    // While a broker is away a list may be of one that is behind.
    await until(async () => (await second.coordinator.list()).join() === "job-c", "listed");

    await broker.restart();
    clearInterval(load);
    await Promise.all(agents.map(async (one) => await one.flush(60_000)));
    await until(() => heard[1].reports.length >= 3 * sent, "all there");
    for (const name of ["node-1", "node-2", "node-3"]) {
      const numbers = heard[1].reports.flatMap(({ agent, report }) =>
        agent === name && report.kind === "points" ? [...report.iteration] : [],
      );
      expect(numbers).toEqual(Array.from({ length: sent }, (_, i) => i));
    }
    expect(agents.map(({ dropped }) => dropped.reports)).toEqual([0, 0, 0]);
    await taken!.release();
    gate.thaw();
    const third = await service(hear(), { server: "service-3" });
    await until(async () => (await third.coordinator.claim("job-c")) !== null, "free at once");
  });

  it("keeps one holder while many contend, and refuses a write under an older lease", async () => {
    const services = await Promise.all(
      ["a", "b", "c"].map(async (server) => await service(hear(), { server })),
    );
    const leases: Lease[] = [];
    for (let round = 0; round < 20; round++) {
      const got = await Promise.all(
        services.map(async ({ coordinator }) => await coordinator.claim("job-d")),
      );
      const won = got.filter((lease) => lease !== null);
      expect(won).toHaveLength(1);
      expect(leases.some((lease) => lease.isHeld)).toBe(false);
      leases.push(won[0]!);
      await won[0]!.write({ round, big: "x".repeat(2_000_000) });
      await won[0]!.release();
      await expect(won[0]!.write({})).rejects.toThrow(LeaseLost);
    }
    expect(await services[0]!.coordinator.read("job-d")).toMatchObject({ round: 19 });
    expect(await services[0]!.coordinator.read("job-none")).toBeNull();

    const nc = await connect({ servers: cluster.url.split(","), token: "secret" });
    opened.push(async () => await nc.close());
    const kv = await new Kvm(jetstream(nc)).open("FAULTLINE_JOBS");
    const documents = { kv, mostBytes: () => 1 << 20 };
    const always = (): boolean => true;
    const older = await fenceDocument(documents, "job-e", 1001, always);
    await fenceDocument(documents, "job-e", 1002, always);
    const write = (fence: number, document: unknown, known?: number): Promise<number> =>
      store(documents, "job-e", { fence, write: 1 }, always, () => document, known);
    // It believes that it holds the lease, with the revision that it knows and without.
    await expect(write(1001, "old", older)).rejects.toThrow(LeaseLost);
    await expect(write(1001, "old")).rejects.toThrow(LeaseLost);
    await write(1002, "new");
    expect(await readDocument(documents, "job-e")).toMatchObject({ fence: 1002, document: "new" });
  });

  it("knows that its only broker is away, and that it is back", async () => {
    const single = await startNats(1, { token: "secret" });
    opened.push(async () => await single.stop());
    const { bus } = await service(hear(), { url: single.url });
    expect(bus.broker).toBe("ok");
    await single.brokers[0]!.kill();
    await until(() => bus.broker === "away", "away");
    await single.brokers[0]!.restart();
    await until(() => bus.broker === "ok", "back");
  });

  it("says what is wrong where a cluster is not there or not to be used", async () => {
    await expect(service(hear(), { url: "nats://127.0.0.1:1" })).rejects.toThrow(
      /cannot be reached/,
    );
    await expect(service(hear(), { token: "wrong" })).rejects.toThrow(/cannot be reached/);
    expect(() => agent("node-1", { url: "nats://" })).toThrow(/URL/);
    const troubles: string[] = [];
    const one = agent("node-1", { token: "wrong", onTrouble: (line) => void troubles.push(line) });
    one.send(pointsOf(1));
    await until(() => troubles.length > 0, "told");
    expect(one.isConnected).toBe(false);
  });

  /** Passes bytes on to a broker until it is told to stop, as a machine that hangs. */
  async function freezer({
    url,
  }: NatsBroker): Promise<{ url: string; freeze(): void; thaw(): void }> {
    const sockets = new Set<Socket>();
    let isFrozen = false;
    const server = createServer((near) => {
      const far = connectTcp(Number(new URL(url).port), "127.0.0.1");
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(from);
        from.on("error", () => {});
        from.on("close", () => {
          sockets.delete(from);
          // A machine that hangs does not hear of a broker's death either, and goes to no other.
          if (!isFrozen) to.destroy();
        });
        from.on("data", (chunk) => void (isFrozen || to.write(chunk)));
      }
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const thaw = (): void => {
      isFrozen = false;
      for (const socket of sockets) socket.destroy();
    };
    opened.push(() => {
      thaw();
      server.close();
    });
    const freeze = (): void => void (isFrozen = true);
    return { url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`, freeze, thaw };
  }
});
