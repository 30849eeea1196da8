/** `faultline trace --out` and `--perfetto` on recordings of real jobs, as a user calls them. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { afterAll, describe, expect, it } from "vitest";
import { readTags } from "./support/report/tag-check.ts";
import { faultline } from "./support/cli.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "faultline-pictures-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const recording = (name: string): string => join(root, `fixtures/traces/${name}.tar.gz`);

/** Its first rank alone: a third of the work. */
function firstRank(name: string): string {
  const file = `${name}/kineto.rank0.json.gz`;
  if (!existsSync(join(folder, file)))
    execFileSync("tar", ["xzf", recording(name), "-C", folder, file]);
  return join(folder, file);
}

function idsOf(page: string): string[] {
  return readTags(page).flatMap(({ attributes }) => attributes.get("id") ?? []);
}

describe("pictures of recorded jobs", () => {
  it("show the step, the latencies and the breakdown, and all ranks for Perfetto on one clock", async () => {
    const merged = join(folder, "all.json.gz");
    const { status, stdout: said } = await faultline(
      "trace",
      recording("reg-sync"),
      "--baseline",
      recording("reg-none"),
      "--out",
      join(folder, "report"),
      "--perfetto",
      merged,
      "--quiet",
    );
    expect(status).toBe(0);
    // The three ranks ran on one machine, so their clocks agree: what is found is the error of finding it.
    const ahead = /clocks aligned; they were ahead by \(µs\): rank (.*)/
      .exec(said)![1]!
      .split(", ");
    expect(ahead.map((words) => words.split(" ")[0])).toEqual(["0", "2", "4"]);
    for (const words of ahead) expect(Math.abs(Number(words.split(" ")[1]))).toBeLessThan(100);

    const page = readFileSync(join(folder, "report", "report.html"), "utf8");
    expect(page.length).toBeLessThan(500_000);
    expect(idsOf(page)).toEqual(["suspects", "timeline", "latency", "breakdown", "figures"]);
    expect(page).toContain("synchronization: ");

    const trace = JSON.parse(gunzipSync(readFileSync(merged)).toString("utf8")) as {
      traceEvents: { ph: string; pid: number; ts: number; dur: number }[];
    };
    const events = trace.traceEvents.filter(({ ph }) => ph === "X");
    expect(new Set(events.map(({ pid }) => pid))).toEqual(new Set([0, 2, 4]));
    for (const { ts, dur } of events) {
      expect(ts).toBeGreaterThanOrEqual(0);
      expect(ts + dur).toBeLessThan(10e6);
    }
  });

  it("are part of a verdict's report where the job left profiler traces", async () => {
    const out = join(folder, "verdict");
    const { status } = await faultline(
      "diagnose",
      firstRank("reg-data"),
      "--baseline",
      firstRank("reg-none"),
      "--out",
      out,
      "--quiet",
    );
    expect(status).toBe(0);
    const ids = idsOf(readFileSync(join(out, "report.html"), "utf8"));
    expect(ids).toEqual(expect.arrayContaining(["timeline", "latency", "breakdown"]));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("are never written over an input", async () => {
    const input = firstRank("reg-none");
    const { status, stderr: said } = await faultline("trace", input, "--perfetto", input);
    expect(status).toBe(2);
    expect(said).toContain("is one of the inputs");
    expect(existsSync(input)).toBe(true);
  });
});
