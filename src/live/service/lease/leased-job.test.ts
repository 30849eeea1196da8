import { describe, expect, it } from "vitest";
import type { Incident } from "../../../model/incident.ts";
import type { Verdict } from "../../../model/verdict.ts";
import type { History } from "../../../history/history.ts";
import type { BeatReport, EventReport, JobReport, PointsReport } from "../../wire/messages.ts";
import type { Actions } from "../actions/actions.ts";
import type { SavedJobState } from "../job/job-state.ts";
import { testVerdict } from "../../../../test/support/live/incident.ts";
import { judgeHere } from "../slowdown/judge-thread.ts";
import { LeasedJob } from "./leased-job.ts";

const VERDICT = testVerdict(
  { kind: "hang", summary: "rank 1 hangs", confidence: 0.9, victims: [], actions: [] },
  { type: "rank", ranks: [1], machine: "m0", cause: "gpu-hang" },
);
const SLOW: Verdict = { ...VERDICT, kind: "fail-slow", summary: "rank 1 is slow" };
const NOTHING: Verdict = {
  ...VERDICT,
  kind: "healthy",
  summary: "No hang and no crash",
  suspects: [],
};

/** Two machines with two ranks each; time is what the test says. */
class Stage {
  nowMs = 1_000_000;
  readonly saved: Incident[] = [];
  readonly found: [id: string, Verdict][] = [];
  write: () => Promise<void> = () => Promise.resolve();
  collect: () => Promise<Verdict | null> = () => Promise.resolve(VERDICT);
  explain: () => Promise<Verdict> = () => Promise.resolve(SLOW);
  leased: LeasedJob;

  constructor(saved: SavedJobState | null = null) {
    this.leased = this.make(saved);
  }

  make(saved: SavedJobState | null): LeasedJob {
    const nowMs = (): number => this.nowMs;
    return new LeasedJob({
      lease: {
        job: "j",
        isHeld: true,
        write: () => this.write(),
        onLost: () => undefined,
        release: () => Promise.resolve(),
      },
      document: saved && { schema: 1, job: "j", savedMs: 0, ...saved, unsaved: [], alerts: null },
      jobFile: null,
      history: { putIncident: () => Promise.resolve() } as unknown as History,
      alerts: { alertmanager: [], webhooks: [], slack: [] },
      alertsEnv: {
        nowMs,
        fetch: () => Promise.reject(new Error("no network here")),
        log: () => undefined,
        setTimer: () => () => undefined,
      },
      actions: {
        propose: () => Promise.resolve([]),
        runDue: () => Promise.resolve(),
      } as unknown as Actions,
      judging: judgeHere(),
      detection: { hangMs: 30_000, pauseMs: 900_000, relapseMs: 600_000, validation: null },
      changed: (incident) => void this.saved.push(incident),
      lost: () => undefined,
      hasNoRoom: (error) => /ENOSPC/.test(String(error)),
      effects: {
        nowMs,
        explain: async () => ({ verdict: await this.explain() }),
        collect: async () => {
          const verdict = await this.collect();
          return { diagnosis: verdict && { verdict }, answered: { has: () => true } };
        },
        publish: (incident, { verdict }) => void this.found.push([incident.id, verdict]),
        validate: () => Promise.reject(new Error("nobody is asked")),
        calibrated: (verdict) => verdict,
        recordIterations: () => undefined,
        profile: () => Promise.resolve(null),
        trouble: () => undefined,
      },
    });
  }

  start(run = "r1", startedMs = 1000): void {
    for (const machine of [0, 1]) this.job(machine, run, startedMs);
  }

  job(machine: number, run: string, startedMs: number): void {
    const ranks = [0, 1].map((k) => 2 * machine + k);
    const report: JobReport = {
      kind: "job",
      job: "j",
      run,
      startedMs,
      worldSize: 4,
      ranks: ranks.map((rank) => ({
        rank,
        gpu: null,
        pid: 1,
        nic: null,
        leaf: null,
        stage: null,
        groups: [],
      })),
    };
    this.report(machine, report);
  }

