/** What strangers, broken clients and pages of other sites try with the service's port. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import https from "node:https";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import {
  authorizeAgent,
  type AuthorizerOptions,
  makeAuthorizer,
  type Token,
} from "../../src/live/service/http/authorize.ts";
import type { Scope } from "../../src/live/service/access/grants.ts";
import type { HttpLimits } from "../../src/live/service/http/limits.ts";
import { type HttpSide, serveHttp } from "../../src/live/service/http/serve-http.ts";
import { openRaw, parseAnswer, sendRaw, untilClosed } from "../support/raw-http.ts";
import { INCIDENT, testView, type TestView } from "../support/serve-view.ts";
import { until } from "../support/until.ts";
import { unlessThere } from "../support/lacking.ts";

const stops: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const SECRETS: Record<string, string> = {
  agents: "agent-secret-0123456789",
  reader: "read-secret-0123456789",
  actor: "act-secret-0123456789",
};
const token = (name: string, ...scopes: Scope[]): Token => ({
  name,
  scopes,
  agent: null,
  jobs: null,
  sha256: createHash("sha256").update(SECRETS[name]!).digest("hex"),
});
const TOKENS = [token("agents", "agent"), token("reader", "read"), token("actor", "act")];
const bearer = (name: string): Record<string, string> => ({
  authorization: `Bearer ${SECRETS[name]}`,
});

interface Setting {
  readonly auth?: Partial<AuthorizerOptions>;
  readonly limits?: Partial<HttpLimits>;
  readonly tls?: { cert: string; key: string };
}

/**
 * Bound to loopback always; `auth.host` says what the service believes of its address, so that no test opens a port to
 * the world.
 */
async function start({ auth, limits, tls }: Setting = {}): Promise<
  HttpSide & TestView & { clock: { nowMs: number } }
> {
  const made = testView();
  const clock = { nowMs: 1e12 };
  const side = await serveHttp({
    view: made.view,
    auth: makeAuthorizer({
      host: "127.0.0.1",
      tokens: [],
      publicRead: false,
      insecure: false,
      allowedHosts: [],
      tls: tls !== undefined,
      nowMs: () => clock.nowMs,
      ...auth,
    }),
    host: "127.0.0.1",
    port: 0,
    tls: tls ?? null,
    nowMs: () => clock.nowMs,
    version: "1",
    log: () => undefined,
    ...(limits ? { limits } : {}),
  });
  stops.push(() => side.close());
  return { ...side, ...made, clock };
}

const ACTION = `/api/v1/incidents/${INCIDENT.id}/actions/cordon-node0`;
const approve = (headers: Record<string, string> = {}): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json", ...headers },
  body: '{"verb":"approve"}',
});

async function statuses(url: string, headers: Record<string, string> = {}) {
  const status = async (path: string, init: RequestInit): Promise<number> => {
    const response = await fetch(url + path, init);
    const text = await response.text();
    if (!response.ok) expect(JSON.parse(text)).toEqual({ error: expect.any(String) as string });
    return response.status;
  };
  return {
    page: await status("/", { headers }),
    health: await status("/healthz", { headers }),
    metrics: await status("/metrics", { headers }),
    read: await status("/api/v1/jobs", { headers }),
    act: await status(ACTION, approve(headers)),
  };
}

const upgrade = (headers: Record<string, string> = {}) => ({
  headers: { host: "127.0.0.1:7077", ...headers },
  socket: { remoteAddress: "10.1.2.3", localAddress: "127.0.0.1" },
});

