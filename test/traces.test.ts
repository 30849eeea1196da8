/** `faultline trace` and `diagnose --baseline`, as a user calls them: real recordings, a store, simulated jobs. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { afterAll, describe, expect, it } from "vitest";
import { judge as judgeTraces } from "../src/methods/traces/regression-method.ts";
import { diagnose } from "../src/pipeline/diagnose.ts";
import { faultline } from "./support/cli.ts";
import { quietEnv } from "./support/in-memory.ts";
import { simulatedRun } from "./support/simulated-run.ts";
import { few, longTest } from "./support/cases.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "faultline-traces-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const recording = (name: string): string => join(root, `fixtures/traces/${name}.tar.gz`);
/** Its first rank alone: a third of the work, where it does not matter who is told. */
const firstRank = (name: string): string => {
  const file = `${name}/kineto.rank0.json.gz`;
  if (!existsSync(join(folder, file)))
    execFileSync("tar", ["xzf", recording(name), "-C", folder, file]);
  return join(folder, file);
};

interface Said {
  readonly schema: string;
  readonly ranks: readonly Record<string, unknown>[];
  readonly regressions: readonly {
    cause: string;
    owner: string;
    ranks: number[];
    threshold: string;
  }[];
  readonly notes: readonly string[];
}

it("rings that timed communication alone give the metrics of every rank, and accuse nobody of a regression", async () => {
  const { ranks, regressions, notes } = await traced(join(root, "fixtures/rings/slow.tar.gz"));
  expect(ranks).toHaveLength(8);
  const minority = ranks.map(({ vMinority }) => Number(vMinority));
  // Rank 5's kernels take 3 ms longer a layer: gaps before its communication.
  expect(minority.indexOf(Math.max(...minority))).toBe(5);
  expect(regressions).toEqual([]);
  expect(notes.join()).toContain("rings record communication");
}, 60_000);

async function traced(...args: string[]): Promise<Said> {
  const { status, stdout, stderr } = await faultline("trace", ...args, "--json", "--quiet");
  expect(stderr).toBe("");
  expect(status).toBe(0);
  return JSON.parse(stdout) as Said;
}

describe("faultline trace on recordings of real jobs", () => {
  it("does not take what a cut trace lost for idle time, neither in the run nor in the baseline", async () => {
    const bytes = gunzipSync(readFileSync(firstRank("reg-none")));
    const cut = join(folder, "cut.rank0.json");
    writeFileSync(cut, bytes.subarray(0, Math.floor(0.7 * bytes.length)));
    const said = await traced(cut, "--baseline", firstRank("reg-none"));
    expect(said.regressions).toEqual([]);
    expect(said.notes.join()).toContain("cut off, so not compared");
    const blind = await traced(firstRank("reg-data"), "--baseline", cut);
    expect(blind.notes.join()).toContain("cut off, so not compared");
  });

  it("prints the document of the contract", async () => {
    const said = await traced(recording("reg-none"));
    expect(said.schema).toBe("faultline.trace/1");
    expect(said.ranks.map(({ rank }) => rank)).toEqual([0, 2, 4]);
    expect(said.ranks[0]).toMatchObject({
      steps: 2,
      flops: expect.arrayContaining([
        {
          kernel: "aten::mm",
          shape: expect.any(String),
          tflops: expect.any(Number),
          count: 96,
          overlapped: 0,
          share: expect.any(Number),
        },
      ]),
      issueLatencyMs: {
        p10: expect.any(Number),
        p50: expect.any(Number),
        p90: expect.any(Number),
        distance: null,
      },
    });
    const bandwidth = said.ranks[0]!["bandwidth"] as Record<string, unknown>[];
    for (const key of ["collective", "group", "bytes", "busGBps", "count"])
      expect(bandwidth[0]).toHaveProperty(key);
    for (const key of ["stepMs", "vInter", "vMinority", "commMs", "overlapMs"])
      expect(said.ranks[0]![key]).toEqual(expect.any(Number));
    expect(said.regressions).toEqual([]);
  });

  // The other one is asked of `diagnose` (src/verdict/answer.test.ts).
  const slower = [
    ["reg-data", "the slow loader on the ranks of the first stage", "dataloader", [0, 2]],
    ["reg-sync", "the synchronisation in every layer", "synchronization", [0, 2, 4]],
  ] as const;
  it.each(few(slower, 1))("finds in %s %s, and whose it is", async (name, _, cause, ranks) => {
    const { regressions } = await traced(recording(name), "--baseline", recording("reg-none"));
    expect(regressions).toMatchObject([{ cause, owner: "algorithm", ranks }]);
    expect(regressions[0]!.threshold).toContain("baseline run");
  });

  it("finds nothing in a healthy run, nor in the healthy one beside the slow one", async () => {
    for (const of of few([firstRank, recording], 1)) {
      const none = of("reg-none");
      expect((await traced(none, "--baseline", none)).regressions).toEqual([]);
      expect((await traced(none, "--baseline", of("reg-sync"))).regressions).toEqual([]);
    }
  });

  it("tells people first what is slower, then each rank", async () => {
    const { status, stdout } = await faultline(
      "trace",
      firstRank("reg-sync"),
      "--baseline",
      firstRank("reg-none"),
      "--exit-code",
    );
    expect(status).toBe(10);
    expect(stdout).toMatch(/^1 REGRESSION against /);
    expect(stdout).toContain("→ model team, which writes the training code");
    expect(stdout).toContain("threshold: ");
    expect(stdout).toMatch(/rank +steps +step ms +V_inter/);
  });

  it("keeps healthy runs and compares with them", async () => {
    const store = join(folder, "healthy.json");
    const learnt = await faultline("trace", "learn", "--store", store, firstRank("reg-none"));
    expect(learnt.status).toBe(0);
    expect(learnt.stdout).toContain("1 healthy run kept");
    await faultline("trace", "learn", firstRank("reg-none"), "--store", store);
    const kept = JSON.parse(readFileSync(store, "utf8")) as { entries: { runs: unknown[] }[] };
    expect(kept.entries.map(({ runs }) => runs.length)).toEqual([1]);
    const { regressions } = await traced(firstRank("reg-sync"), "--store", store);
    expect(regressions).toMatchObject([{ cause: "synchronization" }]);
  });

  it("writes the report's folder", async () => {
    const out = join(folder, "out");
    await traced(firstRank("reg-none"), "--out", out);
    expect(existsSync(join(out, "report.html"))).toBe(true);
    expect((JSON.parse(readFileSync(join(out, "verdict.json"), "utf8")) as Said).schema).toBe(
      "faultline.trace/1",
    );
  });
});

