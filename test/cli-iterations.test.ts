/** `faultline iterations` as a user calls it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { faultline, type Ran } from "./support/cli.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-iterations-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const iterations = (...words: string[]): Promise<Ran> => faultline("iterations", ...words);

function put(name: string, lines: readonly string[]): string {
  const path = join(folder, name);
  writeFileSync(path, `${lines.join("\n")}\n`);
  return path;
}

const jitter = (i: number): number => 5 * Math.sin(12.9898 * i);
const slow = (i: number): number => (i > 60 ? 1500 : 1000) + jitter(i);
const megatron = (i: number, ms: number): string =>
  ` iteration ${String(i).padStart(8)}/     500 | consumed samples: ${i * 8} | elapsed time per iteration (ms): ${ms.toFixed(1)} | learning rate: 1.000E-04 | global batch size:     8 | loss scale: 1.0 |`;
const numbers = Array.from({ length: 120 }, (_, i) => i + 1);
const log = put(
  "train.log",
  numbers.map((i) => megatron(i, slow(i))),
);

describe("faultline iterations", () => {
  it("tells people when, how much, and when one could have known", async () => {
    const { status, stdout } = await iterations(log);
    expect(status).toBe(0);
    expect(stdout).toContain("120 iterations");
    expect(stdout).toMatch(/slower ×1\.50 at iteration 61: 100\d ms → 150\d ms \(known at 6\d\)/);
    expect(stdout).toMatch(/[▁█]{20}/);
  });

  it("says with --explain which words of which line it used", async () => {
    const { stdout } = await iterations(log, "--explain");
    expect(stdout).toMatch(
      /how it was read\n.*train\.log, line 2: iteration 2; how long it took from "elapsed time per iteration"\n {4,6}.*iteration +2\//,
    );
  });

  it("prints the document of the contract with --json, and nothing else", async () => {
    const { status, stdout } = await iterations(log, "--json");
    expect(status).toBe(0);
    const document = JSON.parse(stdout) as { schema: string; series: Record<string, unknown>[] };
    expect(document.schema).toBe("faultline.iterations/1");
    expect(document.series).toHaveLength(1);
    expect(document.series[0]).toMatchObject({
      iterations: 120,
      changePoints: [{ iteration: 61, direction: "slower" }],
      episodes: [{ from: 61, to: 120, type: "degradation" }],
      restarts: [],
    });
    expect(document.series[0]!["source"]).toContain("train.log");
  });

  it("tells what came little by little as a ramp, on the screen, in JSON and in the plot", async () => {
    const rising = put(
      "rising.log",
      Array.from({ length: 400 }, (_, i) =>
        megatron(i + 1, 1000 + jitter(i) + 2 * Math.min(200, Math.max(0, i - 100))),
      ),
    );
    const out = join(folder, "rising");
    const { stdout } = await iterations(rising, "--out", out);
    expect(stdout).toMatch(
      /slowly slower ×1\.\d\d from iteration \d+ to \d+, [\d.]+ ms more each iteration: 1\d{3} ms → 1\d{3} ms/,
    );
    expect(readFileSync(join(out, "report.html"), "utf8")).toContain('class="slope"');
    const { series } = JSON.parse((await iterations(rising, "--json")).stdout) as {
      series: {
        changePoints: { shape: string; ramp: { until: number; msPerIteration: number } }[];
      }[];
    };
    expect(series[0]!.changePoints).toMatchObject([{ shape: "ramp", direction: "slower" }]);
    expect(series[0]!.changePoints[0]!.ramp.msPerIteration).toBeCloseTo(2, 0);
  });

  it("gives normalised values no unit, makes no hours of them, and counts rows that are numbered by times", async () => {
    const rows = numbers.flatMap((i) =>
      [0, 1, 2, 3].map((worker) =>
        [
          4 * i + worker,
          worker,
          10 * i - 9,
          Math.round(worker === 2 ? slow(i) / 2 : 500 + jitter(i)),
        ].join(),
      ),
    );
    const table = put("job_norm.csv", [",worker,time,batch_time_norm", ...rows]);
    const { stdout } = await iterations(table);
    expect(stdout).toContain("120 iterations · median 50");
    expect(stdout).toContain("the table says that they are normalised");
    expect(stdout).toMatch(/slower ×1\.50 at iteration 601: 50\d(\.\d)? → 75\d(\.\d)? /);
    expect(stdout).not.toMatch(/\d ms|wasted/);
    const { series } = JSON.parse((await iterations(table, "--json")).stdout) as {
      series: Record<string, unknown>[];
    };
    expect(series[2]).toMatchObject({ iterations: 120, timesAreRelative: true, wastedHours: null });
    const { stdout: verdict } = await faultline("diagnose", table);
    expect(verdict).toMatch(/rank 2/);
    expect(verdict).not.toMatch(/\d ms/);
  });

  it("exits with 10 when asked to and something is slow, and with 0 when nothing is", async () => {
    const even = put(
      "even.log",
      numbers.map((i) => megatron(i, 1000 + jitter(i))),
    );
    expect((await iterations(log, "--exit-code")).status).toBe(10);
    const healthy = await iterations(even, "--exit-code");
    expect(healthy.status).toBe(0);
    expect(healthy.stdout).toContain("no lasting change");
  });

  it("writes a page with a plot, and the document, with --out", async () => {
    const out = join(folder, "report");
    expect((await iterations(log, "--out", out, "--quiet")).status).toBe(0);
    expect(readFileSync(join(out, "report.html"), "utf8")).toContain("<svg");
    expect(JSON.parse(readFileSync(join(out, "verdict.json"), "utf8"))).toMatchObject({
      schema: "faultline.iterations/1",
    });
  });

  it("reads lines of the user's own with --pattern", async () => {
    const own = put(
      "own.log",
      numbers.map((i) => `epoch 0 it ${i} took ${(slow(i) / 1000).toFixed(4)}s`),
    );
    const pattern = "it (?<iteration>\\d+) took (?<s>[\\d.]+)s";
    const { status, stdout } = await iterations(own, "--json", "--pattern", pattern);
    expect(status).toBe(0);
    const [series] = (JSON.parse(stdout) as { series: { changePoints: unknown[] }[] }).series;
    expect(series!.changePoints).toMatchObject([{ iteration: 61 }]);
  });

  it("says in one line what is wrong with a pattern (2), or that there are no iterations (3)", async () => {
    const bad = await iterations(log, "--pattern", "(");
    expect([bad.status, bad.stderr.trim().split("\n").length]).toEqual([2, 1]);
    const plain = put("plain.log", [
      "2026-11-15 00:00:00 [INFO] [rank0] hello",
      "Traceback (most recent call last):",
    ]);
    const none = await iterations(plain);
    expect(none.status).toBe(3);
    expect(none.stderr).toMatch(/^faultline: no iteration times in /);
    expect(none.stderr.trim().split("\n")).toHaveLength(1);
  });
});