describe("who may do what", () => {
  it("lets everybody on the machine do everything where no tokens are configured", async () => {
    const { url } = await start();
    const all = { page: 200, health: 200, metrics: 200, read: 200, act: 200 };
    expect(await statuses(url)).toEqual(all);
    // A token that nobody asked for does no harm.
    expect(await statuses(url, { authorization: "Bearer whatever" })).toEqual(all);
  });

  it("does not take for local what a proxy on the machine forwards", async () => {
    const { url } = await start();
    for (const name of ["x-forwarded-for", "forwarded", "x-real-ip", "via"])
      expect(await statuses(url, { [name]: "for=10.9.9.9" })).toEqual({
        page: 200,
        health: 200,
        metrics: 401,
        read: 401,
        act: 401,
      });
  });

  it("asks for tokens with the right scope where some are configured", async () => {
    const remote = { host: "10.0.0.1", tokens: TOKENS, allowedHosts: ["127.0.0.1"] };
    const { url, asked } = await start({ auth: remote });
    const open = { page: 200, health: 200 };
    expect(await statuses(url)).toEqual({ ...open, metrics: 401, read: 401, act: 401 });
    expect(await statuses(url, bearer("reader"))).toEqual({
      ...open,
      metrics: 200,
      read: 200,
      act: 403,
    });
    expect(await statuses(url, bearer("actor"))).toEqual({
      ...open,
      metrics: 403,
      read: 403,
      act: 200,
    });
    expect(asked.at(-1)).toEqual({
      what: "act",
      of: [INCIDENT.id, "cordon-node0", "approve", "actor", false],
    });
    expect(await statuses(url, bearer("agents"))).toEqual({
      ...open,
      metrics: 403,
      read: 403,
      act: 403,
    });
    const unasked = await fetch(`${url}/api/v1/jobs`);
    expect(unasked.headers.get("www-authenticate")).toMatch(/^Bearer/);
  });

  it("keeps /metrics open on loopback, and reading where it is public", async () => {
    const local = await start({ auth: { tokens: TOKENS } });
    expect(await statuses(local.url)).toMatchObject({ metrics: 200, read: 401, act: 401 });
    const open = await start({ auth: { host: "10.0.0.1", tokens: TOKENS, publicRead: true } });
    expect(await statuses(open.url)).toMatchObject({ metrics: 200, read: 200, act: 401 });
    expect(await statuses(open.url, bearer("agents"))).toMatchObject({ read: 200, act: 403 });
  });

  it("does not start off loopback without tokens, unless told so, and then refuses actions", async () => {
    for (const host of ["0.0.0.0", "::", "10.0.0.1", "faultline.example.org", "128.0.0.1"])
      await expect(start({ auth: { host } })).rejects.toThrow(/no tokens are configured/);
    for (const host of ["127.0.0.1", "127.9.9.9", "localhost", "::1"])
      await start({ auth: { host } });
    const { url } = await start({ auth: { host: "10.0.0.1", insecure: true } });
    expect(await statuses(url)).toMatchObject({ metrics: 200, read: 200, act: 401 });
  });

  it("says at the start what is open", () => {
    const says = (changed: Partial<AuthorizerOptions>): string =>
      makeAuthorizer({
        host: "127.0.0.1",
        tokens: [],
        publicRead: false,
        insecure: false,
        allowedHosts: [],
        tls: false,
        nowMs: () => 0,
        ...changed,
      }).says.join("\n");
    expect(says({})).toMatch(/every user of this machine may read, send and act/);
    expect(says({ host: "0.0.0.0", insecure: true })).toMatch(/anyone who reaches this address/);
    expect(says({ host: "0.0.0.0", tokens: TOKENS })).toMatch(/without TLS tokens can be read/);
    expect(says({ host: "0.0.0.0", tokens: TOKENS, tls: true })).toBe(
      "3 tokens (agent 1, read 1, act 1)",
    );
  });

  it("takes tokens in one form only", async () => {
    const { url } = await start({ auth: { tokens: TOKENS } });
    const secret = SECRETS["reader"]!;
    const status = async (authorization: string): Promise<number> =>
      (await fetch(`${url}/api/v1/jobs`, { headers: { authorization } })).status;
    expect(await status(`bearer  ${secret}`)).toBe(200);
    for (const wrong of [
      secret,
      `Basic ${secret}`,
      `Bearer ${secret}x`,
      `Bearer ${secret.slice(1)}`,
      `Bearer ${secret} ${secret}`,
      "Bearer",
      `Bearer ${"x".repeat(5000)}`,
    ])
      expect([wrong.slice(0, 40), await status(wrong)]).toEqual([wrong.slice(0, 40), 401]);
    expect((await fetch(`${url}/api/v1/jobs?token=${secret}`)).status).toBe(401);
  });

  it("tells the agents' carrier which agent a token is for, and refuses pages", () => {
    const bound: Token = { ...token("agents", "agent"), agent: "node7" };
    const auth = makeAuthorizer({
      host: "0.0.0.0",
      tokens: [bound, token("reader", "read")],
      publicRead: true,
      insecure: false,
      allowedHosts: [],
      tls: false,
      nowMs: () => 0,
    });
    expect(authorizeAgent(auth, upgrade(bearer("agents")))).toEqual({
      name: "agents",
      agent: "node7",
      jobs: null,
    });
    expect(authorizeAgent(auth, upgrade())).toMatchObject({ status: 401 });
    expect(authorizeAgent(auth, upgrade(bearer("reader")))).toMatchObject({ status: 403 });
    const page = { ...bearer("agents"), origin: "http://127.0.0.1:7077" };
    expect(authorizeAgent(auth, upgrade(page))).toMatchObject({ status: 403 });
    const other = { ...bearer("agents"), host: "evil.example" };
    expect(authorizeAgent(auth, upgrade(other))).toMatchObject({ status: 403 });
  });
});

