/** Machines whose clocks are no steady ticking from long ago: just booted, stepped, booted again since the ring was made. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KIND } from "../../ingest/probe-ring/layout.ts";
import { readRing } from "../../ingest/probe-ring/read-ring.ts";
import type { ProbeProcess } from "../../model/probe.ts";
import { setTrap } from "./rings/control.ts";
import { copyRing } from "./rings/copy-ring.ts";
import { discover, type FoundRing, type Run } from "./rings/discover.ts";
import type { Machine } from "./process-state.ts";
import { ringNode } from "./ring-node.ts";
import { ringsOf } from "./select-run.ts";
import { end, IdleProcesses } from "../../../test/support/live/process.ts";
import { startTicksOf, TestRing, type TestRingOptions } from "../../../test/support/live/ring.ts";
import { RunWatcher } from "./run-watcher.ts";
import { SlowStorage } from "./evidence/slow-storage.ts";

const S = 1_000_000_000n;
const HOUR = 3600n * S;
/** 15 November 2026. */
const TODAY = 1_794_700_800n * S;
const HOST = "node7";

/** A machine whose clocks are set by hand; its processes are this machine's. */
class HandMachine implements Machine {
  upNs: bigint;
  todayNs: bigint;
  readonly host = HOST;
  readonly proc = "/proc";
  sharesNumbers = true;

  constructor(upNs: bigint, todayNs = TODAY) {
    this.upNs = upNs;
    this.todayNs = todayNs;
  }

  // Each reading takes a moment: whoever waits for the next millisecond waits for this.
  monotonicNs(): bigint {
    return (this.upNs += 1000n);
  }

  realtimeNs(): bigint {
    return (this.todayNs += 1000n);
  }

  pass(ns: bigint): void {
    this.upNs += ns;
    this.todayNs += ns;
  }

  reboot(downNs: bigint): void {
    this.todayNs += downNs;
    this.upNs = 8n * S;
  }
}

let folder: string;
const idle = new IdleProcesses();
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "faultline-clocks-"))));
afterEach(() => {
  idle.killAll();
  rmSync(folder, { recursive: true, force: true });
});

/** Of a process that is over and whose number nobody has. */
const GONE = { pid: 4_194_305, startTicks: 900 };
const ringOn = (machine: Machine, options: Partial<TestRingOptions> = {}): TestRing =>
  new TestRing({ folder, on: machine, host: HOST, job: "llama", ...options });
const runs = (machine: Machine): readonly Run[] => discover(folder, machine).runs;
const only = (machine: Machine): FoundRing => ringsOf(runs(machine))[0]!;
/** What a reader of its copy is told of the process. */
const copied = (machine: Machine): ProbeProcess =>
  readRing("a", copyRing(only(machine), machine).bytes).probes![0]!;
const watch = (machine: Machine): RunWatcher =>
  new RunWatcher(folder, { keepNs: 6e11, mostRecords: 64, hangNs: 30e9, machine });
const told = (watcher: RunWatcher): string[] => watcher.tick().problems.map(({ says }) => says);

/** Ticks once a second for a minute; all that was told. */
function minute(watcher: RunWatcher, machine: HandMachine, each = (): void => {}): string[] {
  const all: string[] = [];
  for (let second = 0; second < 60; second++) {
    each();
    all.push(...told(watcher));
    machine.pass(S);
  }
  return all;
}

describe("on a machine that booted a minute ago", () => {
  it("a job is followed, its hang is told when it is one, and its ring is copied with its times", () => {
    const machine = new HandMachine(5n * S);
    const ring = ringOn(machine, { rank: 2 });
    ring.append({ kind: KIND.collective, b: 1, endedNs: machine.monotonicNs() });
    ring.append({ kind: KIND.collective, b: 2 });
    const watcher = watch(machine);
    machine.pass(25n * S);
    expect(told(watcher)).toEqual([]);
    machine.pass(10n * S);
    expect(told(watcher)).toEqual(["llama: nothing new for 35 s, and 1 operator open on rank 2"]);
    const { epochNs, copiedNs, state } = copied(machine);
    expect(Number(machine.todayNs - epochNs) / 1e9).toBeCloseTo(35, 1);
    expect(copiedNs / 1e9).toBeCloseTo(35, 1);
    expect(state).toMatch(/^[RS]$/);
    watcher.close();
  });

  it("an agent reports iterations that began before it, though it keeps ten minutes", () => {
    const machine = new HandMachine(2n * S);
    const python = ringOn(machine, { writer: "python", worldSize: 1 });
    const began = machine.monotonicNs() - S;
    python.append({ kind: KIND.iteration, a: 0, issuedNs: began, endedNs: began + S / 2n });
    const node = ringNode({
      storage: new SlowStorage(),
      folders: () => [folder],
      logs: [],
      job: null,
      machineName: HOST,
      nics: [],
      keepNs: 6e11,
      memoryBytes: 64 << 20,
      machine,
      onTrouble: (line) => expect(line).toBe(""),
    });
    const points = node
      .tick(Number(machine.todayNs / 1_000_000n))
      .flatMap((report) => (report.kind === "points" ? [report] : []));
    expect(points.map(({ durationMs }) => [...durationMs])).toEqual([[500]]);
    expect(points[0]!.endMs[0]! / 1000).toBeCloseTo(Number(machine.todayNs / S), -1);
    node.close();
  });

  it("rings are read where the time of day is not set yet, and 1970", () => {
    const machine = new HandMachine(60n * S, 12n * S);
    ringOn(machine).append({ kind: KIND.collective, b: 1 });
    expect(only(machine).process.state).toMatch(/^[RS]$/);
    expect(copied(machine).epochNs).toBeLessThan(13n * S);
  });
});

