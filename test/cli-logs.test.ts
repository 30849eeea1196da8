/** The command `faultline logs` as a user calls it. */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LogStore } from "../src/model/log-store.ts";
import { faultlineIn, type Ran } from "./support/cli.ts";

let folder: string;

const run = (...words: string[]): Promise<Ran> => faultlineIn({ cwd: folder }, "logs", ...words);

interface Document {
  readonly schema: string;
  readonly lines: number;
  readonly events: number;
  readonly cause: Record<string, unknown> | null;
  readonly indicating: { file: string; line: number; why: string[]; text: string }[];
  readonly nodes: { node: string; score: number }[];
  readonly stage: string;
  readonly iterations: unknown[];
  readonly missing: string[];
}

async function asked(...words: string[]): Promise<Document> {
  const { stdout, status, stderr } = await run(...words, "--json", "--quiet");
  expect(`${status} ${stderr}`).toBe("0 ");
  return JSON.parse(stdout) as Document;
}

const stamp = (second: number): string =>
  new Date(Date.UTC(2026, 10, 15, 0, 0, second)).toISOString().replace("T", " ").slice(0, 19);

/** A node's log: setup, iterations, then whatever else. */
function nodeLog(node: number, end: readonly string[] = []): string {
  const lines = [
    `${stamp(1)} [INFO] node${node} initializing process group, world size 16`,
    `${stamp(2)} [INFO] loading checkpoint from /data/step_1000`,
    ...Array.from(
      { length: 12 },
      (_, i) =>
        `${stamp(10 + 5 * i)} [INFO]  iteration ${1001 + i}/ 5000 | elapsed time per iteration (ms): 4${node}1${i}.0 | lm loss: 2.${i}E+00 |`,
    ),
    ...end.map((text, i) => `${stamp(80 + i)} ${text}`),
  ];
  return `${lines.join("\n")}\n`;
}

