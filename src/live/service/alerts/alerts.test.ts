import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Incident } from "../../../model/incident.ts";
import { makeAlertBench, type AlertBench } from "../../../../test/support/live/alert-bench.ts";
import { testIncident, testVerdict } from "../../../../test/support/live/incident.ts";
import { startReceiver, type TestReceiver } from "../../../../test/support/live/alert-receiver.ts";
import { SCHEMAS } from "../http/schemas.ts";
import type { Alerts, AlertsConfig } from "./types.ts";

let bench: AlertBench;
let hook: TestReceiver;
let opened: Alerts[];

beforeEach(async () => {
  bench = makeAlertBench();
  hook = await startReceiver();
  opened = [];
});
afterEach(async () => {
  bench.storeFails = null;
  await Promise.all(
    opened.map(async (alerts) => {
      const closing = alerts.close();
      // The bench's clock stands still unless it is moved.
      await bench.advance(10_000);
      await closing;
    }),
  );
  await hook.close();
});

function open(config: Partial<AlertsConfig>): Alerts {
  const alerts = bench.open(config);
  opened.push(alerts);
  return alerts;
}
const confirmed = testIncident();
const resolvedAt = (ms: number, relapses = 0): Incident =>
  testIncident({
    state: "resolved",
    revision: 10 + 10 * relapses,
    relapses,
    changedMs: ms,
    resolvedMs: ms,
  });
const relapsed = (revision: number, relapses: number): Incident =>
  testIncident({ state: "relapsed", revision, relapses });

const events = (): unknown[] => hook.received.map(({ headers }) => headers["x-faultline-event"]);
const ids = (): unknown[] => hook.received.map(({ headers }) => headers["x-faultline-delivery"]);
/** Everything that is under way has ended. */
const settled = async (alerts: Alerts): Promise<void> => {
  await bench.until(() => alerts.pending === 0, "nothing pending");
  await bench.advance(0);
};

