/** People sign in through a provider, and what of that can go wrong. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OidcConfig } from "../../src/live/service/access/oidc.ts";
import { SignIn } from "../../src/live/service/access/sign-in.ts";
import { type AuthorizerOptions, makeAuthorizer } from "../../src/live/service/http/authorize.ts";
import { serveHttp } from "../../src/live/service/http/serve-http.ts";
import { type OidcProvider, startOidcProvider } from "../support/live/oidc-provider.ts";
import { INCIDENT, testView } from "../support/serve-view.ts";

const stops: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

let provider: OidcProvider;
beforeEach(async () => {
  provider = await startOidcProvider();
  provider.person = { email: "ada@example.org", groups: ["ml-ops", "other"] };
  stops.push(() => provider.close());
});

const oidcOf = (changed: Partial<OidcConfig> = {}): OidcConfig => ({
  issuer: provider.issuer,
  clientId: "faultline",
  clientSecret: provider.clientSecret,
  redirectUrl: null,
  request: ["openid", "email"],
  groupsClaim: "groups",
  nameClaim: "email",
  groups: [
    { group: "ml-ops", scopes: ["read", "act"], jobs: null },
    { group: "team-x", scopes: ["read"], jobs: ["x-*"] },
  ],
  sessionSeconds: 3600,
  ...changed,
});

async function start(oidc = oidcOf()) {
  const clock = { aheadMs: 0 };
  const nowMs = (): number => Date.now() + clock.aheadMs;
  const made = testView();
  const signIn = new SignIn({ oidc, isTls: false, nowMs });
  const options: AuthorizerOptions = {
    host: "127.0.0.1",
    tokens: [],
    publicRead: false,
    insecure: false,
    allowedHosts: [],
    tls: false,
    groups: oidc.groups,
    personOf: ({ headers }) => signIn.personOf(headers),
    nowMs,
  };
  const auth = makeAuthorizer(options);
  const logged: string[] = [];
  const side = await serveHttp({
    view: made.view,
    auth,
    signIn,
    host: "127.0.0.1",
    port: 0,
    tls: null,
    nowMs,
    version: "1",
    log: (line) => logged.push(line),
  });
  stops.push(() => side.close());
  const rows = () => made.asked.filter(({ what }) => what === "note").map(({ of }) => of);
  return { ...made, ...side, clock, auth, signIn, options, rows, logged };
}

/** A browser: it keeps cookies, and follows nothing by itself. */
function browser(url: string) {
  const cookies = new Map<string, string>();
  const go = async (to: string, init: RequestInit = {}): Promise<Response> => {
    const target = new URL(to, url);
    const isOurs = target.origin === new URL(url).origin;
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(target, {
      redirect: "manual",
      ...init,
      headers: { ...(isOurs && cookie ? { cookie } : {}), ...(init.headers as object) },
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
      if (/Max-Age=0/.test(line)) cookies.delete(name!);
      else cookies.set(name!, value!);
    }
    return response;
  };
  const placeOf = (response: Response): string => response.headers.get("location") ?? "";
  /** Until the provider sends it back: that address. */
  const upToCallback = async (to = ""): Promise<string> => {
    const atProvider = placeOf(await go(`/auth/login?to=${encodeURIComponent(to)}`));
    return placeOf(await go(atProvider));
  };
  const signIn = async (to = ""): Promise<Response> => await go(await upToCallback(to));
  const session = async (): Promise<unknown> => await (await go("/api/v1/session")).json();
  return { go, cookies, upToCallback, signIn, session };
}

const post = (url: string, body: unknown = {}): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json", origin: url },
  body: JSON.stringify(body),
});
const ACTION = `/api/v1/incidents/${INCIDENT.id}/actions/cordon-node0`;

