/** A Prometheus for tests: ten machines with two GPUs each, one of which may be sick. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

const servers: Server[] = [];

export function closeServers(): void {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
}

const MACHINES = 10;
const STEP_S = 15;
const NAMES = ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP"];
const HEALTHY: Readonly<Record<string, number>> = {
  DCGM_FI_DEV_GPU_UTIL: 95,
  DCGM_FI_DEV_POWER_USAGE: 600,
  DCGM_FI_DEV_GPU_TEMP: 60,
};

/** Its address; the machine `sick` draws a third of the power since some minutes. */
export async function prometheusOfTen(sick: () => number): Promise<string> {
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