describe("webhooks", () => {
  it("get one message for each of confirmed, resolved, relapsed, with the incident and an id", async () => {
    const alerts = open({
      webhooks: [{ url: `${hook.url}/in?x=1`, header: "Authorization: Bearer secret" }],
      externalUrl: "https://faultline.example/",
    });
    alerts.notify(testIncident({ state: "suspected", revision: 1, verdict: null }));
    for (let revision = 2; revision < 7; revision++) alerts.notify({ ...confirmed, revision });
    await settled(alerts);
    alerts.notify(resolvedAt(bench.nowMs));
    await bench.advance(29_000);
    expect(events()).toEqual(["confirmed"]);
    await bench.advance(1000);
    await settled(alerts);
    alerts.notify(relapsed(11, 1));
    await settled(alerts);
    expect(events()).toEqual(["confirmed", "resolved", "relapsed"]);
    expect(ids()).toEqual([
      "llama.r1.hang.i120-confirmed-0",
      "llama.r1.hang.i120-resolved-0",
      "llama.r1.hang.i120-relapsed-1",
    ]);
    for (const { body } of hook.received) {
      const sent = JSON.parse(body) as unknown;
      // Nothing is missing, and nothing is left over.
      expect(SCHEMAS.AlertWebhook.parse(sent)).toEqual(sent);
    }
    const [first] = hook.received;
    expect(first?.headers).toMatchObject({
      authorization: "Bearer secret",
      connection: "close",
      "content-type": "application/json",
    });
    expect(JSON.parse(first!.body)).toEqual({
      event: "confirmed",
      severity: "critical",
      url: "https://faultline.example/#/incidents/llama.r1.hang.i120",
      incident: confirmed,
    });
    expect(alerts.sent).toBe(3);
    expect(alerts.failures).toBe(0);
  });

  it("say nothing of what was only suspected, nor of its end", async () => {
    const alerts = open({ webhooks: [{ url: hook.url }] });
    alerts.notify(testIncident({ state: "suspected", revision: 1, verdict: null }));
    alerts.notify(resolvedAt(bench.nowMs));
    await bench.advance(3_600_000);
    expect(hook.received).toEqual([]);
    expect(bench.stored).toBeNull();
  });

  it("do not flap: a relapse within the hold is no news, and the hold grows", async () => {
    const alerts = open({ webhooks: [{ url: hook.url }] });
    alerts.notify(confirmed);
    await settled(alerts);
    for (let relapses = 0; relapses < 5; relapses++) {
      alerts.notify(resolvedAt(bench.nowMs, relapses));
      await bench.advance(20_000);
      alerts.notify(relapsed(11 + 10 * relapses, relapses + 1));
      await bench.advance(60_000);
    }
    expect(events()).toEqual(["confirmed"]);
    alerts.notify(resolvedAt(bench.nowMs, 5));
    await bench.advance(500_000);
    expect(events()).toEqual(["confirmed"]);
    await bench.advance(100_000);
    await settled(alerts);
    expect(ids()).toEqual(["llama.r1.hang.i120-confirmed-0", "llama.r1.hang.i120-resolved-5"]);
  });

  it("are not told again after a restart, and told then what they missed", async () => {
    const config = { webhooks: [{ url: hook.url }] };
    let alerts = open(config);
    alerts.notify(confirmed);
    await settled(alerts);
    await alerts.close();
    alerts = open(config);
    alerts.notify(confirmed);
    alerts.notify({ ...confirmed, revision: 3 });
    await settled(alerts);
    expect(events()).toEqual(["confirmed"]);
    // Resolved, but the service stops within the hold.
    alerts.notify(resolvedAt(bench.nowMs));
    await alerts.close();
    await bench.advance(100_000);
    expect(events()).toEqual(["confirmed"]);
    alerts = open(config);
    alerts.notify(resolvedAt(bench.nowMs - 100_000));
    await bench.advance(0);
    await settled(alerts);
    alerts.notify(resolvedAt(bench.nowMs - 100_000));
    await bench.advance(100_000);
    expect(events()).toEqual(["confirmed", "resolved"]);
  });

  it("are tried again with growing pauses, in order, then given up", async () => {
    hook.answer = (response) => void response.writeHead(503).end("later");
    const alerts = open({ webhooks: [{ url: hook.url }] });
    alerts.notify(confirmed);
    await bench.until(() => hook.received.length === 1, "first try");
    await bench.until(() => alerts.failures === 1, "its failure");
    await bench.advance(999);
    expect(hook.received).toHaveLength(1);
    await bench.advance(1);
    await bench.until(() => alerts.failures === 2, "second try");
    await bench.advance(1999);
    expect(hook.received).toHaveLength(2);
    hook.answer = (response) => void response.end();
    await bench.advance(1);
    await settled(alerts);
    expect(ids()).toEqual(Array(3).fill("llama.r1.hang.i120-confirmed-0"));
    expect(alerts.sent).toBe(1);
    // And a receiver that never comes back.
    hook.answer = (response) => void response.writeHead(500).end();
    alerts.notify(resolvedAt(bench.nowMs - 60_000));
    for (let i = 0; i < 40 && (i === 0 || alerts.pending > 0); i++) {
      const before = alerts.failures;
      await bench.advance(60_000);
      await bench.until(() => alerts.failures > before || alerts.pending === 0, `try ${i}`);
    }
    expect(hook.received).toHaveLength(3 + 20);
    expect(bench.lines.at(-1)).toMatch(/answered 500; the message about llama.* is dropped/);
  });

  it("that want to be left alone for a while are", async () => {
    hook.answer = (response) => void response.writeHead(429, { "retry-after": "40" }).end();
    const alerts = open({ webhooks: [{ url: hook.url }] });
    alerts.notify(confirmed);
    await bench.until(() => alerts.failures === 1, "the refusal");
    hook.answer = (response) => void response.end();
    await bench.advance(39_000);
    expect(hook.received).toHaveLength(1);
    await bench.advance(1000);
    await settled(alerts);
    expect(hook.received).toHaveLength(2);
  });

  it("that redirect, refuse or hang are given up, and nobody else waits for them", async () => {
    const bad = await startReceiver();
    try {
      const other = await startReceiver();
      bad.answer = (response, { path }) => {
        if (path === "/redirect") response.writeHead(307, { location: other.url }).end();
        else if (path === "/refuse") response.writeHead(400).end("\u001b[31mno <b>");
        else if (path === "/flood") flood(response);
      };
      bench.requestMs = 1500;
      const paths = ["/redirect", "/refuse", "/hang", "/flood"];
      const alerts = open({
        webhooks: [...paths.map((path) => ({ url: bad.url + path })), { url: hook.url }],
      });
      alerts.notify(confirmed);
      await bench.until(() => hook.received.length === 1, "the good one");
      for (let i = 0; i < 20 && alerts.pending > 0; i++) {
        await bench.advance(60_000);
        const before = alerts.failures;
        await bench.until(() => alerts.failures > before || alerts.pending === 0, "the next try");
      }
      const tries = paths.map((path) => bad.received.filter((one) => one.path === path).length);
      expect(tries).toEqual([1, 1, 3, 1]);
      expect(other.received).toEqual([]);
      await other.close();
      expect(hook.received).toHaveLength(1);
      const log = bench.lines.join("\n");
      expect(log).toContain("answered 307: redirects are not followed");
      expect(log).toContain("answered 400: \ufffd[31mno <b>");
      expect(log).toMatch(/gave no answer within 1.5 s; the message/);
      expect(log).not.toContain("\u001b");
    } finally {
      await bad.close();
    }
  });

  it("are told though the store fails, and left to the other service where the lease is lost", async () => {
    bench.storeFails = "down";
    const alerts = open({ webhooks: [{ url: hook.url }] });
    alerts.notify(confirmed);
    await settled(alerts);
    expect(events()).toEqual(["confirmed"]);
    bench.storeFails = "hangs";
    alerts.notify(resolvedAt(bench.nowMs - 60_000));
    await bench.advance(1);
    await bench.advance(5000);
    await bench.until(() => hook.received.length === 2, "told without the store");
    expect(bench.lines).toEqual([
      "alerts: the record of sent alerts could not be stored; a restart may send them again",
    ]);
    bench.storeFails = "lost";
    const late = open({ webhooks: [{ url: hook.url }], slack: [{ url: `${hook.url}/slack` }] });
    late.notify(testIncident({ id: "llama.r1.crash.i7", kind: "crash" }));
    await bench.advance(60_000);
    late.notify(testIncident({ id: "llama.r1.crash.i8", kind: "crash" }));
    await bench.advance(60_000);
    expect(hook.received).toHaveLength(2);
  });

  it("bear documents that are nonsense, and incidents that are", async () => {
    for (const document of ["5", "[]", '{"incidents":[null,{"id":1},{"id":"a","labels":3}]}']) {
      bench.stored = document;
      open({ webhooks: [{ url: hook.url }] }).notify(
        testIncident({ id: `x-${document.length}`, onsetMs: NaN, changedMs: Infinity }),
      );
    }
    await bench.until(() => hook.received.length === 3, "three messages");
    const alerts = open({ webhooks: [{ url: hook.url }] });
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    alerts.notify({ ...confirmed, id: "circle", verdict: circle as never });
    expect(alerts.failures).toBe(1);
    expect(bench.lines.at(-1)).toMatch(/circle could not be reported/);
  });
});