describe("wrong tokens", () => {
  const ask = async (url: string, secret: string): Promise<number> =>
    (await fetch(`${url}/api/v1/jobs`, { headers: { authorization: `Bearer ${secret}` } })).status;

  it("of a guesser end in 429 for a while, also when the right one comes at last", async () => {
    const { url, clock } = await start({ auth: { tokens: TOKENS } });
    for (let i = 0; i < 20; i++) expect(await ask(url, `guess-${i}`)).toBe(401);
    expect(await ask(url, "guess-20")).toBe(429);
    const right = await fetch(`${url}/api/v1/jobs`, { headers: bearer("reader") });
    expect(right.status).toBe(429);
    expect(right.headers.get("retry-after")).toBe("60");
    // Who shows no token is as welcome as before.
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    clock.nowMs += 60_000;
    expect(await ask(url, SECRETS["reader"]!)).toBe(200);
    expect(await ask(url, "guess-21")).toBe(401);
  });

  it("of one agent with an old token do not shut out its neighbours", async () => {
    const { url } = await start({ auth: { tokens: TOKENS } });
    for (let i = 0; i < 20; i++) expect(await ask(url, "the-old-one")).toBe(401);
    expect(await ask(url, "the-old-one")).toBe(429);
    expect(await ask(url, SECRETS["reader"]!)).toBe(200);
  });

  it("are counted by address, for a bounded number of them", () => {
    const auth = makeAuthorizer({
      host: "0.0.0.0",
      tokens: TOKENS,
      publicRead: false,
      insecure: false,
      allowedHosts: [],
      tls: true,
      nowMs: () => 1,
    });
    const status = (remoteAddress: string, secret: string): number => {
      try {
        auth.authorize(
          { headers: { authorization: `Bearer ${secret}` }, socket: { remoteAddress } },
          "read",
        );
        return 200;
      } catch (error) {
        return (error as { status: number }).status;
      }
    };
    for (let i = 0; i < 21; i++) status(`2001:db8:1:2::${i.toString(16)}`, `wrong${i}`);
    expect(status("2001:db8:1:2:ffff::1", "wrong")).toBe(429);
    expect(status("2001:db8:1:3::1", "wrong")).toBe(401);
    for (let i = 0; i < 21; i++) status("::ffff:10.0.0.1", `wrong${i}`);
    expect(status("10.0.0.1", "wrong")).toBe(429);
    for (let i = 0; i < 5000; i++) status(`10.1.${i >> 8}.${i & 255}`, "wrong");
    expect(status("10.2.0.1", SECRETS["reader"]!)).toBe(200);
  });
});

const get = (path: string, ...headers: string[]): string =>
  [`GET ${path} HTTP/1.1`, ...headers, "connection: close", "", ""].join("\r\n");

