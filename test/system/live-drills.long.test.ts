/**
 * What breaks is killed with -9, under load: services, agents, brokers, the database. No incident is lost, none is told
 * twice, and whoever is left goes on.
 */
import { afterEach, describe, expect, it, onTestFailed } from "vitest";
import { writeFileSync } from "node:fs";
import { startReceiver, type TestReceiver } from "../support/live/alert-receiver.ts";
import type { Incident } from "../../src/model/incident.ts";
import { startAlertmanager, whyNoAlertmanager } from "../support/alertmanager-server.ts";
import { startClickHouse, whyNoClickHouse } from "../support/clickhouse-server.ts";
import { Processes, type ServiceProcess } from "../support/live-processes.ts";
import { startNats, whyNoNats } from "../support/nats-server.ts";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";

let closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.toReversed()) await close();
  closing = [];
});

function processes(): Processes {
  const made = new Processes();
  closing.push(() => made.close());
  onTestFailed(() => console.log(made.said.join("").slice(-6000)));
  return made;
}

const isKnown = (service: ServiceProcess) => async (): Promise<true | null> =>
  (await service.jobs()).some(
    ({ baselineMs, health }) => baselineMs !== null && health === "healthy",
  )
    ? true
    : null;

const has =
  (service: ServiceProcess, state: Incident["state"], ranks: readonly number[]) =>
  async (): Promise<Incident | null> =>
    (await service.incidents()).find(
      (one) => one.state === state && ranks.every((rank) => one.ranks.includes(rank)),
    ) ?? null;

/** Every revision once, in order, and each state that it should have been in. */
async function expectWhole(service: ServiceProcess, id: string): Promise<void> {
  const revisions = await service.history(id);
  expect(revisions.map(({ revision }) => revision)).toEqual(revisions.map((_, i) => i + 1));
  expect(revisions[0]!.state).toBe("suspected");
  expect(revisions.at(-1)!.state).toBe("resolved");
}

/** Ids of incidents that Alertmanager told people of, in order. */
function toldOf(people: TestReceiver, status: string): string[] {
  return people.received.flatMap(({ body }) => {
    const { alerts } = JSON.parse(body) as {
      alerts: { status: string; labels: Record<string, string> }[];
    };
    return alerts.filter((one) => one.status === status).map(({ labels }) => labels["incident"]!);
  });
}

describe("drills", () => {
  it("the embedded service: kill -9 of the service and of an agent in the middle of an incident", async () => {
    const all = processes();
    const port = String(await freePort());
    const people = await startReceiver();
    closing.push(() => people.close());
    const alertmanager = whyNoAlertmanager === "" ? await startAlertmanager(people.url) : null;
    if (alertmanager) closing.push(() => alertmanager.stop());
    const config = `${all.folder}/faultline.json`;
    const alerts = { alertmanager: alertmanager ? [alertmanager.url] : [], holdSeconds: 0 };
    writeFileSync(config, JSON.stringify({ alerts }));
    const words = ["--port", port, "--data", `${all.folder}/data`, "--config", config];
    let service = await all.service(words);
    const job = await all.rehearsal(`http://127.0.0.1:${port}`);
    await until(isKnown(service), "the baseline");
    const [before] = await service.jobs();
    await job.break("gpu-slow:rank=5:severity=4");
    const found = await until(has(service, "confirmed", [5]), "the verdict");
    await service.kill();
    service = await all.service(words);
    const [after] = await service.jobs();
    expect(after).toMatchObject({ job: "drill", run: before!.run, incident: found.id });
    expect(after!.baselineMs).toBe(before!.baselineMs);
    await until(
      async () => ((await service.jobs())[0]!.ranks === 16 ? true : null),
      "agents come back",
    );
    const [agent] = job.agents();
    process.kill(agent!.pid, "SIGKILL");
    all.start(agent!.words);
    await job.mend();
    await until(has(service, "resolved", [5]), "the end");
    expect((await service.incidents()).map(({ id }) => id)).toEqual([found.id]);
    await expectWhole(service, found.id);
    if (!alertmanager) return;
    // Over the restart of the service: one alert of the incident, and its end.
    await until(() => toldOf(people, "resolved").length > 0 || null, "people hear of the end");
    expect(toldOf(people, "firing")).toEqual([found.id]);
    expect(toldOf(people, "resolved")).toEqual([found.id]);
  });

  it.skipIf(whyNoNats + whyNoClickHouse !== "")(
    `two services on NATS and ClickHouse: kill -9 of brokers, services, agents and the database${whyNoNats}${whyNoClickHouse}`,
    async () => {
      const nats = await startNats(3);
      closing.push(() => nats.stop());
      const database = await startClickHouse();
      closing.push(() => database.stop());
      const all = processes();
      const start = (name: string): Promise<ServiceProcess> =>
        all.service([
          "--port",
          "0",
          "--data",
          `${all.folder}/${name}`,
          "--nats",
          nats.url,
          "--history",
          database.url,
        ]);
      const services = [await start("a"), await start("b")];
      const job = await all.rehearsal(nats.url);
      const holder = await until(async () => {
        for (const one of services) if (await isKnown(one)()) return one;
        return null;
      }, "a holder");
      let other = services.find((one) => one !== holder)!;
      expect(await other.jobs()).toEqual([]);

      // A service that holds the lease, with an incident open.
      await job.break("gpu-slow:rank=5:severity=4");
      const first = await until(has(holder, "confirmed", [5]), "the verdict");
      await holder.kill();
      const killedAt = performance.now();
      await until(
        async () =>
          (await other.jobs()).some(({ incident }) => incident === first.id) ? true : null,
        "another takes over",
      );
      const takeoverSeconds = (performance.now() - killedAt) / 1000;
      console.log(`taken over after ${takeoverSeconds.toFixed(1)} s`);
      await until(
        async () => ((await other.jobs())[0]!.ranks === 16 ? true : null),
        "agents answer it",
      );

      // A broker: the one that leads the stream of reports.
      const broker = (await nats.leaderOf("FAULTLINE")) ?? nats.brokers[0]!;
      await broker.kill();
      await job.mend();
      await until(has(other, "resolved", [5]), "the end, with a broker less", 120_000);
      await broker.restart();
      const third = await start("c");

      // The database, and an agent.
      await database.kill();
      const [agent] = job.agents();
      process.kill(agent!.pid, "SIGKILL");
      all.start(agent!.words);
      const held = await until(async () => {
        for (const one of [other, third])
          if ((await one.jobs()).some(({ ranks, health }) => ranks === 16 && health === "healthy"))
            return one;
        return null;
      }, "who has it now");
      other = held;
      await job.break("gpu-slow:rank=12:severity=4");
      const open = async (): Promise<string | null> => (await other.jobs())[0]?.incident ?? null;
      const second = await until(open, "an incident without a database");
      await database.start();
      await until(has(other, "confirmed", [12]), "the verdict in the database");
      await job.mend();
      await until(has(other, "resolved", [12]), "the end");

      await until(async () => {
        const stored = (await other.incidents()).filter(({ state }) => state === "resolved");
        return stored.length === 2 ? true : null;
      }, "both in the database");
      const ids = (await other.incidents())
        .map(({ id }) => id)
        .toSorted((a, b) => (a < b ? -1 : 1));
      expect(ids).toEqual([first.id, second].toSorted((a, b) => (a < b ? -1 : 1)));
      for (const id of ids) await expectWhole(other, id);
    },
    300_000,
  );
});
