/** `faultline machines` as a user calls it. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { faultline, type Ran } from "./support/cli.ts";
import { freePort } from "./support/free-port.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-machines-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const machines = (...words: string[]): Promise<Ran> => faultline("machines", ...words);

const T0 = 1_794_700_800;
const wiggle = (i: number): number => Math.sin(12.9898 * i) * 0.5;

/** Twelve machines, half an hour at 15 s; one of them stops working after twenty minutes. */
function table(name: string, bad: number | null, startS = T0): string {
  const rows = ["timestamp,machine,cpu_usage,gpu_duty_cycle,gpu_power_draw,memory_usage"];
  for (let t = 0; t < 1800; t += 15) {
    for (let m = 0; m < 12; m++) {
      const isBad = m === bad && t >= 1200;
      const noise = wiggle(17 * m + t);
      rows.push(
        [
          startS + t,
          `node${String(m).padStart(2, "0")}`,
          ((isBad ? 0.01 : 0.17) + 0.01 * noise).toFixed(4),
          isBad ? 0 : 99 + noise,
          (isBad ? 72 : 510) + 8 * noise,
          ((isBad ? 0.08 : 0.32) + 0.002 * noise).toFixed(4),
        ].join(),
      );
    }
  }
  const path = join(folder, name);
  writeFileSync(path, `${rows.join("\n")}\n`);
  return path;
}

const faulty = table("faulty.csv", 7);
const healthy = table("healthy.csv", null);

describe("faultline machines", () => {
  it("tells people who, since when and what is different", async () => {
    const { status, stdout } = await machines(faulty);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^Machine node07 stands out: .*\nCheck the machine: /);
    expect(stdout).toMatch(/since 00:20:00, still/);
    expect(stdout).toMatch(/GPU duty cycle 0 %, peers 9\d(\.\d+)? %/);
    expect(stdout).toMatch(/not recorded: .*pfc-tx-packet-rate/);
  });

  it("explains a machine beside its peers, and says whom there is where nobody is called so", async () => {
    const { status, stdout } = await machines(faulty, "--explain", "node07");
    expect(status).toBe(0);
    expect(stdout).toMatch(/^node07, beside 11 peers \(all machines\)\nhas one name/);
    expect(stdout).toMatch(/GPU duty cycle .*\n\s*unlike its peers from 00:20:00/);
    expect(stdout).toMatch(/nobody recorded it/);
    const { explanation } = JSON.parse(
      (await machines(faulty, "--explain", "node07", "--json")).stdout,
    ) as { explanation: { machine: string; metrics: unknown[] } };
    expect(explanation.machine).toBe("node07");
    expect(explanation.metrics).toHaveLength(4);
    const unknown = await machines(faulty, "--explain", "node99");
    expect(unknown.status).toBe(2);
    expect(unknown.stderr).toMatch(/no machine of the job is called node99; its 12 machines are/);
  });

  it("prints the document of the contract with --json, and nothing else", async () => {
    const { status, stdout } = await machines(faulty, "--json", "--exit-code");
    expect(status).toBe(10);
    const document = JSON.parse(stdout) as Record<string, unknown>;
    expect(document).toMatchObject({
      schema: "faultline.machines/1",
      machines: 12,
      faulty: [
        { machine: "node07", since: "2026-11-15T00:20:00.000Z", until: null, role: "all machines" },
      ],
      telemetry: [],
      jitter: [],
    });
    const metrics = document["metrics"] as { name: string; coverage: number }[];
    expect(metrics).toHaveLength(21);
    expect(metrics.find(({ name }) => name === "gpu-duty-cycle")!.coverage).toBe(1);
    expect(metrics.find(({ name }) => name === "ecn-packet-rate")!.coverage).toBe(0);
  });

  it("finds nothing in a healthy table", async () => {
    const { status, stdout } = await machines(healthy, "--exit-code");
    expect(status).toBe(0);
    expect(stdout).toMatch(/^no machine is unlike its peers/);
  });

  it("writes a report with plots", async () => {
    const out = join(folder, "report");
    const { status } = await machines(faulty, "--out", out, "--quiet");
    expect(status).toBe(0);
    const page = readFileSync(join(out, "report.html"), "utf8");
    expect(page).toContain("node07");
    expect(page.match(/<svg/g)!.length).toBeGreaterThanOrEqual(3);
    expect(existsSync(join(out, "verdict.json"))).toBe(true);
  });

  it("asks Minder where it is told to, with models trained on healthy data", async () => {
    const models = join(folder, "models.json");
    const trained = await machines(
      "train",
      healthy,
      "--models",
      models,
      "--batches",
      "200",
      "--quiet",
    );
    expect(trained.status).toBe(0);
    expect(trained.stdout).toMatch(/gpu-duty-cycle +\d+ windows/);
    const { status, stdout } = await machines(
      faulty,
      "--method",
      "minder",
      "--models",
      models,
      "--json",
    );
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ method: "minder", faulty: [{ machine: "node07" }] });
  });
});