  points(
    machine: number,
    iteration: number,
    ms: number,
    run = "r1",
    ranks = [2 * machine, 2 * machine + 1],
  ): void {
    const fill = (value: number): Float32Array => new Float32Array(ranks.length).fill(value);
    const report: PointsReport = {
      kind: "points",
      job: "j",
      run,
      rank: Uint32Array.from(ranks),
      iteration: new Float64Array(ranks.length).fill(iteration),
      endMs: new Float64Array(ranks.length).fill(this.nowMs),
      durationMs: fill(ms),
      collectiveMs: fill(1),
      sendMs: fill(0),
      recvMs: fill(0),
      issueMs: fill(1),
    };
    this.report(machine, report);
  }

  report(machine: number, report: JobReport | PointsReport | EventReport): void {
    const hello = { protocol: 1, agent: `a${machine}`, machine: `m${machine}`, boot: "b" };
    this.leased.report({ ...hello, version: "0" }, report, { has: () => true });
  }

  async iterations(from: number, count: number, ms = 1000, run = "r1"): Promise<void> {
    for (let i = from; i < from + count; i++) {
      this.nowMs += ms;
      for (const machine of [0, 1]) this.points(machine, i, ms, run);
      this.leased.tick();
      await this.leased.idle();
    }
  }

  beat(machine: number, change: Partial<BeatReport["jobs"][number]> = {}, run = "r1"): void {
    const base = { job: "j", run, alive: 2, stopped: [], gone: [], silentMs: 0 };
    this.leased.beat(`a${machine}`, { ...base, openOperators: 0, lastIteration: 0, ...change });
  }

  event(machine: number, what: EventReport["what"], ranks: readonly number[], run = "r1"): void {
    const says = `${ranks.join()} ${what}`;
    this.report(machine, {
      kind: "event",
      job: "j",
      run,
      what,
      ranks,
      atMs: this.nowMs,
      says,
    });
  }

  async wait(ms: number): Promise<void> {
    this.nowMs += ms;
    this.leased.tick();
    await this.leased.idle();
  }

  async hang(): Promise<void> {
    this.nowMs += 39_000;
    for (const machine of [0, 1]) this.beat(machine, { silentMs: 39_000, openOperators: 3 });
    await this.wait(1000);
  }

  get states(): string[] {
    return this.saved.map(({ state }) => state);
  }
}

