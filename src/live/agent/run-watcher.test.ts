import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HEADER, KIND } from "../../ingest/probe-ring/layout.ts";
import { copyRing } from "./rings/copy-ring.ts";
import { discover, type FoundRing } from "./rings/discover.ts";
import { ringsOf } from "./select-run.ts";
import { end, IdleProcesses } from "../../../test/support/live/process.ts";
import { nowNs, olderMachine, TestRing, writeRing } from "../../../test/support/live/ring.ts";
import { RunWatcher } from "./run-watcher.ts";

let folder: string;
const idle = new IdleProcesses();
const machine = olderMachine;
const found = (): FoundRing[] => ringsOf(discover(folder, machine).runs);

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "faultline-agent-"))));
afterEach(() => {
  idle.killAll();
  rmSync(folder, { recursive: true, force: true });
});

describe("watching jobs", () => {
  const watch = (hangNs: number): RunWatcher =>
    new RunWatcher(folder, { keepNs: 1e12, mostRecords: 64, hangNs, machine });
  const kinds = (watcher: RunWatcher): string[] =>
    watcher.tick().problems.map(({ kind, says }) => `${kind}: ${says}`);

  it("tells of a hang once, and again after it went on", () => {
    const ring = new TestRing({ on: machine, folder, rank: 2, job: "llama" });
    const old = nowNs() - 45_000_000_000n;
    const ticket = ring.append({ kind: KIND.collective, b: 1, issuedNs: old });
    const watcher = watch(30e9);
    expect(kinds(watcher)).toEqual([
      "hang: llama: nothing new for 45 s, and 1 operator open on rank 2",
    ]);
    expect(kinds(watcher)).toEqual([]);
    ring.update(ticket, { kind: KIND.collective, b: 1, issuedNs: old, endedNs: nowNs() });
    ring.append({ kind: KIND.collective, b: 2 });
    expect(kinds(watcher)).toEqual([]);
    watcher.close();
  });

  it("calls nothing a hang that only waits for a trap, or has nothing open", () => {
    const ring = new TestRing({ on: machine, folder });
    const old = nowNs() - 45_000_000_000n;
    const ticket = ring.append({ kind: KIND.collective, b: 1, issuedNs: old });
    ring.long(HEADER.trapUntilNs, nowNs() + 60_000_000_000n);
    const watcher = watch(30e9);
    expect(kinds(watcher)).toEqual([]);
    ring.update(ticket, { kind: KIND.collective, b: 1, issuedNs: old, endedNs: old + 1n });
    ring.long(HEADER.trapUntilNs, 0n);
    expect(kinds(watcher)).toEqual([]);
    watcher.close();
  });

  it("knows a hang of Python alone by iterations that stay away, and leaves slow jobs their time", () => {
    const old = nowNs() - 45_000_000_000n;
    const quick = writeRing({ on: machine, folder, writer: "python", job: "quick" });
    const slow = writeRing({ on: machine, folder, writer: "python", job: "slow", rank: 1 });
    for (let i = 0; i < 3; i++) {
      const [a, b] = [old - BigInt(3 - i) * 1_000_000_000n, old - BigInt(2 - i) * 20_000_000_000n];
      quick.append({ kind: KIND.iteration, a: i, issuedNs: a, endedNs: a + 1n });
      slow.append({ kind: KIND.iteration, a: i, issuedNs: b, endedNs: b + 1n });
    }
    const watcher = watch(30e9);
    expect(kinds(watcher)).toEqual(["hang: quick: nothing new for 46 s, and no iteration after 2"]);
    watcher.close();
  });

  it("tells of a stopped and of a killed process, and not of one that exits in order", async () => {
    const [first, second] = [await idle.start(), await idle.start()];
    const rings = [first, second].map(
      ({ pid }, rank) => new TestRing({ on: machine, folder, rank, pid }),
    );
    writeRing({ on: machine, folder, writer: "python", pid: first.pid });
    const watcher = watch(30e9);
    expect(kinds(watcher)).toEqual([]);
    first.kill("SIGSTOP");
    await expect.poll(() => found()[0]!.process.state).toBe("T");
    expect([...kinds(watcher), ...kinds(watcher), ...kinds(watcher)]).toEqual([
      "stopped: job: rank 0 is stopped (state T)",
    ]);
    rings[1]!.word(HEADER.endedHow, 1);
    await end(second);
    expect(kinds(watcher)).toEqual([]);
    await end(first);
    expect(kinds(watcher)).toEqual(["gone: job: rank 0 is gone"]);
    expect(kinds(watcher)).toEqual([]);
    watcher.close();
  });

  it("lets go of a run that is over, and counts what it saw", async () => {
    const child = await idle.start();
    const ring = writeRing({ on: machine, folder, pid: child.pid });
    ring.append({ kind: KIND.collective, endedNs: 1n });
    const watcher = watch(30e9);
    watcher.tick();
    expect(watcher.followers).toHaveLength(1);
    ring.word(HEADER.endedHow, 1);
    await end(child);
    for (let i = 0; i < 30; i++) expect(kinds(watcher)).toEqual([]);
    expect(watcher.followers).toHaveLength(0);
    expect(watcher.totals).toEqual({ rings: 1, records: 1, lost: 0 });
    watcher.close();
  });

  it("dumps what it kept, also of a run whose processes all died at once", async () => {
    const child = await idle.start();
    const ring = writeRing({ on: machine, folder, pid: child.pid, records: 64 });
    const watcher = new RunWatcher(folder, {
      keepNs: 1e15,
      mostRecords: 256,
      hangNs: 1e12,
      machine,
    });
    for (let i = 0; i < 200; i++) {
      ring.append({ kind: KIND.collective, b: i, endedNs: nowNs() });
      if (i % 20 === 0) watcher.tick();
    }
    await end(child);
    const { problems } = watcher.tick();
    expect(problems.map(({ kind }) => kind)).toEqual(["gone"]);
    const [dead] = problems[0]!.run.rings;
    expect(dead!.process.state).toBe("X");
    const bytes = watcher.extend(dead!, copyRing(dead!, machine).bytes);
    expect(bytes.readUInt32LE(HEADER.recordCount)).toBe(256);
    watcher.close();
  });
});
