import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { UserError } from "../../../base/errors.ts";
import { harmless } from "../../../base/text.ts";
import { readServeConfig, type ServeFlags } from "./config.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-config-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ENV = { HOME: "/home/user" };
const SECRET = "0123456789abcdef0123456789abcdef";
const SLACK_APP = { signingSecret: "env:S", people: [{ team: "T1" }] };
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

function read(config: unknown, flags: ServeFlags = {}, env: Record<string, string> = ENV) {
  const file = join(folder, "serve.json");
  writeFileSync(file, typeof config === "string" ? config : JSON.stringify(config));
  return readServeConfig(file, flags, env);
}

/** The one line that is said, without the file's name. */
function fault(config: unknown, flags: ServeFlags = {}, env: Record<string, string> = ENV): string {
  try {
    read(config, flags, env);
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    const { message, exitCode, hint } = error as UserError;
    expect(exitCode).toBe(2);
    expect(hint).not.toBe("");
    expect(message).toBe(harmless(message));
    expect(message.startsWith(`${folder}/serve.json: `)).toBe(true);
    return message.slice(folder.length + "/serve.json: ".length);
  }
  return "nothing";
}

describe("the configuration of the service", () => {
  it("is complete without any", () => {
    expect(readServeConfig(null, {}, ENV)).toEqual({
      host: "127.0.0.1",
      port: 7077,
      insecure: false,
      dataFolder: "/home/user/.local/share/faultline",
      tokens: [],
      oidc: null,
      tls: null,
      allowedHosts: [],
      publicRead: false,
      nats: null,
      history: { kind: "duckdb", path: "/home/user/.local/share/faultline/history.duckdb" },
      prometheus: null,
      alerts: {
        alertmanager: [],
        webhooks: [],
        slack: [],
        slackApp: null,
        digest: null,
        externalUrl: null,
        runbookUrl: null,
        repeatSeconds: 60,
        holdSeconds: 30,
      },
      actions: {
        enabled: true,
        dryRun: true,
        approval: "required",
        hooks: [],
        drivers: {},
        spares: [],
        leastConfidence: 0.8,
        leastMachineConfidence: 0.5,
        mostMachinesPerDay: 2,
        leastMachines: 0.5,
        microBatches: null,
        mostActionsPerHour: 60,
        mostActionsPerHourOfJob: 12,
      },
      detection: { hangSeconds: 30, pauseSeconds: 900, silentSeconds: 60 },
      retention: {
        iterationDays: 90,
        incidentDays: null,
        historyGB: null,
        evidenceDays: null,
        evidenceGB: null,
      },
      validation: { enabled: true, mostRanks: 256, everySeconds: 1800, limitSeconds: 10 },
      learning: { logs: true },
      fabric: [],
      jobs: [],
      notes: [],
    });
    const xdg = { ...ENV, XDG_DATA_HOME: "/data" };
    expect(readServeConfig(null, {}, xdg).dataFolder).toBe("/data/faultline");
    const relative = { ...ENV, XDG_DATA_HOME: "data" };
    expect(readServeConfig(null, {}, relative).dataFolder).toMatch(/^\/home\/user/);
    expect(() => readServeConfig(null, {}, {})).toThrow(/no home folder/);
  });

  it("of the guide can be read, and has every key", () => {
    const guide = fileURLToPath(new URL("../../../../docs/guides/serve.md", import.meta.url));
    const [, example = ""] = /```json\n([^]*?)```/.exec(readFileSync(guide, "utf8")) ?? [];
    const own = join(folder, "guide");
    mkdirSync(own, { recursive: true });
    for (const name of ["node001.token", "server.pem", "server.key"])
      writeFileSync(join(own, name), `${SECRET}\n`);
    writeFileSync(join(own, "serve.json"), example);
    const env = {
      ...ENV,
      GRAFANA_TOKEN: "grafana-0123456789",
      OIDC_SECRET: "oidc",
      NATS_TOKEN: "nats",
      HOOK_AUTHORIZATION: "Bearer x",
      SLACK_URL: "https://hooks.example.org/T1/B2",
      SLACK_SIGNING_SECRET: "slack",
    };
    const config = readServeConfig(join(own, "serve.json"), {}, env);
    expect(config.tokens.map(({ name, agent }) => [name, agent])).toEqual([
      ["agents", null],
      ["node001", "node001"],
      ["grafana", null],
      ["on-call", null],
    ]);
    expect(config.tokens[1]!.sha256).toBe(sha256(SECRET));
    expect(config.tls).toEqual({ cert: `${SECRET}\n`, key: `${SECRET}\n` });
    expect(config.nats!.token).toBe("nats");
    expect(config.history.kind).toBe("clickhouse");
    expect(config.prometheus).toMatchObject({ everySeconds: 60, rangeSeconds: 900 });
    expect(config.alerts.slack).toEqual([{ url: "https://hooks.example.org/T1/B2" }]);
    expect(config.alerts.slackApp).toEqual({
      signingSecret: "slack",
      people: [{ team: "T0123ABCD", user: null, jobs: null }],
    });
    expect(config.alerts.webhooks[0]!.header).toEqual({ Authorization: "Bearer x" });
    expect(config.jobs[0]!.jobFile).toBe(join(own, "llama-7b.job.json"));
    expect(config.notes).toHaveLength(1);
    const defaults = readServeConfig(null, {}, ENV);
    const { insecure: _, notes: __, dataFolder: ___, ...known } = defaults;
    for (const key of Object.keys(known)) expect(Object.keys(JSON.parse(example))).toContain(key);
    for (const part of ["alerts", "actions", "detection", "validation", "learning"] as const)
      expect(Object.keys((JSON.parse(example) as Record<string, object>)[part]!).sort()).toEqual(
        Object.keys(defaults[part]).sort(),
      );
  });

  it("gives way to words of the command line", () => {
    const config = read(
      {
        host: "10.0.0.1",
        port: 1,
        nats: { url: "nats://a", token: "env:T" },
        prometheus: { url: "http://a", every: 5 },
      },
      {
        host: "127.0.0.1",
        port: 0,
        data: "/d",
        insecure: true,
        publicRead: true,
        nats: "nats://b:1, tls://c",
        history: "clickhouse://h/db",
        prometheus: "http://b",
        match: 'a="b"',
        alertmanager: ["http://am"],
        allowedHosts: ["x"],
      },
      { T: "secret" },
    );
    expect(config).toMatchObject({
      host: "127.0.0.1",
      port: 0,
      dataFolder: "/d",
      insecure: true,
      publicRead: true,
      allowedHosts: ["x"],
      nats: { url: "nats://b:1,tls://c", token: "secret" },
      history: { kind: "clickhouse", url: "clickhouse://h/db" },
      prometheus: { url: "http://b", everySeconds: 5, match: 'a="b"' },
      alerts: { alertmanager: ["http://am"] },
    });
    expect(read({}, { history: "x.db" }).history).toEqual({
      kind: "duckdb",
      path: join(process.cwd(), "x.db"),
    });
    expect(read({ history: "x.db" }).history).toEqual({
      kind: "duckdb",
      path: join(folder, "x.db"),
    });
    expect(
      read({ nats: { url: "nats://a" } }, {}, { ...ENV, FAULTLINE_NATS_TOKEN: "t" }).nats,
    ).toEqual({ url: "nats://a", token: "t" });
  });

  it("names the nearest key for one that it does not know, with its place", () => {
    expect(fault({ prot: 1 })).toBe('unknown key "prot"; did you mean "port"?');
    expect(fault({ insecure: true })).toMatch(/^unknown key "insecure"/);
    expect(fault({ alerts: { alertManager: [] } })).toBe(
      'alerts: unknown key "alertManager"; did you mean "alertmanager"?',
    );
    expect(fault({ actions: { hooks: [{ do: "x", comand: ["a"], webhook: "http://a" }] } })).toBe(
      'actions.hooks[0]: unknown key "comand"; did you mean "command"?',
    );
    expect(fault({ tls: { cert: "a", key: "b", kye: "c" } })).toMatch(/^tls: .*"key"/);
    expect(fault({ tokens: [{ name: "a", scopes: ["read"], tokne: "x", token: "y" }] })).toBe(
      'tokens[0]: unknown key "tokne"; did you mean "token"?',
    );
    expect(fault({ "\u001b[31m": 1 })).toMatch(/^unknown key/);
    expect(fault('{"__proto__": 1}')).toMatch(/^unknown key "__proto__"/);
  });

  it("says in one line what is wrong and where", () => {
    const cases: [unknown, RegExp][] = [
      ["{", /^is not JSON/],
      ['{\n"port": 1,\n"host" 2}', /^is not JSON: line 3$/],
      ["[]", /^must be a JSON object$/],
      [{ port: "7077" }, /^port: .*expected number/],
      [{ port: 70_000 }, /^port: /],
      [{ port: 1.5 }, /^port: /],
      [{ host: "" }, /^host: /],
      [{ allowedHosts: ["a b"] }, /^allowedHosts\[0\]: must be a host's name/],
      [{ tls: { cert: "a" } }, /^tls\.key: /],
      [{ tls: { cert: "nowhere", key: "nowhere" } }, /^tls\.cert: .*nowhere cannot be read/],
      [{ tls: { cert: ".", key: "." } }, /^tls\.cert: .*it is not a file/],
      [{ nats: { url: "http://a" } }, /^nats\.url: must be nats:/],
      [{ nats: { url: "nats://a", token: "secret" } }, /^nats\.token: must be file/],
      [{ history: "postgres://a" }, /^history: must be a path, or clickhouse/],
      [{ prometheus: { url: "ftp://a" } }, /^prometheus\.url: must be a URL with http/],
      [{ prometheus: { url: "http://a", every: "soon" } }, /^prometheus\.every: must be a number/],
      [{ prometheus: { url: "http://a", every: 0 } }, /^prometheus\.every: /],
      [{ alerts: { slack: [{ url: "env:NONE" }] } }, /^alerts\.slack\[0\]\.url: .*has no NONE/],
      [{ alerts: { webhooks: [{ url: "http://a", header: "x" }] } }, /header: must be "Name/],
      [{ alerts: { externalUrl: "javascript:alert(1)" } }, /^alerts\.externalUrl: must be a URL/],
      [{ alerts: { digest: {} } }, /^alerts\.digest: nobody would get it: add a receiver/],
      [
        { alerts: { digest: {}, alertmanager: ["http://a"] } },
        /^alerts\.digest: .* to alerts\.webhooks or alerts\.slack$/,
      ],
      [{ alerts: { slackApp: SLACK_APP } }, /^alerts\.slackApp: no message would have its buttons/],
      [
        { alerts: { slackApp: { ...SLACK_APP, signingSecret: "plain" } } },
        /^alerts\.slackApp\.signingSecret: must be file/,
      ],
      [
        { alerts: { slackApp: { ...SLACK_APP, people: [{ team: "ada" }] } } },
        /^alerts\.slackApp\.people\[0\]\.team: must be the id of a Slack workspace/,
      ],
      [{ alerts: { slackApp: { ...SLACK_APP, people: [] } } }, /^alerts\.slackApp\.people: /],
      [{ actions: { approval: "never" } }, /^actions\.approval: .*required/],
      [{ actions: { hooks: [{ do: "x" }] } }, /^actions\.hooks\[0\]: needs either command or/],
      [
        { actions: { hooks: [{ do: "x", command: ["a"], webhook: "http://a" }] } },
        /needs either command or webhook/,
      ],
      [{ actions: { hooks: [{ do: "x", command: "rm -rf /" }] } }, /command: .*expected array/],
      [{ detection: { hangSeconds: 0 } }, /^detection\.hangSeconds: /],
      [{ jobs: [{ name: "a b", jobFile: "x" }] }, /^jobs\[0\]\.name: must be a job's name/],
      [{ port: "x", host: 1 }, /\(and 1 more\)$/],
    ];
    for (const [config, why] of cases) expect(fault(config)).toMatch(why);
    expect(() => readServeConfig(join(folder, "none.json"), {}, ENV)).toThrow(/cannot be read/);
    expect(() => readServeConfig(null, { port: -1 }, ENV)).toThrow(/^the command line: port: /);
  });

  it("never repeats a secret in what it says", () => {
    const secret = "hunter2-hunter2-hunter2";
    const said = [
      fault(`{"tokens": [{"token": "${secret}" ]}`),
      fault({ tokens: [{ name: "a", scopes: ["read"], token: secret }] }),
      fault({ nats: { url: "nats://a", token: secret } }),
      fault({ alerts: { slack: [{ url: "env:S" }] } }, {}, { ...ENV, S: secret }),
    ];
    for (const line of said) {
      expect(line).not.toBe("nothing");
      expect(line).not.toContain("hunter2");
    }
  });
});

describe("sign-in of the configuration", () => {
  const oidc = {
    issuer: "https://login.example.org",
    clientId: "faultline",
    groups: [{ group: "ops", scopes: ["read", "act"] }],
  };

  it("has defaults, and always asks for an id_token", () => {
    expect(read({ oidc: { ...oidc, request: ["groups"] } }).oidc).toEqual({
      ...oidc,
      clientSecret: null,
      redirectUrl: null,
      request: ["openid", "groups"],
      groupsClaim: "groups",
      nameClaim: "email",
      groups: [{ group: "ops", scopes: ["read", "act"], jobs: null }],
      sessionSeconds: 43_200,
    });
    const local = { ...oidc, issuer: "http://127.0.0.1:8080/realms/x", clientSecret: "env:S" };
    expect(read({ oidc: local }, {}, { ...ENV, S: "secret" }).oidc).toMatchObject({
      issuer: local.issuer,
      clientSecret: "secret",
    });
  });

  it("is refused where it would not be safe", () => {
    const cases: [object, RegExp][] = [
      [{ issuer: "http://login.example.org" }, /^oidc\.issuer: must be a URL with https/],
      [{ clientSecret: "in plain text" }, /^oidc\.clientSecret: must be file:… or env:…/],
      [{ groups: [] }, /^oidc\.groups: /],
      [{ groups: [{ group: "g", scopes: ["agent"] }] }, /^oidc\.groups\[0\]\.scopes\[0\]: /],
      [{ clientID: "x" }, /unknown key "clientID"; did you mean "clientId"/],
    ];
    for (const [changed, why] of cases)
      expect(fault({ oidc: { ...oidc, ...changed } })).toMatch(why);
  });
});

describe("tokens of the configuration", () => {
  const one = (token: object) => ({ tokens: [{ name: "a", scopes: ["read"], ...token }] });

  it("are hashes, files, or the environment's", () => {
    writeFileSync(join(folder, "t"), `${SECRET}\n`);
    writeFileSync(join(folder, "h"), `sha256:${sha256(SECRET)}\n`);
    for (const token of [`sha256:${sha256(SECRET).toUpperCase()}`, "file:t", "file:h", "env:T"])
      expect(read(one({ token }), {}, { ...ENV, T: SECRET }).tokens).toEqual([
        { name: "a", scopes: ["read"], agent: null, jobs: null, sha256: sha256(SECRET) },
      ]);
    const plain = read(one({ token: SECRET, plain: true }));
    expect(plain.tokens[0]!.sha256).toBe(sha256(SECRET));
    expect(plain.notes[0]).toMatch(/"a" is in plain text/);
  });

  it("that are weak, ambiguous or missing are refused", () => {
    writeFileSync(join(folder, "empty"), "\n");
    const cases: [object, RegExp][] = [
      [one({ token: SECRET }), /^tokens\[0\]\.token: must be sha256:…/],
      [one({ token: "short", plain: true }), /16 characters or more/],
      [one({ token: "two words two words", plain: true }), /one word/],
      [one({ token: "sha256:abc" }), /64 hexadecimal digits/],
      [one({ token: "file:empty" }), /is empty/],
      [one({ token: "file:none" }), /cannot be read/],
      [one({ token: "env:NONE" }), /the environment has no NONE/],
      [one({ token: "env:__proto__" }), /the environment has no __proto__/],
      [one({ token: SECRET, plain: true, scopes: [] }), /^tokens\[0\]\.scopes: /],
      [one({ token: SECRET, plain: true, scopes: ["write"] }), /^tokens\[0\]\.scopes\[0\]: /],
      [one({ token: SECRET, plain: true, agent: "n1" }), /only a token with the scope agent/],
      [one({ token: SECRET, plain: true, name: "x y" }), /^tokens\[0\]\.name: /],
      // The trail must not take a token for the service itself.
      [one({ token: SECRET, plain: true, name: "service" }), /name of the service's own/],
      [one({ token: SECRET, plain: true, jobs: [] }), /^tokens\[0\]\.jobs: /],
      [
        one({ token: SECRET, plain: true, jobs: ["a b"] }),
        /^tokens\[0\]\.jobs\[0\]: must be a job/,
      ],
    ];
    for (const [config, why] of cases) expect(fault(config)).toMatch(why);
    const token = (name: string, text: string) => ({
      name,
      scopes: ["read"],
      token: text,
      plain: true,
    });
    expect(fault({ tokens: [token("a", SECRET), token("a", `${SECRET}2`)] })).toMatch(/two tokens/);
    expect(fault({ tokens: [token("a", SECRET), token("b", SECRET)] })).toMatch(/same as another/);
  });
});