describe("names and origins", () => {
  it("answers under its own names only", async () => {
    const auth = { allowedHosts: ["faultline.example.org", "2001:db8::5"] };
    const { url } = await start({ auth });
    const status = async (host: string): Promise<number> =>
      (await sendRaw(url, get("/healthz", `host: ${host}`))).status;
    for (const host of [
      "localhost",
      "LOCALHOST:1234",
      "127.0.0.1",
      "127.1.2.3:80",
      "[::1]:7077",
      "faultline.example.org",
      "Faultline.Example.org.:7077",
      "[2001:db8::5]",
    ])
      expect([host, await status(host)]).toEqual([host, 200]);
    for (const host of [
      "evil.example",
      "localhost.evil.example",
      "127.0.0.1.evil.example",
      "evil.example:127.0.0.1",
      "faultline.example.org.evil",
      "localhost@evil.example",
      "localhost/x",
      "10.0.0.1",
      "[::1",
      "::1",
      "[::2]",
      "localhost:port",
      "localhost, evil.example",
      "",
    ])
      expect([host, await status(host)]).toEqual([host, 421]);
    expect((await sendRaw(url, get("/healthz"))).status).toBe(421);
    expect((await sendRaw(url, "GET /healthz HTTP/1.0\r\n\r\n")).status).toBe(421);
    const twice = await sendRaw(url, get("/healthz", "host: localhost", "host: evil.example"));
    expect(twice.status).toBe(400);
    expect((await sendRaw(url, get("http://evil.example/healthz", "host: localhost"))).status).toBe(
      400,
    );
  });

  it("knows the address that was called where it is bound to all", async () => {
    const auth = { host: "0.0.0.0", tokens: TOKENS };
    const { knowsHost } = makeAuthorizer({
      publicRead: false,
      insecure: false,
      allowedHosts: [],
      tls: false,
      nowMs: () => 0,
      ...auth,
    });
    const asked = (host: string, localAddress: string) => ({
      headers: { host },
      socket: { localAddress },
    });
    expect(knowsHost(asked("10.0.0.7:7077", "::ffff:10.0.0.7"))).toBe(true);
    expect(knowsHost(asked("10.0.0.8:7077", "10.0.0.7"))).toBe(false);
    expect(knowsHost(asked("node7", "10.0.0.7"))).toBe(false);
  });

  it("takes posts from its own page and from no page, in JSON only", async () => {
    const { url, asked } = await start();
    const status = async (headers: Record<string, string>): Promise<number> =>
      (await fetch(url + ACTION, approve(headers))).status;
    expect(await status({ origin: url })).toBe(200);
    expect(await status({ "sec-fetch-site": "same-origin" })).toBe(200);
    expect(await status({ "content-type": "application/json; charset=utf-8" })).toBe(200);
    const before = asked.length;
    for (const origin of ["null", "http://evil.example", `${url}.evil.example`, "file://", "x"])
      expect([origin, await status({ origin })]).toEqual([origin, 403]);
    expect(await status({ origin: url.replace(/\d+$/, "1") })).toBe(403);
    expect(await status({ "sec-fetch-site": "same-site" })).toBe(403);
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
      expect([type, await status({ "content-type": type })]).toEqual([type, 415]);
    expect(asked.length).toBe(before);
  });

  it("lets scripts of other sites read nothing, but links be followed", async () => {
    const { url } = await start();
    const status = async (mode: string): Promise<number> => {
      const lines = ["host: localhost", "sec-fetch-site: cross-site", `sec-fetch-mode: ${mode}`];
      return (await sendRaw(url, get("/api/v1/jobs", ...lines))).status;
    };
    expect(await status("no-cors")).toBe(403);
    expect(await status("cors")).toBe(403);
    expect(await status("navigate")).toBe(200);
  });

  it("says with every answer what a browser must not do with it", async () => {
    const { url } = await start();
    const answers = [
      await fetch(`${url}/api/v1/jobs`),
      await fetch(`${url}/nowhere`),
      await fetch(`${url}/%2e%2e%2f`),
      await fetch(`${url}/`),
      await fetch(`${url}/api/v1/events`),
    ];
    for (const { headers, body } of answers) {
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("content-security-policy")).toMatch(
        /^default-src 'none'.*frame-ancestors 'none'/,
      );
      expect(headers.get("access-control-allow-origin")).toBeNull();
      await body?.cancel();
    }
  });
});

describe("paths", () => {
  it("that climb are not there, however they are written", async () => {
    const { url } = await start();
    for (const path of [
      "/../etc/passwd",
      "/api/v1/jobs/../../../healthz",
      "/./healthz",
      "/api/v1/jobs/..",
      "/%2e%2e/%2e%2e/etc/passwd",
      "/api/v1/jobs/%2e%2e%2fhealthz",
      "/api/v1/jobs/..%2f..%2fhealthz",
      "/api/v1/jobs/%252e%252e%252fhealthz",
      "/api/v1/jobs/%25252e%25252e",
      "/..\\..\\healthz",
      "/api/v1/jobs/..%5c..%5chealthz",
      "/%c0%ae%c0%ae/healthz",
      "/%uff0e%uff0e/healthz",
      "/api/v1/jobs/llama%00",
      "/api/v1/jobs/%0d%0aset-cookie:x",
      "/api/v1/jobs/%e2%80%ae",
      "/healthz/",
      "//healthz",
      "/;/healthz",
      "/healthz;x",
      "/%",
      "/%zz",
      "/healthz%20",
      "/api/v1/incidents/a%2fb",
    ]) {
      const answer = await sendRaw(url, get(path, "host: localhost"));
      expect([path, answer.status]).toEqual([path, 404]);
      expect(JSON.parse(answer.body)).toEqual({ error: "there is nothing at this path" });
    }
    // One way of writing plain letters otherwise is no climbing.
    expect((await sendRaw(url, get("/%68ealthz", "host: localhost"))).status).toBe(200);
  });
});

