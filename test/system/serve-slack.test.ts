/** Buttons of Slack messages: a Slack that signs its requests, or somebody who pretends to be it. */
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openService } from "../../src/cli/open-service.ts";
import type { AuditRow } from "../../src/history/history.ts";
import type { AlertsConfig } from "../../src/live/service/alerts/types.ts";
import { readServeConfig } from "../../src/live/service/config/config.ts";
import { makeAuthorizer } from "../../src/live/service/http/authorize.ts";
import { serveHttp } from "../../src/live/service/http/serve-http.ts";
import { slackMessage } from "../../src/live/service/slack/message.ts";
import { signedOf, SlackSignatures } from "../../src/live/service/slack/signature.ts";
import { SlackApp } from "../../src/live/service/slack/slack-app.ts";
import { Refusal } from "../../src/live/service/view.ts";
import { Workflow } from "../../src/live/service/workflow/workflow.ts";
import { INCIDENT, NOW_MS, testView } from "../support/serve-view.ts";

const stops: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const PATIENT = { timeout: 60_000 };
const SECRET = "8f742231b10e8888abcd99yyyzzz85a5";
const REPLY = "https://hooks.slack.com/actions/T1/2/abc";
const ALERTS: AlertsConfig = {
  alertmanager: [],
  webhooks: [],
  slack: [{ url: "https://hooks.slack.com/services/T1/B1/x" }],
  externalUrl: "https://f.example",
  slackApp: {
    signingSecret: SECRET,
    people: [
      { team: "T1", user: "U1", jobs: null },
      { team: "T1", user: "U2", jobs: ["x-*"] },
      { team: "T2", user: null, jobs: ["llama"] },
    ],
  },
};

let url: string;
let app: SlackApp;
let workflow: Workflow;
let rows: AuditRow[];
let refused: (readonly unknown[])[];
let nowMs: number;
let isAway: boolean;
let logged: string[];
/** What Slack was sent by its response URLs. */
let replies: { readonly url: string; readonly body: Reply }[];
interface Reply {
  readonly replace_original: boolean;
  readonly response_type?: string;
  readonly text: string;
  readonly blocks?: readonly { type: string; text?: { text: string }; elements?: Element[] }[];
}
interface Element {
  readonly action_id: string;
  readonly url?: string;
}

beforeEach(async () => {
  [rows, refused, replies, logged, nowMs, isAway] = [[], [], [], [], NOW_MS, false];
  let ids = 0;
  workflow = new Workflow({
    nowMs: () => nowMs,
    newId: () => `id${ids++}`,
    history: {
      audit: async ({ incident }) =>
        rows.filter((row) => incident === undefined || row.incident === incident).reverse(),
      putAudit: async (row) => {
        if (isAway) throw new Error("away");
        rows.push(row);
      },
    },
    incident: async (id) => (id === INCIDENT.id ? INCIDENT : null),
    machines: async () => ["node7"],
    changed: () => undefined,
  });
  const { view } = testView({
    handling: async (id) => (id === INCIDENT.id ? await workflow.commented(id) : null),
    handle: (...asked) => workflow.handle(...asked),
    mutes: () => workflow.mutes(),
    mute: (...asked) => workflow.mute(...asked),
    note: async (...row) => void refused.push(row),
  });
  app = new SlackApp({
    alerts: ALERTS,
    view,
    nowMs: () => nowMs,
    log: (line) => logged.push(line),
    fetch: async (to, { body }) => {
      replies.push({ url: to, body: JSON.parse(body as string) as Reply });
      return new Response("ok");
    },
  });
  const auth = makeAuthorizer({
    tokens: [],
    publicRead: false,
    allowedHosts: [],
    host: "127.0.0.1",
    insecure: false,
    tls: false,
    nowMs: () => nowMs,
  });
  const side = await serveHttp({
    view,
    auth,
    slackApp: app,
    host: "127.0.0.1",
    port: 0,
    tls: null,
    nowMs: () => nowMs,
    version: "1",
    log: (line) => logged.push(line),
  });
  stops.push(() => side.close());
  url = `${side.url}/slack/interactivity`;
});

