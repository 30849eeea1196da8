/** `prometheus.priorities` in a running service: what labels taught decides which deviations are incidents. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { type OpenService, openService } from "../../src/cli/open-service.ts";
import { readServeConfig } from "../../src/live/service/config/config.ts";
import type { SiteMetrics } from "../../src/model/machine-labels.ts";
import { closeServers, prometheusOfTen } from "../support/live/prometheus.ts";

const stops: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
  closeServers();
});

/** Machine 4 draws a third of the power of its peers; `asked`: how often that was looked at. */
async function serve(priorities: unknown): Promise<{ service: OpenService; asked: () => number }> {
  let asked = 0;
  const url = await prometheusOfTen(() => (asked++, 4));
  const folder = mkdtempSync(join(tmpdir(), "faultline-priorities-"));
  stops.push(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "site-metrics.json"), JSON.stringify(priorities));
  const prometheus = { url, every: 0.2, via: "query-range" };
  const learnt = priorities === null ? {} : { priorities: "site-metrics.json" };
  const config = { port: 0, data: "data", prometheus: { ...prometheus, ...learnt } };
  writeFileSync(join(folder, "serve.json"), JSON.stringify(config));
  const screen = { write: () => undefined };
  const service = await openService(
    { out: screen, err: screen, env: {} },
    readServeConfig(join(folder, "serve.json"), {}, { HOME: folder }),
    { hangMs: 30_000, version: "1", log: () => undefined },
  );
  stops.push(() => service.close());
  return { service, asked: () => asked };
}

const learnt = (sigmas: SiteMetrics["sigmas"]): SiteMetrics => ({
  schema: "faultline.machine-priorities/1",
  order: [],
  scores: {},
  sigmas,
  labels: { faulty: 2, healthy: 2 },
});

async function accused({ view }: OpenService): Promise<readonly string[]> {
  return (await view.incidents({})).flatMap(({ machines }) => machines);
}

it("leaves out what the site's machines do without being faulty, and nothing else", async () => {
  const plain = await serve(null);
  await expect.poll(() => accused(plain.service), { timeout: 30_000 }).toEqual(["node4.cluster"]);
  const needed = plain.asked();

  const other = await serve(learnt({ "gpu-temperature": 1e6 }));
  await expect.poll(() => accused(other.service), { timeout: 30_000 }).toEqual(["node4.cluster"]);

  const quiet = await serve(learnt({ "gpu-power-draw": 1e6, "gpu-duty-cycle": 1e6 }));
  // Asked for longer than it took the first to find it.
  await expect.poll(() => quiet.asked(), { timeout: 30_000 }).toBeGreaterThan(2 * needed);
  expect(await accused(quiet.service)).toEqual([]);
}, 100_000);

it("does not start with a file that holds none", async () => {
  await expect(serve({ schema: "other" })).rejects.toThrow(
    /site-metrics\.json holds no priorities of metrics/,
  );
});
