import { expect, it } from "vitest";
import { DIGEST } from "../../../../test/support/serve-view.ts";
import type { AlertsConfig } from "../alerts/types.ts";
import { SCHEMAS } from "../http/schemas.ts";
import { lastDue, WeeklyDigest } from "./weekly-digest.ts";

const at = (text: string): number => Date.parse(`${text}Z`);
const MONDAY_8 = { day: 1, hour: 8 };
const ALERTS: AlertsConfig = {
  alertmanager: [],
  webhooks: [{ url: "https://hook.example/x", header: "Authorization: Bearer s" }],
  slack: [{ url: "https://slack.example/y" }],
  externalUrl: "https://faultline.example/",
  digest: MONDAY_8,
};

function bench(documents = new Map<string, unknown>()) {
  const clock = { nowMs: at("2026-11-10T12:00:00") };
  const sent: { url: string; headers: Record<string, string>; body: Record<string, unknown> }[] =
    [];
  const asked: (readonly [fromMs: number, toMs: number])[] = [];
  let status = 200;
  let ids = 0;
  const digest = new WeeklyDigest({
    alerts: () => ALERTS,
    digest: async (...times) => (asked.push(times), DIGEST),
    history: {
      document: async (key) => documents.get(key) ?? null,
      putDocument: async (key, document) => void documents.set(key, document),
    },
    pause: async () => undefined,
    nowMs: () => clock.nowMs,
    newId: () => `${documents.size}-${ids++}-${Math.random()}`,
    fetch: async (url, { headers, body }) => {
      sent.push({
        url,
        headers: headers as Record<string, string>,
        body: JSON.parse(body as string) as Record<string, unknown>,
      });
      return new Response("ok", { status });
    },
    log: () => undefined,
  });
  const lookAt = async (text: string): Promise<number> => {
    clock.nowMs = at(text);
    const before = sent.length;
    await digest.look();
    return sent.length - before;
  };
  return { digest, sent, asked, documents, lookAt, fail: () => (status = 503) };
}

it("is due at its hour of its day, once a week", () => {
  expect(lastDue(MONDAY_8, at("2026-11-16T08:00:00"))).toBe(at("2026-11-16T08:00:00"));
  expect(lastDue(MONDAY_8, at("2026-11-16T07:59:59"))).toBe(at("2026-11-09T08:00:00"));
  expect(lastDue({ day: 0, hour: 0 }, at("2026-11-21T23:00:00"))).toBe(at("2026-11-15T00:00:00"));
});

it("goes to webhooks and Slack when its hour comes, and not again, also after a restart", async () => {
  const one = bench();
  // The first week of a new service is not over.
  expect(await one.lookAt("2026-11-10T12:00:00")).toBe(0);
  expect(await one.lookAt("2026-11-16T07:59:00")).toBe(0);
  expect(await one.lookAt("2026-11-16T08:00:30")).toBe(2);
  expect(one.asked).toEqual([[at("2026-11-09T08:00:00"), at("2026-11-16T08:00:00")]]);
  expect(one.sent[0]).toMatchObject({
    url: "https://hook.example/x",
    headers: {
      Authorization: "Bearer s",
      "x-faultline-event": "digest",
      "x-faultline-delivery": "digest-2026-11-16T08:00:00.000Z",
    },
    body: { event: "digest", url: "https://faultline.example/#/site", digest: DIGEST },
  });
  expect(SCHEMAS.DigestWebhook.parse(one.sent[0]!.body)).toEqual(one.sent[0]!.body);
  // Slack draws no tables.
  const text = String(one.sent[1]!.body["text"]);
  expect(text).toContain("3 incidents");
  expect(text).not.toMatch(/\||^#/m);
  expect(await one.lookAt("2026-11-16T08:01:30")).toBe(0);
  expect(await bench(one.documents).lookAt("2026-11-17T08:00:00")).toBe(0);
  // Away for days: left out, and the next one comes.
  expect(await one.lookAt("2026-11-25T12:00:00")).toBe(0);
  expect(await one.lookAt("2026-11-30T08:00:00")).toBe(2);
});

it("is sent by one of the services that share a history, and tried again a few times", async () => {
  const one = bench();
  await one.lookAt("2026-11-10T12:00:00");
  const two = bench(one.documents);
  const all = await Promise.all([one, two].map((each) => each.lookAt("2026-11-16T08:00:00")));
  expect(all.reduce((sum, sent) => sum + sent, 0)).toBe(2);
  one.fail();
  expect(await one.lookAt("2026-11-23T08:00:00")).toBe(6);
});

it("ends at its hour also where it is sent late, so that no incident is in two", async () => {
  const one = bench();
  await one.lookAt("2026-11-10T12:00:00");
  expect(await one.lookAt("2026-11-16T20:00:00")).toBe(2);
  expect(await one.lookAt("2026-11-23T08:00:00")).toBe(2);
  const [first, second] = one.asked;
  expect(first).toEqual([at("2026-11-09T08:00:00"), at("2026-11-16T08:00:00")]);
  expect(second![0]).toBe(first![1]);
});
