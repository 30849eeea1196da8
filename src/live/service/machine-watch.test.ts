import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { connect } from "../../machines-pipeline.ts";
import type { Incident } from "../../model/incident.ts";
import type { MachinePicture } from "../../model/machine-picture.ts";
import { MachineWatch } from "./machine-watch.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

const MACHINES = 10;
const STEP_S = 15;
const NAMES = ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP"];
const HEALTHY: Readonly<Record<string, number>> = {
  DCGM_FI_DEV_GPU_UTIL: 95,
  DCGM_FI_DEV_POWER_USAGE: 600,
  DCGM_FI_DEV_GPU_TEMP: 60,
};

/** A Prometheus of ten machines with two GPUs each; `sick` draws a third of the power since `sickFromS`. */
async function prometheus(sick: () => number): Promise<string> {
  const sickFromS = Date.now() / 1000 - 400;
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, "http://x");
    const data = (): unknown => {
      if (pathname.endsWith("/values")) return NAMES;
      if (pathname.endsWith("/series")) return [];
      if (!pathname.endsWith("/query_range")) return {};
      const name = /^\w+/.exec(searchParams.get("query") ?? "")?.[0] ?? "";
      const [start, end] = ["start", "end"].map((key) => Number(searchParams.get(key)));
      const result = Array.from({ length: 2 * MACHINES }, (_, k) => {
        const machine = k >> 1;
        const values: [number, string][] = [];
        for (let s = Math.ceil(start! / STEP_S) * STEP_S; s <= end!; s += STEP_S) {
          const noise = 1 + 0.01 * Math.sin(s * (k + 1));
          const share = machine === sick() && s > sickFromS && name !== NAMES[2] ? 0.3 : 1;
          values.push([s, String((HEALTHY[name] ?? NaN) * noise * share)]);
        }
        const metric = { __name__: name, Hostname: `node${machine}.cluster`, gpu: String(k % 2) };
        return { metric, values };
      });
      return { resultType: "matrix", result };
    };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ status: "success", data: data() }));
  });
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function watching(sick: () => number) {
  const url = await prometheus(sick);
  const saved: Incident[] = [];
  const pictured: [id: string, metrics: readonly MachinePicture[]][] = [];
  const troubles: string[] = [];
  const watch = new MachineWatch(
    {
      connect: () => connect({ url, signal: new AbortController().signal }),
      match: "",
      via: "query-range",
      rangeS: 900,
      nowMs: Date.now,
      save: async (incident) => void saved.push(incident),
      ranksOn: () => [],
      pictured: (id, metrics) => void pictured.push([id, metrics]),
      trouble: (line) => troubles.push(line),
    },
    [],
  );
  return { watch, saved, pictured, troubles };
}

describe("MachineWatch", () => {
  it("draws the machine of its incident by what deviates", async () => {
    const { watch, saved, pictured, troubles } = await watching(() => 4);
    await watch.look();
    expect(troubles).toEqual([]);
    expect(saved.map(({ machines }) => machines)).toEqual([["node4.cluster"]]);
    const [[id, metrics]] = pictured as [[string, readonly MachinePicture[]]];
    expect(id).toBe(saved[0]!.id);
    expect(metrics.length).toBeGreaterThan(0);
    expect(metrics.every(({ machine }) => machine === "node4.cluster")).toBe(true);
    expect(metrics.map(({ metric }) => metric)).toContain("gpu-power-draw");
    const [{ value, middle }] = metrics as [MachinePicture];
    expect(value.at(-2)!).toBeLessThan(middle.at(-2)! / 2);
  });

  it("shows how the machines of a job's incident are, now and at the next calls", async () => {
    const { watch, pictured } = await watching(() => -1);
    // Nobody has asked Prometheus yet: the first call answers.
    watch.wish("job.r1.fail-slow.i3", ["node3"], Date.now() - 60_000);
    expect(pictured).toEqual([]);
    await watch.look();
    const [[id, metrics]] = pictured as [[string, readonly MachinePicture[]]];
    expect(id).toBe("job.r1.fail-slow.i3");
    expect(metrics.map(({ machine, metric }) => `${machine} ${metric}`)).toEqual([
      "node3.cluster gpu-temperature",
      "node3.cluster gpu-power-draw",
      "node3.cluster gpu-duty-cycle",
    ]);
    for (let i = 0; i < 6; i++) await watch.look();
    expect(pictured).toHaveLength(4);
    watch.wish("other", ["node77"], Date.now());
    expect(pictured).toHaveLength(4);
  });
});
