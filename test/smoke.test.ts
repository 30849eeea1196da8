/**
 * Every command once, as the built program: what calls inside the test's process (test/cli*.test.ts) cannot show. Commands
 * that run on are started in test/system.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { FAULTLINE, faultlineProcess, ROOT } from "./support/cli.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-smoke-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const hang3 = join(ROOT, "fixtures/recordings/hang3.tar.gz");

async function printed(...words: string[]): Promise<Record<string, unknown>> {
  const { status, stdout, stderr } = await faultlineProcess({}, ...words, "--json", "--quiet");
  expect(`${status} ${stderr}`).toBe("0 ");
  return JSON.parse(stdout) as Record<string, unknown>;
}

describe("the built program", () => {
  it("diagnoses", async () => {
    expect(await printed("diagnose", hang3)).toMatchObject({ kind: "hang" });
  });

  it("simulates, and finds in its files what was put there", async () => {
    const job = join(folder, "job");
    const fault = ["--fault", "gpu-slow:rank=3:from=8:severity=2"];
    const size = ["--gpus", "4", "--tp", "2", "--pp", "1", "--iterations", "40"];
    const emit = ["--emit", "logs,metrics"];
    await printed("simulate", "--out", job, ...size, ...fault, ...emit);
    expect(JSON.parse(readFileSync(join(job, "truth.json"), "utf8"))).toMatchObject({
      kind: "fail-slow",
    });
    expect(await printed("iterations", job)).toMatchObject({ schema: "faultline.iterations/1" });
    expect(await printed("machines", job)).toMatchObject({ schema: "faultline.machines/1" });
    expect(await printed("logs", job)).toMatchObject({ schema: "faultline.logs/1" });
  });

  it("reads traces", async () => {
    const trace = join(ROOT, "fixtures/traces/reg-none.tar.gz");
    expect(await printed("trace", trace)).toMatchObject({ schema: "faultline.trace/1" });
  });

  it("plans", async () => {
    const words = ["plan", "microbatches", "--times", "1,1,2", "--total", "10"];
    expect(await printed(...words)).toMatchObject({ allocation: [4, 4, 2] });
  });

  it("says where it looked for rings", async () => {
    const { status, stderr } = await faultlineProcess({}, "agent", "rings", "--dir", folder);
    expect(status).toBe(3);
    expect(stderr).toContain(`${folder}: no ring can be read there`);
  });

  it.each(["serve", "demo", "agent", "simulate"])("teaches %s", async (command) => {
    const { status, stdout } = await faultlineProcess({}, command, "--help");
    expect(status).toBe(0);
    expect(stdout).toContain(`Usage: faultline ${command}`);
  });

  it("reads logs in workers", async () => {
    const line = "2026-11-15 00:00:01 [INFO] node1 loading the data, shard 17 of 4096\n";
    writeFileSync(join(folder, "a.log"), line.repeat(1000));
    expect(await printed("logs", join(folder, "a.log"), "--workers", "2")).toMatchObject({
      lines: 1000,
    });
  });

  it.each([
    ["whose output cannot be written ends with 1", "> /dev/full", 1],
    ["whose reader goes away ends with 0", "| true", 0],
  ])("%s", async (_, target, status) => {
    const script = `"$0" diagnose "$1" ${target}`;
    const ended = await new Promise<number>((resolve) => {
      execFile("sh", ["-c", script, FAULTLINE, hang3], (error) =>
        resolve(Number(error?.code ?? 0)),
      );
    });
    expect(ended).toBe(status);
  });
});
