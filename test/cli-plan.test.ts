/** The command `faultline plan` as a user calls it. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { faultlineIn, type Ran } from "./support/cli.ts";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-plan-"));
  writeFileSync(join(folder, "twice.json"), JSON.stringify({ dp: 2, nodes: ["a", "a"] }));
});
afterAll(() => rmSync(folder, { recursive: true }));

const run = (...words: string[]): Promise<Ran> => faultlineIn({ cwd: folder }, "plan", ...words);

async function asked(...words: string[]): Promise<Record<string, unknown>> {
  const { stdout, status, stderr } = await run(...words, "--json");
  expect(`${status} ${stderr}`).toBe("0 ");
  return JSON.parse(stdout) as Record<string, unknown>;
}

describe("faultline plan", () => {
  it("shares micro-batches out", async () => {
    const plan = await asked("microbatches", "--times", "1.0,1.0,1.7", "--total", "48");
    expect(plan).toMatchObject({ allocation: [19, 18, 11], makespan: 19 });
    expect(plan["lowerBound"]).toBeCloseTo(48 / (2 + 1 / 1.7), 9);
    const { stdout } = await run("microbatches", "--times", "1.0,1.0,1.7", "--total", "48");
    expect(stdout).toContain("micro-batches by replica: 19 18 11");
  });

  it("swaps nodes, of flags and of a file", async () => {
    const flags = [
      "--dp",
      "4",
      "--pp",
      "2",
      "--gradient-ms",
      "80",
      "--congested",
      "node001,node002=6",
    ];
    const plan = (await asked("topology", ...flags)) as {
      swaps: string[][];
      placement: { node: string; stage: number }[];
      beforeMs: number;
      afterMs: number;
    };
    expect(plan.swaps).toHaveLength(1);
    const stage = (node: string): number => plan.placement.find((one) => one.node === node)!.stage;
    expect(stage("node001")).not.toBe(stage("node002"));
    expect(plan.afterMs).toBeLessThan(plan.beforeMs);
    const nodes = Array.from({ length: 8 }, (_, i) => `host-${i}`);
    const job = {
      dp: 4,
      pp: 2,
      gradientMs: 80,
      nodes,
      links: [{ between: ["host-1", "host-2"], factor: 6 }],
    };
    writeFileSync(join(folder, "job.json"), JSON.stringify(job));
    const same = (await asked("topology", "--file", "job.json")) as { afterMs: number };
    expect(same.afterMs).toBe(plan.afterMs);
  });

  it("takes a node's factors and machine from a file, as from flags", async () => {
    const shape = ["--dp", "8", "--micro-batches", "16", "--stage-ms", "90"];
    const flags = await asked("mitigation", ...shape, "--slow", "node003=1.8");
    const nodes = Array.from({ length: 8 }, (_, i) =>
      i === 3 ? { name: "node003", machine: "rack7-3", compute: 1.8 } : `node00${i}`,
    );
    const job = { dp: 8, microBatches: 16, stageMs: 90, nodes };
    writeFileSync(join(folder, "nodes.json"), JSON.stringify(job));
    const plan = await asked("mitigation", "--file", "nodes.json");
    expect(plan["nowMs"]).toBe(flags["nowMs"]);
    const steps = plan["steps"] as { strategy: string; exclude?: string[] }[];
    expect(steps.find(({ strategy }) => strategy === "S4")!.exclude).toEqual(["rack7-3"]);
    for (const bad of [{ compute: 1.8 }, { name: "node003", compute: "slow" }, 7]) {
      writeFileSync(join(folder, "bad.json"), JSON.stringify({ ...job, nodes: [bad] }));
      const { status, stderr } = await run("mitigation", "--file", "bad.json");
      expect(`${status} ${stderr}`).toMatch(/^3 .*node 0 needs a name/);
    }
  });

  it("says what to do when, and writes a report", async () => {
    const words = [
      "mitigation",
      "--dp",
      "8",
      "--micro-batches",
      "16",
      "--stage-ms",
      "90",
      "--slow",
      "node003=1.8",
    ];
    const plan = (await asked(...words, "--out", "out")) as {
      steps: { strategy: string; afterIterations: number; exclude?: string[] }[];
      bound: number;
    };
    expect(plan.steps.map(({ strategy }) => strategy)).toEqual(["S2", "S4"]);
    expect(plan.steps[0]!.afterIterations).toBe(1);
    expect(plan.steps[1]!.exclude).toEqual(["node003"]);
    expect(plan.bound).toBeLessThan(2.01);
    expect(readFileSync(join(folder, "out", "report.html"), "utf8")).toContain(
      "Rebalance the micro-batches",
    );
    expect(existsSync(join(folder, "out", "verdict.json"))).toBe(true);
    const dear = (await asked(...words, "--overhead", "restart=1s")) as {
      steps: { strategy: string }[];
    };
    expect(dear.steps.at(-1)!.strategy).toBe("S4");
  });

  it.each([
    [
      ["microbatches", "--times", "1,1,1", "--total", "2"],
      2,
      /2 micro-batches are too few for 3 replicas/,
    ],
    [["microbatches", "--times", "1,0", "--total", "8"], 2, /the time of replica 1 is 0/],
    [["microbatches", "--times", "1,-3", "--total", "8"], 2, /the time of replica 1 is -3/],
    [["microbatches", "--times", "1,,2", "--total", "8"], 2, /"" is not a number/],
    [["microbatches", "--times", "1,2", "--total", "9", "--multiple-of", "2"], 2, /multiples of 2/],
    [["topology", "--dp", "2", "--slow", "node007=2"], 2, /there is no node "node007"/],
    [["topology", "--dp", "2", "--congested", "node000,node000=2"], 2, /connects a slot to itself/],
    [["topology", "--file", "missing.json"], 3, /cannot read missing.json/],
    [["mitigation", "--dp", "8", "--job", "x"], 2, /--job has no effect/],
    [["mitigation", ".", "--slow", "node000=3"], 2, /--slow has no effect with a job's files/],
    [["topology", "--file", "twice.json"], 3, /two nodes have the same name/],
    [["mitigation"], 2, /the number of replicas is unknown/],
    [["mitigation", "nowhere/"], 3, /nowhere/],
    [
      ["mitigation", "--dp", "2", "--overhead", "S9=1s"],
      2,
      /micro-batches=1s,swap=60s,restart=30m/,
    ],
    [["serve", "--groups", "4", "--total", "2", "--port", "0"], 2, /2 micro-batches are too few/],
  ])("%j is refused in one line", async (words, code, message) => {
    const { status, stderr, stdout } = await run(...words);
    expect(stderr).toMatch(message);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect([status, stdout]).toEqual([code, ""]);
  });
});
