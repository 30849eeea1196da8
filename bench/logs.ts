/**
 * How fast logs are read: `npm run bench:logs`. Writes the logs of a made-up job (seeded; one file a rank and one that
 * all ranks write to) into a temporary folder, --gb of them (1), and reads them with one thread and with two, taking
 * turns --rounds times (3), since the machine's load changes. Every reading is a process of its own, so that its peak of
 * memory is its own, too. --sizes 1,4,20 does so for several sizes. BENCH_LOGS_DIR keeps the files.
 */
import { execFileSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import type { ingest as Ingest } from "../src/ingest/ingest.ts";
import { randomInt, seeded, type Random } from "../src/base/random.ts";

const RANKS = 16;
const HOSTS = 4;
const BLOCK_BYTES = 4 << 20;
const GB = 1e9;
const START = Date.UTC(2026, 4, 20, 8);

const digits = (random: Random, below: number, width = 0): string =>
  String(randomInt(random, below)).padStart(width, "0");

/** What one rank writes in one iteration. */
function iterationLines(random: Random, rank: number, step: number): string[] {
  const ms = START + step * 4000 + randomInt(random, 900);
  const at = new Date(ms).toISOString().replace("T", " ");
  const date = at.slice(0, 19);
  const host = `gpu-node-${String(Math.floor(rank / (RANKS / HOSTS))).padStart(3, "0")}`;
  const pid = 40_000 + rank;
  const lines: string[] = [];
  const took = 3900 + randomInt(random, 200);
  if (rank === RANKS - 1) {
    lines.push(
      ` [${date}] iteration ${String(step).padStart(8)}/  500000 | consumed samples: ${String(step * 1024).padStart(12)} | ` +
        `elapsed time per iteration (ms): ${took}.${digits(random, 10)} | throughput per GPU (TFLOP/s/GPU): ` +
        `${380 + randomInt(random, 30)}.${digits(random, 10)} | learning rate: 1.${digits(random, 1e6, 6)}E-04 | global batch size:  1024 | ` +
        `lm loss: ${1 + randomInt(random, 3)}.${digits(random, 1e6, 6)}E+00 | loss scale: 1.0 | grad norm: 0.${digits(random, 1000, 3)} | ` +
        "number of skipped iterations:   0 | number of nan iterations:   0 |",
    );
  }
  if (step % 10 === 0) {
    for (const timer of ["forward-compute", "backward-compute", "batch-generator", "optimizer"])
      lines.push(
        `    ${timer} ${".".repeat(48 - timer.length)}: (${digits(random, 4000)}.${digits(random, 100, 2)}, ${digits(random, 4000)}.${digits(random, 100, 2)})`,
      );
  }
  const stamp = `${date},${String(ms % 1000).padStart(3, "0")}`;
  lines.push(
    `[${stamp}] [INFO] [logging.py:96:log_dist] [Rank ${rank}] step=${step}, skipped=0, lr=[0.000${digits(random, 1e6)}], mom=[[0.9, 0.95]]`,
    `[${stamp}] [INFO] [timer.py:260:stop] epoch=0/micro_step=${step * 8}/global_step=${step}, RunningAvgSamplesPerSec=${digits(random, 900)}.${digits(random, 1e6)}, CurrSamplesPerSec=${digits(random, 900)}.${digits(random, 1e6)}, MemAllocated=${digits(random, 70)}.${digits(random, 100)}GB, MaxMemAllocated=71.${digits(random, 100)}GB`,
  );
  for (let i = 0; i < 3; i++)
    lines.push(
      `${host}:${pid}:${pid + 700 + i} [${rank % 8}] NCCL INFO comm 0x5${digits(random, 1e6, 7)}a0 rank ${rank} nranks ${RANKS} opCount ${digits(random, 1e5)} Channel ${digits(random, 16, 2)}/0 : ${rank}[${rank % 8}] -> ${(rank + 1) % RANKS}[${(rank + 1) % 8}] via P2P/CUMEM`,
    );
  lines.push(
    `dataloader: prefetched ${digits(random, 900)} samples of shard ${digits(random, 4000)} in ${digits(random, 90)}.${digits(random, 100)} ms`,
  );
  if (random() < 0.05)
    lines.push(
      `[${stamp}] [WARNING] [stage3.py:2114:step] ${digits(random, 9)} pytorch allocator cache flushes since last step. this happens when there is high memory pressure`,
    );
  if (random() < 0.02)
    lines.push(
      `/opt/train/data/loader.py:${digits(random, 300)}: UserWarning: sample ${digits(random, 1e6)} has no label, skipping`,
      "  warnings.warn(message)",
    );
  if (random() < 0.0005)
    lines.push(
      "Traceback (most recent call last):",
      `  File "/opt/train/data/loader.py", line ${200 + randomInt(random, 9)}, in fetch`,
      "    return self.shards[index].read(offset)",
      '  File "/usr/lib/python3.11/socket.py", line 706, in readinto',
      "    return self._sock.recv_into(b)",
      `ConnectionResetError: [Errno 104] Connection reset by peer (attempt ${digits(random, 5)})`,
    );
  return lines;
}

/** Half of the bytes in files of one rank each, half in one file with every line's rank before it. */
function writeJob(folder: string, bytes: number): string[] {
  const paths: string[] = [];
  const write = (
    name: string,
    share: number,
    of: (random: Random, step: number) => string,
  ): void => {
    const path = join(folder, name);
    paths.push(path);
    if (existsSync(path)) return;
    const fd = openSync(path, "w");
    const random = seeded(7 + paths.length);
    let written = 0;
    let block = "";
    for (let step = 1; written + block.length < share; step++) {
      block += of(random, step);
      if (block.length < BLOCK_BYTES) continue;
      written += writeSync(fd, block);
      block = "";
    }
    writeSync(fd, block);
    closeSync(fd);
  };
  for (let rank = 0; rank < RANKS; rank++)
    write(
      `rank-${rank}.log`,
      bytes / 2 / RANKS,
      (random, step) => `${iterationLines(random, rank, step).join("\n")}\n`,
    );
  write("merged.log", bytes / 2, (random, step) => {
    let text = "";
    for (let rank = 0; rank < RANKS; rank++)
      for (const line of iterationLines(random, rank, step)) text += `[default${rank}]:${line}\n`;
    return text;
  });
  return paths;
}

interface Measured {
  readonly seconds: number;
  /** Of all threads: what the machine's other work does not change. */
  readonly cpuSeconds: number;
  readonly rssMb: number;
  readonly bytes: number;
  readonly lines: number;
  readonly shapes: number;
  readonly streams: number;
  readonly kept: number;
}

async function child(workers: number, paths: readonly string[]): Promise<void> {
  // As it is shipped: compiled, so that threads start without a loader.
  const built = new URL("../dist/ingest/ingest.js", import.meta.url).href;
  const { ingest } = (await import(built)) as { ingest: typeof Ingest };
  const env = { signal: new AbortController().signal, progress: () => undefined };
  const started = performance.now();
  const before = process.cpuUsage();
  const digest = (await ingest(paths, env, { isOfLogs: true, workers })).logDigest!;
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(before);
  const sum = (of: (file: (typeof digest.files)[number]) => number): number =>
    digest.files.reduce((total, file) => total + of(file), 0);
  console.log(
    JSON.stringify({
      seconds,
      cpuSeconds: (user + system) / 1e6,
      rssMb: process.resourceUsage().maxRSS / 1024,
      bytes: sum(({ bytes }) => bytes),
      lines: sum(({ lines }) => lines),
      shapes: digest.shapes.length,
      streams: digest.streams.length,
      kept: digest.kept.length,
    } satisfies Measured),
  );
}

function measure(workers: number, paths: readonly string[]): Measured {
  const args = [
    "--import",
    "tsx",
    fileURLToPath(import.meta.url),
    "--child",
    String(workers),
    ...paths,
  ];
  const out = execFileSync(process.execPath, args, { encoding: "utf8", maxBuffer: 1e8 });
  return JSON.parse(out.trim().split("\n").at(-1)!) as Measured;
}

function option(name: string, usual: string): string {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? usual : (process.argv[at + 1] ?? usual);
}

function main(): void {
  const rounds = Number(option("rounds", "3"));
  for (const size of option("sizes", option("gb", "1")).split(",").map(Number)) {
    const kept = process.env["BENCH_LOGS_DIR"];
    const folder = join(
      kept ?? tmpdir(),
      `faultline-bench-logs-${kept ? "" : `${process.pid}-`}${size}`,
    );
    mkdirSync(folder, { recursive: true });
    try {
      const paths = writeJob(folder, size * GB);
      const speeds: [number[], number[]] = [[], []];
      for (let round = 0; round < rounds; round++) {
        for (const workers of [1, 2] as const) {
          const measured = measure(workers, paths);
          const { seconds, cpuSeconds, rssMb, bytes, lines, shapes, streams } = measured;
          const speed = bytes / 1e6 / seconds;
          speeds[workers - 1]!.push(speed);
          console.log(
            `${size} GB, ${workers} thread${workers > 1 ? "s" : " "}: ${seconds.toFixed(1)} s, ${speed.toFixed(0)} MB/s (${(bytes / 1e6 / cpuSeconds).toFixed(0)} MB a CPU second), ` +
              `${(lines / seconds / 1e6).toFixed(2)} M lines/s, peak ${rssMb.toFixed(0)} MB, load ${loadavg()[0]!.toFixed(1)} ` +
              `(${lines} lines, ${shapes} shapes, ${streams} streams, ${measured.kept} kept)`,
          );
        }
      }
      const best = speeds.map((list) => Math.max(...list));
      const ratios = speeds[0].map((one, round) => (speeds[1][round]! / one).toFixed(2));
      console.log(
        `${size} GB: best ${best[0]!.toFixed(0)} MB/s with one thread, ${best[1]!.toFixed(0)} with two; ratios ${ratios.join(", ")}`,
      );
    } finally {
      if (!kept) rmSync(folder, { recursive: true, force: true });
    }
  }
}

const at = process.argv.indexOf("--child");
if (at > 0) await child(Number(process.argv[at + 1]), process.argv.slice(at + 2));
else main();
