/**
 * Speed and memory with figures: `npm run bench`. Not a test: machines differ and are busy. Read the
 * ratios (to the bare start of Node, per megabyte); the targets are those of the command's users.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  makeHangCase,
  writeCase,
  type HangOptions,
} from "../eval/generated-hangs/cases/hang-case.ts";

const measured = fileURLToPath(new URL("./measured.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "faultline-bench-"));

interface Figures {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly peakMb: number;
}

/** Writes a case's dumps and returns their folder, bytes and true culprits. */
function put(name: string, options: HangOptions): { path: string; bytes: number; truth: string } {
  const path = join(folder, name);
  mkdirSync(path);
  const hang = makeHangCase(options);
  let bytes = 0;
  for (const file of writeCase(hang)) {
    writeFileSync(join(path, file.name), file.bytes);
    bytes += file.bytes.length;
  }
  return { path, bytes, truth: hang.truth.ranks.join() };
}

function diagnose(path: string): Figures & { commandMs: number; blamed: string } {
  const started = performance.now();
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [measured, "diagnose", path, "--json", "--quiet"],
    { encoding: "utf8", maxBuffer: 1 << 28 },
  );
  const commandMs = performance.now() - started;
  const verdict = JSON.parse(stdout) as { suspects: { ranks: number[] }[] };
  const figures = JSON.parse(/@@(.*)/.exec(stderr)![1]!) as Figures;
  return { ...figures, commandMs, blamed: verdict.suspects.flatMap(({ ranks }) => ranks).join() };
}

function best<T extends { commandMs: number }>(runs: readonly T[]): T {
  return runs.reduce((a, b) => (b.commandMs < a.commandMs ? b : a));
}

function bareNodeMs(): number {
  const times = [0, 1, 2, 3, 4].map(() => {
    const started = performance.now();
    spawnSync(process.execPath, ["-e", "0"]);
    return performance.now() - started;
  });
  return Math.min(...times);
}

const big = {
  program: { microBatches: 8, layers: 6, schedule: "1f1b", tensor: "all_reduce" },
  nuisances: { ringSize: 2000, stacks: true },
  seed: 1,
  fault: "cpu-stall",
  faultIteration: 17,
} as const;

try {
  console.log(`${cpus().length} cores, Node ${process.version}`);
  console.log("| job | MB | wall | CPU | peak memory | MB/s | blamed / truth | target |");
  console.log("|---|---|---|---|---|---|---|---|");
  const rows: [string, HangOptions, string][] = [
    [
      "16 ranks, small dumps",
      { tp: 2, pp: 4, dp: 2, seed: 7, fault: "gpu-hang", nuisances: { onlyActive: true } },
      "0.4 s",
    ],
    ["128 ranks × 2,000 entries", { ...big, tp: 8, pp: 8, dp: 2 }, ""],
    ["1,024 ranks × 2,000 entries", { ...big, tp: 8, pp: 8, dp: 16 }, "10 s, 1,500 MB"],
  ];
  for (const [name, options, target] of rows) {
    const { path, bytes, truth } = put(name.replaceAll(/\W+/g, "-"), options);
    const run = best([diagnose(path), diagnose(path), diagnose(path)]);
    const mb = bytes / 1e6;
    console.log(
      `| ${name} | ${mb.toFixed(1)} | ${(run.commandMs / 1000).toFixed(2)} s | ${(run.cpuMs / 1000).toFixed(2)} s | ` +
        `${run.peakMb.toFixed(0)} MB | ${((mb * 1000) / run.commandMs).toFixed(0)} | ${run.blamed} / ${truth} | ${target} |`,
    );
    rmSync(path, { recursive: true });
  }
  console.log(`a bare start of Node takes ${(bareNodeMs() / 1000).toFixed(2)} s here`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
