/** How the source behaves towards servers that are slow, wrong, guarded or half broken. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createRawServer } from "node:net";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { UserError } from "../../base/errors.ts";
import { connect, nowS, pull, type Pulled } from "./prometheus.ts";

const UTIL = "DCGM_FI_DEV_GPU_UTIL";
const POWER = "DCGM_FI_DEV_POWER_USAGE";
const CLOCK = "DCGM_FI_DEV_SM_CLOCK";
const { signal } = new AbortController();
const servers: (Server | ReturnType<typeof createRawServer>)[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    if ("closeAllConnections" in server) server.closeAllConnections();
  }
});

async function listen(server: (typeof servers)[number]): Promise<string> {
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Handler = (
  path: string,
  query: URLSearchParams,
  answer: ServerResponse,
  asked: IncomingMessage,
) => unknown;

function serve(handler: Handler): Promise<string> {
  return listen(
    createServer((asked, answer) => {
      const { pathname, searchParams } = new URL(asked.url!, "http://x");
      handler(pathname, searchParams, answer, asked);
    }),
  );
}

function json(answer: ServerResponse, body: unknown, status = 200): void {
  answer.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

const matrix = (name: string): unknown => ({
  status: "success",
  data: {
    resultType: "matrix",
    result: [{ metric: { __name__: name, hostname: "a", gpu: "0" }, values: [[1000, "1"]] }],
  },
});

/** A server without remote read; `query` answers for raw samples. */
function fake(
  query: (name: string, answer: ServerResponse, text: string) => unknown,
): Promise<string> {
  return serve((path, parameters, answer) => {
    if (path.endsWith("/buildinfo"))
      json(answer, { status: "success", data: { version: "2.42.0" } });
    else if (path.endsWith("/values"))
      json(answer, { status: "success", data: [UTIL, POWER, CLOCK] });
    else if (path.endsWith("/metadata")) {
      json(answer, {
        status: "success",
        data: { [UTIL]: [{ type: "gauge", help: "", unit: "" }] },
      });
    } else if (path.endsWith("/query") || path.endsWith("/query_range")) {
      const text = parameters.get("query")!;
      query(/^\w+/.exec(text)![0], answer, text);
    } else json(answer, {}, 404);
  });
}

async function pullFrom(url: string, more: object = {}): Promise<Pulled> {
  const server = await connect({ url, signal, timeoutMs: 2000 });
  return pull(server, { match: "", names: [UTIL, POWER, CLOCK], startS: 900, endS: 1900, ...more });
}

async function failureOf(work: Promise<unknown>): Promise<UserError> {
  const error = await work.then(
    () => null,
    (error: unknown) => error,
  );
  expect((error as Error | null)?.name).toBe("UserError");
  return error as UserError;
}

describe("connect", () => {
  it.each([
    ["prometheus:9090", 2, /no URL/],
    ["ftp://x", 2, /no URL/],
    ["http://127.0.0.1:1", 3, /connection refused/],
    ["http://no-such-host.invalid", 3, /no such host/],
  ])("refuses %s", async (url, exitCode, words) => {
    const failure = await failureOf(connect({ url, signal }));
    expect(failure.exitCode).toBe(exitCode);
    expect(failure.message).toMatch(words);
    expect(failure.hint).not.toBe("");
  });

  it.each<[string, Handler, RegExp]>([
    [
      "guarded",
      (_, __, answer) => answer.writeHead(401).end("no token"),
      /refuses access.*no token/,
    ],
    [
      "at another path",
      (_, __, answer) => answer.writeHead(404).end("<h1>"),
      /no Prometheus API \(404\)/,
    ],
    [
      "redirecting",
      (_, __, answer) => answer.writeHead(302, { location: "https://login.example/" }).end(),
      /redirects to https:\/\/login.example\//,
    ],
    [
      "a web page",
      (_, __, answer) => answer.writeHead(200, { "content-type": "text/html" }).end("<html>"),
      /answers with a web page/,
    ],
    ["another API", (_, __, answer) => json(answer, {}), /not as the Prometheus API/],
    ["silent", () => {}, /no answer within 0.3 s/],
    ["cut", (_, __, answer) => answer.destroy(), /broke off/],
  ])("says so of a server that is %s", async (what, handler, words) => {
    const url = await serve(handler);
    const limit = what === "silent" ? { timeoutMs: 300 } : {};
    const failure = await failureOf(connect({ url, signal, ...limit }));
    expect(failure.message).toMatch(words);
    expect(failure).toMatchObject({ exitCode: 3 });
  });

  it("says so of what speaks no HTTP, and of http where https is asked for", async () => {
    const url = await listen(createRawServer((socket) => socket.end("220 mail\r\n")));
    expect((await failureOf(connect({ url, signal }))).message).toMatch(/speak HTTP/);
    const plain = (await fake(() => {})).replace("http:", "https:");
    expect((await failureOf(connect({ url: plain, signal }))).message).toMatch(/TLS/);
  });

  it("sends credentials, and never shows them", async () => {
    const seen: (string | undefined)[] = [];
    const url = await serve((_, __, answer, asked) => {
      seen.push(asked.headers.authorization, asked.headers["accept-encoding"]);
      json(answer, { status: "success", data: { version: "3.0.0" } });
    });
    const server = await connect({ url: `${url.replace("//", "//me:s%20cret@")}/`, signal });
    expect(server.url).toBe(url);
    await connect({ url, signal, headers: { authorization: "Bearer t" } });
    const basic = `Basic ${Buffer.from("me:s cret").toString("base64")}`;
    expect(seen).toEqual([basic, undefined, "Bearer t", undefined]);
  });

  it("takes the server's clock", async () => {
    const url = await serve((_, __, answer) => {
      answer.setHeader("date", new Date(Date.now() - 3_600_000).toUTCString());
      json(answer, { status: "success", data: {} });
    });
    const server = await connect({ url, signal });
    expect(Math.abs(Date.now() / 1000 - 3600 - nowS(server))).toBeLessThan(30);
  });
});

