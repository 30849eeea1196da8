/** kill -9 in the middle of a backup or a restore: what is there is whole, or is not used. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { faultline, FAULTLINE, ROOT } from "../support/cli.ts";
import { openStore } from "../support/open-store.ts";
import { until } from "../support/until.ts";
import { longTest } from "../support/cases.ts";

const archive = fileURLToPath(new URL("../../fixtures/stores/version-1.tar.gz", import.meta.url));
/** Milliseconds after the first sign of work. */
const MOMENTS = [0, 10, 40, 100, 200, 400, 800];

let folder: string;
let data: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-killed-"));
  execFileSync("tar", ["xf", archive, "-C", folder]);
  data = join(folder, "duckdb");
  file = join(folder, "out.tar.gz");
  const evidence = join(data, "incidents", "2026-01-01T00-00-00-000Z-j-hang");
  mkdirSync(evidence);
  for (let i = 0; i < 60; i++) writeFileSync(join(evidence, `${i}.ring`), randomBytes(500_000));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function killed(words: string[], sign: () => boolean, afterMs: number): Promise<void> {
  const child = spawn(FAULTLINE, words, { cwd: ROOT, stdio: "ignore" });
  const ended = once(child, "exit");
  await until(() => sign() || child.exitCode !== null, "it works");
  await pause(afterMs);
  child.kill("SIGKILL");
  await ended;
}

async function idsIn(at: string): Promise<string[]> {
  const service = await openStore(at);
  try {
    const { text } = await service.get("/api/v1/incidents");
    return (JSON.parse(text) as { incidents: { id: string }[] }).incidents.map(({ id }) => id);
  } finally {
    await service.close();
  }
}

describe("kill -9", () => {
  it("during a backup leaves the store as it was, and the file whole or not there", async () => {
    const before = await idsIn(data);
    for (const [i, afterMs] of MOMENTS.entries()) {
      const working = (): boolean => readdirSync(data).some((name) => name.startsWith(".backup-"));
      await killed(["backup", "--data", data, "--out", file], working, afterMs);
      expect(await idsIn(data)).toEqual(before);
      if (existsSync(file)) {
        const to = join(folder, `to-${i}`);
        expect((await faultline("restore", "--data", to, file)).status).toBe(0);
        expect(await idsIn(to)).toEqual(before);
        rmSync(file);
      }
    }
  });

  longTest("during a restore leaves nothing that is served, or all of it", async () => {
    const before = await idsIn(data);
    expect((await faultline("backup", "--data", data, "--out", file)).status).toBe(0);
    const outcomes = new Set<string>();
    for (const [i, afterMs] of MOMENTS.entries()) {
      const to = join(folder, `to-${i}`);
      const draft = join(to, ".restoring");
      await killed(["restore", "--data", to, file], () => existsSync(draft), afterMs);
      if (existsSync(draft)) {
        outcomes.add("refused");
        await expect(openStore(to)).rejects.toThrow(/half a restore/);
        expect((await faultline("restore", "--data", to, file)).status).toBe(0);
      } else outcomes.add("whole");
      expect(await idsIn(to)).toEqual(before);
    }
    expect(outcomes).toContain("refused");
  });
});
