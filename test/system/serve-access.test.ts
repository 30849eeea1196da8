/** Who may do what, over every route of the table: scopes, tokens of a team, read-only links, the audit trail. */
import { createHash } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import type { AuditRow } from "../../src/history/history.ts";
import { type Scope, SCOPES } from "../../src/live/service/access/grants.ts";
import { Links } from "../../src/live/service/access/links.ts";
import { LINKED_PATHS } from "../../src/live/service/http/admit.ts";
import { makeAuthorizer, type Token } from "../../src/live/service/http/authorize.ts";
import type { Route } from "../../src/live/service/http/route.ts";
import { ROUTES } from "../../src/live/service/http/routes.ts";
import { serveHttp } from "../../src/live/service/http/serve-http.ts";
import type { LiveEvent, ServiceView } from "../../src/live/service/view.ts";
import type { Digest } from "../../src/model/digest.ts";
import type { Mute } from "../../src/model/handling.ts";
import type { SiteLabels, SiteReport } from "../../src/model/site.ts";
import { fitsAny } from "../../src/base/patterns.ts";
import {
  HANDLING,
  INCIDENT,
  JOB,
  NOW_MS,
  PICTURE,
  REPORT,
  testView,
} from "../support/serve-view.ts";

const stops: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const secretOf = (name: string): string => `${name}-secret-0123456789`;
const token = (
  name: string,
  scopes: readonly Scope[],
  jobs: readonly string[] | null = null,
): Token => ({
  name,
  scopes,
  jobs,
  agent: null,
  sha256: createHash("sha256").update(secretOf(name)).digest("hex"),
});
const TOKENS: readonly Token[] = [
  token("agent", ["agent"]),
  token("read", ["read"]),
  token("act", ["act"]),
  token("team-l", SCOPES, ["ll?ma*"]),
  token("team-x", SCOPES, ["x-*"]),
];

async function start(changed: Partial<ServiceView> = {}) {
  const made = testView(changed);
  const clock = { nowMs: NOW_MS };
  const rules = { tokens: TOKENS, publicRead: false, allowedHosts: ["127.0.0.1"] };
  const auth = makeAuthorizer({
    ...rules,
    host: "10.0.0.1",
    insecure: false,
    tls: false,
    nowMs: () => clock.nowMs,
  });
  const side = await serveHttp({
    view: made.view,
    auth,
    host: "127.0.0.1",
    port: 0,
    tls: null,
    nowMs: () => clock.nowMs,
    version: "1",
    log: () => undefined,
  });
  stops.push(() => side.close());
  return { ...made, ...side, auth, rules, clock };
}

const BODIES: Readonly<Record<string, unknown>> = {
  LinkBody: {},
  ActionBody: { verb: "approve" },
  HandlingBody: { do: "comment", text: "seen" },
  MuteBody: { job: "llama", untilMs: NOW_MS + 1e6, why: "new firmware" },
  SiteRecordBody: { line: "a b", title: "t", action: "call", cause: "storage" },
  SiteForgetBody: { job: "llama/r1" },
  SiteStore: { schema: "faultline.logs-store/1" },
  MicroBatchReport: { run: "r1", iteration: 1, counts: [2, 2], seconds: [1, null] },
};

async function ask(
  url: string,
  route: Pick<Route, "method" | "path" | "body">,
  bearer: string | null,
  { job = JOB.job, id = INCIDENT.id } = {},
): Promise<{ status: number; text: string }> {
  const path = route.path
    .replace(":job", job)
    .replace(":id", id)
    .replace(":action", "cordon-node0")
    .replace(":file", "none.js")
    .replace(/\/plan$/, "/plan?iteration=1&run=r1&replicas=2&total=4");
  const stop = new AbortController();
  const response = await fetch(url + path, {
    method: route.method.toUpperCase(),
    redirect: "manual",
    signal: stop.signal,
    headers: {
      ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      ...(route.method === "post" ? { "content-type": "application/json" } : {}),
    },
    ...(route.method === "post" ? { body: JSON.stringify(BODIES[route.body ?? ""] ?? {}) } : {}),
  });
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("event: snapshot")) text += (await reader.read()).value ?? "";
    while (!text.endsWith("\n\n")) text += (await reader.read()).value ?? "";
    stop.abort();
    return { status: response.status, text };
  }
  return { status: response.status, text: await response.text() };
}

