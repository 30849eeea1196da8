/**
 * What the agent costs (npm run bench:agent): copying 16 rings of 4 MiB, and following 16 rings that are written at 2,000
 * records a second. A writer in another process plays the probes, so that only the agent's own time is counted.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { KIND } from "../src/ingest/probe-ring/layout.ts";
import { copyRing } from "../src/live/agent/rings/copy-ring.ts";
import { discover } from "../src/live/agent/rings/discover.ts";
import { dump } from "../src/live/agent/evidence/dump.ts";
import { thisMachine } from "../src/live/agent/process-state.ts";
import { ringsOf } from "../src/live/agent/select-run.ts";
import { TestRing } from "../test/support/live/ring.ts";
import { RunWatcher } from "../src/live/agent/run-watcher.ts";

const RINGS = 16;
const RECORDS = 65_536;
const RATE = 2000;
const EVERY_MS = 1000;
const WATCH_S = 20;
/** Operators of a rank that are open at any time. */
const OPEN = 16;

const [, , role, folder] = process.argv;
if (role === "write") await write(folder!);
else await measure();

/** The probes: each ring gets its records in bursts, as a training step issues them, and they end a burst later. */
async function write(where: string): Promise<void> {
  const rings = Array.from(
    { length: RINGS },
    (_, rank) => new TestRing({ folder: where, rank, worldSize: RINGS, records: RECORDS }),
  );
  const fill = { kind: KIND.collective, func: 1, endedNs: 1n };
  for (const ring of rings) for (let i = 0; i < RECORDS; i++) ring.append({ ...fill, b: i });
  process.stdout.write("ready\n");
  const open: number[][] = rings.map(() => []);
  const begun = performance.now();
  for (let written = 0; ;) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    const due = Math.floor(((performance.now() - begun) / 1000) * RATE);
    rings.forEach((ring, i) => {
      for (let n = written; n < due; n++) {
        open[i]!.push(ring.append({ kind: KIND.collective, func: 1, b: n }));
        if (open[i]!.length > OPEN)
          ring.update(open[i]!.shift()!, { kind: KIND.collective, func: 1, endedNs: 1n });
      }
      ring.beat();
    });
    written = due;
  }
}

async function measure(): Promise<void> {
  const where = mkdtempSync(join("/dev/shm", "faultline-bench-"));
  const out = mkdtempSync(join(tmpdir(), "faultline-bench-"));
  mkdirSync(where, { recursive: true });
  const writer = spawn(
    process.execPath,
    ["--import", "tsx", fileURLToPath(import.meta.url), "write", where],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  try {
    await once(writer.stdout, "data");
    await copies(where, out);
    await follows(where);
  } finally {
    writer.kill("SIGKILL");
    for (const each of [where, out]) rmSync(each, { recursive: true, force: true });
  }
}

async function copies(where: string, out: string): Promise<void> {
  const machine = thisMachine();
  const spans: number[] = [];
  const cpu = process.cpuUsage();
  let [bytes, unsettled] = [0, 0];
  for (let round = 0; round < 10; round++) {
    const start = performance.now();
    const rings = ringsOf(discover(where, machine).runs);
    bytes = 0;
    for (const ring of rings) {
      const copy = copyRing(ring, machine);
      bytes += copy.bytes.length;
      unsettled += copy.unsettled;
    }
    spans.push(performance.now() - start);
  }
  spans.sort((a, b) => a - b);
  const used = process.cpuUsage(cpu);
  const cpuMs = (used.user + used.system) / 1000 / spans.length;
  const mib = (bytes / 2 ** 20).toFixed(0);
  console.log(
    `found and copied ${RINGS} rings, ${mib} MiB, while they were written: median ${spans[5]!.toFixed(0)} ms, worst ${spans[9]!.toFixed(0)} ms, ${cpuMs.toFixed(0)} ms of processor time; ${unsettled} records never held still in 10 rounds`,
  );
  const start = performance.now();
  const rings = ringsOf(discover(where, machine).runs);
  const report = await dump({ rings, out: join(out, "dump.tar.gz"), machine });
  console.log(
    `dump to .tar.gz: ${(performance.now() - start).toFixed(0)} ms, of which copying ${report.copiedMs.toFixed(0)} ms`,
  );
}

async function follows(where: string): Promise<void> {
  const machine = thisMachine();
  const options = { keepNs: 600e9, mostRecords: 1 << 19, hangNs: 30e9, machine };
  const watcher = new RunWatcher(where, options);
  watcher.tick();
  const first = watcher.followers.reduce((sum, one) => sum + one.records, 0);
  const [cpu, start] = [process.cpuUsage(), performance.now()];
  const looks: number[] = [];
  while (performance.now() - start < WATCH_S * 1000) {
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    const began = performance.now();
    watcher.tick();
    looks.push(performance.now() - began);
  }
  looks.sort((a, b) => a - b);
  const used = process.cpuUsage(cpu);
  const seconds = (performance.now() - start) / 1000;
  const records = watcher.followers.reduce((sum, one) => sum + one.records, 0) - first;
  const lost = watcher.followers.reduce((sum, one) => sum + one.lost, 0);
  watcher.close();
  console.log(
    `followed ${RINGS} rings for ${seconds.toFixed(0)} s: ${Math.round(records / seconds / RINGS)} records a second each, ${lost} lost, ` +
      `${((used.user + used.system) / 1e4 / seconds).toFixed(2)} % of one core, a look takes ${looks[looks.length >> 1]!.toFixed(1)} ms, at worst ${looks.at(-1)!.toFixed(1)} ms (when it makes room)`,
  );
}