describe("pull", () => {
  it("falls back to raw samples, with types out of the metadata, in the order asked for", async () => {
    const pulled = await pullFrom(await fake((name, answer) => json(answer, matrix(name))));
    expect(pulled.via).toBe("raw");
    expect(pulled.set.samples.map(({ name, type }) => [name, type])).toEqual([
      [UTIL, "gauge"],
      [POWER, "unknown"],
      [CLOCK, "unknown"],
    ]);
  });

  it("names the metrics that did not come, and leaves out halves of them", async () => {
    const url = await fake((name, answer) => {
      if (name === POWER) return json(answer, { error: "overloaded" }, 503);
      if (name === UTIL) return json(answer, matrix(name));
      answer.writeHead(200, { "content-type": "application/json" });
      answer.write(JSON.stringify(matrix(name)).slice(0, -8));
      return setTimeout(() => answer.destroy(), 50);
    });
    const { set, defects, missing } = await pullFrom(url);
    expect(set.samples.map(({ name }) => name)).toEqual([UTIL]);
    expect(defects.toSorted()).toEqual([
      `${POWER} could not be pulled: overloaded.`,
      `${CLOCK} could not be pulled: the connection broke off.`,
    ]);
    expect(missing).toEqual([]);
  });

  it("asks a busy server twice", async () => {
    let asked = 0;
    const url = await fake((name, answer) =>
      asked++ === 0 ? json(answer, {}, 503) : json(answer, matrix(name)),
    );
    expect(await pullFrom(url, { names: [UTIL] })).toMatchObject({ defects: [] });
  });

  it("fails where nothing came, in the words of the server", async () => {
    const url = await fake((_, answer) => json(answer, { error: "1:5: parse error: x" }, 400));
    const failure = await failureOf(pullFrom(url));
    expect(failure.message).toMatch(/1:5: parse error: x/);
    expect(failure.exitCode).toBe(2);
    const silent = await fake(() => {});
    const late = connect({ url: silent, signal, timeoutMs: 200 }).then((server) =>
      pull(server, { match: "", names: [UTIL], startS: 1, endS: 2 }),
    );
    expect((await failureOf(late)).message).toMatch(/no answer within 0.2 s/);
  });

  it("gives up on a server that has fallen silent, and keeps what came before", async () => {
    let asked = 0;
    const names = Array.from({ length: 30 }, (_, i) => `DCGM_${i}`);
    const url = await serve((path, parameters, answer) => {
      if (path.endsWith("/read")) return json(answer, {}, 404);
      if (!path.endsWith("/query")) {
        const data = path.endsWith("/values") ? [UTIL, ...names] : {};
        return json(answer, { status: "success", data });
      }
      const query = parameters.get("query")!;
      if (query.startsWith(UTIL)) return json(answer, matrix(UTIL));
      return asked++;
    });
    const server = await connect({ url, signal, timeoutMs: 1000 });
    const span = { startS: 900, endS: 1900 };
    const { set, defects } = await pull(server, { match: "", names: [UTIL, ...names], ...span });
    expect(set.samples.length).toBe(1);
    expect(defects.length).toBe(30);
    expect(defects[29]).toMatch(/silent/);
    expect(asked).toBeLessThanOrEqual(4);
  });

  it("takes query_range where raw samples are refused, and says what that hides", async () => {
    const url = await fake((name, answer, text) =>
      text.includes("[") ? json(answer, { error: "no ranges" }, 403) : json(answer, matrix(name)),
    );
    const pulled = await pullFrom(url);
    expect(pulled.via).toBe("query-range");
    expect(pulled.defects).toEqual([expect.stringMatching(/5 minutes/)]);
  });

  it("hands on the server's warnings and tells of a clock that is off", async () => {
    const url = await fake((name, answer) => {
      answer.setHeader("date", new Date(0).toUTCString());
      json(answer, { ...(matrix(name) as object), isPartial: true, warnings: ["store gone"] });
    });
    const { defects } = await pullFrom(url, { names: [UTIL] });
    expect(defects).toEqual([
      `${UTIL}: the server says that a part of its stores did not answer.`,
      `${UTIL}: the server warns: store gone.`,
    ]);
    const hour = await serve((path, _, answer) => {
      answer.setHeader("date", new Date(Date.now() + 3_600_000).toUTCString());
      if (path.endsWith("/export")) {
        return void answer.end(
          `{"metric":{"__name__":"${UTIL}","hostname":"a"},"values":[1,2],"timestamps":[1000000,1001000]}\n`,
        );
      }
      answer.setHeader("x-server-hostname", "vm");
      return json(answer, { status: "success", data: path.endsWith("/values") ? [UTIL] : {} });
    });
    const ahead = await pullFrom(hour);
    expect(ahead).toMatchObject({ via: "export", missing: [POWER, CLOCK] });
    expect(ahead.defects.join()).toMatch(/^The server's clock is 3600 s ahead of this machine's/);
  });

  it("ends at once when it is interrupted", async () => {
    const stop = new AbortController();
    const server = await connect({ url: await fake(() => {}), signal: stop.signal });
    const work = pull(server, { match: "", names: [UTIL], startS: 1, endS: 2 });
    setTimeout(() => stop.abort(), 50);
    expect((await failureOf(work)).message).toMatch(/interrupted/);
  });
});