describe("when the time of day is set", () => {
  const STEPS = [
    ["forward by two hours", 2n * HOUR],
    ["back by two hours", -2n * HOUR],
    ["to today from 1970", TODAY],
  ] as const;

  it.each(STEPS)("%s, nothing is told of a job that goes on", (_, step) => {
    const machine = new HandMachine(HOUR, step === TODAY ? 12n * S : TODAY);
    const ring = ringOn(machine, { rank: 1 });
    const watcher = watch(machine);
    let ticket = ring.append({ kind: KIND.collective, b: 0 });
    const goOn = (): void => {
      ring.update(ticket, { kind: KIND.collective, endedNs: machine.monotonicNs() });
      ticket = ring.append({ kind: KIND.collective });
      ring.beat();
    };
    expect(minute(watcher, machine, goOn)).toEqual([]);
    machine.todayNs += step;
    expect(minute(watcher, machine, goOn)).toEqual([]);
    expect(runs(machine)).toMatchObject([{ isLive: true }]);
    watcher.close();
  });

  it.each(STEPS)("%s, a stopped, a hung and a killed process are still told", async (_, step) => {
    const machine = new HandMachine(HOUR, step === TODAY ? 12n * S : TODAY);
    const child = await idle.start();
    const ring = ringOn(machine, { rank: 3, pid: child.pid });
    ring.append({ kind: KIND.collective });
    const watcher = watch(machine);
    expect(told(watcher)).toEqual([]);
    child.kill("SIGSTOP");
    await expect.poll(() => only(machine).process.state).toBe("T");
    machine.todayNs += step;
    expect(minute(watcher, machine)).toEqual([
      "llama: rank 3 is stopped (state T)",
      "llama: nothing new for 30 s, and 1 operator open on rank 3",
    ]);
    expect(setTrap([only(machine)], S, machine)).toEqual([]);
    await end(child);
    expect(told(watcher)).toEqual(["llama: rank 3 is gone"]);
    expect(runs(machine)).toMatchObject([{ isLive: false }]);
    watcher.close();
  });
});

describe("a ring on disk that was written before a reboot", () => {
  const operators = (ring: TestRing, machine: Machine): void => {
    ring.append({ kind: KIND.collective, b: 1, endedNs: machine.monotonicNs() });
    ring.append({ kind: KIND.collective, b: 2 });
  };

  it.each([
    ["days", 72n * HOUR],
    ["seconds", 6n * S],
  ])("after %s of uptime is of a process that is gone, and no agent follows it", (_, upNs) => {
    const machine = new HandMachine(upNs);
    operators(ringOn(machine, GONE), machine);
    machine.reboot(90n * S);
    expect(runs(machine)).toMatchObject([{ isLive: false }]);
    const watcher = watch(machine);
    expect(minute(watcher, machine)).toEqual([]);
    expect(watcher.followers).toEqual([]);
  });

  it("is no part of the run that the launcher starts afterwards under the same name and address", () => {
    const machine = new HandMachine(HOUR);
    const common = { address: "node0:29500", worldSize: 2 };
    for (const rank of [0, 1]) ringOn(machine, { ...common, ...GONE, pid: GONE.pid + rank, rank });
    machine.reboot(90n * S);
    const startTicks = startTicksOf(process.pid);
    ringOn(machine, { ...common, rank: 0, pid: process.pid, startTicks });
    const found = runs(machine);
    expect(found.map(({ isLive, rings }) => [isLive, rings.length])).toEqual([
      [true, 1],
      [false, 2],
    ]);
  });

  it("is copied with the time that has passed since, not with the uptime", () => {
    const machine = new HandMachine(72n * HOUR);
    operators(ringOn(machine, GONE), machine);
    machine.pass(10n * S);
    machine.reboot(50n * S);
    const { state, copiedNs } = copied(machine);
    expect(state).toBe("X");
    expect(copiedNs / 1e9).toBeCloseTo(60, 1);
  });

  it("is no hang where nobody knows whose it is", () => {
    const machine = new HandMachine(72n * HOUR);
    for (const writer of ["native", "python"] as const) {
      const ring = ringOn(machine, { ...GONE, writer, host: "another", rank: 0 });
      operators(ring, machine);
      ring.append({ kind: KIND.pythonCall });
      ring.append({ kind: KIND.iteration, a: 1, issuedNs: S, endedNs: 2n * S });
      ring.append({ kind: KIND.iteration, a: 2, issuedNs: 2n * S, endedNs: 3n * S });
    }
    machine.reboot(90n * S);
    const watcher = watch(machine);
    expect(minute(watcher, machine)).toEqual([]);
    expect(only(machine).process.state).toBe("");
    expect(setTrap([only(machine)], S, machine)[0]!.why).toContain("another machine");
    watcher.close();
  });
});
