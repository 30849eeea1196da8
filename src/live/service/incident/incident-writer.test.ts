/** Receivers of alerts that change while incidents are open. */
import { expect, it } from "vitest";
import { testVerdict } from "../../../../test/support/live/incident.ts";
import { startReceiver, type TestReceiver } from "../../../../test/support/live/alert-receiver.ts";
import { INCIDENT } from "../../../../test/support/serve-view.ts";
import { until } from "../../../../test/support/until.ts";
import type { Incident } from "../../../model/incident.ts";
import type { Lease } from "../../wire/transport.ts";
import type { AlertsConfig } from "../alerts/types.ts";
import { IncidentWriter, type IncidentWriterOptions } from "./incident-writer.ts";

const OPEN: Incident = { ...INCIDENT, verdict: testVerdict(), actions: [] };

const through = (...receivers: readonly TestReceiver[]): AlertsConfig => ({
  alertmanager: [],
  webhooks: receivers.map(({ url }) => ({ url })),
  slack: [],
  holdSeconds: 0,
});

it("alerts through other receivers from now on: what is open is sent to new ones, nothing twice", async () => {
  const [first, second] = [await startReceiver(), await startReceiver()];
  let document: unknown = null;
  const lease: Lease = {
    job: OPEN.job,
    write: async (next: unknown) => void (document = next),
    onLost: () => undefined,
    release: async () => undefined,
  } as unknown as Lease;
  const history = { putIncident: async () => undefined };
  const writer = new IncidentWriter({
    lease,
    unsaved: [],
    sentAlerts: null,
    history: history as unknown as IncidentWriterOptions["history"],
    alerts: through(first),
    alertsEnv: {
      nowMs: Date.now,
      fetch: (url, init) => fetch(url, init),
      log: () => undefined,
      setTimer: (ms, run) => {
        const timer = setTimeout(run, ms);
        return () => clearTimeout(timer);
      },
    },
    state: () => ({}),
    changed: () => undefined,
    hasNoRoom: () => false,
    lost: () => undefined,
  });
  const events = ({ received }: TestReceiver): unknown[] =>
    received.map(({ headers }) => headers["x-faultline-event"]);
  try {
    await writer.save(OPEN);
    await until(() => first.received.length === 1, "the first is told");
    await writer.alertThrough(through(first, second), () => [OPEN]);
    await until(() => second.received.length === 1, "the second is told of what is open");
    await writer.alertThrough(through(second), () => [OPEN]);
    await writer.save({ ...OPEN, revision: 3, state: "resolved", resolvedMs: Date.now() - 1000 });
    await until(() => second.received.length === 2, "the second is told that it is over");
    expect(events(first)).toEqual(["confirmed"]);
    expect(events(second)).toEqual(["confirmed", "resolved"]);
    await until(() => writer.alertsSent === 3, "all are counted, whoever sent them");
    expect(JSON.stringify(document)).toContain("webhook-");
  } finally {
    await writer.close();
    await first.close();
    await second.close();
  }
});