describe("bad words and bad input", () => {
  it.each([
    [[], 2, /no files and no server/],
    [[faulty, "--prometheus", "http://127.0.0.1:9"], 2, /both files and a server/],
    [[faulty, "--match", 'job="x"'], 2, /--match needs a server/],
    [[faulty, "--models", "x.json"], 2, /--models needs --method minder/],
    [[faulty, "--continuity", "soon"], 2, /duration such as 15m/],
    [[faulty, "--method", "magic"], 2, /peers, minder/],
    [["--prometheus", "prometheus:9090"], 2, /no URL of a Prometheus server/],
    [["/there/is/none.csv"], 3, /no such file/],
  ])("%j", async (args, expected, words) => {
    const { status, stdout, stderr } = await machines(...args);
    expect(status).toBe(expected);
    expect(stderr).toMatch(words);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(stdout).toBe("");
  });

  it("says in one line that a server is down", async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const { status, stderr } = await machines("--prometheus", url, "--quiet");
    expect(status).toBe(3);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(stderr).toMatch(/refused|not reach|down/i);
  });

  it("says that a file holds no metrics", async () => {
    const path = join(folder, "train.log");
    writeFileSync(path, "[rank0]: iteration 1 | elapsed time per iteration (ms): 12.0\n");
    const { status, stderr } = await machines(path, "--quiet");
    expect(status).toBe(3);
    expect(stderr).toMatch(/no monitoring metrics/);
  });
});

