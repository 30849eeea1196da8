import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../../../test/support/until.ts";
import { ownLogs } from "./own-logs.ts";
import { SlowStorage } from "../evidence/slow-storage.ts";

let folder: string;
const processes: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-own-logs-"));
});
afterEach(() => {
  for (const one of processes.splice(0)) one.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** A process whose output goes there. */
function writer(stdout: number | "ignore" | "pipe", stderr = stdout): number {
  const one = spawn("sleep", ["60"], { stdio: ["ignore", stdout, stderr] });
  processes.push(one);
  return one.pid!;
}

function opened(name: string, text: string, flags = "a"): { fd: number; path: string } {
  const path = join(folder, name);
  writeFileSync(path, text);
  return { fd: openSync(path, flags), path };
}

const find = async (
  ranks: { rank: number; pid: number }[],
  most = 1 << 20,
  known = new Set<string>(),
) => {
  const { files, troubles } = await ownLogs(ranks, most, known, {
    proc: "/proc",
    storage: new SlowStorage(),
  });
  return { files: files.map(({ name, bytes }) => `${name}: ${bytes.toString()}`), troubles };
};

describe("logs in the hands of processes", () => {
  it("are a rank's own, or shared by several, each read once and from the start of a line", async () => {
    const own = opened("stderr.log", "first\nsecond\nthird\n");
    const shared = opened("train.log", "all\n");
    const ranks = [
      { rank: 3, pid: writer(shared.fd, own.fd) },
      { rank: 4, pid: writer(shared.fd) },
    ];
    closeSync(own.fd);
    closeSync(shared.fd);
    expect(await find(ranks, 15)).toEqual({
      files: ["train.log: all\n", "rank3.stderr.log: second\nthird\n"],
      troubles: [],
    });
    const known = new Set([`${statSync(own.path).dev} ${statSync(own.path).ino}`]);
    expect((await find(ranks, 15, known)).files).toEqual(["train.log: all\n"]);
  });

  it("are not looked for behind a terminal or nothing, and that is said", async () => {
    const ranks = [
      { rank: 0, pid: writer("ignore") },
      { rank: 1, pid: writer("ignore") },
      { rank: 2, pid: 4_000_000 },
    ];
    expect(await find(ranks)).toEqual({
      files: [],
      troubles: [
        "rank 0, 1: output goes to /dev/null, not to a file; name its log with --log",
        "rank 2: output goes to nothing, not to a file; name its log with --log",
      ],
    });
  });

  it("are none where the file is open for reading only: it may be one that its user may not read", async () => {
    const other = opened("secret", "not ours\n", "r");
    const ranks = [{ rank: 0, pid: writer(other.fd) }];
    closeSync(other.fd);
    expect(await find(ranks)).toEqual({
      files: [],
      troubles: [
        "rank 0: output goes to a file that it does not write, not to a file; name its log with --log",
      ],
    });
  });

  it("are the launcher's where a rank writes into its pipe", async () => {
    const log = opened("launcher.log", "of the launcher\n");
    // The pipeline's shell has the file; the sleeping process writes into a pipe.
    const shell = spawn("sh", ["-c", "sleep 60 | cat"], { stdio: ["ignore", log.fd, log.fd] });
    processes.push(shell);
    closeSync(log.fd);
    // pgrep fails as long as it is not there.
    const pid = await until(() =>
      Number(execFileSync("pgrep", ["-P", String(shell.pid), "-x", "sleep"], { encoding: "utf8" })),
    );
    expect((await find([{ rank: 0, pid }])).files).toEqual([
      "rank0.launcher.log: of the launcher\n",
    ]);
    process.kill(pid, "SIGKILL");
  });
});
