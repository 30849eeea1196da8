import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { connect } from "../../../ingest/prometheus/prometheus.ts";
import type { RankLayout } from "../job/rank-layout.ts";
import { Temperatures } from "./temperatures.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

type Series = readonly [labels: Readonly<Record<string, string>>, value: string];

/** What a Prometheus says to an instant query of one name. */
async function prometheus(answers: { series: Readonly<Record<string, readonly Series[]>> }) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, "http://x");
    const query = searchParams.get("query") ?? "";
    if (pathname === "/api/v1/query") asked.push(query);
    const found = answers.series[query] ?? [];
    const result = found.map(([metric, value]) => ({ metric, value: [1000, value] }));
    const data =
      pathname === "/api/v1/series"
        ? [{ instance: "10.0.0.7:9100", nodename: "node7" }]
        : { resultType: "vector", result };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ status: "success", data }));
  });
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, server };
}

function layout(machine: readonly (string | null)[], gpu: readonly (number | null)[]): RankLayout {
  const rank = machine.map((_, k) => k);
  const nothing = machine.map(() => null);
  return {
    revision: "r",
    groups: [],
    rank,
    machine,
    gpu,
    stage: nothing,
    pipeline: nothing,
    data: nothing,
    tensor: nothing,
    peers: new Int32Array(rank.length),
    peerGroups: 1,
  };
}

const { signal } = new AbortController();
const TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP";

function made(url: string, match = "") {
  const clock = { nowMs: 0 };
  const troubles: string[] = [];
  const temperatures = new Temperatures(
    { connect: () => connect({ url, signal }), match },
    () => clock.nowMs,
    (line) => troubles.push(line),
  );
  return { temperatures, clock, troubles };
}

describe("Temperatures", () => {
  it("finds the GPU of each rank, whichever way machines are named", async () => {
    const { url, asked } = await prometheus({
      series: {
        [`${TEMPERATURE}{cluster="a"}`]: [
          [{ Hostname: "node1.cluster.local", gpu: "0" }, "61"],
          [{ Hostname: "node1.cluster.local", gpu: "1" }, "62.5"],
          [{ Hostname: "node2", gpu: "0" }, "63"],
          // A part of a GPU is as hot as the hottest.
          [{ Hostname: "node2", gpu: "0", GPU_I_ID: "1" }, "64"],
          [{ instance: "10.0.0.7:9400", gpu: "3" }, "70"],
          [{ Hostname: "node2", gpu: "1" }, "NaN"],
          [{ gpu: "1" }, "99"],
        ],
      },
    });
    const { temperatures } = made(url, 'cluster="a"');
    await temperatures.look();
    const of = layout(
      [
        "node1",
        "node1.cluster.local",
        "node2.cluster.local",
        "node7",
        "node2",
        "node9",
        null,
        "node1",
      ],
      [0, 1, 0, 3, 1, 0, 0, null],
    );
    expect([...temperatures.of(of)]).toEqual([61, 62.5, 64, 70, NaN, NaN, NaN, NaN]);
    expect(temperatures.of(of)).toBe(temperatures.of(of));
    expect(asked).toEqual([`${TEMPERATURE}{cluster="a"}`]);
  });

  it("asks for the other name where the first has nothing", async () => {
    const { url } = await prometheus({
      series: { dcgm_gpu_temp: [[{ Hostname: "node1", gpu: "0" }, "50"]] },
    });
    const { temperatures } = made(url);
    await temperatures.look();
    expect([...temperatures.of(layout(["node1"], [0]))]).toEqual([50]);
  });

  it("says once that the server is away, and forgets what is old", async () => {
    const { url, server } = await prometheus({
      series: { [TEMPERATURE]: [[{ Hostname: "node1", gpu: "0" }, "50"]] },
    });
    const { temperatures, clock, troubles } = made(url);
    const of = layout(["node1"], [0]);
    await temperatures.look();
    server.close();
    server.closeAllConnections();
    for (let i = 0; i < 3; i++) await temperatures.look();
    expect(troubles).toHaveLength(1);
    expect(troubles[0]).toMatch(/temperatures of GPUs are not known/);
    expect([...temperatures.of(of)]).toEqual([50]);
    clock.nowMs += 130_000;
    expect([...temperatures.of(of)]).toEqual([NaN]);
  });

  it("knows nothing where no server is configured", async () => {
    const temperatures = new Temperatures(
      null,
      () => 0,
      () => expect.fail(),
    );
    temperatures.start();
    await temperatures.look();
    expect([...temperatures.of(layout(["node1"], [0]))]).toEqual([NaN]);
    temperatures.close();
  });
});