describe("faultline machines train --labels", () => {
  const labels = (name: string, rows: readonly string[]): string => {
    const path = join(folder, name);
    writeFileSync(path, ["machine,start,end,state,cause", ...rows].join("\n"));
    return path;
  };
  const train = (...words: string[]): Promise<Ran> => machines("train", "--quiet", ...words);
  const out = join(folder, "priorities.json");
  const at = (machine: number, state = "faulty", startS = T0): string =>
    `node0${machine},${startS + 1200},${startS + 1800},${state},`;

  it("writes an order and thresholds that machines reads", async () => {
    const tasks = [table("three.csv", 3, T0 - 3600), table("four.csv", 4, T0 - 7200), healthy];
    const faults = [at(3, "faulty", T0 - 3600), at(4, "faulty", T0 - 7200)];
    const known = labels("labels.csv", [...faults, `*,${T0},${T0 + 1800},healthy,`]);
    const trained = await train(...tasks, "--labels", known, "--priorities", out);
    expect([trained.status, trained.stderr]).toEqual([0, ""]);
    expect(trained.stdout).toContain("learnt from 3 tasks: 2 faulty and 3 healthy spans");
    const learnt = JSON.parse(readFileSync(out, "utf8")) as { order: string[] };
    expect(learnt.order).toContain("gpu-duty-cycle");
    for (const method of ["peers", "minder"]) {
      const words = ["--priorities", out, "--method", method, "--json"];
      const { stdout } = await machines(faulty, ...words);
      expect(JSON.parse(stdout)).toMatchObject({ faulty: [{ machine: "node07" }] });
      expect(JSON.parse((await machines(healthy, ...words)).stdout)).toMatchObject({ faulty: [] });
    }
  });

  it("counts what is said twice once, and nothing that is contradicted", async () => {
    const tasks = [table("three.csv", 3, T0 - 3600), table("four.csv", 4, T0 - 7200), healthy];
    const all = `*,${T0},${T0 + 1800},healthy,`;
    const said = [at(3, "faulty", T0 - 3600), at(4, "faulty", T0 - 7200), all];
    await train(...tasks, "--labels", labels("once.csv", said), "--priorities", out);
    const once = readFileSync(out, "utf8");
    const later = `node03,${T0 - 3600 + 1260},${T0 - 3600 + 1800},faulty,`;
    const twice = labels("twice.csv", [...said, ...said, later]);
    await train(...tasks, ...tasks, "--labels", twice, "--priorities", out);
    expect(readFileSync(out, "utf8")).toBe(once);

    const both = [...said, at(5, "faulty", T0 - 7200), at(5, "healthy", T0 - 7200)];
    const words = ["--labels", labels("both.csv", both), "--priorities", out];
    const trained = await machines("train", ...tasks, ...words);
    expect(trained.stderr).toMatch(
      /2 of 5 labels contradict each other and do not count: node05 \w+ at 2026-11-14T22:20:00\.000Z/,
    );
    expect(readFileSync(out, "utf8")).toBe(once);
    const nothing = labels("nothing.csv", [at(7), `*,${T0},${T0 + 1800},healthy,`]);
    const refused = await train(faulty, "--labels", nothing, "--priorities", out);
    expect(refused.status).toBe(3);
    expect(refused.stderr).toContain("uncontradicted; these contradict each other: node07 faulty");
  });

  it("learns no threshold from wrong labels that would hide a broken machine", async () => {
    const starts = [1, 2, 3, 4, 5, 6].map((hours) => T0 - 3600 * hours);
    const tasks = starts.map((startS, i) => table(`wrong${i}.csv`, 2 + i, startS));
    const right = starts.slice(0, 2).map((startS, i) => at(2 + i, "faulty", startS));
    const wrong = starts.slice(2).map((startS) => `*,${startS},${startS + 1800},healthy,`);
    const known = labels("wrong.csv", [...right, ...wrong]);
    const trained = await train(...tasks, "--labels", known, "--priorities", out);
    expect([trained.status, trained.stdout]).toEqual([
      0,
      expect.not.stringMatching(/deviations on/),
    ]);
    const { stdout } = await machines(faulty, "--priorities", out, "--json");
    expect(JSON.parse(stdout)).toMatchObject({ faulty: [{ machine: "node07" }] });
  });

  it("says what is wrong with labels that match nothing, or one side only", async () => {
    const nobody = labels("nobody.csv", [
      `gpu-99,${T0},${T0 + 600},faulty,`,
      at(5).replace(/179/g, "169"),
    ]);
    const first = await train(faulty, "--labels", nobody, "--priorities", out);
    expect(first.status).toBe(3);
    expect(first.stderr).toContain(
      "matches a machine and a time of the metrics: gpu-99 faulty at 2026-",
    );
    const oneSide = labels("one.csv", [at(7, "healthy")]);
    const second = await train(faulty, "--labels", oneSide, "--priorities", out);
    expect(second.stderr).toContain("that matches is faulty");
    const third = await train(faulty, "--labels", labels("t.csv", [at(7)]), "--priorities", out);
    expect(third.stderr).toContain("no metric tells faulty from healthy machines in two tasks");
    expect((await train(faulty, "--priorities", out)).stderr).toContain(
      "--priorities needs labels",
    );
    expect((await machines(faulty, "--priorities", faulty)).stderr).toContain("is not JSON");
    const foreign = {
      schema: "faultline.machine-priorities/1",
      order: ["gpu-powr"],
      scores: {},
      sigmas: {},
    };
    writeFileSync(out, JSON.stringify(foreign));
    const unknown = await machines(faulty, "--priorities", out, "--method", "minder");
    expect(unknown.status).toBe(2);
    expect(unknown.stderr).toContain(
      "the metrics of --priorities are not among the data: gpu-powr",
    );
  });
});
