/** Incidents against a real Alertmanager: one alert each, whoever restarts, overlaps or is away for a while. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Incident } from "../../src/model/incident.ts";
import { makeAlerts } from "../../src/live/service/alerts/alerts.ts";
import { LeaseLost } from "../../src/live/wire/transport.ts";
import { testIncident, testVerdict } from "../support/live/incident.ts";
import { startReceiver, type TestReceiver } from "../support/live/alert-receiver.ts";
import type { Alerts, Hush } from "../../src/live/service/alerts/types.ts";
import {
  type ActiveAlert,
  startAlertmanager,
  type TestAlertmanager,
  whyNoAlertmanager,
} from "../support/alertmanager-server.ts";
import { until } from "../support/until.ts";

describe.skipIf(whyNoAlertmanager !== "")(`a real Alertmanager${whyNoAlertmanager}`, () => {
  let server: TestAlertmanager;
  /** What Alertmanager itself tells people. */
  let people: TestReceiver;
  const opened: Alerts[] = [];
  let incidents = 0;
  let hush: Hush | null = null;

  beforeAll(async () => {
    people = await startReceiver();
    server = await startAlertmanager(people.url);
  }, 60_000);
  afterEach(async () => {
    hush = null;
    await Promise.all(opened.splice(0).map((alerts) => alerts.close()));
  });
  afterAll(async () => {
    await server?.stop();
    await people?.close();
  });

  interface Store {
    document: unknown;
    /** Of the service that holds the lease; those before it have lost it. */
    holder?: number;
  }
  /** A service; those with one store are one after the other, or overlap. */
  function service(store: Store): Alerts {
    const holder = (store.holder ?? 0) + 1;
    store.holder = holder;
    const alerts = makeAlerts(
      {
        alertmanager: [`${server.url}/`],
        webhooks: [],
        slack: [],
        externalUrl: "https://faultline.example",
        repeatSeconds: 1,
        holdSeconds: 0,
      },
      {
        nowMs: () => Date.now(),
        fetch: globalThis.fetch,
        setTimer(afterMs, run) {
          const timer = setTimeout(run, afterMs);
          return () => clearTimeout(timer);
        },
        log: () => {},
        hush: () => hush,
        async remember(document) {
          if (store.holder !== holder) throw new LeaseLost("llama");
          store.document = JSON.parse(JSON.stringify(document)) as unknown;
        },
        recalled: store.document,
        timings: { firstRetryMs: 50, mostRetryMs: 200 },
      },
    );
    opened.push(alerts);
    return alerts;
  }

  function newIncident(): Incident {
    const onsetMs = Date.now() - 5000;
    const id = `llama.r1.hang.i${incidents++}`;
    return testIncident({ id, onsetMs, openedMs: onsetMs + 2000, changedMs: onsetMs + 3000 });
  }
  const over = (incident: Incident, revision: number): Incident => ({
    ...incident,
    revision,
    state: "resolved",
    changedMs: Date.now(),
    resolvedMs: Date.now(),
  });

  const alertsOf = async ({ id }: Incident): Promise<ActiveAlert[]> =>
    (await server.alerts()).filter(({ labels }) => labels["incident"] === id);
  /** "firing" and "resolved" as Alertmanager told them, each with how many alerts. */
  const told = ({ id }: Incident): string[] =>
    people.received.flatMap(({ body }) => {
      const { alerts } = JSON.parse(body) as {
        alerts: { status: string; labels: Record<string, string> }[];
      };
      return alerts.filter(({ labels }) => labels["incident"] === id).map(({ status }) => status);
    });

  /** Repetitions have been taken since. */
  async function repeated(incident: Incident): Promise<void> {
    const [before] = await alertsOf(incident);
    const isLater = async (): Promise<boolean> =>
      ((await alertsOf(incident))[0]?.endsAt ?? "") > (before?.endsAt ?? "");
    await until(isLater, "a repetition");
  }

  it("silences what somebody acknowledged, until that is taken back", async () => {
    const incident = newIncident();
    const alerts = service({ document: null });
    const silences = async (): Promise<string[]> => {
      const response = await fetch(`${server.url}/api/v2/silences`);
      const all = (await response.json()) as {
        status: { state: string };
        matchers: { name: string; value: string }[];
        createdBy: string;
      }[];
      return all
        .filter(({ matchers }) => matchers.some(({ value }) => value === incident.id))
        .map(({ status, createdBy }) => `${status.state} ${createdBy}`);
    };
    alerts.notify(incident);
    await until(async () => (await alertsOf(incident)).length > 0, "the alert");
    hush = { how: "acknowledged", who: "ada", why: "" };
    alerts.hushed(incident);
    await until(async () => (await silences()).includes("active faultline: ada"), "the silence");
    await repeated(incident);
    await repeated(incident);
    // Renewed, not made again.
    expect(await silences()).toEqual(["active faultline: ada"]);
    hush = null;
    alerts.hushed(incident);
    await until(async () => (await silences()).join() === "expired faultline: ada", "its end");
  });

  it("has one alert for an incident however often it changes, also over a restart, and its end", async () => {
    const store: Store = { document: null };
    const incident = newIncident();
    let alerts = service(store);
    alerts.notify({ ...incident, state: "suspected", revision: 1, verdict: null });
    for (let revision = 2; revision < 20; revision++) alerts.notify({ ...incident, revision });
    await until(async () => (await alertsOf(incident)).length > 0, "the alert");
    await until(() => told(incident).length > 0, "people are told");
    // The verdict is another one now: other labels would make a second alert.
    const verdict = testVerdict({}, { machine: "node009", cause: "network-hang" });
    alerts.notify({ ...incident, revision: 20, verdict, kind: "crash", summary: "it is node009" });
    await repeated(incident);
    await alerts.close();
    alerts = service(store);
    alerts.notify({ ...incident, revision: 21, verdict, kind: "crash", summary: "it is node009" });
    await repeated(incident);
    const [alert, ...more] = await alertsOf(incident);
    expect(more).toEqual([]);
    expect(alert!.labels).toEqual({
      alertname: "FaultlineIncident",
      job: "llama",
      kind: "hang",
      cause: "gpu-hang",
      machine: "node003",
      owner: "operations",
      severity: "critical",
      incident: incident.id,
    });
    expect(Date.parse(alert!.startsAt)).toBe(incident.onsetMs);
    expect(alert!.generatorURL).toBe(`https://faultline.example/#/incidents/${incident.id}`);
    expect(alert!.annotations).toMatchObject({
      summary: "it is node009",
      runbook_url: `https://faultline.example/api/v1/incidents/${incident.id}`,
    });
    expect(alert!.annotations["description"]).toMatch(
      /Suspect: node009, rank 5, network-hang[^]*To do: Replace the machine[^]*Confidence 93 %/,
    );
    alerts.notify(over(incident, 22));
    await until(async () => (await alertsOf(incident)).length === 0, "the resolution");
    await until(() => told(incident).includes("resolved"), "people are told");
    // Once more after another restart: it is over.
    await alerts.close();
    alerts = service(store);
    alerts.notify(over(incident, 22));
    expect(told(incident)).toEqual(["firing", "resolved"]);
    // It comes back: the same alert again, and again its end.
    alerts.notify({
      ...incident,
      state: "relapsed",
      relapses: 1,
      revision: 23,
      changedMs: Date.now(),
    });
    await until(async () => (await alertsOf(incident)).length === 1, "the relapse");
    expect((await alertsOf(incident))[0]!.labels).toEqual(alert!.labels);
    await until(() => told(incident).length === 3, "people are told");
    alerts.notify({ ...over(incident, 24), relapses: 1 });
    await until(() => told(incident).length === 4, "people are told");
    expect(told(incident)).toEqual(["firing", "resolved", "firing", "resolved"]);
  });

  it("has one alert where two services overlap", async () => {
    const incident = newIncident();
    const a = service({ document: null });
    const b = service({ document: null });
    for (const alerts of [a, b, a, b]) alerts.notify(incident);
    await until(() => a.sent === 1 && b.sent === 1, "both have told");
    await repeated(incident);
    expect(await alertsOf(incident)).toHaveLength(1);
    // One is gone without a word; the other ends it.
    await a.close();
    b.notify(over(incident, 3));
    await until(() => told(incident).includes("resolved"), "people are told");
    expect(told(incident)).toEqual(["firing", "resolved"]);
    expect(await alertsOf(incident)).toEqual([]);
  });

  it("hears no more from a service that has lost its lease without knowing", async () => {
    const store: Store = { document: null };
    const incident = newIncident();
    const first = service(store);
    first.notify(incident);
    await until(() => first.sent === 1, "the alert");
    const second = service(store);
    const verdict = testVerdict({}, { machine: "node009" });
    second.notify({ ...incident, revision: 3, verdict });
    // The first still believes that it is open.
    second.notify(over(incident, 4));
    await until(() => told(incident).includes("resolved"), "people are told");
    first.notify({ ...incident, revision: 3 });
    const other = newIncident();
    second.notify(other);
    await repeated(other);
    await repeated(other);
    expect(await alertsOf(incident)).toEqual([]);
    expect(told(incident)).toEqual(["firing", "resolved"]);
  });

  it("that was away is told when it is back, and again when it has forgotten", async () => {
    await server.kill();
    const incident = newIncident();
    const short = newIncident();
    const alerts = service({ document: null });
    alerts.notify(incident);
    alerts.notify(short);
    await until(() => alerts.failures >= 3, "failures");
    alerts.notify(over(short, 3));
    expect(alerts.sent).toBe(0);
    await server.start();
    await until(async () => (await alertsOf(incident)).length === 1, "the alert");
    await until(() => alerts.pending === 0, "both told");
    expect(await alertsOf(short)).toEqual([]);
    await server.kill();
    await server.start();
    await until(async () => (await alertsOf(incident)).length === 1, "the alert again");
    alerts.notify(over(incident, 3));
    await until(async () => (await alertsOf(incident)).length === 0, "the resolution");
    // The short one was never seen burning, so nobody is told that it is out.
    expect(told(short)).toEqual([]);
  });

  it("shows nothing of a hostile incident as markup, and takes it", async () => {
    const hostile = '<img src=x onerror=alert(1)> <!channel> \u0000\u001b[2J \ud800 {{ "a" }}';
    const incident = {
      ...newIncident(),
      summary: hostile.repeat(1000),
      machines: [hostile],
      verdict: testVerdict({}, { machine: hostile, why: hostile }),
    };
    const alerts = service({ document: null });
    alerts.notify(incident);
    await until(async () => (await alertsOf(incident)).length === 1, "the alert");
    const [alert] = await alertsOf(incident);
    expect(JSON.stringify(alert)).not.toMatch(/[<>]/);
    // oxlint-disable-next-line no-control-regex
    expect(JSON.stringify([alert!.labels, alert!.annotations])).not.toMatch(/\\u00|[\0-\x1f]/);
    alerts.notify(over(incident, 3));
    await until(async () => (await alertsOf(incident)).length === 0, "the resolution");
  });
});
