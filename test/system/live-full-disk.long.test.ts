/**
 * A data folder of 20 MB that fills while the service runs, on a file system of that size (`unshare` and tmpfs, as any user):
 * the service keeps answering, the oldest evidence goes first, /healthz says it, and what was found is stored once there is
 * room again.
 */
import { spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it, onTestFailed } from "vitest";
import type { Incident } from "../../src/model/incident.ts";
import { Processes, type ServiceProcess } from "../support/live-processes.ts";
import { until } from "../support/until.ts";

const MB = 1 << 20;
const IN_20_MB = 'mount -t tmpfs -o size=20m none "$0" && exec "$@"';
const isPossible = spawnSync("unshare", ["-rm", "sh", "-c", IN_20_MB, "/tmp", "true"]).status === 0;

let all: Processes | null = null;
afterEach(async () => {
  await all?.close();
  all = null;
});

async function degraded({ url }: ServiceProcess): Promise<string | null> {
  const response = await fetch(`${url}/healthz`);
  expect(response.status).toBe(200);
  return ((await response.json()) as { degraded?: string }).degraded ?? null;
}

const confirmed = (service: ServiceProcess, rank: number) => async (): Promise<Incident | null> =>
  (await service.incidents()).find(
    (one) => one.ranks.includes(rank) && one.state === "confirmed",
  ) ?? null;

/** Writes until nothing more fits. */
function fill(path: string): void {
  const file = openSync(path, "w");
  try {
    for (let bytes = MB; bytes >= 1; bytes >>= 4)
      try {
        for (;;) writeSync(file, Buffer.alloc(bytes));
      } catch {
        // Smaller ones may fit still.
      }
  } finally {
    closeSync(file);
  }
}

it.skipIf(!isPossible)(
  "a data folder that fills: the oldest evidence goes, the service goes on and says it",
  async () => {
    all = new Processes();
    const { said, folder } = all;
    onTestFailed(() => console.log(said.join("").slice(-6000)));
    const mounted = join(folder, "data");
    mkdirSync(mounted);
    const under = ["unshare", "-rm", "sh", "-c", IN_20_MB, mounted];
    const service = await all.service(["--port", "0", "--data", mounted], under);
    // The mount is the service's own.
    const data = join("/proc", String(service.pid), "root", mounted);
    const job = await all.rehearsal(service.url, 4);
    const isHealthy = async (): Promise<true | null> =>
      (await service.jobs()).some(
        ({ baselineMs, health }) => baselineMs !== null && health === "healthy",
      ) || null;
    await until(isHealthy, "the baseline", 60_000);

    const ballast = join(data, "ballast");
    fill(ballast);
    await until(async () => (await degraded(service))?.includes("is full"), "/healthz says it");
    await job.break("gpu-slow:rank=2:severity=4");
    const slow = await until(confirmed(service, 2), "an incident without room", 60_000);
    await job.mend();
    await until(isHealthy, "its end", 60_000);
    rmSync(ballast);
    await until(async () => (await degraded(service)) === null, "room again");
    const stored = async (): Promise<boolean> =>
      (await service.history(slow.id)).at(-1)?.state === "resolved";
    await until(stored, "its end in the history", 60_000);

    const [oldest, older] = ["2020-01-01", "2020-01-02"].map((day) => {
      const path = join(data, "incidents", `${day}T00-00-00-000Z-old-hang`);
      mkdirSync(path, { recursive: true });
      writeFileSync(join(path, ".confirmed"), "");
      return path;
    });
    writeFileSync(join(oldest!, "rank0.ring"), Buffer.alloc(6 * MB));
    writeFileSync(join(older!, "rank0.ring"), Buffer.alloc(MB));
    await job.break("gpu-hang:rank=1");
    expect((await until(confirmed(service, 1), "the hang", 60_000)).kind).toBe("hang");
    expect([existsSync(oldest!), existsSync(older!)]).toEqual([false, true]);
    fill(ballast);
    const says = "the oldest evidence of 1 incidents was removed";
    await until(async () => (await degraded(service))?.includes(says), "/healthz says that, too");
  },
  240_000,
);