interface Clicked {
  readonly button?: string;
  readonly user?: object;
  readonly incident?: string;
  readonly replyUrl?: string;
}

let clicks = 0;
function formOf({ button = "acknowledge", user, incident, replyUrl = REPLY }: Clicked = {}) {
  const payload = {
    type: "block_actions",
    user: { id: "U1", username: "ada", name: "ada", team_id: "T1", ...user },
    team: { id: "T1", domain: "example" },
    response_url: replyUrl,
    trigger_id: String(clicks++),
    actions: [{ type: "button", action_id: `faultline-${button}`, value: incident ?? INCIDENT.id }],
  };
  return new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
}

const signed = (form: string, atS: number, secret = SECRET): Record<string, string> => ({
  "content-type": "application/x-www-form-urlencoded",
  "x-slack-request-timestamp": String(atS),
  "x-slack-signature": `v0=${createHmac("sha256", secret).update(`v0:${atS}:${form}`).digest("hex")}`,
});

async function send(form: string, headers = signed(form, nowMs / 1000)): Promise<number> {
  return (await fetch(url, { method: "POST", headers, body: form })).status;
}

/** Presses a button as Slack would say it, and waits for what comes of it. */
async function press(clicked: Clicked = {}): Promise<Reply> {
  const before = replies.length;
  expect(await send(formOf(clicked))).toBe(200);
  await expect.poll(() => replies.length, PATIENT).toBe(before + 1);
  return replies.at(-1)!.body;
}

const done = (): string[] => rows.map(({ who, what, incident }) => `${who} ${what} ${incident}`);
const buttonsOf = ({ blocks = [] }: Pick<Reply, "blocks">): string[] =>
  blocks.flatMap(({ elements = [] }) => elements.map(({ action_id: id }) => id.slice(10)));
const textOf = ({ blocks = [] }: Reply): string =>
  blocks.flatMap(({ text }) => text?.text ?? []).join("\n");

describe("a message to Slack", () => {
  it("has buttons where an app is configured, and none elsewhere", () => {
    const message = slackMessage(INCIDENT, "confirmed", ALERTS) as unknown as Reply;
    expect(buttonsOf(message)).toEqual(["acknowledge", "mute", "right", "wrong", "open"]);
    const open = message.blocks!.flatMap(({ elements = [] }) => elements).at(-1)!;
    expect(open.url).toBe(`https://f.example/#/incidents/${INCIDENT.id}`);
    // Nothing of a log becomes markup, in any of its texts.
    expect(JSON.stringify(message)).not.toMatch(/[<>\u202e\u009b]/);
    expect(slackMessage(INCIDENT, "confirmed", { ...ALERTS, slackApp: null })).not.toHaveProperty(
      "blocks",
    );
    const over = { ...INCIDENT, state: "resolved", verdict: null } as const;
    const bare = slackMessage(over, "resolved", { ...ALERTS, externalUrl: null });
    expect(JSON.stringify(bare)).not.toContain("actions");
  });

  it("keeps within Slack's limit of a section", () => {
    const summary = "x".repeat(5000);
    const why = "y".repeat(5000);
    const verdict = {
      ...INCIDENT.verdict!,
      suspects: [{ ...INCIDENT.verdict!.suspects[0]!, why }],
    };
    const actions = Array.from({ length: 4 }, () => ({ do: "a", target: "b", why }));
    const long = { ...INCIDENT, summary, verdict: { ...verdict, actions } };
    const { blocks } = slackMessage(long, "confirmed", ALERTS) as unknown as Reply;
    expect(blocks![0]!.text!.text.length).toBeLessThanOrEqual(3000);
    expect(blocks![0]!.text!.text).toMatch(/…$/);
  });
});