describe("Slack", () => {
  it("gets one message a state, with nothing that is markup", async () => {
    const alerts = open({ slack: [{ url: hook.url }], externalUrl: "https://f.example" });
    const hostile = "<!channel> & <http://evil|click> @here \u001b[2J [x](http://evil)";
    const why = `log says ${hostile}`;
    alerts.notify(testIncident({ summary: hostile, verdict: testVerdict({}, { why }) }));
    await settled(alerts);
    alerts.notify({ ...resolvedAt(bench.nowMs - 60_000), summary: "fine again" });
    await bench.advance(1);
    await settled(alerts);
    const texts = hook.received.map(({ body }) => (JSON.parse(body) as { text: string }).text);
    expect(texts).toHaveLength(2);
    for (const markup of ["<", ">", "\u001b", "@here", "]("])
      expect(texts[0]).not.toContain(markup);
    expect(texts[0]).toContain("critical: hang in job llama");
    expect(texts[0]).toContain("‹!channel› &amp; ‹http://evil|click›");
    expect(texts[0]).toContain("To do: Replace the machine · node003: take the machine out");
    expect(texts[0]).toContain("Confidence 93 %.");
    expect(texts[0]).toContain("https://f.example/#/incidents/llama.r1.hang.i120");
    expect(texts[1]).toMatch(/^Resolved: critical: hang in job llama\nfine again\nIt lasted/);
  });

  it("is not asked again after a silence, for it cannot tell a repetition; nor after a crash", async () => {
    hook.answer = () => {};
    bench.requestMs = 2000;
    const config = { slack: [{ url: hook.url }] };
    const alerts = open(config);
    alerts.notify(confirmed);
    await bench.until(() => hook.received.length === 1, "on its way");
    // The process dies here: another starts from what is stored.
    const stored = bench.stored;
    await bench.until(() => alerts.pending === 0, "given up");
    expect(bench.lines.at(-1)).toMatch(/no answer .* is dropped/);
    bench.stored = stored;
    bench.requestMs = 30_000;
    const next = open(config);
    next.notify(confirmed);
    await bench.advance(60_000);
    expect(hook.received).toHaveLength(1);
    expect(bench.lines.at(-1)).toMatch(/is not sent again/);
    hook.answer = (response) => void response.end("ok");
    next.notify(resolvedAt(bench.nowMs - 60_000));
    await bench.advance(1);
    await settled(next);
    expect(hook.received).toHaveLength(2);
  });

  it("is told after a restart what was waiting for it to come back", async () => {
    hook.answer = (response) => void response.writeHead(503).end();
    const config = { slack: [{ url: hook.url }] };
    const alerts = open(config);
    alerts.notify(confirmed);
    await bench.until(() => alerts.failures === 1, "first failure");
    await alerts.close();
    hook.answer = (response) => void response.end("ok");
    const next = open(config);
    next.notify(confirmed);
    await settled(next);
    expect(hook.received).toHaveLength(2);
    expect(next.sent).toBe(1);
    // No address in the log or the store: it is the secret.
    expect(bench.lines.join()).toContain("slack http://127.0.0.1");
    expect(bench.stored).not.toContain(hook.url);
  });
});