const nameOf = ({ method, path }: Route): string => `${method} ${path}`;
const GUARDED = ROUTES.filter(({ needs }) => needs !== "nothing");

describe("scopes", () => {
  it("lets nobody in without a token but at these paths", () => {
    expect(ROUTES.filter(({ needs }) => needs === "nothing").map(nameOf)).toEqual([
      "get /",
      "get /assets/:file",
      "get /healthz",
      "get /api/v1/openapi.json",
      "get /api/v1/session",
      "get /auth/login",
      "get /auth/callback",
      "post /auth/logout",
      "post /slack/interactivity",
    ]);
  });

  it("refuses each route without a token, with a wrong one, and with each scope but its own", async () => {
    const { url, asked, clock } = await start();
    for (const route of GUARDED) {
      const needed = route.needs === "metrics" ? "read" : route.needs;
      expect([nameOf(route), (await ask(url, route, null)).status]).toEqual([nameOf(route), 401]);
      clock.nowMs += 60_000;
      const wrong = await ask(url, route, "wrong-secret-0123456789");
      expect([nameOf(route), wrong.status]).toEqual([nameOf(route), 401]);
      for (const scope of SCOPES.filter((one) => one !== needed)) {
        const before = asked.filter(({ what }) => what !== "note").length;
        const { status, text } = await ask(url, route, secretOf(scope));
        expect([nameOf(route), scope, status]).toEqual([nameOf(route), scope, 403]);
        expect(text).toContain(`the token \\"${scope}\\" does not have the scope ${needed}`);
        // Nothing was asked of the service.
        expect(asked.filter(({ what }) => what !== "note").length).toBe(before);
      }
      const right = await ask(url, route, secretOf(needed));
      expect([nameOf(route), right.status]).toEqual([nameOf(route), 200]);
    }
  });

  it("writes tokens that nobody knows into the audit trail, once a minute, and who read the export", async () => {
    const { url, asked, clock } = await start();
    const route = GUARDED.find(({ path }) => path === "/api/v1/jobs")!;
    const exported = GUARDED.find(({ path }) => path === "/api/v1/site/export")!;
    const rows = () => asked.filter(({ what }) => what === "note").map(({ of }) => of);
    for (let i = 0; i < 30; i++) await ask(url, route, `guess-${i}-0123456789`);
    const row = ["anybody", "refuse", "", "a token that is not known, from 127.0.0.1"];
    expect(rows()).toEqual([row]);
    clock.nowMs += 120_000;
    await ask(url, route, "guess-0123456789");
    expect(rows().at(-1)!.at(-1)).toBe(`${row[3]}; 29 such requests before it have no row`);
    // A known token without the right is no guess.
    await ask(url, route, secretOf("act"));
    expect(rows()).toHaveLength(2);
    for (let i = 0; i < 2; i++) await ask(url, exported, secretOf("read"));
    await ask(url, exported, secretOf("team-l"));
    expect(rows().slice(2)).toEqual([["read", "export-logs", "", "what was learnt of logs"]]);
  });

  it("writes refused actions into the audit trail, once a minute for each", async () => {
    const { url, asked, clock } = await start();
    const [route] = ROUTES.filter(({ path }) => path.endsWith("/actions/:action"));
    const rows = () => asked.filter(({ what }) => what === "note").map(({ of }) => of);
    for (let i = 0; i < 3; i++) await ask(url, route!, secretOf("read"));
    await ask(url, route!, null);
    const why = 'the token "read" does not have the scope act';
    const row = ["read", "refuse", INCIDENT.id, `POST ${route!.path}: ${why}`];
    expect(rows()).toEqual([row]);
    clock.nowMs += 60_000;
    await ask(url, route!, secretOf("read"));
    const more = "; 2 such requests before it have no row";
    expect(rows()).toEqual([row, [...row.slice(0, 3), `${row[3]}${more}`]]);
    // Reading that is refused is no action.
    await ask(
      url,
      GUARDED.find(({ path }) => path === "/api/v1/jobs")!,
      secretOf("act"),
    );
    expect(rows()).toHaveLength(2);
    // Acting on what is another team's, and on all of them.
    await ask(url, route!, secretOf("team-x"));
    await ask(
      url,
      ROUTES.find(({ path }) => path === "/api/v1/actions/off")!,
      secretOf("team-x"),
    );
    expect(rows().slice(2)).toEqual([
      ["team-x", "refuse", INCIDENT.id, `POST ${route!.path}: there is no such incident`],
      [
        "team-x",
        "refuse",
        "",
        "POST /api/v1/actions/off: the token is for some jobs only, and this is about all",
      ],
    ]);
  });

  it("writes each incident that somebody reached for, whatever they tried before, and few in all", async () => {
    const { url, asked } = await start();
    const reach = (id: string): Promise<unknown> =>
      fetch(`${url}/api/v1/incidents/${id}/handling`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${secretOf("team-x")}`,
          "content-type": "application/json",
        },
        body: '{"do": "acknowledge"}',
      });
    await reach("x.r1.hang.i1");
    await reach(INCIDENT.id);
    const ids = () => asked.flatMap(({ what, of }) => (what === "note" ? [of[2]] : []));
    expect(ids()).toEqual(["x.r1.hang.i1", INCIDENT.id]);
    for (let i = 0; i < 30; i++) await reach(`x.r1.hang.i${i}`);
    expect(ids()).toHaveLength(10);
  });
});

/** What a token for other jobs gets at each route that needs one: a status, or what the answer holds. */
const FOREIGN: Readonly<Record<string, number | object | RegExp>> = {
  "get /metrics": /^(?![\s\S]*llama)[\s\S]*faultline_jobs 0\n/,
  "get /api/v1/events": /"jobs":\[\],"incidents":\[\]/,
  "get /api/v1/agents": { agents: [] },
  "get /api/v1/incidents/:id/handling": 404,
  "post /api/v1/incidents/:id/handling": 404,
  "get /api/v1/handling": { handlings: [] },
  "get /api/v1/digest": { incidents: 0 },
  // A mute of all jobs silences theirs, too.
  "get /api/v1/mutes": /^\{"mutes":\[\{"id":"m2"[^}]*"who":"hidden","why":"hidden"\}\]\}$/,
  "post /api/v1/mutes": 403,
  "post /api/v1/mutes/:id/end": 404,
  "get /api/v1/site": { judged: 0 },
  "get /api/v1/site/labels": { labels: [] },
  "post /api/v1/site/records": 403,
  "post /api/v1/site/records/:id/remove": 403,
  "get /api/v1/site/export": 403,
  "post /api/v1/site/import": 403,
  "post /api/v1/site/forget": 403,
  "get /api/v1/jobs": { jobs: [] },
  "get /api/v1/jobs/:job": 404,
  "get /api/v1/jobs/:job/ranks": 404,
  "get /api/v1/jobs/:job/iterations": 404,
  "get /api/v1/incidents": { incidents: [], next: null },
  "get /api/v1/incidents/:id": 404,
  "get /api/v1/incidents/:id/history": 404,
  "get /api/v1/incidents/:id/picture": 404,
  "get /api/v1/incidents/:id/report": 404,
  "get /api/v1/offenders": { offenders: [] },
  "get /api/v1/audit": { audit: [], next: null },
  "post /api/v1/incidents/:id/links": 404,
  "post /api/v1/incidents/:id/links/revoke": 404,
  "post /api/v1/incidents/:id/actions/:action": 404,
  // Whether actions are on concerns everybody; only who sees all may change it.
  "get /api/v1/actions": { isOn: true, says: "", canRun: false },
  "post /api/v1/actions/off": 403,
  "post /api/v1/actions/on": 403,
  "get /v1/jobs/:job/plan": 403,
  "post /v1/jobs/:job/iterations": 403,
  "get /v1/jobs/:job": 404,
};

/** A store that minds patterns of jobs, as the real ones do (history-contract.ts). */
const patterned: Partial<ServiceView> = {
  incidents: async ({ jobs }) => (!jobs || fitsAny(INCIDENT.job, jobs) ? [INCIDENT] : []),
  offenders: async (_since, _most, jobs) =>
    !jobs || fitsAny(INCIDENT.job, jobs)
      ? [{ machine: "node0", incidents: 1, jobs: 1, lastMs: 1, causes: [] }]
      : [],
  audit: async ({ jobs }) => (!jobs || fitsAny(INCIDENT.job, jobs) ? [ROW] : []),
  digest: async (_since, jobs) =>
    ({ incidents: !jobs || fitsAny(INCIDENT.job, jobs) ? 1 : 0 }) as unknown as Digest,
  site: async (jobs) =>
    ({ judged: !jobs || fitsAny(INCIDENT.job, jobs) ? 1 : 0 }) as unknown as SiteReport,
  siteLabels: async (jobs) =>
    ({ labels: !jobs || fitsAny(INCIDENT.job, jobs) ? [1] : [] }) as unknown as SiteLabels,
  mutes: () => [MUTE, { ...MUTE, id: "m2", job: null }],
};
const MUTE: Mute = {
  id: INCIDENT.id,
  kind: "mute",
  job: INCIDENT.job,
  machine: null,
  cause: null,
  fromMs: 0,
  untilMs: 1,
  who: "on-call",
  why: "known",
};
const ROW: AuditRow = {
  id: "r1",
  atMs: NOW_MS,
  who: "on-call",
  what: "approve",
  incident: INCIDENT.id,
  action: "a1",
  detail: "",
};

describe("tokens of a team", () => {
  it("hides other jobs at every route", async () => {
    const { url, asked } = await start(patterned);
    expect(GUARDED.map(nameOf).sort()).toEqual(Object.keys(FOREIGN).sort());
    for (const route of GUARDED) {
      const { status, text } = await ask(url, route, secretOf("team-x"));
      const expected = FOREIGN[nameOf(route)]!;
      const got: unknown =
        typeof expected === "number"
          ? status
          : expected instanceof RegExp
            ? expected.test(text) || text
            : JSON.parse(text);
      expect([nameOf(route), got]).toEqual([
        nameOf(route),
        expected instanceof RegExp ? true : expected,
      ]);
      if (typeof expected === "number") expect(text).not.toMatch(/rank 3|node0|on-call/);
    }
    expect(asked.map(({ what }) => what).filter((what) => what !== "note")).toEqual([]);
  });

  it("shows its own at every route", async () => {
    const { url } = await start(patterned);
    for (const route of GUARDED) {
      const { status, text } = await ask(url, route, secretOf("team-l"));
      const isOfAll = /^.api.v1.(actions.o|site.(?!labels))/.test(route.path);
      expect([nameOf(route), status]).toEqual([nameOf(route), isOfAll ? 403 : 200]);
      const empty = FOREIGN[nameOf(route)];
      // Agents report many jobs: who sees some jobs sees no agents.
      const isSame = typeof empty === "object" && ("isOn" in empty || "agents" in empty);
      if (typeof empty === "object" && !(empty instanceof RegExp) && !isSame)
        expect(JSON.parse(text)).not.toEqual(empty);
    }
    const session = { method: "get", path: "/api/v1/session" } as const;
    expect(JSON.parse((await ask(url, session, secretOf("team-l"))).text)).toEqual({
      canSignIn: false,
      name: "team-l",
      scopes: ["read", "act"],
      jobs: ["ll?ma*"],
      link: null,
    });
  });

  it("mutes and merges no job of others, whatever the pattern", async () => {
    const { url, asked } = await start({
      ...patterned,
      incident: async (id) => (id === INCIDENT.id ? INCIDENT : { ...INCIDENT, id, job: "x-1" }),
    });
    const post = async (path: string, body: object): Promise<number> =>
      (
        await fetch(`${url}/api/v1${path}`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${secretOf("team-l")}`,
            "content-type": "application/json",
          },
          body: JSON.stringify(body),
        })
      ).status;
    const mute = (asks: object): Promise<number> =>
      post("/mutes", { untilMs: NOW_MS + 1e6, why: "w", ...asks });
    for (const job of ["x-1", "*", "ll*", "llama*", "ll?ma?", null])
      expect([job, await mute({ job, machine: "node0" })]).toEqual([job, 403]);
    for (const job of ["llama", "ll?ma*"]) expect([job, await mute({ job })]).toEqual([job, 200]);
    expect(await post("/mutes/m2/end", {})).toBe(403);
    const handling = `/incidents/${INCIDENT.id}/handling`;
    expect(await post(handling, { do: "merge", into: "x-1.a1.hang.1" })).toBe(404);
    expect(await post(handling, { do: "merge", into: INCIDENT.id })).toBe(200);
    expect(asked.filter(({ what }) => what === "handle" || what === "mute")).toHaveLength(3);
  });

  it("streams what is about its jobs, also to a reader that comes back, and ends with its rights", async () => {
    const { url, tell, auth, rules, recheck } = await start(patterned);
    const open = async (name: string, lastId = "") => {
      const response = await fetch(`${url}/api/v1/events`, {
        headers: {
          authorization: `Bearer ${secretOf(name)}`,
          ...(lastId === "" ? {} : { "last-event-id": lastId }),
        },
      });
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      const heard = { text: "", isOver: false };
      void (async () => {
        for (let part = await reader.read(); !part.done; part = await reader.read())
          heard.text += part.value;
      })()
        .catch(() => undefined)
        .finally(() => (heard.isOver = true));
      stops.push(() => reader.cancel().catch(() => undefined));
      return heard;
    };
    const rows = { iteration: [1], endMs: [1], durationMs: [1] };
    const events: LiveEvent[] = [
      { type: "job", job: JOB },
      { type: "incident", incident: INCIDENT },
      { type: "iterations", job: JOB.job, run: "a1", rows },
      { type: "agent", agent: "node0", connected: true },
      { type: "trouble", line: "llama lost an agent" },
      { type: "handling", job: JOB.job, handling: HANDLING },
      { type: "mutes", mutes: [MUTE] },
      { type: "actions", isOn: false, says: "off", canRun: true },
      { type: "job", job: { ...JOB, job: "x-1", incident: null } },
    ];
    const readers = {
      all: await open("read"),
      own: await open("team-l"),
      other: await open("team-x"),
    };
    const typesOf = (text: string): string[] =>
      [...text.matchAll(/^event: (\w+)$/gm)].map(([, type]) => type!);
    await expect.poll(() => Object.values(readers).every(({ text }) => text !== "")).toBe(true);
    const idOf = (text: string): string => /^id: (.+)$/m.exec(text)![1]!;
    for (const event of events) tell(event);
    const every = ["snapshot", ...events.map(({ type }) => type)];
    await expect.poll(() => typesOf(readers.all.text)).toEqual(every);
    await expect
      .poll(() => typesOf(readers.own.text))
      .toEqual(["snapshot", "job", "incident", "iterations", "handling", "mutes", "actions"]);
    await expect
      .poll(() => typesOf(readers.other.text))
      .toEqual(["snapshot", "mutes", "actions", "job"]);
    expect(readers.other.text).not.toContain("llama");

    const back = await open("team-x", idOf(readers.other.text));
    await expect.poll(() => typesOf(back.text)).toEqual(["mutes", "actions", "job"]);
    expect(back.text).not.toContain("llama");

    // Other jobs from now on: the readers with other rights are let go, the one as before stays.
    auth.reload({ ...rules, tokens: [TOKENS[1]!, token("team-x", SCOPES, ["y-*"])] });
    recheck();
    await expect
      .poll(() => [readers.own, readers.other, back].map((one) => one.isOver))
      .toEqual([true, true, true]);
    expect(readers.all.isOver).toBe(false);
    expect(
      (
        await fetch(`${url}/api/v1/jobs`, {
          headers: { authorization: `Bearer ${secretOf("team-l")}` },
        })
      ).status,
    ).toBe(401);
  });
});

