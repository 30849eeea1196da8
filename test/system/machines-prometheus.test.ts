/** The whole command against a real Prometheus that holds a simulated job's metrics. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { completeSpec } from "../../src/simulate/cluster/spec.ts";
import { memoryOutput } from "../support/simulate/memory-output.ts";
import { runSimulation } from "../../src/simulate/run.ts";
import { startPrometheus, type TestServer, whyNoPrometheus } from "../support/prometheus-server.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** The job stops half a minute after this, and is watched for five minutes more. */
const startS = Math.floor(Date.now() / 1000) - 345;

function* metricLines(): Iterable<string> {
  const output = memoryOutput();
  const spec = completeSpec({
    gpus: 16,
    gpusPerMachine: 2,
    tp: 2,
    pp: 2,
    iterations: 300,
    seed: 3,
    epochNs: BigInt(startS) * 1_000_000_000n,
    faults: [parseFault("process-gone:rank=5:from=100")],
  });
  runSimulation(spec, ["metrics"], output);
  for (const [name, bytes] of output.bytes) {
    if (!name.endsWith(".prom")) continue;
    for (const line of Buffer.from(bytes).toString("utf8").split("\n")) {
      if (line !== "" && line !== "# EOF") yield line;
    }
  }
}

describe.skipIf(whyNoPrometheus !== "")(`faultline machines --prometheus${whyNoPrometheus}`, () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startPrometheus(metricLines());
  }, 120_000);
  afterAll(async () => {
    await server?.stop();
  });

  async function machines(
    ...args: string[]
  ): Promise<{ status: number; stdout: string; stderr: string }> {
    return await new Promise((resolve) => {
      const all = ["machines", "--prometheus", server.url, "--range", "15m", ...args];
      execFile(join(root, "faultline"), all, { maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
        resolve({ status: error ? Number(error.code ?? 1) : 0, stdout, stderr });
      });
    });
  }

  const documentOf = (
    text: string,
  ): { faulty: { machine: string }[]; metrics: { coverage: number }[] } =>
    JSON.parse(text) as never;

  it.each(["auto", "raw", "query-range"])(
    "names the machine (%s)",
    async (via) => {
      const { status, stdout, stderr } = await machines(
        "--match",
        'job=~"dcgm|node"',
        "--via",
        via,
        "--json",
      );
      expect(stderr).toBe("");
      expect(status).toBe(0);
      const { faulty, metrics } = documentOf(stdout);
      expect(faulty.map(({ machine }) => machine)).toEqual(["node002"]);
      expect(metrics.filter(({ coverage }) => coverage > 0).length).toBeGreaterThanOrEqual(21);
    },
    60_000,
  );

  it("watches: what changed in full, then that it is still so", async () => {
    const { status, stdout, stderr } = await machines("--watch", "--every", "2s", "--calls", "2");
    expect(status).toBe(0);
    expect(stdout.match(/^node002 +score /gm)).toHaveLength(1);
    expect(stderr).toMatch(/Z still node002/);
  }, 60_000);

  it("says what is not there", async () => {
    const nothing = await machines("--match", 'job="other"');
    expect(nothing.status).toBe(3);
    expect(nothing.stderr).toMatch(/none of the metrics .* under job="other"/);
    const malformed = await machines("--match", "job=train");
    expect(malformed.status).toBe(2);
    const past = await machines("--end", "2020-01-01T00:00:00Z");
    expect(past.status).toBe(3);
  }, 60_000);
});