function flood(response: ServerResponse): void {
  const chunk = Buffer.alloc(64 << 10, "x");
  const more = (): void => {
    while (!response.destroyed && response.write(chunk));
    if (!response.destroyed) response.once("drain", more);
  };
  response.on("error", () => undefined);
  more();
}

describe("what is muted or acknowledged", () => {
  it("is not said while it is muted, and is said when it is not any more", async () => {
    const alerts = open({ webhooks: [{ url: hook.url }] });
    bench.hush = () => ({ how: "muted", who: "ada", why: "maintenance" });
    alerts.notify(confirmed);
    alerts.hushed(confirmed);
    await settled(alerts);
    expect(events()).toEqual([]);
    bench.hush = () => null;
    alerts.hushed(confirmed);
    alerts.hushed(confirmed);
    await settled(alerts);
    expect(events()).toEqual(["confirmed"]);
  });

  it("that was said before it was muted is said to be over", async () => {
    const alerts = open({ webhooks: [{ url: hook.url }] });
    alerts.notify(confirmed);
    await settled(alerts);
    bench.hush = () => ({ how: "muted", who: "ada", why: "" });
    alerts.notify(resolvedAt(bench.nowMs));
    await bench.advance(60_000);
    await settled(alerts);
    // It comes back: nobody hears of it while it is muted.
    alerts.notify(relapsed(11, 1));
    await settled(alerts);
    expect(events()).toEqual(["confirmed", "resolved"]);
  });

  it("that Alertmanager knows of is repeated there, silenced, also by the next service", async () => {
    const config = { alertmanager: [hook.url], webhooks: [{ url: `${hook.url}/in` }] };
    const first = open(config);
    first.notify(confirmed);
    await settled(first);
    await first.close();
    hook.received.length = 0;
    bench.hush = () => ({ how: "muted", who: "ada", why: "maintenance" });
    const next = open({ ...config, webhooks: [...config.webhooks, { url: `${hook.url}/new` }] });
    next.notify(confirmed);
    const paths = () => hook.received.map(({ path }) => path);
    await bench.until(() => paths().length >= 2, "the alert and its silence");
    await bench.advance(60_000);
    await bench.until(() => paths().length >= 4, "both again");
    // Nobody else hears of it, a receiver that is new neither.
    expect(new Set(paths())).toEqual(new Set(["/api/v2/alerts", "/api/v2/silences"]));
    // One that it was never told of stays unsaid.
    hook.received.length = 0;
    next.notify(testIncident({ id: "llama.r1.hang.i900" }));
    await settled(next);
    expect(hook.received.filter(({ body }) => body.includes("i900"))).toEqual([]);
  });

  it("that nobody heard of ends without a word", async () => {
    const alerts = open({ webhooks: [{ url: hook.url }] });
    bench.hush = () => ({ how: "muted", who: "ada", why: "" });
    alerts.notify(confirmed);
    alerts.notify(resolvedAt(bench.nowMs));
    await bench.advance(3_600_000);
    expect(events()).toEqual([]);
  });

  it("is said once where it is acknowledged at once", async () => {
    const alerts = open({ webhooks: [{ url: hook.url }] });
    bench.hush = () => ({ how: "acknowledged", who: "ada", why: "" });
    alerts.notify(confirmed);
    await settled(alerts);
    expect(events()).toEqual(["confirmed"]);
  });
});