describe("limits", () => {
  it("of the URL, the headers and the body are answered with what is too large", async () => {
    const { url, asked } = await start();
    const long = await sendRaw(url, get(`/${"x".repeat(5000)}`, "host: localhost"));
    expect(long.status).toBe(414);
    const heads = await sendRaw(
      url,
      get("/healthz", "host: localhost", `x-long: ${"y".repeat(17_000)}`),
    );
    expect(heads.status).toBe(431);
    expect(JSON.parse(heads.body)).toEqual({ error: "the headers are too large" });
    const many = Array.from({ length: 3000 }, (_, i) => `x${i}: 1`);
    expect((await sendRaw(url, get("/healthz", "host: localhost", ...many))).status).toBe(431);

    const post = `POST ${ACTION} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`;
    // Announced, and not even sent.
    const announced = await sendRaw(url, `${post}content-length: 999999999\r\n\r\n`);
    expect([announced.status, announced.headers["connection"]]).toEqual([413, "close"]);
    const chunk = `${(0x8000).toString(16)}\r\n${" ".repeat(0x8000)}\r\n`;
    const chunked = await sendRaw(
      url,
      `${post}transfer-encoding: chunked\r\n\r\n${chunk}${chunk}${chunk}`,
    );
    expect(chunked.status).toBe(413);
    const just = `${" ".repeat(65_536 - 18)}{"verb":"approve"}`;
    expect(
      (
        await sendRaw(
          url,
          `${post}connection: close\r\ncontent-length: ${just.length}\r\n\r\n${just}`,
        )
      ).status,
    ).toBe(200);
    expect(asked.filter(({ what }) => what === "act")).toHaveLength(1);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });

  it("of time end requests that dribble in, and connections that say nothing", async () => {
    const { url } = await start({ limits: { headersMs: 1000, bodyMs: 1000, idleMs: 1500 } });
    const dribble = openRaw(url);
    stops.push(() => void dribble.destroy());
    const timer = setInterval(() => dribble.write("x: 1\r\n"), 20);
    stops.push(() => clearInterval(timer));
    const post = `POST ${ACTION} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`;
    const [head, body, silent, kept] = await Promise.all([
      untilClosed(dribble, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n"),
      untilClosed(openRaw(url), `${post}content-length: 20\r\n\r\n{"verb"`),
      untilClosed(openRaw(url), ""),
      untilClosed(openRaw(url), "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"),
    ]);
    expect(parseAnswer(head).status).toBe(408);
    expect(parseAnswer(body).status).toBe(408);
    // Silent from the beginning, and after an answer: both are closed.
    expect(silent).toMatch(/^$|^HTTP\/1\.1 408/);
    expect(kept).toMatch(/^HTTP\/1\.1 200/);
    await until(async () => (await fetch(`${url}/healthz`)).status === 200);
  });

  it("of connections hold, and places come free again", async () => {
    const { url, server } = await start({ limits: { connections: 3 } });
    const opened = [openRaw(url), openRaw(url), openRaw(url)];
    for (const socket of opened) {
      stops.push(() => void socket.destroy());
      socket.on("error", () => undefined);
    }
    const connections = async (): Promise<number> =>
      await new Promise((resolve) => {
        server.getConnections((_, count) => resolve(count));
      });
    await until(async () => (await connections()) === 3);
    expect((await sendRaw(url, get("/healthz", "host: localhost"))).status).toBe(0);
    opened[0]!.destroy();
    await until(
      async () => (await sendRaw(url, get("/healthz", "host: localhost"))).status === 200,
    );
  });

  it("are kept by what is no HTTP at all", async () => {
    const { url, asked } = await start();
    const act = `POST ${ACTION} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`;
    for (const bytes of [
      "\r\n\r\nhello\r\n\r\n",
      Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
      Buffer.alloc(20_000, 0xff),
      "GET / HTTP/9.9\r\nhost: localhost\r\n\r\n",
      "BREW /pot HTTP/1.1\r\nhost: localhost\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nhost: localhost\r\nbad header\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: a\0b\r\n\r\n",
      // Two readings of where a request ends: the way requests are smuggled.
      `${act}content-length: 5\r\ncontent-length: 6\r\n\r\n{"ver`,
      `${act}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      `${act}transfer-encoding: chunked\r\n\r\nzz\r\n`,
      `${act}content-length: -1\r\n\r\n`,
      "GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\nabc",
      "GET /healthz HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ])
      expect([bytes.toString("latin1").slice(0, 90), (await sendRaw(url, bytes)).status]).toEqual([
        bytes.toString("latin1").slice(0, 90),
        400,
      ]);
    // A tunnel is not for us, and a method that is known to HTTP but not to us is told so.
    const tunnel = "CONNECT evil.example:443 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    expect([0, 405]).toContain((await sendRaw(url, tunnel)).status);
    const trace = "TRACE /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    expect((await sendRaw(url, trace)).status).toBe(405);
    // A body that is cut off is never taken for a whole one.
    const cut = openRaw(url);
    const said = untilClosed(cut, `${act}content-length: 18\r\n\r\n{"verb":"appro`);
    cut.end();
    expect(parseAnswer(await said).status).toBe(400);
    expect(asked.filter(({ what }) => what === "act")).toEqual([]);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });

  it("bear callers that hang up in the middle of everything", async () => {
    const { url } = await start();
    const asks = [
      get("/api/v1/events", "host: localhost").replace("connection: close\r\n", ""),
      get("/api/v1/incidents", "host: localhost"),
      `POST ${ACTION} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{`,
    ];
    const sockets: Socket[] = [];
    for (let i = 0; i < 30; i++) {
      const socket = openRaw(url);
      socket.on("error", () => undefined);
      socket.write(asks[i % asks.length]!);
      sockets.push(socket);
    }
    for (const socket of sockets) {
      if (socket.connecting) await once(socket, "connect");
      socket.resetAndDestroy();
    }
    await until(async () =>
      (await (await fetch(`${url}/metrics`)).text()).includes("faultline_event_streams 0\n"),
    );
  });
});

function makeCertificate(): { cert: string; key: string } | null {
  const folder = mkdtempSync(join(tmpdir(), "faultline-tls-"));
  try {
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    execFileSync(
      "openssl",
      ["req", "-x509", ...kind, "-days", "2", ...subject, "-keyout", key, "-out", cert],
      { stdio: "pipe" },
    );
    return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
const certificate = makeCertificate();
unlessThere(certificate !== null, "OpenSSL", "openssl");

describe.skipIf(!certificate)("TLS", () => {
  it("carries the API, and only to who speaks it", async () => {
    const { url } = await start({ tls: certificate!, auth: { tokens: TOKENS } });
    expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    const port = Number(new URL(url).port);
    const status = await new Promise<number>((resolve, reject) => {
      const options = {
        host: "127.0.0.1",
        servername: "localhost",
        port,
        path: "/api/v1/jobs",
        ca: certificate!.cert,
        headers: { ...bearer("reader"), host: `localhost:${port}` },
        agent: false as const,
      };
      https
        .get(options, (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        })
        .on("error", reject);
    });
    expect(status).toBe(200);
    // A stranger's authority does not vouch for it, plain HTTP gets no answer, old versions neither.
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
    expect((await sendRaw(url, get("/healthz", "host: localhost"))).status).toBe(0);
    const old = connectTls({
      host: "127.0.0.1",
      port,
      ca: certificate!.cert,
      minVersion: "TLSv1.1",
      maxVersion: "TLSv1.1",
      ciphers: "DEFAULT@SECLEVEL=0",
    });
    const [error] = (await once(old, "error")) as [Error];
    expect(error).toBeInstanceOf(Error);
    old.destroy();
  });

  it("lets go of who never finishes the handshake", async () => {
    const { url } = await start({ tls: certificate!, limits: { headersMs: 200 } });
    expect(await untilClosed(openRaw(url), Buffer.from([0x16, 0x03, 0x01]))).toBe("");
  });

  it("says in words that a certificate cannot be used", async () => {
    await expect(start({ tls: { cert: "nothing", key: "nothing" } })).rejects.toThrow(
      /the certificate and its key cannot be used/,
    );
  });
});