describe("a click in Slack", () => {
  it("acknowledges under the person's name, once, and shows it in the message", async () => {
    const reply = await press();
    expect(done()).toEqual([`slack:U1 (ada) acknowledge ${INCIDENT.id}`]);
    expect(workflow.hush(INCIDENT)).toMatchObject({ how: "acknowledged", who: "slack:U1 (ada)" });
    expect(reply.replace_original).toBe(true);
    expect(replies[0]!.url).toBe(REPLY);
    expect(textOf(reply)).toContain("Acknowledged by slack:U1 (ada), 2026-11-16 12:00 UTC.");
    expect(buttonsOf(reply)).toEqual(["mute", "right", "wrong", "open"]);
    // A double click, and a second person: the message is brought up to date, and nothing is done twice.
    await press();
    await press({ user: { id: "U9", team_id: "T2", username: "eve" } });
    expect(done()).toHaveLength(1);
  });

  it("does a double click once, however close the two are", async () => {
    const both = [formOf({ button: "mute" }), formOf({ button: "mute" })];
    expect(await Promise.all(both.map((form) => send(form)))).toEqual([200, 200]);
    await expect.poll(() => replies.length, PATIENT).toBe(2);
    expect(workflow.mutes()).toHaveLength(1);
  });

  it("mutes for an hour what the incident is about, and nothing wider", async () => {
    const reply = await press({ button: "mute" });
    const [mute] = workflow.mutes();
    expect(mute).toMatchObject({ job: "llama", cause: "gpu-slow", untilMs: NOW_MS + 3_600_000 });
    expect(mute!.who).toBe("slack:U1 (ada)");
    expect(workflow.hush(INCIDENT)).toMatchObject({ how: "muted" });
    expect(textOf(reply)).toContain("Muted until 2026-11-16 13:00 UTC by slack:U1 (ada).");
    expect(buttonsOf(reply)).not.toContain("mute");
    nowMs += 30 * 60_000;
    await press({ button: "mute" });
    expect(workflow.mutes()).toHaveLength(2);
  });

  it("judges right and wrong; who changes their mind is believed", async () => {
    const right = await press({ button: "right" });
    expect(buttonsOf(right)).toEqual(["acknowledge", "mute", "wrong", "open"]);
    await press({ button: "right" });
    const wrong = await press({ button: "wrong" });
    expect(textOf(wrong)).toContain("slack:U1 (ada) says that this is wrong.");
    expect(rows.map(({ what, detail }) => [what, detail.slice(0, 15)])).toEqual([
      ["judge", '{"isRight":true'],
      ["judge", '{"isRight":fals'],
    ]);
    expect((await workflow.handling(INCIDENT.id)).judgement?.isRight).toBe(false);
  });

  it("keeps what was said in more words on the page, and makes a team's word everybody's", async () => {
    const team = { id: "U3", team_id: "T2", username: "bob" };
    await press({ button: "wrong", user: team });
    await press({ button: "wrong" });
    expect((await workflow.handling(INCIDENT.id)).judgement).toMatchObject({ jobs: null });
    const judge = { do: "judge", isRight: false, machine: "node7", cause: "network-slow" } as const;
    await workflow.handle(INCIDENT.id, judge, "grace");
    await press({ button: "wrong" });
    expect((await workflow.handling(INCIDENT.id)).judgement).toMatchObject({ machine: "node7" });
    // Of a team nobody changes what others have said.
    expect((await press({ button: "right", user: team })).text).toMatch(
      /^Right: somebody has judged it already/,
    );
    expect(rows).toHaveLength(3);
  });

  it("on the link is answered, and does nothing", async () => {
    expect(await send(formOf({ button: "open" }))).toBe(200);
    await press({ button: "right" });
    expect(replies).toHaveLength(1);
  });

  it("is refused where the person may not, with a row of the audit trail", async () => {
    for (const user of [{ id: "U7" }, { team_id: "T9" }, { id: "U2" }]) {
      const reply = await press({ user });
      expect(reply).toMatchObject({ response_type: "ephemeral", replace_original: false });
    }
    expect(replies.map(({ body }) => body.text)).toEqual([
      "Acknowledge: U7 of T1 is not among alerts.slackApp.people.",
      "Acknowledge: U1 of T9 is not among alerts.slackApp.people.",
      // Of other jobs: whether there is such an incident is not for them.
      "Acknowledge: there is no such incident.",
    ]);
    expect(refused.map(([who, what, id]) => [who, what, id])).toEqual([
      ["slack:U7 (ada)", "refuse", INCIDENT.id],
      ["slack:U1 (ada)", "refuse", INCIDENT.id],
      ["slack:U2 (ada)", "refuse", INCIDENT.id],
    ]);
    expect(rows).toEqual([]);
    // From the next click on others may.
    app.reload({ ...ALERTS, slackApp: { ...ALERTS.slackApp!, people: [] } });
    await press();
    expect(rows).toEqual([]);
  });

  it("of somebody who sees some jobs counts for these", async () => {
    await press({ button: "right", user: { id: "U3", team_id: "T2", username: "bob" } });
    expect(JSON.parse(rows[0]!.detail)).toMatchObject({ isRight: true, jobs: ["llama"] });
  });

  it("is answered with the reason where it cannot be done", async () => {
    expect((await press({ incident: "llama.a1.hang.i1" })).text).toBe(
      "Acknowledge: there is no such incident.",
    );
    isAway = true;
    expect((await press()).text).toMatch(/^Acknowledge: it cannot be written down at the moment/);
    expect(rows).toEqual([]);
  });

  it("carries no name that could be taken for markup or another line", async () => {
    await press({ user: { username: `<!here>\n${"x".repeat(200)}` } });
    expect(rows[0]!.who).toMatch(/^slack:U1 \(<!here>\ufffdx{50,}…\)$/);
    expect(JSON.stringify(replies[0]!.body)).not.toMatch(/<|@here/);
  });
});