describe("LeasedJob", () => {
  it("tells of a crash whose machine says in the same moment that the job is over", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 20);
    stage.collect = () => Promise.resolve(NOTHING);
    for (const machine of [0, 1]) {
      stage.event(machine, "gone", [2 * machine, 2 * machine + 1]);
      stage.event(machine, "ended", []);
    }
    await stage.wait(3000);
    const last = stage.saved.at(-1)!;
    expect(last).toMatchObject({ state: "confirmed", kind: "crash", ranks: [0, 1, 2, 3] });
    expect(last.summary).not.toContain("No hang");
  });

  it("goes on looking for a hang when one machine has said that it is done", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 20);
    stage.event(0, "ended", []);
    await stage.hang();
    expect(stage.saved.at(-1)).toMatchObject({ state: "confirmed", kind: "hang" });
  });

  it("says nothing of a job that is over in order, and resolves what was open", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 40);
    await stage.iterations(41, 8, 2000);
    expect(stage.saved.at(-1)!.state).toBe("confirmed");
    for (const machine of [0, 1]) stage.event(machine, "ended", []);
    await stage.wait(400_000);
    expect(stage.saved.at(-1)!.state).toBe("resolved");
    expect(stage.leased.hasEnded).toBe(true);
  });

  it("shows and confirms an incident that cannot be written because the disk is full", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 20);
    stage.write = () => Promise.reject(new Error("ENOSPC: no space left on device, write"));
    await stage.hang();
    expect(stage.states).toEqual(["suspected", "confirmed"]);
    expect(stage.leased.open[0]).toMatchObject({ state: "confirmed", ranks: [1] });
  });

  it("collects again after a restart in the middle, and sees the job go on", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 20);
    stage.collect = () => new Promise(() => undefined);
    stage.nowMs += 40_000;
    for (const machine of [0, 1]) stage.beat(machine, { silentMs: 40_000, openOperators: 3 });
    stage.leased.tick();
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(stage.states).toEqual(["suspected"]);
    stage.collect = () => Promise.resolve(VERDICT);
    stage.leased = stage.make(stage.leased.saved);
    stage.start();
    await stage.leased.idle();
    expect(stage.states).toEqual(["suspected", "confirmed"]);
    // Told again by the agents: no sign of life.
    await stage.iterations(10, 11);
    expect(stage.states).toEqual(["suspected", "confirmed"]);
    await stage.iterations(21, 3);
    expect(stage.states.at(-1)).toBe("resolved");
    await stage.hang();
    expect(stage.saved.at(-1)).toMatchObject({ state: "confirmed", kind: "hang" });
  });

  it("resolves with the latest revision when the job is started again while evidence is collected", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 20);
    let done: (verdict: Verdict) => void = () => undefined;
    stage.collect = () => new Promise((resolve) => (done = resolve));
    stage.event(0, "gone", [0]);
    stage.nowMs += 3000;
    stage.leased.tick();
    await new Promise((resolve) => setTimeout(resolve, 10));
    stage.start("r2", 900_000);
    done(VERDICT);
    await stage.leased.idle();
    expect(stage.saved.map(({ revision }) => revision)).toEqual(stage.saved.map((_, i) => i + 1));
    expect(stage.saved.at(-1)!.state).toBe("resolved");
    expect(stage.leased.open).toEqual([]);
  });

  it("names who is gone where nothing could be collected", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 20);
    stage.collect = () => Promise.reject(new Error("no agent answers"));
    stage.event(1, "gone", [3]);
    await stage.wait(3000);
    const { verdict } = stage.saved.at(-1)!;
    expect(verdict!.suspects).toMatchObject([{ ranks: [3], machine: "m1", cause: "process-gone" }]);
  });

  it("does not believe what is said of another run", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 20);
    stage.event(0, "gone", [0], "r0");
    stage.beat(0, { stopped: [0] }, "r0");
    await stage.wait(5000);
    expect(stage.saved).toEqual([]);
  });

  it("is not blinded by one rank with a wrong number", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 30);
    stage.points(0, 1e12, 1000, "r1", [0]);
    await stage.wait(3000);
    await stage.iterations(31, 10, 1000);
    await stage.iterations(41, 10, 2500);
    expect(stage.states).toContain("confirmed");
    expect(stage.leased.run!.lastIteration).toBe(50);
  });

  it("gives the second hang at an iteration another name, after the numbers went back", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 20);
    await stage.hang();
    await stage.iterations(5, 16);
    await stage.hang();
    const ids = new Set(stage.saved.map(({ id }) => id));
    expect(ids.size).toBe(2);
    expect(stage.states.slice(-2)).toEqual(["suspected", "confirmed"]);
  });

  it("compares with the level of before a restart of the service", async () => {
    const first = new Stage();
    first.start();
    await first.iterations(1, 40);
    const stage = new Stage(first.leased.saved);
    stage.start();
    await stage.iterations(100, 30, 2000);
    expect(stage.states).toContain("confirmed");
    expect(stage.leased.saved.baselineMs).toBeCloseTo(1000);
  });

  it("takes a slow-down of another run, or of another kind, for another incident", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 20);
    await stage.hang();
    await stage.iterations(21, 40);
    await stage.iterations(61, 8, 2000);
    const kinds = stage.saved.map(({ kind, state }) => `${kind} ${state}`);
    expect(kinds.filter((one) => one.endsWith("relapsed"))).toEqual([]);
    expect(kinds.at(-1)).toBe("fail-slow confirmed");
  });

  it("does not wait three times as long for the second hang as the first lasted", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 20);
    await stage.hang();
    stage.nowMs += 600_000;
    await stage.iterations(21, 1, 640_000);
    await stage.iterations(22, 20);
    expect(stage.states.at(-1)).toBe("resolved");
    await stage.hang();
    expect(stage.states.at(-1)).toBe("confirmed");
  });

  it("counts the GPU time that was lost", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 40);
    await stage.iterations(41, 8, 2000);
    await stage.iterations(49, 12);
    const last = stage.saved.at(-1)!;
    expect(last.state).toBe("resolved");
    expect(last.wastedGpuMs).toBeGreaterThan(4 * 5 * 1000);
    expect(last.wastedGpuMs).toBeLessThan(4 * 9 * 1000);
  });

  it("tells what an open incident has cost by now, without writing it down each time", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 40);
    expect(stage.leased.wastedGpuMs).toBe(0);
    // Also by the iterations that were slow before anybody knew.
    await stage.iterations(41, 8, 2000);
    expect(stage.leased.open[0]!.wastedGpuMs).toBeCloseTo(4 * 8 * 1000, -3);
    await stage.iterations(49, 2, 2000);
    const written = stage.saved.length;
    await stage.iterations(51, 10, 2000);
    expect(stage.leased.open[0]!.wastedGpuMs).toBeCloseTo(4 * 20 * 1000, -3);
    expect(stage.leased.wastedGpuMs).toBe(stage.leased.open[0]!.wastedGpuMs);
    expect(stage.saved.length - written).toBeLessThanOrEqual(1);
    await stage.iterations(61, 12);
    const slow = stage.saved.at(-1)!;
    expect(slow.state).toBe("resolved");
    expect(stage.leased.wastedGpuMs).toBe(slow.wastedGpuMs);
    // A job that stands still costs all its GPUs, from when it began.
    await stage.hang();
    const { onsetMs } = stage.saved.at(-1)!;
    const hung = (): number => 4 * (stage.nowMs - onsetMs);
    expect(stage.leased.open[0]!.wastedGpuMs).toBe(hung());
    await stage.wait(100_000);
    expect(stage.leased.open[0]!.wastedGpuMs).toBe(hung());
    expect(stage.leased.wastedGpuMs).toBe(slow.wastedGpuMs + hung());
    await stage.iterations(73, 3);
    expect(stage.states.at(-1)).toBe("resolved");
    expect(stage.leased.wastedGpuMs).toBe(slow.wastedGpuMs + stage.saved.at(-1)!.wastedGpuMs);
  });

  it("counts what a job has lost once: over restarts of the service, relapses, and runs", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 40);
    await stage.iterations(41, 8, 2000);
    await stage.iterations(49, 40);
    const once = stage.leased.wastedGpuMs;
    expect(once).toBeGreaterThan(20_000);
    await stage.iterations(89, 8, 2000);
    expect(stage.saved.at(-1)!.state).toBe("relapsed");
    const twice = stage.leased.wastedGpuMs;
    expect(twice).toBeCloseTo(2 * once, -4);
    expect(stage.leased.open[0]!.wastedGpuMs).toBe(twice);
    stage.leased = stage.make(stage.leased.saved);
    expect(stage.leased.wastedGpuMs).toBe(twice);
    stage.start();
    await stage.iterations(90, 7, 2000);
    expect(stage.leased.wastedGpuMs).toBe(twice);
    stage.nowMs += 60_000;
    stage.start("r2", stage.nowMs);
    await stage.iterations(1, 20, 1000, "r2");
    expect(stage.leased.saved.run).toBe("r2");
    expect(stage.leased.wastedGpuMs).toBe(twice);
  });

  it("hands on what each verdict was made of, with the incident that it belongs to", async () => {
    const stage = new Stage();
    stage.start();
    await stage.iterations(1, 40);
    await stage.iterations(41, 8, 2000);
    const slow = stage.saved.at(-1)!.id;
    expect(stage.found.length).toBeGreaterThan(0);
    expect(stage.found.every(([id, { kind }]) => id === slow && kind === "fail-slow")).toBe(true);
    await stage.hang();
    expect(stage.found.at(-1)).toEqual([stage.saved.at(-1)!.id, VERDICT]);
  });
});
