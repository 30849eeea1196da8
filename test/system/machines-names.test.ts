/**
 * A real Prometheus that scrapes real node_exporters, which know machines by address, and exporters that play dcgm data under
 * other names and addresses: host name on two machines, the name of their pod on two others.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import {
  playExporter,
  startNodeExporter,
  whyNoNodeExporter,
  type Running,
} from "../support/node-exporter.ts";
import { startPrometheus, type TestServer, whyNoPrometheus } from "../support/prometheus-server.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const MACHINES = [1, 2, 3, 4];
/** Enough scrapes for a sampling interval and some rates. */
const SCRAPED_S = 9;

const nameOf = (m: number): string => `node70${m}`;
const hostOf = (m: number): string => `127.0.1.${m}`;
const podOf = (m: number): string => `dcgm-exporter-d66s${"wxzv"[m - 1]}`;

function dcgmText(m: number): string {
  const hostname = m <= 2 ? nameOf(m) : podOf(m);
  const series = [0, 1].map(
    (gpu) =>
      `{gpu="${gpu}",UUID="GPU-${m}-${gpu}",device="nvidia${gpu}",modelName="NVIDIA H200",Hostname="${hostname}"}`,
  );
  const at = Math.sin(Date.now() / 700 + m);
  return [
    "# TYPE DCGM_FI_DEV_GPU_UTIL gauge",
    ...series.map((labels) => `DCGM_FI_DEV_GPU_UTIL${labels} ${Math.round(98 + at)}`),
    "# TYPE DCGM_FI_DEV_POWER_USAGE gauge",
    ...series.map((labels) => `DCGM_FI_DEV_POWER_USAGE${labels} ${(520 + 9 * at).toFixed(3)}`),
    "",
  ].join("\n");
}

function kubeText(): string {
  return [
    "# TYPE kube_pod_info gauge",
    ...MACHINES.map(
      (m) =>
        `kube_pod_info{namespace="gpu",pod="${podOf(m)}",node="${nameOf(m)}",host_ip="${hostOf(m)}",pod_ip="127.0.2.${m}",created_by_kind="DaemonSet"} 1`,
    ),
    "",
  ].join("\n");
}

const why = `${whyNoPrometheus}${whyNoNodeExporter}`;

describe.skipIf(why !== "")(`names of machines behind a real Prometheus${why}`, () => {
  const running: Running[] = [];
  let server: TestServer;
  beforeAll(async () => {
    const [nodePort, dcgmPort, kubePort] = [await freePort(), await freePort(), await freePort()];
    for (const m of MACHINES) {
      running.push(startNodeExporter(hostOf(m), nodePort));
      running.push(await playExporter(`127.0.2.${m}`, dcgmPort, () => dcgmText(m)));
    }
    running.push(await playExporter("127.0.0.1", kubePort, kubeText));
    // One kernel answers for all of them: what they call themselves is altered on the way.
    const renamed = MACHINES.map(
      (m) =>
        `{source_labels: [__name__, instance], regex: "node_uname_info;${hostOf(m)}:.*", target_label: nodename, replacement: ${nameOf(m)}}`,
    );
    const targets = MACHINES.map(
      (m) => `
      - targets: ["127.0.2.${m}:${dcgmPort}"]
        labels: {namespace: gpu, pod: ${podOf(m)}}`,
    );
    server = await startPrometheus([], {
      config: `
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: node
    static_configs: [{targets: [${MACHINES.map((m) => `"${hostOf(m)}:${nodePort}"`).join(", ")}]}]
    metric_relabel_configs: [${renamed.join(", ")}]
  - job_name: dcgm
    static_configs:${targets.join("")}
  - job_name: kube-state-metrics
    honor_labels: true
    static_configs: [{targets: ["127.0.0.1:${kubePort}"]}]
`,
    });
    await pause(1000 * SCRAPED_S);
  }, 60_000);
  afterAll(async () => {
    await server?.stop();
    for (const one of running) await one.stop();
  });

  const machines = (...args: string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      const all = ["machines", "--prometheus", server.url, "--range", `${SCRAPED_S}s`, ...args];
      execFile(join(root, "faultline"), all, { maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
        if (error) reject(new Error(stderr));
        else resolve(stdout);
      });
    });

  it("makes one machine of each, with the metrics of both exporters", async () => {
    const document = JSON.parse(await machines("--json")) as {
      machines: number;
      joined: { machine: string; names: string[]; by: string[] }[];
      metrics: { name: string; coverage: number }[];
      missing: string[];
    };
    expect(document.machines).toBe(4);
    expect(document.joined.map(({ machine }) => machine)).toEqual(MACHINES.map(nameOf));
    for (const { names } of document.joined)
      expect(names).toEqual(expect.arrayContaining([expect.stringMatching(/^127\.0\.1\./)]));
    const seen = new Map(document.metrics.map(({ name, coverage }) => [name, coverage]));
    expect(seen.get("gpu-power-draw")).toBeGreaterThan(0.6);
    expect(seen.get("memory-usage")).toBeGreaterThan(0.6);
    expect(document.missing.join()).not.toMatch(/different names/);
  }, 60_000);

  it("explains a machine under the address of its host", async () => {
    const text = await machines("--explain", hostOf(3));
    expect(text).toMatch(/^node703, beside 3 peers/);
    expect(text).toMatch(/joined by [^)]*kube_pod_info/);
    expect(text).toMatch(/GPU power/);
    expect(text).toMatch(/memory usage/);
  }, 60_000);
});