describe("faultline trace says what is wrong in one line", () => {
  const errors: [string, string[], number, RegExp][] = [
    [
      "without traces",
      [join(root, "fixtures/recordings/kill4.tar.gz")],
      3,
      /no profiler trace in .*torch\.profiler/,
    ],
    [
      "a baseline without traces",
      [firstRank("reg-none"), "--baseline", join(root, "fixtures/recordings/kill4.tar.gz")],
      3,
      /no profiler trace/,
    ],
    [
      "a store that has nothing like it",
      [firstRank("reg-none"), "--store", join(folder, "empty.json")],
      3,
      /no healthy run of this kind .*trace learn/,
    ],
    ["a path that is not there", [join(folder, "nowhere")], 3, /nowhere/],
    ["learning without a store", ["learn", firstRank("reg-none")], 2, /--store FILE/],
    ["no path", [], 2, /missing required argument/],
  ];
  it.each(errors)("%s", async (_, args, expected, line) => {
    const { status, stderr } = await faultline("trace", ...args, "--quiet");
    expect(status).toBe(expected);
    expect(stderr).toMatch(line);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  it("a store that is none", async () => {
    const store = join(folder, "no-store.json");
    writeFileSync(store, "[]");
    const { status, stderr } = await faultline(
      "trace",
      firstRank("reg-none"),
      "--store",
      store,
      "--quiet",
    );
    expect(status).toBe(3);
    expect(stderr).toContain("is no store of baselines");
  });
});

describe("diagnose", () => {
  // One that all ranks have: src/verdict/answer.test.ts, in every run.
  longTest("with --baseline turns a regression into the verdict", async () => {
    const paths = [recording("reg-data")];
    const { verdict } = await diagnose({ paths, baseline: [recording("reg-none")] }, quietEnv);
    expect(verdict).toMatchObject({
      kind: "regression",
      owner: "algorithm",
      suspects: [{ cause: "dataloader", ranks: [0, 2] }],
    });
    expect(verdict.victims).toEqual([4]);
  });

  it("without a baseline accuses nobody of a regression that all ranks share", async () => {
    for (const name of few(["reg-sync", "reg-none", "reg-data"], 1)) {
      const { verdict } = await diagnose({ paths: [recording(name)] }, quietEnv);
      expect(verdict.suspects).toEqual([]);
    }
  });
});

describe("simulated jobs", () => {
  const job = { gpus: 4, tp: 1, pp: 1, microBatches: 2 };
  const healthy = simulatedRun([], { ...job, seed: 2 });
  const found = (fault: string) =>
    judgeTraces(simulatedRun([`${fault}:from=1`], { ...job, seed: 3 }), [healthy]).regressions.map(
      ({ cause, ranks }) => ({ cause, ranks }),
    );
  const all = [0, 1, 2, 3];
  const cases: [string, string, number[]][] = [
    ["synchronization:rank=0,1,2,3:severity=1.1", "synchronization", all],
    ["garbage-collection:rank=2:severity=1.5", "garbage-collection", [2]],
    ["dataloader:rank=1:severity=1.5", "dataloader", [1]],
    ["minority-kernels:rank=0,1,2,3:severity=1.1", "minority-kernels", all],
    ["gemm-layout:rank=0,1,2,3:severity=1.5", "gemm-layout", all],
    ["slow-kernel:rank=0,1,2,3:severity=1.2", "slow-kernel", all],
    ["gpu-slow:rank=3:severity=1.2", "gpu-slow", [3]],
    ["cpu-stall:rank=3:severity=3", "cpu-stall", [3]],
  ];
  it.each(few(cases, 3))("%s", (fault, cause, ranks) => {
    expect(found(fault)).toEqual([{ cause, ranks }]);
  });

  it("another healthy run is no regression", () => {
    expect(judgeTraces(simulatedRun([], { ...job, seed: 4 }), [healthy]).regressions).toEqual([]);
  });
});
