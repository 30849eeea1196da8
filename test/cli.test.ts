/** The command as a user calls it: exit status, what goes where, and what bad input does. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import type { Verdict } from "../src/model/verdict.ts";
import { faultline, faultlineIn } from "./support/cli.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const hang3 = join(root, "fixtures/recordings/hang3.tar.gz");
const folder = mkdtempSync(join(tmpdir(), "faultline-cli-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function put(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, content);
  return path;
}

describe("faultline diagnose", () => {
  it("prints a verdict of one screen for people", async () => {
    const { status, stdout, stderr } = await faultline("diagnose", hang3);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^HANG {2}confidence \d\d %/);
    expect(stdout).toContain("Rank 3 on node003");
    expect(stdout.split("\n").length).toBeLessThanOrEqual(46);
    // oxlint-disable-next-line no-control-regex
    expect(stdout).not.toMatch(/\x1b/);
    expect(stderr).not.toMatch(/error/i);
  });

  it("prints one JSON document and nothing else with --json", async () => {
    const { status, stdout } = await faultline("diagnose", hang3, "--json");
    expect(status).toBe(0);
    const verdict = JSON.parse(stdout) as Verdict;
    expect(verdict.schema).toBe("faultline.verdict/1");
    expect(verdict.suspects[0]).toMatchObject({ ranks: [3], cause: "cpu-stall" });
    const ids = new Set(verdict.findings.map((finding) => finding.id));
    expect(verdict.suspects.flatMap((s) => s.evidence).every((id) => ids.has(id))).toBe(true);
  });

  it("uses colour in a pipe with FORCE_COLOR alone, and never with NO_COLOR", async () => {
    const log = put("colour/rank1.log", "[rank1]: ValueError: could not broadcast\n");
    const coloured = async (more: Readonly<Record<string, string>>): Promise<boolean> => {
      const env = { ...process.env, CI: "true", NO_COLOR: "", FORCE_COLOR: "", ...more };
      return (await faultlineIn({ env }, "diagnose", log)).stdout.includes("\u001b");
    };
    expect(await coloured({})).toBe(false);
    expect(await coloured({ FORCE_COLOR: "1" })).toBe(true);
    expect(await coloured({ FORCE_COLOR: "0" })).toBe(false);
    expect(await coloured({ FORCE_COLOR: "1", NO_COLOR: "1" })).toBe(false);
  });

  it("gives the same answer twice", async () => {
    const [first, second] = await Promise.all([
      faultline("diagnose", hang3, "--json"),
      faultline("diagnose", hang3, "--json"),
    ]);
    expect(first.stdout).toBe(second.stdout);
  });

  it("writes report.html and verdict.json with --out", async () => {
    const out = join(folder, "new/report");
    const { stdout } = await faultline("diagnose", hang3, "--out", out);
    expect(stdout).toContain("report.html");
    const html = readFileSync(join(out, "report.html"), "utf8");
    expect(html).toMatch(/^<!doctype html>/i);
    expect(html).not.toMatch(/(?:src|href)="https?:/);
    const verdict = JSON.parse(readFileSync(join(out, "verdict.json"), "utf8")) as Verdict;
    expect(verdict.kind).toBe("hang");
  });

  it("exits with 10 when asked to and something is wrong", async () => {
    expect((await faultline("diagnose", hang3, "--exit-code", "--quiet")).status).toBe(10);
  });

  it("takes machines from the job file", async () => {
    const job = put(
      "job.json",
      JSON.stringify({ worldSize: 8, ranks: [{ rank: 3, machine: "gpu-17" }] }),
    );
    const { stdout } = await faultline("diagnose", hang3, "--job", job, "--json");
    expect((JSON.parse(stdout) as Verdict).suspects[0]?.machine).toBe("gpu-17");
  });
});

describe("a wrong call", () => {
  const oneLine = (text: string): void => expect(text.trim().split("\n").length).toBe(1);

  it("with a path that is not there is one line and exit 3", async () => {
    const { status, stderr, stdout } = await faultline(
      "diagnose",
      join(folder, "nowhere"),
      "--json",
    );
    expect(status).toBe(3);
    expect(stdout).toBe("");
    oneLine(stderr);
    expect(stderr).toContain("nowhere");
  });

  it("with an unknown option or command, or no path, is exit 2", async () => {
    expect((await faultline("diagnose", hang3, "--nonsense")).status).toBe(2);
    expect((await faultline("diagnos", hang3)).status).toBe(2);
    expect((await faultline("diagnose")).status).toBe(2);
  });

  it("with a job file that is none is exit 2", async () => {
    const { status, stderr } = await faultline("diagnose", hang3, "--job", put("bad.json", "{"));
    expect(status).toBe(2);
    expect(stderr).toContain("bad.json");
  });

  it("with --out where no folder can be is exit 1", async () => {
    const { status, stderr } = await faultline(
      "diagnose",
      hang3,
      "--out",
      join(put("file", "x"), "sub"),
    );
    expect(status).toBe(1);
    oneLine(stderr);
  });
});

describe("faultline serve", () => {
  it.each([
    ["unset", {}, /there is no home folder for the data.*--data FOLDER/],
    ["no place to write to", { HOME: "/dev/null" }, /cannot create .*--data FOLDER/],
  ])("with a home folder that is %s says so in one line", async (_, env, line) => {
    const { status, stderr } = await faultlineIn({ env }, "serve", "--port", "0");
    expect(stderr).toMatch(line);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(status).toBe(2);
  });
});

describe("bad input", () => {
  it("alone is an error that names the file and what is wrong, exit 3", async () => {
    const cases: [string, string | Uint8Array, RegExp][] = [
      [
        "evil/nccl_trace_rank_0",
        Buffer.from("80028c026f738c0673797374656d932e", "hex"),
        /refused.*STACK_GLOBAL/,
      ],
      ["none/nccl_trace_rank_0", "", /empty/],
      ["cut/nccl_trace_rank_0", Buffer.from("80027d", "hex"), /cut off/],
      [
        "prose/notes.txt",
        "We met on Tuesday and had lunch.\n",
        /is not in a format that Faultline reads/,
      ],
    ];
    for (const [name, content, expected] of cases) {
      const { status, stderr, stdout } = await faultline("diagnose", put(name, content));
      expect([name, status]).toEqual([name, 3]);
      expect(stderr).toMatch(expected);
      expect(stderr).not.toMatch(/ at .*\.js:\d+/);
      expect(stdout).toBe("");
    }
  });

  it("beside good input is named in missing and does not change the answer", async () => {
    const evil = put(
      "mixed/fr_timeout_rank_9",
      Buffer.from("80028c026f738c0673797374656d932e", "hex"),
    );
    const empty = put("mixed/fr_timeout_rank_8", "");
    const notes = put("mixed/notes.txt", "nothing of a job\n");
    const { status, stdout } = await faultline("diagnose", hang3, evil, empty, notes, "--json");
    expect(status).toBe(0);
    const verdict = JSON.parse(stdout) as Verdict;
    expect(verdict.suspects.map((s) => s.ranks)).toEqual([[3]]);
    expect(verdict.missing.join("\n")).toMatch(/refused/);
    expect(verdict.missing.join("\n")).toMatch(/is empty/);
  });

  it("given twice is read once", async () => {
    const { stdout } = await faultline("diagnose", hang3, hang3, "--json");
    expect((JSON.parse(stdout) as Verdict).missing).toEqual([]);
  });
});

describe("faultline simulate", () => {
  it("writes a job that diagnose understands, machines included", async () => {
    const out = join(folder, "simulated");
    const made = await faultline(
      "simulate",
      "--out",
      out,
      "--gpus",
      "16",
      "--iterations",
      "6",
      "--fault",
      "gpu-hang:rank=9:from=5",
      "--json",
    );
    expect(JSON.parse(made.stdout)).toMatchObject({ gpus: 16, stopped: true, iterations: 5 });
    const { stdout } = await faultline("diagnose", out, "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      kind: "hang",
      when: { iteration: 5 },
      suspects: [{ ranks: [9], cause: "gpu-hang", machine: "node001" }],
    });
  });

  const out = join(folder, "never");
  const wrong: [string, string[], RegExp][] = [
    [
      "a layout that does not multiply",
      ["--gpus", "16", "--tp", "2", "--dp", "3", "--pp", "2"],
      /is 12, not 16 GPUs/,
    ],
    ["an unknown cause", ["--fault", "gremlins:rank=1"], /unknown cause.*allowed: .*gpu-slow/],
    ["a rank out of range", ["--fault", "gpu-slow:rank=99"], /out of range.*0 to 15/],
    ["an unknown key", ["--fault", "gpu-slow:rnk=1"], /keys: rank/],
    ["an unknown format", ["--emit", "parchment"], /allowed: operators/],
    ["an unknown schedule", ["--schedule", "waltz"], /allowed: 1f1b, interleaved, gpipe/],
    ["a number that is none", ["--gpus", "many"], /must be a number/],
  ];
  it.each(wrong)(
    "refuses %s in one line that says what is allowed",
    async (_name, args, expected) => {
      const { status, stderr, stdout } = await faultline("simulate", "--out", out, ...args);
      expect([status, stdout]).toEqual([2, ""]);
      expect(stderr.trim().split("\n")).toHaveLength(1);
      expect(stderr).toMatch(expected);
    },
  );
});
