/** The Prometheus source against a real server. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { UserError } from "../../src/base/errors.ts";
import type { MetricSamples } from "../../src/model/metrics.ts";
import {
  connect,
  nowS,
  pull,
  type PullOptions,
  type Pulled,
  type Server,
} from "../../src/ingest/prometheus/prometheus.ts";
import { startPrometheus, type TestServer, whyNoPrometheus } from "../support/prometheus-server.ts";
import { freePort } from "../support/free-port.ts";

const T0 = 1_750_000_000;
const LENGTH_S = 900;
const UTIL = "DCGM_FI_DEV_GPU_UTIL";
const POWER = "DCGM_FI_DEV_POWER_USAGE";
const CLOCK = "DCGM_FI_DEV_SM_CLOCK";
const RECEIVED = "node_ethtool_transmitted_bytes_phy";
/** The last sample of the machine that stops. */
const STOP_S = T0 + 400;

/** Values of all shapes: whole, of 17 digits, large, tiny, negative. */
function valueOf(machine: number, i: number): number {
  const shapes = [
    98,
    0.1 + 0.2 * i,
    1e14 + i + 0.25,
    1.5e-9 * (i + 1),
    -i / 3,
    Math.PI * 10 ** (i % 14),
  ];
  return shapes[(machine + Math.floor(i / 50)) % shapes.length]!;
}

function* history(): Iterable<string> {
  yield `# TYPE ${UTIL} gauge`;
  for (let m = 0; m < 4; m++) {
    for (let i = 0; i <= LENGTH_S; i++) {
      if (m === 3 && T0 + i > STOP_S) break;
      yield `${UTIL}{job="train",gpu="0",hostname="node${m}"} ${valueOf(m, i)} ${T0 + i}`;
    }
  }
  yield `# TYPE ${POWER} gauge`;
  for (const replica of ["a", "b"]) {
    for (let i = 0; i <= LENGTH_S; i += 15) {
      const late = replica === "a" ? 0 : 7.25;
      if (replica === "b" && i < 60) continue;
      yield `${POWER}{job="train",gpu="1",hostname="node0",replica="${replica}"} ${400 + i} ${T0 + i + late}`;
    }
  }
  yield `# TYPE ${CLOCK} gauge`;
  for (let i = 0; i <= 60; i++) {
    const value = i % 10 === 3 ? "NaN" : i % 10 === 7 ? "+Inf" : String(1980 - i);
    yield `${CLOCK}{job="train",gpu="0",hostname="node \\"ö\\"\\\\"} ${value} ${(T0 + i * 1.003).toFixed(3)}`;
  }
  yield `# TYPE ${RECEIVED} unknown`;
  for (let i = 0; i <= 12_500; i++) {
    yield `${RECEIVED}{job="other",device="eth0",instance="node9:9100"} ${i * 1e9} ${T0 + i}`;
  }
}

const signal = new AbortController().signal;

function metric({ set }: Pulled, name: string): MetricSamples {
  const found = set.samples.find((samples) => samples.name === name);
  expect(found, name).toBeDefined();
  return found!;
}

async function failureOf(work: Promise<unknown>): Promise<UserError> {
  try {
    await work;
  } catch (error) {
    expect((error as Error).name).toBe("UserError");
    return error as UserError;
  }
  throw new Error("nothing failed");
}