describe("signing in", () => {
  it("gives a session with the rights of the person's groups, and ends with signing out", async () => {
    const { url, asked, rows } = await start();
    const ada = browser(url);
    expect((await ada.go("/api/v1/jobs")).status).toBe(401);
    expect(await ada.session()).toEqual({
      canSignIn: true,
      name: null,
      scopes: [],
      jobs: null,
      link: null,
    });
    const answer = await ada.signIn("#/incidents/x");
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/#/incidents/x"]);
    const [cookie] = answer.headers.getSetCookie();
    expect(cookie).toMatch(
      /^faultline-session=[\w-]{43}; Path=\/; Max-Age=3600; HttpOnly; SameSite=Lax$/,
    );
    expect(provider.asked).toMatchObject({
      grant_type: "authorization_code",
      redirect_uri: `${url}/auth/callback`,
      code_verifier: expect.stringMatching(/^[\w-]{43,}$/) as string,
    });
    expect(await ada.session()).toMatchObject({
      name: "oidc:ada@example.org",
      scopes: ["read", "act"],
      jobs: null,
    });
    expect((await ada.go("/api/v1/jobs")).status).toBe(200);
    expect((await ada.go(ACTION, post(url, { verb: "approve" }))).status).toBe(200);
    expect(asked.find(({ what }) => what === "act")!.of).toContain("oidc:ada@example.org");
    // The scope of agents is for no person.
    expect((await ada.go("/v1/jobs/llama/plan?iteration=1")).status).toBe(403);

    expect((await ada.go("/auth/logout", post(url))).status).toBe(200);
    expect(ada.cookies.size).toBe(0);
    ada.cookies.set("faultline-session", /session=([^;]+)/.exec(cookie!)![1]!);
    expect((await ada.go("/api/v1/jobs")).status).toBe(401);
    expect(rows()).toEqual([
      ["oidc:ada@example.org", "sign-in", "", `subject u-1 of ${provider.issuer}; groups: ml-ops`],
      ["oidc:ada@example.org", "sign-out", "", ""],
    ]);
  });

  it("takes RSA keys, nested claims, and another name where a claim is missing", async () => {
    const other = await startOidcProvider("RS256");
    stops.push(() => other.close());
    other.person = { realm_access: { roles: ["team-x"] }, preferred_username: "grace" };
    const { url } = await start(
      oidcOf({ issuer: other.issuer, groupsClaim: "realm_access.roles" }),
    );
    const grace = browser(url);
    expect((await grace.signIn()).status).toBe(303);
    expect(await grace.session()).toMatchObject({
      name: "oidc:grace",
      scopes: ["read"],
      jobs: ["x-*"],
    });
    expect(await (await grace.go("/api/v1/jobs")).json()).toEqual({ jobs: [] });
    expect((await grace.go(ACTION, post(url, { verb: "approve" }))).status).toBe(403);
  });

  it("needs cookies over TLS to be secure, also behind a proxy that has it", async () => {
    const { url } = await start(
      oidcOf({ redirectUrl: "https://faultline.example.org/auth/callback" }),
    );
    const login = await fetch(`${url}/auth/login`, { redirect: "manual" });
    expect(login.headers.getSetCookie()[0]).toMatch(/^__Host-faultline-sign-in=.*; Secure$/);
    expect(new URL(login.headers.get("location")!).searchParams.get("redirect_uri")).toBe(
      "https://faultline.example.org/auth/callback",
    );
  });

  it("sends nobody to another site afterwards", async () => {
    const { url } = await start();
    for (const to of ["https://evil.example", "//evil.example", "#/x\r\nset-cookie: a=b", "/jobs"])
      expect((await browser(url).signIn(to)).headers.get("location")).toBe("/");
  });

  const cases: readonly [string, () => void, number, RegExp][] = [
    ["another nonce", () => (provider.forge = (c) => ({ ...c, nonce: "x" })), 401, /nonce/],
    ["no nonce", () => (provider.forge = (c) => ({ ...c, nonce: undefined })), 401, /nonce/],
    [
      "a token that expired",
      () => (provider.forge = (c) => ({ ...c, exp: Date.now() / 1000 - 99 })),
      401,
      /exp|past/,
    ],
    [
      "a token for another client",
      () => (provider.forge = (c) => ({ ...c, aud: "other" })),
      401,
      /aud/,
    ],
    [
      "a token of another issuer",
      () => (provider.forge = (c) => ({ ...c, iss: "http://x" })),
      401,
      /iss/,
    ],
    ["a signature by another key", () => (provider.broken = "key"), 401, /signature/],
    ["no signature", () => (provider.broken = "none"), 401, /trusted/],
    [
      "an unknown group",
      () => (provider.person = { email: "eve@x", groups: ["guests"] }),
      403,
      /eve@x is in no group/,
    ],
    ["no groups at all", () => (provider.person = { email: "eve@x" }), 403, /eve@x is in no group/],
  ];
  for (const [what, spoil, status, why] of cases)
    it(`refuses ${what}`, async () => {
      const { url, rows } = await start();
      const eve = browser(url);
      spoil();
      const answer = await eve.signIn();
      const page = await answer.text();
      expect([answer.status, why.test(page)]).toEqual([status, true]);
      expect(page).not.toContain("<script");
      expect([...eve.cookies.keys()]).not.toContain("faultline-session");
      expect((await eve.go("/api/v1/jobs")).status).toBe(401);
      const refused = ["oidc:eve@x", "refuse", "", "eve@x is in no group that may use Faultline"];
      expect(rows()).toEqual(status === 403 ? [refused] : []);
    });

  it("refuses another state, another browser's answer, and an answer that comes twice", async () => {
    const { url } = await start();
    const ada = browser(url);
    const other = await ada.upToCallback();
    const wrong = other.replace(/state=[^&]+/, "state=x");
    expect((await ada.go(wrong)).status).toBe(401);
    // It held for one answer: the right one comes too late.
    expect((await ada.go(other)).status).toBe(401);
    const callback = await ada.upToCallback();
    expect((await browser(url).go(callback)).status).toBe(401);
    expect((await ada.go(callback)).status).toBe(303);
    expect((await ada.go(callback)).status).toBe(401);
    // A code that was used, within a sign-in that is new.
    const code = /code=([^&]+)/.exec(callback)![1]!;
    const fresh = await ada.upToCallback();
    const replayed = await ada.go(fresh.replace(/code=[^&]+/, `code=${code}`));
    expect([replayed.status, /invalid_grant/.test(await replayed.text())]).toEqual([401, true]);
    const denied = await ada.upToCallback();
    const no = await ada.go(denied.replace(/code=[^&]+/, "error=access_denied<b>"));
    expect([no.status, /access_denied&#60;b/.test(await no.text())]).toEqual([401, true]);
  });

  it("says so where the provider is down, and works when it is back", async () => {
    const { url, logged } = await start();
    const ada = browser(url);
    const { port } = new URL(provider.issuer);
    await provider.close();
    const answer = await ada.go("/auth/login");
    expect(answer.status).toBe(502);
    expect(await answer.text()).toContain("the provider cannot be reached");
    expect(logged).toEqual(["sign-in: the provider cannot be reached"]);
    expect((await ada.go("/healthz")).status).toBe(200);
    provider = await startOidcProvider("ES256", Number(port));
    provider.person = { email: "ada@example.org", groups: ["ml-ops"] };
    const callback = await ada.upToCallback();
    await provider.close();
    expect((await ada.go(callback)).status).toBe(502);
    provider = await startOidcProvider("ES256", Number(port));
    provider.person = { email: "ada@example.org", groups: ["ml-ops"] };
    expect((await ada.signIn()).status).toBe(303);
  });

  it("ends sessions with their time, with their group and with their provider", async () => {
    const { url, clock, auth, signIn, options } = await start();
    const ada = browser(url);
    const mayRead = async (): Promise<boolean> => (await ada.go("/api/v1/jobs")).status === 200;
    await ada.signIn();
    expect(await mayRead()).toBe(true);
    clock.aheadMs = 3_600_000;
    expect(await mayRead()).toBe(false);
    await ada.signIn();
    expect(await mayRead()).toBe(true);
    auth.reload({ ...options, groups: [{ group: "other", scopes: ["act"], jobs: null }] });
    expect((await ada.go("/api/v1/jobs")).status).toBe(403);
    auth.reload({ ...options, groups: [{ group: "*", scopes: ["read"], jobs: null }] });
    expect(await mayRead()).toBe(true);
    signIn.reload(oidcOf({ sessionSeconds: 60 }));
    expect(await mayRead()).toBe(true);
    signIn.reload(oidcOf({ clientId: "another" }));
    expect(await mayRead()).toBe(false);
  });

  it("takes no action that a page of another site sends with the person's cookie", async () => {
    const { url, asked } = await start();
    const ada = browser(url);
    await ada.signIn();
    const headers = { "content-type": "application/json" };
    const body = '{"verb":"approve"}';
    for (const said of [
      { origin: "https://evil.example" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      // A client that does not say where it comes from is no browser of today.
      {},
      { origin: url, "content-type": "text/plain" },
    ]) {
      const status = (
        await ada.go(ACTION, { method: "POST", headers: { ...headers, ...said }, body })
      ).status;
      expect([said, [403, 415].includes(status)]).toEqual([said, true]);
    }
    expect(asked.filter(({ what }) => what === "act")).toEqual([]);
    expect(
      (
        await ada.go("/auth/logout", {
          ...post(url),
          headers: { ...headers, origin: "https://evil.example" },
        })
      ).status,
    ).toBe(403);
    expect((await ada.go("/api/v1/jobs")).status).toBe(200);
  });
});