describe("read-only links", () => {
  const LINKS = ROUTES.find(({ path }) => path === "/api/v1/incidents/:id/links")!;
  const REVOKE = ROUTES.find(({ path }) => path === "/api/v1/incidents/:id/links/revoke")!;

  function linked() {
    const documents = new Map<string, unknown>();
    const clock = { nowMs: NOW_MS };
    const store = {
      history: {
        document: async (key: string) => documents.get(key) ?? null,
        putDocument: async (key: string, document: unknown) => void documents.set(key, document),
      },
      nowMs: () => clock.nowMs,
      rightOf: (who: string, incident: string) => rules.rightOf(who, incident),
    };
    const rules = { rightOf: (who: string, _incident: string): string | null => who };
    return { rules, documents, clock, store, links: new Links(store) };
  }

  it("open one incident and its data, and nothing else", async () => {
    const { links } = linked();
    const other = { ...INCIDENT, id: "llama.a1.hang.i9" };
    const { url, asked } = await start({
      links,
      incident: async (id) => [INCIDENT, other].find((one) => one.id === id) ?? null,
    });
    const made = await ask(url, LINKS, secretOf("act"));
    expect(made.status).toBe(200);
    const { path, expiresMs } = JSON.parse(made.text) as { path: string; expiresMs: number };
    expect(expiresMs).toBe(NOW_MS + 7 * 86_400_000);
    expect(asked.filter(({ what }) => what === "note").map(({ of }) => of)).toEqual([
      ["act", "link", INCIDENT.id, "until 2026-11-23T12:00:00.000Z"],
    ]);
    const link = path.replace("/#/link/", "");
    const opened: string[] = [];
    for (const route of GUARDED) {
      const { status, text } = await ask(url, route, link);
      expect([nameOf(route), [200, 403].includes(status)]).toEqual([nameOf(route), true]);
      if (status === 200) opened.push(route.path);
      if (route.path === "/api/v1/incidents/:id") expect(JSON.parse(text)).toEqual(INCIDENT);
      if (route.path.endsWith("/picture")) expect(JSON.parse(text)).toEqual(PICTURE);
      if (route.path.endsWith("/report")) expect(text).toBe(REPORT);
      if (LINKED_PATHS.includes(route.path))
        expect((await ask(url, route, link, { id: other.id })).status).toBe(404);
    }
    expect(opened).toEqual(LINKED_PATHS);
    const session = { method: "get", path: "/api/v1/session" } as const;
    expect(JSON.parse((await ask(url, session, link)).text)).toMatchObject({
      name: null,
      scopes: [],
      link: { incident: INCIDENT.id, expiresMs },
    });
  });

  it("end with their time, with a revocation, and with any change of their text; restarts keep them", async () => {
    const { clock, store, links, documents } = linked();
    const { link } = await links.create("i1", 1000, "act");
    expect(await links.open(link)).toEqual({
      incident: "i1",
      who: "act",
      expiresMs: NOW_MS + 1000,
    });
    expect(await new Links(store).open(link)).not.toBeNull();
    for (let i = 0; i < link.length; i++) {
      const sign = link[i] === "A" ? "B" : "A";
      const forged = link.slice(0, i) + sign + link.slice(i + 1);
      // The last sign of the signature holds bits that say nothing.
      if (i < link.length - 1) expect([i, await links.open(forged)]).toEqual([i, null]);
    }
    const claims = Buffer.from('["i2",0,9e15,"act"]').toString("base64url");
    expect(await links.open(`fl1.${claims}.${link.split(".")[2]}`)).toBeNull();
    clock.nowMs += 1000;
    expect(await links.open(link)).toBeNull();

    const second = await links.create("i1", 1e6, "act");
    const others = await links.create("i2", 1e6, "act");
    await links.revoke("i1");
    const third = await links.create("i1", 1e6, "act");
    expect(await links.open(second.link)).toBeNull();
    expect(await links.open(others.link)).not.toBeNull();
    expect(await links.open(third.link)).not.toBeNull();
    // Another key: of another history.
    documents.delete("access/link-key");
    expect(await new Links(store).open(third.link)).toBeNull();
  });

  it("leave a row when they are opened, once a minute for each address", async () => {
    const { links } = linked();
    const { url, asked, clock } = await start({ links });
    const { link } = await links.create(INCIDENT.id, 1e6, "act");
    const route = ROUTES.find(({ path }) => path === "/api/v1/incidents/:id")!;
    for (let i = 0; i < 3; i++) await ask(url, route, link);
    const row = ["link", "open-link", INCIDENT.id, "made by act, opened from 127.0.0.1"];
    expect(asked.filter(({ what }) => what === "note").map(({ of }) => of)).toEqual([row]);
    clock.nowMs += 60_000;
    await ask(url, route, link);
    const left = `${row[3]}; 2 such requests before it have no row`;
    expect(asked.filter(({ what }) => what === "note").at(-1)?.of).toEqual([
      ...row.slice(0, 3),
      left,
    ]);
  });

  it("are void with the token of who made them, and with its right to act on the incident", async () => {
    const { links, rules } = linked();
    const { url, auth, rules: before } = await start({ links });
    rules.rightOf = auth.rightOf;
    const route = ROUTES.find(({ path }) => path === "/api/v1/incidents/:id")!;
    const made = await ask(url, LINKS, secretOf("team-l"));
    const link = (JSON.parse(made.text) as { path: string }).path.replace("/#/link/", "");
    const open = async (tokens: readonly Token[]): Promise<number> => {
      auth.reload({ ...before, tokens });
      return (await ask(url, route, link)).status;
    };
    const others = TOKENS.filter(({ name }) => name !== "team-l");
    const renewed = { ...token("team-l", SCOPES), sha256: token("other", []).sha256 };
    expect(await open(TOKENS)).toBe(200);
    expect(await open(others)).toBe(401);
    expect(await open([...others, renewed])).toBe(401);
    expect(await open([...others, token("team-l", ["read"])])).toBe(401);
    expect(await open([...others, token("team-l", SCOPES, ["x-*"])])).toBe(401);
    expect(await open([...others, token("team-l", SCOPES)])).toBe(200);
  });

  it("are revoked by who may act, and the trail says so", async () => {
    const { links } = linked();
    const { url, asked } = await start({ links });
    const { link } = await links.create(INCIDENT.id, 1e6, "act");
    const incident = ROUTES.find(({ path }) => path === "/api/v1/incidents/:id")!;
    expect((await ask(url, incident, link)).status).toBe(200);
    expect((await ask(url, REVOKE, link)).status).toBe(403);
    expect((await ask(url, REVOKE, secretOf("act"))).status).toBe(200);
    expect((await ask(url, incident, link)).status).toBe(401);
    expect(asked.at(-1)!.of).toEqual([
      "act",
      "revoke-links",
      INCIDENT.id,
      "all links of the incident",
    ]);
    expect((await ask(url, LINKS, secretOf("act"), { id: "none" })).status).toBe(404);
  });
});

