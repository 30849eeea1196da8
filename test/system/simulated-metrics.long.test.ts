import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { WatchedFleet, askFleet } from "../../src/pipeline/machines.ts";
import { connect } from "../../src/ingest/prometheus/prometheus.ts";
import { simulate } from "../../src/simulate/cluster/engine.ts";
import { completeSpec } from "../../src/simulate/cluster/spec.ts";
import { SimulatedMetrics } from "../../src/live/fleet/simulated-metrics.ts";
import { metricsServer } from "../../src/live/fleet/simulated-prometheus.ts";

const MINUTE_MS = 60_000;
const start = Date.now();
const spec = completeSpec({ gpus: 64, tp: 4, pp: 4, layersPerStage: 2, hidden: 8192 });
const metricsOf = (): SimulatedMetrics =>
  new SimulatedMetrics({
    simulation: simulate(spec),
    startMs: start,
    pastMs: 20 * MINUTE_MS,
    stepMs: 10_000,
  });

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** What the service does every half minute, through HTTP, at a moment. */
async function faultyAt(metrics: SimulatedMetrics, nowMs: number): Promise<string[]> {
  const { answer } = metricsServer(metrics, () => nowMs);
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://x");
    const { status, body } = answer(url.pathname, url.searchParams);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const { signal } = new AbortController();
  const known = await connect({ url: `http://127.0.0.1:${port}`, signal });
  const watched = new WatchedFleet(known, { match: "", via: "auto", job: null }, 900);
  const fleet = await watched.at(nowMs / 1000, { signal, progress: () => undefined });
  expect(fleet.grids.length).toBeGreaterThan(15);
  const { report } = await askFleet(fleet, { method: "peers" });
  server.closeAllConnections();
  return report.faulty.map(({ machine, untilS }) => `${machine}${untilS === null ? "" : " over"}`);
}

describe("simulated metrics", () => {
  it("accuse no machine while all is well, at the start and an hour later", async () => {
    const metrics = metricsOf();
    for (const minutes of [0, 7, 19, 21, 40, 61])
      expect(await faultyAt(metrics, start + minutes * MINUTE_MS)).toEqual([]);
  });

  it("show a slow GPU where it would be seen, and nothing on its peers", async () => {
    const metrics = metricsOf();
    metrics.change(["gpu-slow:rank=17:severity=3"], false, start);
    const nowMs = start + 6 * MINUTE_MS;
    const clocks = metrics.series("DCGM_FI_DEV_SM_CLOCK", nowMs)!.map((one) => one.values.at(-1)!);
    expect(clocks[17]).toBeLessThan(900);
    expect(Math.min(...clocks.filter((_, rank) => rank !== 17))).toBeGreaterThan(1500);
    const sent = metrics.series("node_ethtool_transmitted_bytes_phy", nowMs)!;
    for (const { values } of sent)
      for (let t = 1; t < values.length; t++)
        expect(values[t]! - values[t - 1]!).toBeGreaterThan(0);
    expect(await faultyAt(metrics, nowMs)).toEqual(["node002"]);
    metrics.change([], false, nowMs);
    expect(await faultyAt(metrics, nowMs + 20 * MINUTE_MS)).toEqual([]);
  });

  it("accuse no machine but its own for a data loader that is late", async () => {
    const metrics = metricsOf();
    metrics.change(["dataloader:rank=2:severity=1.6"], false, start);
    // Its GPU works less than those that wait for it, which metrics cannot tell from a slow machine.
    const faulty = await faultyAt(metrics, start + 2 * MINUTE_MS);
    expect(faulty.filter((machine) => machine !== "node000")).toEqual([]);
  });

  it("do not change what was shown before, as time goes by", () => {
    const metrics = metricsOf();
    const early = metrics.series("DCGM_FI_DEV_GPU_TEMP", start)![5]!;
    const later = metrics.series("DCGM_FI_DEV_GPU_TEMP", start + 5 * MINUTE_MS)![5]!;
    const skip = (early.firstMs - later.firstMs) / metrics.stepMs;
    expect(skip).toBe(0);
    expect(later.values.slice(0, early.values.length)).toEqual(early.values);
  });
});

describe("the simulated server", () => {
  const { answer } = metricsServer(metricsOf(), () => start);
  const ask = (query: string, time = start / 1000) =>
    answer("/api/v1/query", new URLSearchParams({ query, time: String(time) })) as {
      status: number;
      body: { data: { result: { metric: Record<string, string>; value?: [number, string] }[] } };
    };

  it("answers an instant query of the temperature of one GPU", () => {
    const { body } = ask('DCGM_FI_DEV_GPU_TEMP{hostname="node002",gpu=~"1|2"}');
    expect(body.data.result.map(({ metric }) => metric["gpu"])).toEqual(["1", "2"]);
    const degrees = Number(body.data.result[0]!.value![1]);
    expect(degrees).toBeGreaterThan(30);
    expect(degrees).toBeLessThan(90);
  });

  it("refuses what it does not understand", () => {
    expect(ask("rate(node_cpu_seconds_total[5m])").status).toBe(400);
    expect(ask("nothing_of_that_name").body.data.result).toEqual([]);
    expect(answer("/api/v1/read", new URLSearchParams()).status).toBe(404);
  });
});
