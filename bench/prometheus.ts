/**
 * What it costs to get samples out of a real Prometheus: `node --import tsx bench/prometheus.ts`. One metric of 1,000
 * machines (and of 8,000 GPUs, unless --small) at 1 s over 15 minutes, by every way, beside what a plain program would
 * do: fetch() and JSON.parse(). The best of three runs on one machine; the target is 1.0 s for 1,000 machines. Needs
 * Debian's package `prometheus`. BENCH_PROMETHEUS_DATA names a folder to keep the data between runs, since writing it
 * takes longer than all the rest.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { connect, pull, type Way } from "../src/ingest/prometheus/prometheus.ts";
import { startPrometheus, whyNoPrometheus } from "../test/support/prometheus-server.ts";

const T0 = 1_750_000_000;
const LENGTH_S = 900;
const NAME = "DCGM_FI_DEV_GPU_UTIL";
const RUNS = 3;

/** Shares with two digits, as GPUs' activity is reported; every fifth machine in full doubles. */
function* history(machines: number, gpus: number): Iterable<string> {
  yield `# TYPE ${NAME} gauge`;
  for (let m = 0; m < machines; m++) {
    for (let g = 0; g < gpus; g++) {
      const labels = `job="train",gpu="${g}",UUID="GPU-${m}-${g}",pci_bus_id="00000000:${g}B:00.0",device="nvidia${g}",modelName="NVIDIA H100 80GB HBM3",hostname="node${String(m).padStart(4, "0")}"`;
      for (let i = 0; i < LENGTH_S; i++) {
        const wave = 90 + 9 * Math.sin(i / 7 + m + g);
        const value = m % 5 === 0 ? wave : wave.toFixed(m % 3);
        yield `${NAME}{${labels}} ${value} ${T0 + i}`;
      }
    }
  }
}

async function best(work: () => Promise<number>): Promise<{ ms: number; samples: number }> {
  let ms = Infinity;
  let samples = 0;
  for (let run = 0; run < RUNS; run++) {
    const started = performance.now();
    samples = await work();
    ms = Math.min(ms, performance.now() - started);
  }
  return { ms, samples };
}

async function naive(url: string): Promise<number> {
  const query = new URLSearchParams({
    query: NAME,
    start: String(T0),
    end: String(T0 + LENGTH_S - 1),
    step: "1",
  });
  const answer = await fetch(`${url}/api/v1/query_range?${query.toString()}`);
  const { data } = (await answer.json()) as {
    data: { result: { values: [number, string][] }[] };
  };
  let samples = 0;
  for (const { values } of data.result) {
    Float64Array.from(values, ([, value]) => Number(value));
    samples += values.length;
  }
  return samples;
}

if (whyNoPrometheus !== "") throw new Error(whyNoPrometheus);
const kept = process.env["BENCH_PROMETHEUS_DATA"];
const sizes = process.argv.includes("--small")
  ? [[1000, 1] as const]
  : [[1000, 1] as const, [1000, 8] as const];

console.log("| series | way | time | samples a second | received |\n|---|---|---|---|---|");
for (const [machines, gpus] of sizes) {
  const dataFolder = kept === undefined ? undefined : join(kept, `${machines}x${gpus}`);
  if (dataFolder !== undefined && !existsSync(dataFolder)) console.error("writing the history …");
  const running = await startPrometheus(history(machines, gpus), dataFolder ? { dataFolder } : {});
  try {
    const { signal } = new AbortController();
    const server = await connect({ url: running.url, signal });
    const line = (way: string, ms: number, samples: number, bytes: string): void =>
      console.log(
        `| ${machines * gpus} | ${way} | ${ms.toFixed(0)} ms | ${(samples / ms / 1000).toFixed(1)} million | ${bytes} |`,
      );
    for (const via of ["remote-read", "raw", "query-range"] satisfies Way[]) {
      let bytes = 0;
      const { ms, samples } = await best(async () => {
        const pulled = await pull(server, {
          match: "",
          names: [NAME],
          startS: T0,
          endS: T0 + LENGTH_S - 1,
          via,
          stepS: 1,
        });
        bytes = pulled.bytes;
        return pulled.set.samples[0]!.timeS.length;
      });
      line(via, ms, samples, `${(bytes / 1e6).toFixed(1)} MB`);
    }
    const { ms, samples } = await best(() => naive(running.url));
    line("fetch + JSON.parse", ms, samples, "");
  } finally {
    await running.stop();
  }
}
