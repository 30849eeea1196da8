/** What the service serves beside its API: the page's files, reports, compressed answers, and the demonstration's ways. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import zlib from "node:zlib";
import { createHash } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { UserError } from "../../src/base/errors.ts";
import { makeAuthorizer, type Token } from "../../src/live/service/http/authorize.ts";
import { encodingOf } from "../../src/live/service/http/encoding.ts";
import { type HttpSide, serveHttp } from "../../src/live/service/http/serve-http.ts";
import type {
  DemoControl,
  DemoFault,
  DemoState,
  RankColumns,
  ServiceView,
} from "../../src/live/service/view.ts";
import { sendRaw } from "../support/raw-http.ts";
import { INCIDENT, NOW_MS, PICTURE, REPORT, testView } from "../support/serve-view.ts";

const stops: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

interface Setting {
  readonly view?: Partial<ServiceView>;
  readonly webFolder?: string;
  readonly demo?: DemoControl;
  readonly tokens?: readonly Token[];
}

async function start(setting: Setting = {}): Promise<HttpSide> {
  const side = await serveHttp({
    view: testView(setting.view).view,
    auth: makeAuthorizer({
      host: "127.0.0.1",
      tokens: setting.tokens ?? [],
      publicRead: false,
      insecure: false,
      allowedHosts: [],
      tls: false,
      nowMs: () => NOW_MS,
    }),
    host: "127.0.0.1",
    port: 0,
    tls: null,
    nowMs: () => NOW_MS,
    version: "1.2.3",
    log: () => undefined,
    demo: setting.demo,
    webFolder: setting.webFolder,
  });
  stops.push(() => side.close());
  return side;
}

const SCRIPT = "console.log('a page');\n".repeat(400);

function builtPage(): string {
  const folder = mkdtempSync(join(tmpdir(), "faultline-page-"));
  stops.push(() => rmSync(folder, { recursive: true, force: true }));
  const web = join(folder, "web");
  mkdirSync(join(web, "assets"), { recursive: true });
  writeFileSync(join(folder, "secret.txt"), "secret");
  writeFileSync(join(web, "index.html"), '<script src="/assets/index-abc.js"></script>');
  writeFileSync(join(web, "assets", "index-abc.js"), SCRIPT);
  writeFileSync(join(web, "assets", "index-abc.css"), "body{}");
  writeFileSync(join(web, "assets", "index-abc.js.map"), "{}");
  writeFileSync(join(web, "other.html"), "other");
  symlinkSync(join(folder, "secret.txt"), join(web, "assets", "link.txt"));
  return web;
}

/** As bytes on the wire: fetch would unpack them. */
async function raw(url: string, path: string, ...headers: string[]) {
  const lines = [
    `GET ${path} HTTP/1.1`,
    "host: 127.0.0.1",
    ...headers,
    "connection: close",
    "",
    "",
  ];
  return await sendRaw(url, lines.join("\r\n"));
}

