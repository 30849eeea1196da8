import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdtempSync,
  rmSync,
  closeSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { thousands } from "../../../base/text.ts";
import { HEADER, KIND } from "../../../ingest/probe-ring/layout.ts";
import { setTrap } from "./control.ts";
import { discover, type FoundRing } from "./discover.ts";
import { lastOperator } from "./last-operator.ts";
import { openRing } from "./ring-file.ts";
import { ringsOf, selectRuns } from "../select-run.ts";
import { end, IdleProcesses } from "../../../../test/support/live/process.ts";
import {
  nowNs,
  olderMachine,
  startTicksOf,
  TestRing,
  writeRing,
} from "../../../../test/support/live/ring.ts";

let folder: string;
const idle = new IdleProcesses();
const machine = olderMachine;
const found = (): FoundRing[] => ringsOf(discover(folder, machine).runs);
const only = (): FoundRing => found()[0]!;

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "faultline-agent-"))));
afterEach(() => {
  idle.killAll();
  rmSync(folder, { recursive: true, force: true });
});

describe("rings on a machine", () => {
  it("tells who writes, whether it lives, and what it does", async () => {
    const child = await idle.start();
    const ring = new TestRing({ on: machine, folder, rank: 3, pid: child.pid, job: "llama" });
    ring.communicator(0, "tp", 8);
    ring.append({ kind: KIND.collective, func: 1, group: 0, b: 811, endedNs: nowNs() });
    ring.append({ kind: KIND.collective, func: 1, group: 0, b: 812 });
    ring.append({ kind: KIND.matrix, a: 5, endedNs: nowNs() });
    expect(only()).toMatchObject({ header: { rank: 3, pid: child.pid, job: "llama" } });
    await expect.poll(() => only().process.state).toBe("S");
    const fd = openRing(only());
    expect(lastOperator(fd, only(), 3)).toMatchObject({
      what: "AllReduce 812 of tp (size 8)",
      isOpen: true,
    });
    closeSync(fd);
    child.kill("SIGSTOP");
    await expect.poll(() => only().process.state).toBe("T");
    await end(child);
    ring.beat(1n);
    expect(only().process.state).toBe("X");
  });

  it("does not take another process with the number for it, nor a silent number for a death in a container", async () => {
    const child = await idle.start();
    const ring = new TestRing({ on: machine, folder, pid: child.pid, startTicks: 17 });
    const inContainer = { ...machine, sharesNumbers: false };
    expect(ringsOf(discover(folder, inContainer).runs)[0]!.process.state).toBe("");
    ring.beat(nowNs() - 60_000_000_000n);
    expect(only().process.state).toBe("X");
  });

  it("knows nothing of processes on another machine", () => {
    writeRing({ on: machine, folder, pid: 1, startTicks: 5, clockShiftNs: 3_600_000_000_000n });
    expect(only().process.state).toBe("");
    expect(setTrap(found(), 1_000_000n, machine)[0]!.why).toContain("another machine");
  });

  it("refuses what it cannot read, each with a reason", () => {
    const good = new TestRing({ on: machine, folder, rank: 0 });
    const cut = new TestRing({ on: machine, folder, rank: 1 });
    truncateSync(cut.path, 5000);
    const short = new TestRing({ on: machine, folder, rank: 2 });
    truncateSync(short.path, 100);
    const newer = new TestRing({ on: machine, folder, rank: 3 });
    newer.word(HEADER.version, 9);
    const odd = new TestRing({ on: machine, folder, rank: 4 });
    odd.word(HEADER.recordCount, 63);
    new TestRing({ on: machine, folder, rank: 7 }).long(HEADER.head, 2n ** 64n - 1n);
    const long = new TestRing({ on: machine, folder, rank: 8 });
    const promised = long.bytes.length;
    truncateSync(long.path, 2 ** 40);
    const large = new TestRing({ on: machine, folder, rank: 9 });
    large.word(HEADER.connectionCapacity, 2 ** 25);
    truncateSync(large.path, 2 ** 40);
    symlinkSync(good.path, join(folder, "job.r5.1.native.ring"));
    writeFileSync(join(folder, "job.r6.1.native.ring"), "x".repeat(8000));
    const { runs, troubles } = discover(folder, machine);
    expect(ringsOf(runs).map(({ header }) => header.rank)).toEqual([0]);
    const reasons = troubles.map((line) => line.replace(/^.*\.ring: /, "")).join("\n");
    expect(reasons).toBe(
      [
        "is cut off: its records end behind the file",
        "is shorter than a ring's header",
        "is a ring of version 9, and this faultline reads 1",
        "has a damaged header",
        "is a link; links are not followed",
        "is not a ring",
        "has a damaged header: a head of 18446744073709551615 records",
        `is damaged: it continues beyond the ${thousands(promised)} bytes in its header`,
        "is larger than 1 GiB: no probe makes such a ring",
      ].join("\n"),
    );
  });

  it("looks back no further than it was told, whatever the head says", () => {
    const ring = new TestRing({ on: machine, folder });
    const fd = openRing(ring);
    expect(lastOperator(fd, only(), 2 ** 64)).toBe(null);
    closeSync(fd);
  });

  it("hands on no order to a terminal", () => {
    const ring = new TestRing({ on: machine, folder, job: "a\u009bb" });
    ring.communicator(0, "tp\x1b[31m\n", 2);
    ring.append({ kind: KIND.collective, func: 1, group: 0, b: 1 });
    const fd = openRing(ring);
    expect(only().header.job).toBe("a\ufffdb");
    expect(lastOperator(fd, only(), 1)?.what).toBe("AllReduce 1 of tp\ufffd[31m\ufffd (size 2)");
    closeSync(fd);
  });

  it("keeps runs apart: starts of one job, and two jobs of one name", async () => {
    const [a, b, c] = [await idle.start(), await idle.start(), await idle.start()];
    writeRing({ on: machine, folder, rank: 0, pid: 999_999_999, startTicks: 10 }).beat(1n);
    writeRing({ on: machine, folder, rank: 0, pid: a.pid });
    writeRing({ on: machine, folder, rank: 1, pid: b.pid });
    writeRing({ on: machine, folder, rank: 1, pid: b.pid, writer: "python" });
    const runs = discover(folder, machine).runs;
    expect(runs.map(({ rings }) => rings.length).sort((a, b) => a - b)).toEqual([1, 3]);
    const chosen = selectRuns({ runs, troubles: [] }, folder, {});
    expect(ringsOf(chosen.runs).map(({ header }) => header.pid)).toEqual([a.pid, b.pid, b.pid]);
    expect(chosen.remarks[0]).toContain("1 other run of job left out");
    writeRing({ on: machine, folder, rank: 0, pid: c.pid, address: "10.0.0.1:29500" });
    const both = discover(folder, machine);
    expect(() => selectRuns(both, folder, {})).toThrow(/2 jobs here: job .*process/);
    const byPid = selectRuns(both, folder, { pid: c.pid });
    expect(ringsOf(byPid.runs).map(({ header }) => header.pid)).toEqual([c.pid]);
    expect(ringsOf(selectRuns(both, folder, { newest: true }).runs)).not.toEqual([]);
    expect(() => selectRuns(both, folder, { job: "other" })).toThrow(/no ring of job other/);
  });

  it("takes a fork's child for a part of its parent's run", async () => {
    const parent = spawn("sh", ["-c", "sleep 600 & echo $!; wait"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const [text] = (await once(parent.stdout, "data")) as [Buffer];
    const child = Number(text.toString());
    writeRing({ on: machine, folder, rank: 0, pid: parent.pid! });
    writeRing({ on: machine, folder, rank: 0, pid: child });
    const { runs } = discover(folder, machine);
    process.kill(child, "SIGKILL");
    parent.kill("SIGKILL");
    expect(runs.map(({ rings }) => rings.length)).toEqual([2]);
  });

  it("says when there is nothing", () => {
    expect(() => discover(join(folder, "no"), machine)).toThrow(/there is no such folder/);
    expect(() => selectRuns(discover(folder, machine), folder, {})).toThrow(/no ring can be read/);
  });
});

it("reads start ticks as the kernel writes them", () => {
  expect(startTicksOf(process.pid)).toBeGreaterThan(0);
  const stat = readFileSync("/proc/self/stat", "latin1");
  expect(stat).toContain(` ${startTicksOf(process.pid)} `);
});