it("takes the example of Slack's documentation", () => {
  const body =
    "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
  const timestamp = "1531420618";
  const signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
  const headers = { "x-slack-request-timestamp": timestamp, "x-slack-signature": signature };
  const atMs = 1000 * Number(timestamp) + 300_000;
  const found = signedOf(headers, atMs);
  expect(() => new SlackSignatures().check(SECRET, found, body, atMs)).not.toThrow();
  expect(() => new SlackSignatures().check(SECRET, found, `${body}x`, atMs)).toThrow(Refusal);
});

describe("a request that is not Slack's", () => {
  const nothingWasDone = async (): Promise<void> => {
    // A right one afterwards is done first and alone.
    await press();
    expect(done()).toEqual([`slack:U1 (ada) acknowledge ${INCIDENT.id}`]);
    expect(logged.join("\n")).not.toContain(SECRET);
  };

  it("is refused: wrong, missing and foreign signatures", async () => {
    const form = formOf();
    const right = signed(form, nowMs / 1000);
    expect(await send(form, signed(form, nowMs / 1000, "another"))).toBe(401);
    expect(await send(`${form}&x=1`, right)).toBe(401);
    for (const changed of [
      { "x-slack-signature": "" },
      { "x-slack-signature": right["x-slack-signature"]!.slice(0, -1) },
      { "x-slack-signature": right["x-slack-signature"]!.toUpperCase() },
      { "x-slack-request-timestamp": "" },
      { "x-slack-request-timestamp": String(nowMs / 1000 + 1) },
    ])
      expect([changed, await send(form, { ...right, ...changed })]).toEqual([changed, 401]);
    await nothingWasDone();
  });

  it("is refused: old, of the future, and sent again", async () => {
    const stale = formOf();
    for (const ageS of [301, -301])
      expect(await send(stale, signed(stale, nowMs / 1000 - ageS))).toBe(401);
    const form = formOf({ button: "mute" });
    const headers = signed(form, nowMs / 1000);
    expect(await send(form, headers)).toBe(200);
    await expect.poll(() => replies.length, PATIENT).toBe(1);
    for (const laterMs of [0, 299_000]) {
      nowMs = NOW_MS + laterMs;
      expect(await send(form, headers)).toBe(409);
    }
    nowMs = NOW_MS + 301_000;
    expect(await send(form, headers)).toBe(401);
    expect(workflow.mutes()).toHaveLength(1);
  });

  it("is refused: too large, of another type, without a click, from a page", async () => {
    const huge = `payload=${"x".repeat(300 << 10)}`;
    expect(await send(huge)).toBe(413);
    const form = formOf();
    const headers = signed(form, nowMs / 1000);
    expect(await send(form, { ...headers, "content-type": "application/json" })).toBe(415);
    expect(await send(form, { ...headers, origin: "https://evil.example" })).toBe(403);
    for (const body of ["", "payload=", "payload=[]", "payload=%7B%22type%22%3A%22shortcut%22%7D"])
      expect([body, await send(body)]).toEqual([body, 400]);
    expect(await send(formOf({ button: "cordon" }))).toBe(400);
    await nothingWasDone();
  });

  it("sends us nowhere else, whatever it says", async () => {
    for (const replyUrl of [
      "http://hooks.slack.com/actions/x",
      "https://hooks.slack.com.evil.example/",
      "https://hooks.slack.com@evil.example/",
      "https://169.254.169.254/latest",
      "file:///etc/passwd",
    ])
      expect([replyUrl, await send(formOf({ replyUrl }))]).toEqual([replyUrl, 400]);
    await nothingWasDone();
    expect(replies.map((one) => one.url)).toEqual([REPLY]);
  });

  it("finds nothing where no app is configured", async () => {
    app.reload({ ...ALERTS, slackApp: null });
    expect(await send(formOf())).toBe(404);
  });
});

