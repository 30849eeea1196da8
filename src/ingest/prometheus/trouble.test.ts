/** How much one broken endpoint costs, and how often a server is asked the same. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { afterEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../test/support/until.ts";
import type { UserError } from "../../base/errors.ts";
import { crc32c } from "./crc32c.ts";
import { availableNames, connect, labelledMachines, pull, type PullOptions } from "./prometheus.ts";

const UTIL = "DCGM_FI_DEV_GPU_UTIL";
const POWER = "DCGM_FI_DEV_POWER_USAGE";
const CLOCK = "DCGM_FI_DEV_SM_CLOCK";
const CPU = "node_cpu_seconds_total";
const { signal } = new AbortController();
const servers: Server[] = [];

/** What a timer that went off has set in motion has had its turn. */
async function turns(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
}

afterEach(() => {
  vi.useRealTimers();
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

interface Call {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly asked: IncomingMessage;
  readonly answer: ServerResponse;
}
type Handler = (call: Call) => unknown;

/** The ends of paths, the first that fits; what is not there is not found. `paths` are those asked for. */
async function serve(
  handlers: Readonly<Record<string, Handler>>,
): Promise<{ url: string; paths: string[]; count: (end: string) => number }> {
  const paths: string[] = [];
  const all: Readonly<Record<string, Handler>> = {
    ...handlers,
    "/buildinfo": handlers["/buildinfo"] ?? (({ answer }) => json(answer, success({}))),
    "/metadata": handlers["/metadata"] ?? (({ answer }) => json(answer, success({}))),
  };
  const server = createServer((asked, answer) => {
    const { pathname, searchParams } = new URL(asked.url!, "http://x");
    paths.push(pathname);
    const end = Object.keys(all).find((end) => pathname.endsWith(end));
    if (end === undefined) answer.writeHead(404).end();
    else all[end]!({ path: pathname, query: searchParams, asked, answer });
  });
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    paths,
    count: (end) => paths.filter((path) => path.endsWith(end)).length,
  };
}

const success = (data: unknown): unknown => ({ status: "success", data });
const json = (answer: ServerResponse, body: unknown, status = 200): unknown =>
  answer.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
const silent = (): void => {};

const matrix = (metric: object, times = [1000, 1015]): unknown =>
  success({
    resultType: "matrix",
    result: [{ metric, values: times.map((time) => [time, "1"]) }],
  });
const raw: Handler = ({ query, answer }) => {
  const name = /^\w+/.exec(query.get("query")!)![0];
  json(answer, matrix({ __name__: name, hostname: "a", gpu: "0" }));
};

const ASKED: PullOptions = { match: "", names: [UTIL, POWER, CLOCK], startS: 900, endS: 1900 };

async function failureOf(work: Promise<unknown>): Promise<UserError> {
  const error: unknown = await work.then(
    () => null,
    (error: unknown) => error,
  );
  expect((error as Error | null)?.name).toBe("UserError");
  return error as UserError;
}

function field(number: number, content: string | Buffer): Buffer {
  const bytes = Buffer.from(content as string);
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
}

/** A frame of remote read with one sample of each of the labels' series at 1000 s. */
function frame(labels: Readonly<Record<string, string>>): Buffer {
  // One sample: its count, 2 × 1,000,000 ms as a varint, the double 1.
  const xor = Buffer.from([0, 1, 0x80, 0x89, 0x7a, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
  const chunk = Buffer.concat([Buffer.from([0x18, 1]), field(4, xor)]);
  const pairs = Object.entries(labels).map(([name, value]) =>
    field(1, Buffer.concat([field(1, name), field(2, value)])),
  );
  const content = field(1, Buffer.concat([...pairs, field(2, chunk)]));
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32c(content, 0, content.length));
  return Buffer.concat([Buffer.from([content.length]), sum, content]);
}

const STREAMED = { "content-type": "application/x-streamed-protobuf; proto=x" };
const ofName = (name: string): Buffer => frame({ __name__: name, gpu: "0", hostname: "a" });

describe("crc32c", () => {
  it("is Castagnoli's", () => {
    expect(crc32c(Buffer.from("x123456789"), 1, 10)).toBe(0xe3069283);
    expect(crc32c(Buffer.alloc(32), 0, 32)).toBe(0x8a9136aa);
    expect(crc32c(Buffer.alloc(0), 0, 0)).toBe(0);
  });
});

describe("remote read in trouble", () => {
  const damaged = ofName(UTIL);
  damaged[damaged.length - 3]! ^= 4;
  it.each<[string, Handler]>([
    ...[413, 429, 500, 501, 502, 503, 504].map((status): [string, Handler] => [
      String(status),
      ({ answer }) => answer.writeHead(status).end("no"),
    ]),
    [
      "cut",
      ({ answer }) => {
        answer.writeHead(200, STREAMED).write(ofName(UTIL));
        setTimeout(() => answer.destroy(), 30);
      },
    ],
    ["damaged", ({ answer }) => answer.writeHead(200, STREAMED).end(damaged)],
    ["without an end", ({ answer }) => answer.writeHead(200, STREAMED).end(damaged.subarray(0, 9))],
    ["of another type", ({ answer }) => json(answer, {})],
    ["silent", silent],
  ])("takes raw samples where it is %s, and soon asks for nothing else", async (_, read) => {
    const { url, count } = await serve({ "/read": read, "/query": raw });
    const server = await connect({ url, signal, timeoutMs: 1000 });
    for (let i = 0; i < 2; i++) {
      const { via, set, defects, counts } = await pull(server, ASKED);
      expect({ via, defects }).toEqual({ via: "raw", defects: [] });
      expect(set.samples.map(({ name, timeS }) => [name, [...timeS]])).toEqual(
        ASKED.names.map((name) => [name, [1000, 1015]]),
      );
      // What came before the end is of the same series.
      expect(counts.duplicateSeries).toBe(0);
    }
    expect(count("/read")).toBeLessThanOrEqual(4);
  });

  it("stays with it after one trouble", async () => {
    let asked = 0;
    const read: Handler = ({ answer }) =>
      asked++ === 0 ? answer.writeHead(503).end() : answer.writeHead(200, STREAMED).end();
    const { url, count } = await serve({ "/read": read, "/query": raw });
    const pulled = await pull(await connect({ url, signal }), ASKED);
    expect(count("/read")).toBe(3);
    expect(pulled.set.samples.length).toBe(1);
  });
});

describe("what the catalog wants", () => {
  it.each(["remote-read", "raw", "query-range", "export"] as const)(
    "is asked for by %s",
    async (via) => {
      let seen = "";
      const see: Handler = ({ asked, query, answer }) => {
        seen += query.get("query") ?? query.get("match[]") ?? "";
        asked.on("data", (chunk: Buffer) => (seen += chunk.toString("latin1")));
        asked.on("end", () => json(answer, success({ resultType: "matrix", result: [] })));
      };
      const ways = { "/read": see, "/query": see, "/query_range": see, "/export": see };
      const { url } = await serve(ways);
      const server = await connect({ url, signal });
      const names = [CPU, UTIL];
      await pull(server, { ...ASKED, match: 'job="x"', names, via, allowNothing: true }).catch(
        () => {},
      );
      if (via === "remote-read") expect(seen).toMatch(/job[^]*mode[^]{2}idle/);
      else expect(seen).toContain(`${CPU}{job="x",mode="idle"}`);
      expect(seen.split("idle").length).toBe(2);
    },
  );
});

describe("lists", () => {
  const values: Handler = ({ answer }) => json(answer, success([UTIL, POWER]));

  it("are asked for once for the same matchers and time", async () => {
    const metadata: Handler = ({ answer }) =>
      json(answer, success({ X: null, Y: [null], Z: 1, [UTIL]: [{ type: "counter" }] }));
    const handlers = { "/values": values, "/metadata": metadata, "/query": raw };
    const { url, count } = await serve(handlers);
    const server = await connect({ url, signal });
    await availableNames(server, "", ASKED.startS, ASKED.endS);
    for (const name of [UTIL, POWER]) {
      const { set } = await pull(server, { ...ASKED, names: [name] });
      expect(set.samples[0]!.type).toBe(name === UTIL ? "counter" : "unknown");
    }
    expect([count("/values"), count("/metadata")]).toEqual([1, 1]);
    await pull(server, { ...ASKED, endS: ASKED.endS + 1 });
    await pull(server, { ...ASKED, match: 'hostname="a"' });
    expect([count("/values"), count("/metadata")]).toEqual([3, 3]);
  });

  it.each([
    ["/metadata", 10_000],
    ["/values", 20_000],
  ] as const)("cost little where %s is silent, and once", async (end, limitMs) => {
    const handlers = { "/values": values, "/query": raw, [end]: silent };
    const { url, count } = await serve(handlers);
    const server = await connect({ url, signal });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    let isDone = false;
    const work = pull(server, ASKED).finally(() => (isDone = true));
    // Not `vi.waitUntil`, which moves the clock on at every look.
    await until(() => count(end) === 1);
    vi.advanceTimersByTime(limitMs - 1);
    await turns();
    expect(isDone).toBe(false);
    vi.advanceTimersByTime(1);
    const { set } = await work;
    expect(set.samples.map(({ name }) => name)).toEqual(
      end === "/values" ? ASKED.names : [UTIL, POWER],
    );
    await pull(server, { ...ASKED, endS: 2000 });
    expect(count(end)).toBe(1);
  });
});

describe("servers that drip", () => {
  it("are given twice the silence, not more, and the next names do not wait again", async () => {
    const drip: Handler = ({ answer }) => {
      answer.writeHead(200, { "content-type": "application/json" });
      const timer = setInterval(() => answer.write(" "), 50);
      answer.on("close", () => clearInterval(timer));
    };
    const { url, count } = await serve({ "/query": drip });
    const server = await connect({ url, signal, timeoutMs: 1000 });
    const failure = await failureOf(pull(server, ASKED));
    expect(failure.message).toMatch(/no whole answer within 2(\.0)? s/);
    // It is not asked again.
    const asked = count("/query");
    await failureOf(pull(server, { ...ASKED, names: ["DCGM_FI_DEV_FB_USED"] }));
    expect(count("/query")).toBe(asked);
  });
});

describe("nothing", () => {
  const none: Handler = ({ answer }) => json(answer, success({ resultType: "matrix", result: [] }));

  it("is an answer where the caller says so", async () => {
    const { url } = await serve({ "/query": none });
    const server = await connect({ url, signal });
    await failureOf(pull(server, ASKED));
    const pulled = await pull(server, { ...ASKED, allowNothing: true });
    expect(pulled).toMatchObject({ missing: ASKED.names, defects: [], set: { samples: [] } });
  });

  it("is none where all requests failed", async () => {
    const refuse: Handler = ({ answer }) => json(answer, { error: "x" }, 400);
    const { url } = await serve({ "/query": refuse, "/query_range": refuse });
    const server = await connect({ url, signal });
    expect((await failureOf(pull(server, { ...ASKED, allowNothing: true }))).message).toMatch(/x$/);
  });

  it("tells of series without a machine only where nothing else came", async () => {
    const query: Handler = (call) =>
      call.query.get("query")!.startsWith(UTIL)
        ? json(call.answer, matrix({ __name__: UTIL, gpu: "0" }))
        : raw(call);
    const { url } = await serve({ "/query": query });
    const server = await connect({ url, signal });
    expect((await pull(server, ASKED)).defects).toEqual([]);
    const only = { ...ASKED, names: [UTIL] };
    expect((await failureOf(pull(server, only))).message).toMatch(/no label says/);
    expect((await pull(server, { ...only, allowNothing: true })).defects.join()).toMatch(
      /1 series/,
    );
  });
});

describe("labelledMachines", () => {
  const query = { match: 'job="node"', startS: 1, endS: 2, names: [UTIL, POWER], there: null };

  it("asks once, for one metric of each exporter and what says who is who", async () => {
    const series: Handler = ({ query: asked, answer }) => {
      expect(asked.getAll("match[]")).toEqual([
        `${UTIL}{job="node"}`,
        'node_uname_info{job="node"}',
        "kube_node_info",
        'kube_pod_info{created_by_kind="DaemonSet"}',
      ]);
      expect([asked.get("start"), asked.get("end")]).toEqual(["1", "2"]);
      const data = [
        { __name__: UTIL, Hostname: "gpu-005", instance: "10.0.0.15:9400", gpu: "0" },
        { __name__: "node_uname_info", instance: "[fe80::1]:9100", nodename: "gpu-006" },
        { __name__: "node_uname_info", instance: "10.0.0.18:9100" },
        { __name__: "node_uname_info", instance: "10.0.0.19:9100", nodename: 7 },
        {
          __name__: "kube_pod_info",
          node: "gpu-007",
          namespace: "a",
          pod: "b",
          pod_ip: "10.1.0.1",
        },
        null,
        "x",
      ];
      json(answer, success(data));
    };
    const { url } = await serve({ "/series": series });
    expect(await labelledMachines(await connect({ url, signal }), query)).toEqual({
      machines: ["gpu-005"],
      claims: [[{ label: "instance", value: "10.0.0.15" }]],
      links: [
        { names: ["gpu-006", "[fe80::1]"], pod: null, from: "node_uname_info" },
        { names: ["gpu-007", "10.1.0.1"], pod: "a/b", from: "kube_pod_info" },
      ],
    });
  });

  it.each<[string, Handler]>([
    ["missing", ({ answer }) => answer.writeHead(404).end()],
    ["refused", ({ answer }) => json(answer, { error: "x" }, 400)],
    ["no list", ({ answer }) => json(answer, success({ a: 1 }))],
    ["cut", ({ answer }) => answer.destroy()],
    [
      "too long",
      ({ answer }) => {
        const piece = Buffer.alloc(1 << 20, " ");
        for (let i = 0; i < 65; i++) answer.write(piece);
      },
    ],
  ])("is empty where the answer is %s", async (_, series) => {
    const { url } = await serve({ "/series": series });
    expect((await labelledMachines(await connect({ url, signal }), query)).links).toEqual([]);
  });

  it("waits for ten seconds", async () => {
    const { url, count } = await serve({ "/series": silent });
    const server = await connect({ url, signal });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const work = labelledMachines(server, query);
    await until(() => count("/series") === 1);
    vi.advanceTimersByTime(10_000);
    expect((await work).links).toEqual([]);
  });
});

describe("what the user can mend", () => {
  it.each<[string, Record<string, string>]>([
    ["a name with a space", { "bad name": "x" }],
    ["a line break in a name", { "bad\nname": "x" }],
    ["a line break in a value", { authorization: "Bearer s3cret\nx: y" }],
    ["a letter beyond Latin", { authorization: "s3cret €" }],
    ["no name", { "": "x" }],
  ])("is a header with %s", async (_, headers) => {
    const failure = await failureOf(connect({ url: "http://127.0.0.1:1", headers, signal }));
    expect(failure).toMatchObject({ exitCode: 2 });
    expect(failure.message).toMatch(/^--header[^\n]*$/);
    expect(failure.message).not.toContain("s3cret");
  });

  it("is a lack of credentials, by a hint that says how to give them", async () => {
    for (const status of [401, 403]) {
      const { url } = await serve({ "": ({ answer }) => answer.writeHead(status).end() });
      const { hint } = await failureOf(connect({ url, signal }));
      expect(hint).toContain("--header 'Authorization: Bearer …'");
      expect(hint).toContain("http://user:password@host");
    }
  });

  it("is a password with a percent sign of its own", async () => {
    let seen: string | undefined;
    const { url } = await serve({
      "": ({ asked, answer }) => {
        seen = asked.headers.authorization;
        json(answer, success({}));
      },
    });
    await connect({ url: url.replace("//", "//me:50%@"), signal });
    expect(seen).toBe(`Basic ${Buffer.from("me:50%").toString("base64")}`);
  });

  it("is a way that the server does not know", async () => {
    const { url } = await serve({});
    const prometheus = await connect({ url, signal });
    const failure = await failureOf(pull(prometheus, { ...ASKED, via: "export" }));
    expect(failure).toMatchObject({ exitCode: 2 });
    expect(failure.message).toMatch(
      /does not know --via export; Prometheus knows remote-read, raw, query-range$/,
    );
    const victoria = await serve({
      "/buildinfo": ({ answer }) => {
        answer.setHeader("x-server-hostname", "vm");
        json(answer, success({}));
      },
      "/read": ({ answer }) => answer.writeHead(400).end("unsupported path requested: /read"),
    });
    const server = await connect({ url: victoria.url, signal });
    expect((await failureOf(pull(server, { ...ASKED, via: "remote-read" }))).message).toMatch(
      /does not know --via remote-read; VictoriaMetrics knows export, raw, query-range$/,
    );
  });
});

describe("answers that are compressed unasked", () => {
  const body = JSON.stringify(matrix({ __name__: UTIL, hostname: "a" }));
  const only = { ...ASKED, names: [UTIL] };
  const answering = (encoding: string, bytes: Buffer, status = 200): Promise<{ url: string }> =>
    serve({
      "/query": ({ answer }) =>
        answer
          .writeHead(status, { "content-type": "application/json", "content-encoding": encoding })
          .end(bytes),
    });

  it.each([
    ["gzip", gzipSync(body)],
    ["deflate", deflateSync(body)],
    ["br", brotliCompressSync(body)],
    ["identity", Buffer.from(body)],
  ])("are read in %s", async (encoding, bytes) => {
    const { url } = await answering(encoding, bytes);
    const { set } = await pull(await connect({ url, signal }), only);
    expect([...set.samples[0]!.timeS]).toEqual([1000, 1015]);
  });

  it("are called what they are where they cannot be read", async () => {
    const cut = await answering("gzip", gzipSync(body).subarray(0, 60));
    const ofCut = await failureOf(pull(await connect({ url: cut.url, signal }), only));
    expect(ofCut.message).toMatch(/broke off, or its gzip is damaged/);
    const zstd = await answering("zstd", Buffer.from(body));
    const there = await connect({ url: zstd.url, signal });
    const ofZstd = await failureOf(pull(there, { ...only, via: "raw" }));
    expect(ofZstd.message).toMatch(/answers in zstd, which nobody asked for/);
    const error = await answering("gzip", gzipSync('{"error":"parse error: y"}'), 400);
    const server = await connect({ url: error.url, signal });
    expect((await failureOf(pull(server, { ...only, via: "raw" }))).message).toMatch(/error: y$/);
  });
});