const WATCHDOG =
  "[ERROR] [rank1]:[E ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600051 milliseconds before timing out.";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-logs-"));
  for (const job of ["healthy", "failed"]) mkdirSync(join(folder, job));
  for (let node = 0; node < 8; node++) {
    writeFileSync(
      join(folder, "healthy", `node${node}.log`),
      nodeLog(node, ["[ERROR] exporter: cannot push metrics, will try again"]),
    );
    const end =
      node === 5
        ? [
            "[WARNING] kernel: NVRM: Xid (PCI:0000:4b:00): 79, pid=4711, name=python3, GPU has fallen off the bus.",
          ]
        : [WATCHDOG];
    writeFileSync(
      join(folder, "failed", `node${node}.log`),
      nodeLog(node, ["[ERROR] exporter: cannot push metrics, will try again", ...end]),
    );
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("faultline logs", () => {
  it("names the cause, the node and the lines, not those that wait", async () => {
    const found = await asked("failed", "--baseline", "healthy");
    expect(found.schema).toBe("faultline.logs/1");
    expect(found.lines).toBe(8 * 16);
    expect(found.cause).toMatchObject({
      category: "hardware.accelerator",
      signature: "nvidia.xid.79",
      role: "root",
    });
    expect(found.nodes[0]!.node).toMatch(/node5/);
    expect(found.stage).toBe("train");
    expect(found.indicating[0]).toMatchObject({
      line: 16,
      why: expect.arrayContaining(["library"]),
    });
    expect(found.indicating[0]!.file).toMatch(/node5\.log$/);
    // What healthy jobs say, too, indicates nothing.
    expect(found.indicating.filter(({ text }) => text.includes("exporter"))).toEqual([]);
  });

  it("finds nothing in a healthy job", async () => {
    const found = await asked("healthy", "--baseline", "healthy");
    expect(found).toMatchObject({ cause: null, indicating: [] });
    expect((await run("healthy", "--baseline", "healthy", "--exit-code", "--quiet")).status).toBe(
      0,
    );
    expect((await run("failed", "--exit-code", "--quiet")).status).toBe(10);
  });

  it("learns, confirms, disputes, exports and imports", async () => {
    const learn = await run("learn", "--store", "site.json", "healthy");
    expect(learn.stdout).toMatch(/1 healthy job/);
    const found = await asked("failed", "--store", "site.json");
    expect(found.indicating.filter(({ text }) => text.includes("exporter"))).toEqual([]);
    expect((await run("failed", "--store", "site.json", "--out", "report", "--quiet")).status).toBe(
      0,
    );
    const report = ["confirm", "report/verdict.json", "--store", "site.json"];
    const pattern = ["--category", "platform", "--title", "our own trouble"];
    const confirmed = await run(...report, ...pattern, "--action", "call Bob");
    expect(confirmed.stdout).toMatch(/site\.our-own-trouble: confirmed 1/);
    expect((await run("dispute", "nvidia.xid.79", "--store", "site.json")).stdout).toMatch(
      /disputed 1/,
    );
    expect((await run("dispute", "xid.79", "--store", "site.json")).stderr).toMatch(
      /did you mean nvidia.xid.79/,
    );
    await run("export", "others.json", "--store", "site.json");
    expect((await run("import", "others.json", "--store", "new.json")).stdout).toMatch(/1 record/);
    const votes = readFileSync(join(folder, "new.json"), "utf8");
    await run("import", "others.json", "--store", "new.json");
    expect(readFileSync(join(folder, "new.json"), "utf8")).toBe(votes);
    const [given] = (JSON.parse(votes) as LogStore).imports;
    expect(given!.from).toBe(join(folder, "others.json"));
    const record = given!.known.records[0]!;
    writeFileSync(join(folder, "ours.json"), JSON.stringify([{ ...record, id: "nvidia.xid.79" }]));
    const refused = await run("import", "ours.json", "--store", "new.json");
    expect(refused).toMatchObject({ status: 2, stderr: expect.stringMatching(/another id/) });
    const usual = { ...record, id: "site.usual", match: { all: ["cannot push metrics"] } };
    writeFileSync(join(folder, "theirs.json"), JSON.stringify([usual]));
    expect(await run("import", "theirs.json", "--store", "site.json")).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/healthy jobs log what site\.usual matches: .*exporter/),
    });
    const again = await asked("failed", "--store", "new.json");
    expect(again.cause?.["signature"]).toBe("site.our-own-trouble");
    const gone = await run("forget", "healthy", "--store", "site.json");
    expect(gone.stdout).toBe(`forgotten: ${join(folder, "healthy")}\n`);
    await run("forget", "others.json", "--store", "new.json");
    for (const file of ["site.json", "new.json"])
      expect(JSON.parse(readFileSync(join(folder, file), "utf8"))).toMatchObject({
        jobs: [],
        normal: {},
        imports: [],
      });
    expect(await run("forget", "others.json", "--store", "new.json")).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/no job others\.json, and imported no such thing/),
    });
  });

  it("shows lines that nobody knows in diagnose, with where and when, and no longer once they are normal", async () => {
    const lines = (rank: number): string[] => [
      ...Array.from(
        { length: 30 },
        (_, i) => `2026-11-01 10:00:${String(i + 10)} [rank${rank}] iteration ${i} loss 3.${i}`,
      ),
      `2026-11-01 10:01:00 [rank${rank}] ERROR exporter: cannot push metrics`,
    ];
    const odd =
      "2026-11-01 10:01:07 [rank1] ERROR zorblax: lease of shard 17 refused by the coordinator";
    for (const rank of [0, 1, 2, 3]) {
      mkdirSync(join(folder, "calm"), { recursive: true });
      mkdirSync(join(folder, "odd"), { recursive: true });
      writeFileSync(join(folder, "calm", `rank${rank}.log`), lines(rank).join("\n"));
      const all = rank === 1 ? [...lines(rank), odd] : lines(rank);
      writeFileSync(join(folder, "odd", `rank${rank}.log`), all.join("\n"));
    }
    interface Found {
      suspects: unknown[];
      findings: { says: string; at: object[]; data: { fact: string; lines?: object[] } }[];
    }
    const diagnosed = async (...words: string[]): Promise<Found> => {
      const ran = await faultlineIn({ cwd: folder }, "diagnose", "odd", "--json", ...words);
      return JSON.parse(ran.stdout) as Found;
    };
    const found = await diagnosed("--log-baseline", "calm");
    expect(found.suspects).toEqual([]);
    expect(found.findings).toMatchObject([
      {
        says: expect.stringMatching(/not in the logs of 1 healthy job on rank 1 at .*zorblax/),
        at: [{ file: expect.stringMatching(/odd\/rank1\.log$/), line: 32 }],
        data: { fact: "unexplained-lines", lines: [{ rank: 1, time: "2026-11-01T10:01:07.000Z" }] },
      },
    ]);
    await run("learn", "--store", "odd.json", "odd");
    expect((await diagnosed("--store", "odd.json")).findings).toEqual([]);
  });

  it("learns nothing from a job that failed, and never that a known root error is normal", async () => {
    const at = (second: number): string =>
      `2026-11-18 10:00:${String(second).padStart(2, "0")},000`;
    const calm = [0, 1, 2, 3].map((i) => `${at(i)} INFO iteration ${i} loss 2.${i}`);
    const died =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB";
    const write = (job: string, lines: readonly string[]): void => {
      mkdirSync(join(folder, job));
      writeFileSync(join(folder, job, "rank0.log"), `${lines.join("\n")}\n`);
    };
    write("fine", calm);
    write("died", [...calm, `${at(4)} ERROR ${died}`]);
    const ran = await run("learn", "--store", "mixed.json", "fine", "died", "--json");
    expect(ran.stderr).toMatch(
      /not learnt: died is no healthy job: .*rank0\.log:5: .*out of memory/i,
    );
    expect(JSON.parse(ran.stdout)).toMatchObject({
      jobs: [{ job: "fine" }],
      refused: [{ job: "died", why: expect.stringMatching(/rank0\.log:5/) }],
    });
    const alone = await run("learn", "--store", "none.json", "died");
    expect(alone).toMatchObject({ status: 3, stderr: expect.stringMatching(/rank0\.log:5/) });
    expect(existsSync(join(folder, "none.json"))).toBe(false);
    // Written by an earlier version, or by hand.
    const store = JSON.parse(readFileSync(join(folder, "mixed.json"), "utf8")) as LogStore;
    const template = died.replace("2.00 GiB", "<SIZE>").replace("79.15 GiB", "<SIZE>");
    const normal = { ...store.normal, [template]: 12, "library: cuda.oom.torch": 12 };
    writeFileSync(join(folder, "mixed.json"), JSON.stringify({ ...store, normal }));
    const found = await faultlineIn(
      { cwd: folder },
      "diagnose",
      "died",
      "--store",
      "mixed.json",
      "--json",
    );
    expect(JSON.parse(found.stdout)).toMatchObject({
      kind: "crash",
      suspects: [{ cause: "gpu-memory" }],
    });
  });

  it("confirms a line with a long constant text", async () => {
    const text = `RuntimeError: ${"the allocator has no more room ".repeat(12)}`;
    const line = { text, template: text };
    writeFileSync(
      join(folder, "long.json"),
      JSON.stringify({ schema: "faultline.logs/1", indicating: [line] }),
    );
    const words = ["--category", "platform", "--title", "no room", "--action", "call Bob"];
    const { stdout, stderr } = await run("confirm", "long.json", "--store", "l.json", ...words);
    expect([stdout, stderr]).toEqual([expect.stringMatching(/site\.no-room: confirmed 1/), ""]);
  });

  it("writes a page in which log lines stay text", async () => {
    mkdirSync(join(folder, "evil"));
    writeFileSync(
      join(folder, "evil", "a.log"),
      `RuntimeError: CUDA error: uncorrectable ECC error encountered <script>alert(1)</script>\n`,
    );
    await run("evil", "--out", "page", "--quiet");
    const page = readFileSync(join(folder, "page", "report.html"), "utf8");
    expect(page).toContain("&lt;script&gt;alert(1)");
    expect(page).not.toContain("<script>alert(1)");
  });

  it("reads archives, and is a finding of diagnose", async () => {
    execFileSync("tar", ["czf", "failed.tar.gz", "failed"], { cwd: folder });
    const packed = await asked("failed.tar.gz");
    expect(packed.cause).toMatchObject({ signature: "nvidia.xid.79" });
    expect(packed.lines).toBe(8 * 16);
    const words = ["diagnose", "failed.tar.gz", "--json", "--quiet"];
    const { stdout } = await faultlineIn({ cwd: folder }, ...words);
    const { findings } = JSON.parse(stdout) as {
      findings: { method: string; data: Record<string, unknown> }[];
    };
    expect(findings.find(({ method }) => method === "logs/library")?.data).toMatchObject({
      signature: "nvidia.xid.79",
      category: "hardware.accelerator",
    });
  });

  it("does not let a healthy job's number hide another", async () => {
    mkdirSync(join(folder, "xid13"));
    const xid = (code: number): string =>
      `NVRM: Xid (PCI:0000:4b:00): ${code}, pid=4711, name=python3, some text\n`;
    writeFileSync(join(folder, "xid13", "dmesg.txt"), xid(13));
    writeFileSync(join(folder, "xid48.txt"), xid(48));
    const found = await asked("xid48.txt", "--baseline", "xid13");
    expect(found.cause).toMatchObject({ signature: expect.stringMatching(/^nvidia\.xid\.48/) });
  });

  it("follows links to files, learns of several at once", async () => {
    mkdirSync(join(folder, "links"));
    symlinkSync(join(folder, "failed", "node5.log"), join(folder, "links", "latest.log"));
    expect((await asked("links")).cause).toMatchObject({ signature: "nvidia.xid.79" });
    const jobs = [0, 1, 2, 3].map((node) => `healthy/node${node}.log`);
    await Promise.all(jobs.map((job) => run("learn", "--store", "many.json", job)));
    const store = JSON.parse(readFileSync(join(folder, "many.json"), "utf8")) as { jobs: string[] };
    expect(store.jobs).toHaveLength(jobs.length);
  });

  it("says what is wrong with bad input in one line", async () => {
    writeFileSync(join(folder, "junk.log"), Buffer.from([0, 1, 2, 255, 254, 0, 0, 7, 0, 9]));
    mkdirSync(join(folder, "empty"));
    for (const [words, status, says] of [
      [["nowhere"], 3, /nowhere/],
      [["empty"], 3, /contains no file/],
      [["junk.log"], 3, /no line could be read/],
      [["failed", "--store", "missing.json"], 3, /missing\.json/],
      [["learn", "healthy"], 2, /--store/],
      [["confirm", "nothing.known", "--store", "s.json"], 2, /no record "nothing.known"/],
    ] as const) {
      const ran = await run(...words);
      expect(ran.stderr.trim().split("\n").at(-1)).toMatch(says);
      expect(ran.status).toBe(status);
      expect(ran.stdout).toBe("");
    }
  });
});