it("a Refusal is what people read, and no other error", async () => {
  const { view } = testView({
    incident: async () => {
      throw new Error("password=hunter2");
    },
  });
  const sent: string[] = [];
  const lines: string[] = [];
  const alone = new SlackApp({
    alerts: ALERTS,
    view,
    nowMs: () => nowMs,
    log: (line) => lines.push(line),
    fetch: async (_, { body }) => {
      sent.push(body as string);
      return new Response(null, { status: 404 });
    },
  });
  const form = formOf();
  await alone.take(signed(form, nowMs / 1000), async () => form);
  await expect.poll(() => lines.length, PATIENT).toBe(2);
  expect(sent[0]).toContain("see the service's log");
  expect(sent[0]).not.toContain("hunter2");
  expect(lines[1]).toBe("Slack answered 404; the message shows an old state");
  await expect(alone.take({}, async () => form)).rejects.toThrow(Refusal);
});

it("is there in a service that runs, and follows its configuration without a restart", async () => {
  const folder = mkdtempSync(join(tmpdir(), "faultline-slack-"));
  stops.push(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "serve.json");
  const slackApp = { signingSecret: "env:S", people: [{ team: "T7" }] };
  const alerts = { slack: [{ url: "http://127.0.0.1:9/hook" }], slackApp };
  writeFileSync(file, JSON.stringify({ port: 0, data: "data", alerts }));
  const configOf = (secret: string) => readServeConfig(file, {}, { HOME: folder, S: secret });
  const screen = { write: () => undefined };
  const io = { out: screen, err: screen, env: {} };
  const lines: string[] = [];
  const service = await openService(io, configOf(SECRET), {
    hangMs: 30_000,
    version: "1",
    log: (line) => lines.push(line),
  });
  stops.push(() => service.close());
  url = `${service.url}/slack/interactivity`;
  nowMs = Math.floor(Date.now() / 1000) * 1000;
  // Without a place to answer to: nothing leaves the machine.
  const form = formOf().replace(/%22response_url.*?%2C/, "");
  expect(form).not.toContain("hooks.slack.com");
  expect(await send(form, signed(form, nowMs / 1000, "wrong"))).toBe(401);
  expect(await send(form)).toBe(200);
  const trail = async () =>
    (await service.view.audit({ most: 10 })).map(({ who, what, detail }) => [who, what, detail]);
  const why = "POST /slack/interactivity: U1 of T1 is not among alerts.slackApp.people";
  await expect.poll(trail, PATIENT).toEqual([["slack:U1 (ada)", "refuse", why]]);
  await service.reload(configOf("another-secret"));
  expect(await send(formOf())).toBe(401);
  expect(lines.join("\n")).not.toContain("secret");
});