describe("the audit trail", () => {
  const rows = Array.from({ length: 2500 }, (_, i): AuditRow => ({
    ...ROW,
    id: `r${String(i).padStart(4, "0")}`,
    atMs: NOW_MS + Math.floor(i / 3),
    detail: i === 0 ? '=HYPERLINK("http://evil","x"), -1' : "",
    who: i === 1 ? "+1" : "on-call",
  })).reverse();
  const paged: Partial<ServiceView> = {
    audit: async ({ before, sinceMs = 0, most = 1000 }) =>
      rows
        .filter(({ atMs }) => atMs >= sinceMs)
        .filter(
          ({ atMs, id }) =>
            !before || atMs < before.atMs || (atMs === before.atMs && id < before.id),
        )
        .slice(0, most),
  };
  const get = async (url: string, query: string) =>
    await fetch(`${url}/api/v1/audit?${query}`, {
      headers: { authorization: `Bearer ${secretOf("read")}` },
    });

  it("is read page by page, and exported whole", async () => {
    const { url } = await start(paged);
    const seen: string[] = [];
    for (let next: string | null = ""; next !== null;) {
      const query: string = `most=1000${next === "" ? "" : `&before=${encodeURIComponent(next)}`}`;
      const page = (await (await get(url, query)).json()) as { audit: AuditRow[]; next: string };
      seen.push(...page.audit.map(({ id }) => id));
      next = page.next;
    }
    expect(seen).toEqual(rows.map(({ id }) => id));
    const lines = (await (await get(url, "format=ndjson")).text()).trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line) as AuditRow)).toEqual(rows);
    const since = (await (await get(url, `format=ndjson&since=${NOW_MS + 832}`)).text()).trimEnd();
    expect(since.split("\n")).toHaveLength(4);
    const older = (await (await get(url, `before=${NOW_MS + 1}`)).json()) as { audit: AuditRow[] };
    expect(older.audit.map(({ id }) => id)).toEqual(["r0002", "r0001", "r0000"]);
    expect((await get(url, "before=yesterday")).status).toBe(400);
    expect((await get(url, "format=xlsx")).status).toBe(400);
  });

  it("is CSV that no spreadsheet takes for formulas", async () => {
    const { url } = await start(paged);
    const response = await get(url, "format=csv");
    expect(response.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(response.headers.get("content-disposition")).toContain("faultline-audit.csv");
    const lines = (await response.text()).trimEnd().split("\r\n");
    expect(lines).toHaveLength(2501);
    expect(lines[0]).toBe("time,who,what,incident,action,detail,id");
    expect(lines.at(-1)).toBe(
      `"2026-11-16T12:00:00.000Z","on-call","approve","${INCIDENT.id}","a1","'=HYPERLINK(""http://evil"",""x""), -1","r0000"`,
    );
    expect(lines.at(-2)).toContain(`"'+1"`);
  });
});