describe("the page", () => {
  it("is one document that may run only its own files, and is asked for again each time", async () => {
    const { url } = await start({ webFolder: builtPage() });
    const response = await fetch(`${url}/`);
    expect(await response.text()).toContain("/assets/index-abc.js");
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("no-cache");
    expect(response.headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    const etag = response.headers.get("etag")!;
    const again = await fetch(`${url}/`, { headers: { "if-none-match": `W/"x", ${etag}` } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    expect((await fetch(`${url}/`, { headers: { "if-none-match": '"x"' } })).status).toBe(200);
  });

  it("has scripts and styles that are kept for ever, with their types", async () => {
    const { url } = await start({ webFolder: builtPage() });
    const script = await fetch(`${url}/assets/index-abc.js`);
    expect(await script.text()).toBe(SCRIPT);
    expect(script.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(script.headers.get("cache-control")).toMatch(/immutable/);
    expect(script.headers.get("x-content-type-options")).toBe("nosniff");
    const style = await fetch(`${url}/assets/index-abc.css`);
    expect(style.headers.get("content-type")).toBe("text/css; charset=utf-8");
    const head = await fetch(`${url}/assets/index-abc.css`, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  it("reaches nothing else of the disk", async () => {
    const { url } = await start({ webFolder: builtPage() });
    for (const path of [
      "/assets/",
      "/assets/index-abc.js.map",
      "/assets/link.txt",
      "/assets/../index.html",
      "/assets/..%2findex.html",
      "/assets/%2e%2e",
      "/assets/../../secret.txt",
      "/assets/__proto__",
      "/assets/constructor",
      "/index.html",
      "/other.html",
      "/secret.txt",
    ])
      expect([path, (await raw(url, path)).status]).toEqual([path, 404]);
  });

  it("needs no token, for it is what asks for one", async () => {
    const sha256 = createHash("sha256").update("secret").digest("hex");
    const tokens: Token[] = [{ name: "a", scopes: ["read"], agent: null, jobs: null, sha256 }];
    const { url } = await start({ webFolder: builtPage(), tokens });
    expect((await fetch(`${url}/`)).status).toBe(200);
    expect((await fetch(`${url}/assets/index-abc.js`)).status).toBe(200);
    expect((await fetch(`${url}/api/v1/jobs`)).status).toBe(401);
    expect((await fetch(`${url}/api/v1/incidents/${INCIDENT.id}/report`)).status).toBe(401);
  });

  it("says how it is built where it is not", async () => {
    const { url } = await start({ webFolder: "/nowhere" });
    const response = await fetch(`${url}/`);
    expect(response.status).toBe(200);
    expect(await response.text()).toMatch(/npm run build/);
  });
});

describe("compressed answers", () => {
  const many = 5000;
  const numbers = Float32Array.from({ length: many }, (_, i) => i);
  const columns: RankColumns = {
    layout: "l",
    groups: [],
    rank: [...numbers],
    machine: [...numbers].map(String),
    gpu: [...numbers],
    stage: [...numbers],
    pipeline: [...numbers],
    data: [...numbers],
    tensor: [...numbers],
    iteration: Float64Array.from(numbers),
    durationMs: numbers,
    ownMs: numbers,
    waitMs: numbers,
    lateMs: numbers,
    temperature: numbers,
    state: [...numbers].map(() => "running"),
  };

  it("come as the reader takes them, and say the same", async () => {
    const { url } = await start({ webFolder: builtPage(), view: { ranks: () => columns } });
    for (const path of ["/assets/index-abc.js", "/api/v1/jobs/llama/ranks"]) {
      const plain = await raw(url, path);
      expect(plain.headers["content-encoding"]).toBeUndefined();
      const text = Buffer.from(await (await fetch(url + path)).arrayBuffer());
      for (const [accepts, encoding, unpack] of [
        ["gzip, deflate, br", "br", zlib.brotliDecompressSync],
        ["gzip;q=1.0, br;q=0", "gzip", zlib.gunzipSync],
      ] as const) {
        const bytes = await packed(url + path, accepts);
        expect(bytes.encoding).toBe(encoding);
        expect(bytes.body.length).toBeLessThan(text.length / 2);
        expect(unpack(bytes.body).equals(text)).toBe(true);
      }
    }
  });

  it("are not made of small ones, nor of the stream of events", async () => {
    const { url } = await start();
    expect((await packed(`${url}/api/v1/jobs`, "br")).encoding).toBeUndefined();
    const stop = new AbortController();
    const events = await fetch(`${url}/api/v1/events`, {
      headers: { "accept-encoding": "br, gzip" },
      signal: stop.signal,
    });
    expect(events.headers.get("content-encoding")).toBeNull();
    stop.abort();
  });

  it("are chosen by what the reader takes", () => {
    expect(encodingOf(undefined)).toBeNull();
    expect(encodingOf("identity")).toBeNull();
    expect(encodingOf("deflate, GZIP")).toBe("gzip");
    expect(encodingOf("br ; q=0.000, gzip;q=0.5")).toBe("gzip");
    expect(encodingOf("gzip;q=0, br;q=0")).toBeNull();
  });
});

async function packed(url: string, accepts: string): Promise<{ body: Buffer; encoding?: string }> {
  const { default: http } = await import("node:http");
  return await new Promise((resolve, reject) => {
    http
      .get(url, { headers: { "accept-encoding": accepts } }, (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.on("end", () => {
          const encoding = response.headers["content-encoding"];
          resolve({ body: Buffer.concat(parts), ...(encoding === undefined ? {} : { encoding }) });
        });
      })
      .on("error", reject);
  });
}

describe("an incident", () => {
  it("has a picture, or a sentence that says why not", async () => {
    const { url } = await start();
    const ask = async (base: string, id: string): Promise<[number, unknown]> => {
      const response = await fetch(`${base}/api/v1/incidents/${id}/picture`);
      return [response.status, await response.json()];
    };
    expect(await ask(url, INCIDENT.id)).toEqual([200, PICTURE]);
    expect(await ask(url, "no")).toEqual([404, { error: "there is no such incident" }]);
    const bare = await start({ view: { picture: async () => null } });
    expect(await ask(bare.url, INCIDENT.id)).toEqual([
      404,
      { error: "nothing was kept to draw this incident from" },
    ]);
  });

  it("has a report that is no page of the service: a sandbox without its origin", async () => {
    const { url } = await start();
    const response = await fetch(`${url}/api/v1/incidents/${INCIDENT.id}/report`);
    expect(await response.text()).toBe(REPORT);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const policy = response.headers.get("content-security-policy")!;
    expect(policy).toMatch(/default-src 'none'.*sandbox allow-scripts;/);
    expect(policy).not.toMatch(/allow-same-origin|connect-src/);
    const none = await fetch(`${url}/api/v1/incidents/no/report`);
    expect([none.status, await none.json()]).toEqual([
      404,
      { error: "there is no report of this incident" },
    ]);
  });
});

class Demo implements DemoControl {
  readonly broken: DemoFault[] = [];
  restarts = 0;
  state(): DemoState {
    return {
      job: "demo",
      gpus: 64,
      iteration: 12,
      isHung: false,
      isReady: true,
      faults: this.broken.map(({ kind, rank = 0 }, id) => ({
        id,
        kind,
        says: "a GPU is slow",
        ranks: [rank],
        machine: null,
        sinceMs: NOW_MS,
      })),
    };
  }
  breakIt(what: DemoFault): DemoState {
    if (what.rank === 999) throw new UserError("there is no rank 999", "ranks are 0 to 63");
    this.broken.push(what);
    return this.state();
  }
  mend(): DemoState {
    this.broken.length = 0;
    return this.state();
  }
  async restart(): Promise<DemoState> {
    this.restarts++;
    return this.state();
  }
}

const write = (
  method: string,
  body?: unknown,
  headers: Record<string, string> = {},
): RequestInit => ({
  method,
  headers: { "content-type": "application/json", ...headers },
  ...(body === undefined ? {} : { body: JSON.stringify(body) }),
});

describe("the demonstration", () => {
  it("is broken, mended and started again, and says how it stands", async () => {
    const demo = new Demo();
    const { url } = await start({ demo });
    const path = `${url}/api/v1/demo`;
    const ask = async (at: string, init?: RequestInit): Promise<[number, DemoState]> => {
      const response = await fetch(at, init);
      return [response.status, (await response.json()) as DemoState];
    };
    expect(await ask(path)).toEqual([200, demo.state()]);
    const [status, state] = await ask(path, write("POST", { kind: "gpu", rank: 17 }));
    expect([status, state.faults[0]!.ranks]).toEqual([200, [17]]);
    expect((await ask(path, write("POST", { kind: "link" })))[1].faults).toHaveLength(2);
    expect((await ask(path, write("DELETE", {})))[1].faults).toEqual([]);
    expect((await ask(path, write("DELETE")))[0]).toBe(200);
    expect((await ask(`${path}/restart`, write("POST", {})))[0]).toBe(200);
    expect(demo.restarts).toBe(1);
    const put = await fetch(path, { method: "PUT" });
    expect([put.status, put.headers.get("allow")]).toEqual([405, "GET, HEAD, POST, DELETE"]);
    const head = await fetch(`${path}/restart`, { method: "GET" });
    expect([head.status, head.headers.get("allow")]).toEqual([405, "POST"]);
  });

  it("refuses what cannot be broken, with the reason", async () => {
    const { url } = await start({ demo: new Demo() });
    const path = `${url}/api/v1/demo`;
    for (const body of [
      {},
      [],
      { kind: "sun" },
      { kind: "gpu", rank: -1 },
      { kind: "gpu", rank: 1.5 },
      { kind: "gpu", more: 1 },
    ])
      expect((await fetch(path, write("POST", body))).status).toBe(400);
    const none = await fetch(path, write("POST", { kind: "gpu", rank: 999 }));
    expect([none.status, await none.json()]).toEqual([409, { error: "there is no rank 999" }]);
  });

  it("is not broken by pages of other sites, forms, or whoever may only read", async () => {
    const demo = new Demo();
    const sha256 = createHash("sha256").update("secret").digest("hex");
    const tokens: Token[] = [{ name: "a", scopes: ["read"], agent: null, jobs: null, sha256 }];
    const { url } = await start({ demo });
    const path = `${url}/api/v1/demo`;
    const fault = { kind: "gpu" };
    for (const method of ["POST", "DELETE"]) {
      const evil = { origin: "http://evil.example" };
      expect((await fetch(path, write(method, fault, evil))).status).toBe(403);
      const form = { "content-type": "text/plain" };
      expect((await fetch(path, write(method, fault, form))).status).toBe(415);
      const host = `${method} /api/v1/demo HTTP/1.1\r\nhost: evil.example\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n`;
      expect((await sendRaw(url, host)).status).toBe(421);
    }
    const guarded = await start({ demo, tokens });
    const reader = { authorization: "Bearer secret" };
    for (const method of ["POST", "DELETE"])
      expect((await fetch(`${guarded.url}/api/v1/demo`, write(method, fault, reader))).status).toBe(
        403,
      );
    expect((await fetch(`${guarded.url}/api/v1/demo`, { headers: reader })).status).toBe(200);
    expect(demo.broken).toEqual([]);
  });

  it("is described where it is, and is nowhere else", async () => {
    const paths = async (url: string): Promise<string> =>
      await (await fetch(`${url}/api/v1/openapi.json`)).text();
    const there = await start({ demo: new Demo() });
    expect(await paths(there.url)).toMatch(/"\/api\/v1\/demo":.*"delete":.*DemoFault/);
    const { url } = await start();
    expect(await paths(url)).not.toMatch(/Demo(Fault|State)|\/demo"/);
    expect((await fetch(`${url}/api/v1/demo`)).status).toBe(404);
    expect((await fetch(`${url}/api/v1/demo`, write("POST", { kind: "gpu" }))).status).toBe(404);
    expect((await fetch(`${url}/api/v1/demo/restart`, write("POST", {}))).status).toBe(404);
  });
});