describe.skipIf(whyNoPrometheus !== "")(`a real Prometheus${whyNoPrometheus}`, () => {
  let running: TestServer;
  let server: Server;
  const ask = (more: Partial<PullOptions>): Promise<Pulled> =>
    pull(server, {
      match: 'job="train"',
      names: [UTIL],
      startS: T0,
      endS: T0 + LENGTH_S,
      ...more,
    });

  beforeAll(async () => {
    running = await startPrometheus(history());
    server = await connect({ url: running.url, signal });
  });
  afterAll(() => running?.stop());

  it("says what it is and what time it is", () => {
    expect(server).toMatchObject({ kind: "prometheus", url: running.url });
    expect(server.version).toMatch(/^\d+\.\d+/);
    expect(Math.abs(nowS(server) * 1000 - Date.now())).toBeLessThan(30_000);
  });

  it("gives the same samples by remote read, raw and query_range, bit for bit", async () => {
    const remote = await ask({});
    expect(remote).toMatchObject({ via: "remote-read", defects: [], missing: [] });
    const samples = metric(remote, UTIL);
    expect([...samples.start]).toEqual([0, 901, 1802, 2703, 2703 + 401]);
    for (let m = 0; m < 4; m++) {
      for (let s = samples.start[m]!, i = 0; s < samples.start[m + 1]!; s++, i++) {
        expect(samples.timeS[s]).toBe(T0 + i);
        expect(Object.is(samples.value[s], valueOf(m, i))).toBe(true);
      }
    }
    expect((await ask({ via: "raw" })).set).toEqual(remote.set);
    // Where a machine's samples do not end, the points of query_range are the samples.
    const three = { match: 'job="train",hostname!="node3"' };
    const range = await ask({ ...three, via: "query-range", stepS: 1 });
    expect(range.set).toEqual((await ask(three)).set);
    expect(range.defects.join()).toMatch(/5 minutes/);
  });

  it("cuts at both ends of the time asked for", async () => {
    const span = { startS: T0 + 100, endS: T0 + 200 };
    for (const via of ["remote-read", "raw"] as const) {
      const { timeS, start } = metric(await ask({ ...span, via }), UTIL);
      expect([timeS[0], timeS[start[1]! - 1]]).toEqual([span.startS, span.endS]);
      expect(start[1]).toBe(101);
    }
  });

  it("sees a machine stop, which query_range hides for five minutes", async () => {
    const last = async (via: "remote-read" | "raw" | "query-range"): Promise<number> => {
      const { timeS } = metric(await ask({ match: 'hostname="node3"', via, stepS: 1 }), UTIL);
      return timeS[timeS.length - 1]!;
    };
    expect(await last("remote-read")).toBe(STOP_S);
    expect(await last("raw")).toBe(STOP_S);
    // Prometheus 3 ends a second earlier.
    expect((await last("query-range")) - STOP_S).toBeGreaterThanOrEqual(299);
  });

  it("leaves out what is no number, and reads labels of all characters", async () => {
    const remote = await ask({ names: [CLOCK] });
    expect(remote.counts.notNumbers).toBe(12);
    expect(remote.set.machines).toEqual(['node "ö"\\']);
    const { timeS } = metric(remote, CLOCK);
    expect(timeS.length).toBe(61 - 12);
    expect(timeS[1]).toBe(Number((T0 + 1.003).toFixed(3)));
    expect((await ask({ names: [CLOCK], via: "raw" })).set).toEqual(remote.set);
  });

  it("takes the longer of two replicas and says so", async () => {
    const pulled = await ask({ names: [POWER] });
    expect([...metric(pulled, POWER).start]).toEqual([0, 61]);
    expect(pulled.counts.duplicateSeries).toBe(1);
    expect(pulled.defects.join()).toMatch(/1 series say again .*replica/);
  });

  it("pulls several names, and tells which are not there", async () => {
    const names = [UTIL, "DCGM_FI_DEV_FB_USED", CLOCK, POWER];
    const pulled = await ask({ names });
    expect(pulled.set.samples.map(({ name }) => name).toSorted()).toEqual(
      [UTIL, CLOCK, POWER].toSorted(),
    );
    expect(pulled.missing).toEqual(["DCGM_FI_DEV_FB_USED"]);
  });

  it("asks for more than 11,000 points in pieces", async () => {
    const long = { match: "", names: [RECEIVED], endS: T0 + 12_500 };
    const range = await ask({ ...long, via: "query-range", stepS: 1 });
    expect(metric(range, RECEIVED).timeS.length).toBe(12_501);
    expect(range.counts.repeated).toBe(0);
    expect((await ask(long)).set).toEqual(range.set);
    expect((await ask({ ...long, via: "raw" })).set).toEqual(range.set);
  });

  it("halves the time where the server will not load so many samples", async () => {
    const small = await startPrometheus(history(), { flags: ["--query.max-samples=1500"] });
    try {
      const there = await connect({ url: small.url, signal });
      const long = { match: "", names: [RECEIVED], startS: T0, endS: T0 + 12_500 };
      const raw = await pull(there, { ...long, via: "raw" });
      expect(metric(raw, RECEIVED).timeS.length).toBe(12_501);
      expect(raw.counts.repeated).toBe(0);
      const range = await pull(there, { ...long, via: "query-range", stepS: 1 });
      expect(range.set).toEqual(raw.set);
    } finally {
      await small.stop();
    }
  });

  it("shows the server's words for a pattern that is none, and refuses malformed matchers itself", async () => {
    const pattern = await failureOf(ask({ match: 'job=~"tr("' }));
    expect(pattern.message).toMatch(/parse error|regexp/);
    expect(pattern.exitCode).toBe(2);
    expect(await failureOf(ask({ match: "job=train" }))).toMatchObject({ exitCode: 2 });
  });

  it("fails where nothing matches, and where the path is wrong", async () => {
    const none = await failureOf(ask({ match: 'job="nobody"' }));
    expect(none).toMatchObject({ exitCode: 3 });
    expect(none.message).toMatch(/no samples under job="nobody"/);
    const path = await failureOf(connect({ url: `${running.url}/elsewhere`, signal }));
    expect(path.message).toMatch(/404/);
  });

  it("falls back to raw where remote read is not let through", async () => {
    const { target } = server;
    const { request } = await import("../../src/ingest/prometheus/http.ts");
    const proxy = createServer((asked, answer) => {
      if (asked.url!.startsWith("/api/v1/read")) return void answer.writeHead(404).end();
      const [path, query] = asked.url!.split("?");
      const parameters = [...new URLSearchParams(query)];
      request(target, { path: path!, query: parameters }, ({ type }) => {
        answer.writeHead(200, { "content-type": type });
        return (chunk) => void answer.write(chunk);
      }).then(
        () => answer.end(),
        () => answer.writeHead(500).end(),
      );
    });
    proxy.listen(0, "127.0.0.1");
    await new Promise((resolve) => proxy.once("listening", resolve));
    try {
      const { port } = proxy.address() as AddressInfo;
      const there = await connect({ url: `http://127.0.0.1:${port}`, signal });
      const names = [UTIL, CLOCK];
      const span = { startS: T0, endS: T0 + LENGTH_S };
      const pulled = await pull(there, { match: 'job="train"', names, ...span });
      expect(pulled.via).toBe("raw");
      expect(pulled.set).toEqual((await ask({ names })).set);
    } finally {
      proxy.closeAllConnections();
      proxy.close();
    }
  });

  it("says in a sentence that nothing answers", async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const down = await failureOf(connect({ url, signal }));
    expect(down.message).toBe(`${url}: connection refused`);
    expect(down.exitCode).toBe(3);
  });
});
