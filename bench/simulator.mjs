// How long one simulated iteration takes and how much memory it needs, by number of GPUs and operators.
// Run through `npm run bench:simulator`; each row is a process of its own, so that peaks do not mix.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { simulate } from "../dist/simulate/cluster/engine.js";
import { completeSpec } from "../dist/simulate/cluster/spec.js";

const given = process.argv[2];
if (given) {
  const simulation = simulate(completeSpec(JSON.parse(given)));
  const times = [];
  let last = performance.now();
  for (const iteration of simulation.iterations()) {
    if (iteration.endNs === Infinity) throw new Error("a healthy job does not stop");
    times.push(performance.now() - last);
    last = performance.now();
  }
  const operators = simulation.programs.reduce((sum, { count }) => sum + count, 0);
  console.log(
    JSON.stringify({
      perRank: operators / simulation.programs.length,
      total: operators * simulation.lanes.lanes,
      ms: Math.min(...times),
      peakMb: process.resourceUsage().maxRSS / 1024,
    }),
  );
} else {
  const eight = { tp: 8, pp: 8, microBatches: 68, layersPerStage: 7 };
  const rows = [
    { name: "512 GPUs", shape: { ...eight, gpus: 512 }, target: "" },
    { name: "2,048 GPUs", shape: { ...eight, gpus: 2048 }, target: "" },
    { name: "8,192 GPUs", shape: { ...eight, gpus: 8192 }, target: "6 s, 3,000 MB" },
    {
      name: "8,192 GPUs, half the operators",
      shape: { ...eight, gpus: 8192, microBatches: 34 },
      target: "",
    },
    {
      name: "65,536 GPUs",
      shape: { gpus: 65536, tp: 8, pp: 16, microBatches: 18, layersPerStage: 3 },
      target: "completes",
    },
  ];
  console.log(
    "| job | operators a rank | million operators | one iteration | ns an operator | peak memory | target |",
  );
  console.log("|---|---|---|---|---|---|---|");
  for (const { name, shape, target } of rows) {
    const self = fileURLToPath(import.meta.url);
    const args = ["--max-old-space-size=8192", self, JSON.stringify({ ...shape, iterations: 2 })];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    if (!stdout) throw new Error(stderr);
    const { perRank, total, ms, peakMb } = JSON.parse(stdout);
    console.log(
      `| ${name} | ${perRank.toFixed(0)} | ${(total / 1e6).toFixed(1)} | ${(ms / 1000).toFixed(2)} s | ` +
        `${((ms * 1e6) / total).toFixed(0)} | ${peakMb.toFixed(0)} MB | ${target} |`,
    );
  }
}
