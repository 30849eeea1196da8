import { describe, expect, it } from "vitest";
import type { Cause } from "../../../model/cause.ts";
import type { Finding } from "../../../model/finding.ts";
import type { Incident } from "../../../model/incident.ts";
import type { LiveCulprit } from "../../../model/live-judgement.ts";
import type { Verdict } from "../../../model/verdict.ts";
import type { GroupTests } from "../../../pipeline/group-tests.ts";
import { testIncident, testVerdict } from "../../../../test/support/live/incident.ts";
import type { PointsReport } from "../../wire/messages.ts";
import { eventOf, jobOf, pointsOf } from "../../../../test/support/live/messages.ts";
import type { JobDecision, JobEvent } from "./job-events.ts";
import { reduceJob } from "./job-reducer.ts";
import {
  missingParts,
  newJobState,
  savedState,
  type JobState,
  type SavedJobState,
  type ValidationOptions,
} from "./job-state.ts";

const ALL = { has: () => true };
const BEAT = {
  job: "job",
  run: jobOf("job", []).run,
  alive: 2,
  stopped: [],
  gone: [],
  openOperators: 3,
  lastIteration: 40,
};
const VERDICT = testVerdict(
  { kind: "fail-slow", summary: "rank 1 is slow", confidence: 0.9, victims: [], actions: [] },
  { type: "rank", ranks: [1], machine: "m", cause: "gpu-slow" },
);

function culprit(id: number, rank: number, sinceMs: number): LiveCulprit {
  return {
    id,
    type: "rank",
    ranks: [rank],
    cause: "gpu-slow",
    probability: 0.95,
    causeProbability: 0.9,
    shape: "lasting",
    sinceMs,
    compared: { group: "all ranks", iterations: 20, leadMs: [0, 900], chanceMs: 4, ranks: [] },
  };
}

type Without<E> = E extends JobEvent ? Omit<E, "nowMs"> : never;

/** A job of two ranks and one agent, whose decisions nobody carries out but the test. */
class Driver {
  state: JobState;

  constructor(validation: ValidationOptions | null = null) {
    const options = { hangMs: 30_000, pauseMs: 900_000, relapseMs: 600_000, validation };
    this.state = newJobState("job", null, null, options);
  }

  nowMs = 1_000_000;
  readonly decisions: JobDecision[] = [];

  send(event: Without<JobEvent>): string[] {
    const { state, decisions } = reduceJob(this.state, { ...event, nowMs: this.nowMs });
    this.state = state;
    this.decisions.push(...decisions);
    return decisions.map((decision) => decision.do);
  }

  begin(): void {
    const report = jobOf("job", [0, 1]);
    this.send({ type: "job", agent: "a", machine: "m", report, connected: ALL });
  }

  /** Another service takes the job up, with what the first one wrote down. */
  restart(): void {
    const saved = JSON.parse(JSON.stringify(savedState(this.state))) as SavedJobState;
    this.state = newJobState("job", null, saved, this.state.options);
  }

  /** `waits`: of each rank's iteration, milliseconds in collectives. */
  iterate(from: number, count: number, ms: number, waits: readonly number[] = []): string[] {
    const all: string[] = [];
    for (let iteration = from; iteration < from + count; iteration++) {
      this.nowMs += ms;
      const report = {
        ...pointsOf(2),
        iteration: Float64Array.of(iteration, iteration),
        endMs: Float64Array.of(this.nowMs, this.nowMs),
        durationMs: Float32Array.of(ms, ms),
        ...(waits.length > 0 ? { collectiveMs: Float32Array.from(waits) } : {}),
      };
      this.send({ type: "points", agent: "a", report });
      all.push(...this.send({ type: "tick" }).filter((what) => what !== "record-iterations"));
    }
    return all;
  }

  /** The judge names these, and no longer those; what was decided. */
  judge(culprits: readonly LiveCulprit[], over: readonly number[] = [], session = 1): string[] {
    const state = culprits.length > 0 ? "slow" : "healthy";
    const ended = over.map((id) => ({ id, untilMs: this.nowMs, why: "over" as const }));
    const judgement = { state, untilMs: this.nowMs, culprits, ended } as const;
    return this.send({ type: "judged", run: "run", session, judgement });
  }

  /** What was to be explained last is, and saved. */
  explained(verdict: Verdict, tests: GroupTests | null = null): void {
    const explain = this.last("explain");
    this.send({ type: "explained", explain, diagnosis: { verdict, tests } });
    this.saved();
  }

  saved(): void {
    for (let i = 0; i < 9 && this.state.isBusy; i++)
      this.send({ type: "saved", save: this.last("save") });
  }

  last<K extends JobDecision["do"]>(what: K): Extract<JobDecision, { do: K }> {
    return this.decisions.findLast((one) => one.do === what) as Extract<JobDecision, { do: K }>;
  }
}

describe("reduceJob", () => {
  it("decides one thing at a time: explain, then save, then save what was found, then publish it", () => {
    const job = new Driver();
    job.begin();
    expect(job.iterate(1, 40, 1000)).toEqual([]);
    expect(job.iterate(41, 3, 2000)).toEqual([]);
    expect(job.judge([culprit(1, 1, job.nowMs - 6000)])).toEqual(["explain"]);
    expect(job.last("explain").slowdown).toMatchObject({
      slowFrom: 41,
      beforeMs: 1000,
      afterMs: 2000,
    });
    expect(job.judge([culprit(1, 1, job.nowMs - 6000)])).toEqual([]);
    const explain = job.last("explain");
    const diagnosis = { verdict: VERDICT };
    expect(job.send({ type: "explained", explain, diagnosis })).toEqual(["save"]);
    expect(job.last("save").incident).toMatchObject({ state: "suspected", fromIteration: 41 });
    expect(job.send({ type: "saved", save: job.last("save") })).toEqual(["save"]);
    expect(job.last("save").incident).toMatchObject({ state: "confirmed", verdict: VERDICT });
    expect(job.send({ type: "saved", save: job.last("save") })).toContain("publish");
    expect(job.last("publish").incident.id).toBe(job.state.slow!.id);
  });

  it("tells of a slowdown that nobody leads, in words without a suspect, and of none beside a suspect", () => {
    const job = new Driver();
    job.begin();
    job.iterate(1, 40, 1000);
    job.judge([]);
    job.iterate(41, 6, 2000);
    const all = { ...culprit(1, 0, job.nowMs - 12_000), type: "all" as const, ranks: [] };
    const nobody = testVerdict({ kind: "fail-slow", suspects: [], confidence: 0.4 });
    job.judge([all]);
    job.explained(nobody);
    expect(job.state.slow).toMatchObject({ state: "confirmed", ranks: [], fromIteration: 41 });
    job.judge([], [1]);
    job.saved();
    expect(job.state.recent).toMatchObject({ state: "resolved", ending: "passed" });
    job.judge([culprit(2, 1, job.nowMs - 4000)]);
    job.explained(VERDICT);
    job.judge([culprit(2, 1, job.nowMs - 4000), { ...all, id: 3 }]);
    job.explained(nobody);
    expect(job.state.besides).toEqual([]);
  });

  it("explains again what the judge says otherwise, five seconds later at the earliest", () => {
    const job = new Driver();
    job.begin();
    job.iterate(1, 40, 1000);
    job.iterate(41, 3, 2000);
    const first = culprit(1, 1, job.nowMs - 6000);
    job.judge([{ ...first, cause: null }]);
    const open = { ...VERDICT.suspects[0]!, score: 0.4 };
    job.explained({ ...VERDICT, suspects: [open, { ...open, cause: "cpu-stall" }] });
    const { id } = job.state.slow!;
    job.nowMs += 4000;
    expect(job.judge([first])).toEqual([]);
    job.nowMs += 2000;
    expect(job.judge([first])).toEqual(["explain"]);
    expect(job.last("explain").isAgain).toBe(true);
    job.explained(VERDICT);
    expect(job.state.slow).toMatchObject({ id, verdict: VERDICT });
    const { revision } = job.state.slow!;
    job.nowMs += 6000;
    expect(job.judge([{ ...first, probability: 0.99 }])).toEqual([]);
    expect(job.state.slow!.revision).toBe(revision);
  });

  it("lets a regression that began with it explain whoever is slow", () => {
    const job = new Driver();
    job.begin();
    job.iterate(1, 40, 1000);
    job.judge([]);
    job.iterate(41, 6, 2000);
    const verdict = testVerdict({ kind: "regression" }, { cause: "dataloader", ranks: [] });
    job.send({ type: "regression", verdict, sinceMs: job.nowMs - 12_000 });
    job.saved();
    job.judge([culprit(1, 1, job.nowMs - 12_000)]);
    job.explained(VERDICT);
    expect(job.state.slow).toMatchObject({ kind: "regression" });
    expect(job.state.besides).toEqual([]);
  });

  it("judges with uneven shares by themselves, and ends what was slow before only with equal ones", () => {
    const job = new Driver();
    job.begin();
    job.iterate(1, 40, 1000);
    job.iterate(41, 3, 2000);
    job.judge([culprit(1, 1, job.nowMs - 6000)]);
    job.explained(VERDICT);
    const first = job.state.slow!.id;
    job.send({ type: "rebalanced", shares: "5,3" });
    // Nearly the old pace: that is no end of it.
    expect(job.iterate(44, 30, 1100)).toEqual([]);
    job.judge([], [], -2);
    job.iterate(74, 12, 1900);
    job.judge([culprit(1, 0, job.nowMs - 12 * 1900)], [], -2);
    expect(job.last("explain")).toMatchObject({ accused: new Set([1]), isAgain: false });
    const another = { type: "rank", ranks: [0], machine: "m", cause: "gpu-slow" } as const;
    job.explained(testVerdict({ kind: "fail-slow", confidence: 0.9, victims: [] }, another));
    const second = job.state.slow!.id;
    expect(second).not.toBe(first);
    job.judge([], [1], -2);
    expect(job.last("save").incident).toMatchObject({ id: second, ending: "fixed" });
    job.saved();
    expect(job.state.slow!.id).toBe(first);
    job.judge([culprit(2, 0, job.nowMs - 5700)], [], -2);
    job.explained(testVerdict({ kind: "fail-slow", confidence: 0.9, victims: [] }, another));
    job.send({ type: "rebalanced", shares: null });
    expect(job.last("save").incident).toMatchObject({ id: second, ending: "passed" });
    job.saved();
    job.judge([], [1]);
    expect(job.last("save").incident).toMatchObject({ id: first, ending: "fixed" });
  });

  it("keeps actions of a regression, also when it is over", () => {
    const job = new Driver();
    job.begin();
    job.iterate(1, 20, 1000);
    const verdict = testVerdict({ kind: "regression" }, { cause: "dataloader", ranks: [] });
    job.send({ type: "regression", verdict, sinceMs: job.nowMs - 5000 });
    job.send({ type: "saved", save: job.last("save") });
    job.send({ type: "saved", save: job.last("save") });
    const actions = testIncident().actions;
    const act = (incident: Incident | null): string[] =>
      job.send({ type: "actions", incident: { ...incident!, actions } });
    expect(act(job.state.slow)).toEqual(["save"]);
    expect(job.state.slow).toMatchObject({ kind: "regression", actions });
    job.send({ type: "regression-over", why: "as-before" });
    expect(job.state.recent).toMatchObject({ kind: "regression", state: "resolved", actions });
    expect(act(job.state.recent)).toEqual(["save"]);
  });

  it("shows an incident only once it is saved, and goes on when a save fails", () => {
    const job = new Driver();
    job.begin();
    job.iterate(1, 20, 1000);
    job.send({
      type: "event",
      agent: "a",
      report: { ...eventOf("job", "gone"), what: "gone", ranks: [1] },
    });
    job.nowMs += 3000;
    expect(job.send({ type: "tick" })).toEqual(["save"]);
    expect(job.state.still).toMatchObject({ kind: "crash", ranks: [1] });
    expect(job.state.shown.still).toBeNull();
    expect(job.send({ type: "failed" })).toEqual(["collect"]);
    const evidence = job.last("collect");
    expect(job.send({ type: "collected", evidence, diagnosis: null })).toEqual(["save"]);
    job.send({ type: "saved", save: job.last("save") });
    expect(job.state.shown.still).toMatchObject({ state: "confirmed" });
  });

  it("leaves the state before an event as it was, but for the run and what watches it", () => {
    const job = new Driver();
    job.begin();
    const before = job.state;
    const { run, pace, standstills, ...rest } = before;
    const copy = structuredClone({ ...rest, shown: before.shown });
    job.iterate(1, 40, 1000);
    job.iterate(41, 10, 2000);
    const { run: _r, pace: _p, standstills: _t, ...after } = before;
    expect(after).toEqual(copy);
    expect(run).toBe(job.state.run);
    expect([pace, standstills]).toEqual([job.state.pace, job.state.standstills]);
  });

  it("decides the same on the same events", () => {
    const play = (): unknown => {
      const job = new Driver();
      job.begin();
      job.iterate(1, 40, 1000);
      job.iterate(41, 4, 2000);
      job.judge([culprit(1, 1, job.nowMs - 8000)]);
      job.explained(VERDICT);
      return [job.decisions.map((one) => one.do), savedState(job.state)];
    };
    expect(play()).toEqual(play());
  });

  it("ignores remarks of agents, points before the job, and ranks of another agent", () => {
    const job = new Driver();
    expect(job.send({ type: "points", agent: "a", report: pointsOf(2) })).toEqual([]);
    job.begin();
    const report = { ...eventOf("job", "?"), what: "trouble" as const, ranks: [0, 1] };
    const before = savedState(job.state);
    expect(job.send({ type: "event", agent: "a", report })).toEqual([]);
    expect(savedState(job.state)).toEqual(before);
    expect([...job.state.run!.ranks.values()].map(({ state }) => state)).toEqual([
      "running",
      "running",
    ]);
    job.send({ type: "points", agent: "b", report: pointsOf(2) });
    expect(job.last("refuse")).toMatchObject({ rows: 2 });
  });

  it("has all ranks of a run that began while ranks of the one before still reported: each is told once", () => {
    const driver = new Driver();
    const report = (run: string, ranks: readonly number[], startedMs: number) => ({
      ...jobOf("job", ranks),
      run,
      startedMs,
      worldSize: 8,
    });
    const machines = [0, 2, 4, 6].map((first) => [first, first + 1]);
    const tell = (run: string, startedMs: number): void => {
      for (const [k, ranks] of machines.entries())
        driver.send({
          type: "job",
          agent: `a${k}`,
          machine: `m${k}`,
          report: report(run, ranks, startedMs),
          connected: ALL,
        });
    };
    tell("first", 1);
    driver.send({
      type: "points",
      agent: "a0",
      report: { ...pointsOf(2), run: "first" },
    });
    driver.nowMs += 1000;
    tell("second", 900_000);
    expect(driver.state.run!.run).toBe("second");
    expect([...driver.state.run!.ranks.keys()].toSorted((a, b) => a - b)).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7,
    ]);
  });

  it("opens an incident for iterations that are slow now and then, in those words", () => {
    const job = new Driver();
    job.begin();
    job.iterate(1, 40, 1000);
    for (const from of [41, 51, 61]) {
      job.iterate(from, 1, 1800);
      if (from < 61) job.iterate(from + 1, 9, 1000);
    }
    const since = job.nowMs - 2 * (9 * 1000 + 1800) - 1800;
    job.judge([{ ...culprit(1, 1, since), shape: "now-and-then" }]);
    expect(job.last("explain").slowdown.intermittent).toEqual({ slow: 3, of: 21 });
    job.explained(VERDICT);
    const { incident } = job.decisions.find((one) => one.do === "save")!;
    expect(incident.summary).toMatch(/^slow in 3 of the last 21 iterations, \+80 % each/);
    expect(incident.intermittent).toMatchObject({ slow: 3, of: 21 });
    // Only what the slow ones took beyond the others, of two GPUs.
    expect(incident.wastedGpuMs).toBeCloseTo(2 * 3 * 800, -2);
  });

  describe("with a verdict that leaves open who of a group it is", () => {
    const allowed = { mostRanks: 8, everyMs: 60_000, limitMs: 5000 };
    const tests = {
      groups: [[0, 1, 2]],
      stride: 1,
      rounds: 1,
      verdictWith: () => Promise.resolve({ verdict: VERDICT, reports: [] }),
    };
    const confirmed = (validation: ValidationOptions | null): Driver => {
      const job = new Driver(validation);
      job.begin();
      job.iterate(1, 40, 1000);
      job.iterate(41, 3, 2000);
      job.judge([culprit(1, 1, job.nowMs - 6000)]);
      job.explained(VERDICT, tests);
      return job;
    };
    const decided = (job: Driver): boolean => job.decisions.some((one) => one.do === "validate");

    it("asks its ranks to test themselves some iterations later, and takes what they found", () => {
      const job = confirmed(allowed);
      const decision = job.last("validate");
      expect(decision).toMatchObject({ id: job.state.slow!.id, limitMs: 5000 });
      const validation = {
        ranks: [0, 1, 2],
        atIteration: 47,
        outcome: "the link between 0 and 1 is slow",
        isNamed: true,
        tookMs: 300,
        costGpuMs: 600,
      };
      const link = {
        ...VERDICT,
        summary: "the link",
        suspects: [{ ...VERDICT.suspects[0]!, ranks: [1, 0] }],
      };
      const event = { id: decision.id, validated: { validation, verdict: link } };
      expect(job.send({ type: "validated", ...event })).toEqual(["save"]);
      expect(job.last("save").incident).toMatchObject({ summary: "the link", validation });
      job.send({ type: "saved", save: job.last("save") });
      // What the judge says of the group again takes nothing back.
      job.nowMs += 6000;
      job.judge([{ ...culprit(1, 1, job.nowMs - 12_000), cause: null }]);
      job.explained({ ...VERDICT, confidence: 1 }, tests);
      expect(job.state.slow!.verdict).toBe(link);
      expect(job.decisions.filter((one) => one.do === "validate")).toHaveLength(1);
    });

    it("asks nobody where that is switched off, the group is too large, or it did a while ago", () => {
      expect(decided(confirmed(null))).toBe(false);
      expect(decided(confirmed({ ...allowed, mostRanks: 2 }))).toBe(false);
      const job = confirmed(allowed);
      expect(decided(job)).toBe(true);
      const { testedMs } = job.state;
      expect(job.nowMs - testedMs).toBeLessThan(allowed.everyMs);
      // A service that takes over knows it.
      const saved = JSON.parse(JSON.stringify(savedState(job.state))) as SavedJobState;
      expect(newJobState("sim", null, saved, job.state.options).testedMs).toBe(testedMs);
    });

    it("drops what comes after the incident is over", () => {
      const job = confirmed(allowed);
      const validation = {
        ranks: [0, 1, 2],
        atIteration: 47,
        outcome: "none stands out",
        isNamed: false,
        tookMs: null,
        costGpuMs: null,
      };
      const validated = { validation, verdict: null };
      expect(job.send({ type: "validated", id: "another", validated })).toEqual([]);
    });
  });

  const hung = (cause: Cause, change: Partial<Verdict> = {}): Verdict => ({
    ...VERDICT,
    kind: "hang",
    suspects: [{ ...VERDICT.suspects[0]!, cause }],
    ...change,
  });

  /** After 40 iterations of a second nothing moves; the agent reports so every second. */
  function silent(seconds: number, job = new Driver()): Driver {
    if (!job.state.run) {
      job.begin();
      job.iterate(1, 40, 1000);
    }
    for (let second = 0; second < seconds; second++) {
      job.nowMs += 1000;
      const silentMs = job.nowMs - job.state.standstills.movedMs;
      job.send({ type: "beat", agent: "a", beat: { ...BEAT, silentMs } });
      job.send({ type: "tick" });
    }
    return job;
  }

  it("suspects a job after four of its iterations, and makes it an incident when evidence proves it", () => {
    const job = silent(4);
    expect(job.decisions.at(-1)!.do).toBe("collect");
    expect([job.state.still, job.state.suspicion?.isCollecting]).toEqual([null, true]);
    job.nowMs += 4000;
    const diagnosis = { verdict: hung("gpu-hang") };
    const evidence = job.last("collect");
    expect(job.send({ type: "collected", evidence, diagnosis })).toEqual(["save"]);
    const { onsetMs, openedMs, state } = job.last("save").incident;
    expect([state, openedMs - onsetMs]).toEqual(["suspected", 4000]);
    expect(job.send({ type: "saved", save: job.last("save") })).toEqual(["save"]);
    expect(job.last("save").incident).toMatchObject({ state: "confirmed", ranks: [1] });
    expect(job.last("save").incident.changedMs - onsetMs).toBe(8000);
    job.send({ type: "saved", save: job.last("save") });
    silent(120, job);
    expect(job.decisions.filter((one) => one.do === "collect")).toHaveLength(1);
    job.iterate(41, 3, 1000);
    expect(job.last("save").incident.state).toBe("resolved");
  });

  it("keeps a standstill that became certain while its evidence is collected, though a rank's last iteration comes late", () => {
    const job = silent(32);
    expect(job.state.suspicion).toMatchObject({ isCollecting: true, isCertain: true });
    const one = (iteration: number): void => {
      const report = { ...pointsOf(1), iteration: Float64Array.of(iteration) };
      job.send({ type: "points", agent: "a", report });
      job.send({ type: "tick" });
    };
    one(41);
    const evidence = job.last("collect");
    const diagnosis = { verdict: hung("gpu-hang") };
    expect(job.send({ type: "collected", evidence, diagnosis })).toEqual(["save"]);
    expect(job.last("save").incident).toMatchObject({ kind: "hang", fromIteration: 41 });
    // What was told before is told again after the agent was cut off.
    const { movedMs } = job.state.standstills;
    job.nowMs += 1000;
    one(41);
    expect(job.state.standstills.movedMs).toBe(movedMs);
  });

  it("dates a hang that it meets after a restart to when the job stopped", () => {
    const job = new Driver();
    job.begin();
    job.iterate(1, 40, 1000);
    const stoppedMs = job.nowMs;
    job.nowMs += 150_000;
    job.restart();
    job.begin();
    for (const iteration of [38, 39, 40]) {
      const endMs = stoppedMs - (40 - iteration) * 1000;
      const report = {
        ...pointsOf(2),
        iteration: Float64Array.of(iteration, iteration),
        endMs: Float64Array.of(endMs, endMs),
      };
      job.send({ type: "points", agent: "a", report });
    }
    for (let second = 0; second < 40; second++) {
      job.nowMs += 1000;
      const silentMs = job.nowMs - stoppedMs;
      job.send({ type: "beat", agent: "a", beat: { ...BEAT, silentMs, lastIteration: 40 } });
      job.send({ type: "tick" });
    }
    const seen = job.state.still ?? job.state.suspicion?.incident;
    expect(seen).toMatchObject({ kind: "hang", onsetMs: stoppedMs, fromIteration: 41 });
  });

  it("takes what was explained, though agents seem to be gone since: the service was too busy to listen", () => {
    const job = new Driver();
    job.begin();
    job.iterate(1, 40, 1000);
    job.iterate(41, 3, 2000);
    job.judge([culprit(1, 1, job.nowMs - 6000)]);
    job.nowMs += 40_000;
    job.send({ type: "late", ms: 40_000 });
    job.send({ type: "tick" });
    job.send({ type: "agent-gone", agent: "a" });
    const explain = job.last("explain");
    const found = { explain, diagnosis: { verdict: VERDICT } };
    expect(job.send({ type: "explained", ...found })).toEqual(["save"]);
  });

  it("does not take hangs that were incidents for pauses of the job: the third is suspected as soon as the first", () => {
    const job = new Driver();
    job.begin();
    job.iterate(1, 40, 1000);
    let next = 41;
    for (let hang = 1; hang <= 3; hang++) {
      silent(5, job);
      expect(job.decisions.filter((one) => one.do === "collect")).toHaveLength(hang);
      job.send({
        type: "collected",
        evidence: job.last("collect"),
        diagnosis: { verdict: hung("gpu-hang") },
      });
      while (job.state.isBusy) job.send({ type: "saved", save: job.last("save") });
      expect(job.state.still).not.toBeNull();
      job.iterate(next, 1, 30_000);
      job.iterate(next + 1, 12, 1000);
      next += 13;
      while (job.state.isBusy) job.send({ type: "saved", save: job.last("save") });
      expect(job.state.still).toBeNull();
    }
  });

  it.each([null, "storage", "gpu-hang"] as const)(
    "learns minutes in which nobody is at fault that come every 50 iterations, and no others: %s",
    (cause) => {
      const job = new Driver();
      job.begin();
      job.iterate(1, 49, 1000);
      const saved = (): void => {
        while (job.state.isBusy) job.send({ type: "saved", save: job.last("save") });
      };
      const opened = [1, 2, 3, 4].map((turn) => {
        silent(5, job);
        const diagnosis = cause && { verdict: hung(cause) };
        const answer = (): void => {
          if (!job.state.isBusy) return;
          job.send({ type: "collected", evidence: job.last("collect"), diagnosis });
          saved();
        };
        answer();
        silent(60, job);
        answer();
        const isOpen = job.state.still !== null;
        job.nowMs -= 60_000;
        job.iterate(50 * turn, 1, 60_000);
        job.iterate(50 * turn + 1, 2, 1000);
        saved();
        expect(job.state.still).toBeNull();
        job.iterate(50 * turn + 3, 47, 1000);
        return isOpen;
      });
      expect(opened).toEqual([true, true, cause === "gpu-hang", cause === "gpu-hang"]);
    },
  );

  it("opens nothing while a rank saves a checkpoint, whatever waits for it", () => {
    const pauses = { 1: "checkpoint (torch/serialization.py:9 save)" };
    const finding: Finding = {
      id: "f1",
      method: "hang/stacks",
      says: "",
      weight: 0.7,
      at: [],
      data: { fact: "python-stacks", pauses },
      accuses: [],
      clears: [],
    };
    const job = silent(5);
    const diagnosis = { verdict: hung("storage", { findings: [finding] }) };
    job.send({ type: "collected", evidence: job.last("collect"), diagnosis });
    silent(300, job);
    job.iterate(41, 5, 1000);
    expect(job.decisions.some((one) => one.do === "save")).toBe(false);
    expect(job.decisions.filter((one) => one.do === "collect")).toHaveLength(1);
    silent(5, job);
    expect(job.decisions.filter((one) => one.do === "collect")).toHaveLength(2);
  });

  it("collects evidence of a hang again when machines that were silent are heard, where it names nobody", () => {
    const job = new Driver();
    job.begin();
    const of = (agent: string, ranks: readonly number[]): void => {
      const report = { ...jobOf("job", ranks), worldSize: 4 };
      job.send({ type: "job", agent, machine: agent, report, connected: ALL });
    };
    of("b", [2, 3]);
    job.iterate(1, 40, 1000);
    const searches = (): number => job.decisions.filter((one) => one.do === "collect").length;
    const answer = (verdict: Verdict): void => {
      job.send({ type: "collected", evidence: job.last("collect"), diagnosis: { verdict } });
      while (job.state.isBusy) job.send({ type: "saved", save: job.last("save") });
    };
    const nobody = hung("unknown", { suspects: [], confidence: 0.4 });
    silent(30, job);
    while (job.state.isBusy) answer(nobody);
    expect(job.state.still).toMatchObject({ state: "confirmed", ranks: [] });
    const before = searches();
    silent(60, job);
    expect(searches()).toBe(before);
    of("b", [2, 3]);
    silent(1, job);
    expect(searches()).toBe(before + 1);
    // The service is restarted before there is an answer, and hears one agent after the other.
    job.restart();
    of("b", [2, 3]);
    answer(nobody);
    const restarted = searches();
    silent(10, job);
    expect(searches()).toBe(restarted);
    of("a", [0, 1]);
    silent(1, job);
    expect(searches()).toBe(restarted + 1);
    answer(hung("gpu-hang"));
    expect(job.state.still).toMatchObject({ state: "confirmed", ranks: [1] });
    const named = searches();
    job.send({ type: "agent-gone", agent: "b" });
    silent(5, job);
    of("b", [2, 3]);
    silent(60, job);
    expect(searches()).toBe(named);
  });

  it("does not take a hang for over when iterations count that some ranks ended before it", () => {
    const job = new Driver();
    job.begin();
    const report = { ...jobOf("job", [2, 3]), worldSize: 4 };
    job.send({ type: "job", agent: "b", machine: "b", report, connected: ALL });
    const ofB = (from: number, count: number): PointsReport => ({
      ...pointsOf(2 * count, "job"),
      rank: Uint32Array.from({ length: 2 * count }, (_, i) => 2 + (i % 2)),
      iteration: Float64Array.from({ length: 2 * count }, (_, i) => from + Math.floor(i / 2)),
      endMs: new Float64Array(2 * count).fill(job.nowMs),
      durationMs: new Float32Array(2 * count).fill(1000),
    });
    job.iterate(1, 40, 1000);
    job.send({ type: "points", agent: "b", report: ofB(1, 43) });
    job.send({ type: "tick" });
    expect(job.state.run!.lastIteration).toBe(40);
    silent(5, job);
    const diagnosis = { verdict: hung("gpu-hang") };
    job.send({ type: "collected", evidence: job.last("collect"), diagnosis });
    while (job.state.isBusy) job.send({ type: "saved", save: job.last("save") });
    silent(20, job);
    expect(job.state.run!.lastIteration).toBe(43);
    expect(job.state.still).toMatchObject({ state: "confirmed", ranks: [1] });
  });

  it("dates a hang after the last iteration that agents saw end, though its points never came", () => {
    const job = new Driver();
    job.begin();
    job.iterate(1, 40, 1000);
    for (let second = 0; second < 31; second++) {
      job.nowMs += 1000;
      const silentMs = 1000 * (second + 1);
      job.send({ type: "beat", agent: "a", beat: { ...BEAT, silentMs, lastIteration: 47 } });
      job.send({ type: "tick" });
    }
    job.send({ type: "collected", evidence: job.last("collect"), diagnosis: null });
    expect(job.state.still).toMatchObject({ kind: "hang", fromIteration: 48 });
  });

  it("lacks no machines once the job has ended, though their agents are gone", () => {
    const job = new Driver();
    job.begin();
    job.iterate(1, 40, 1000);
    const lacks = (): string[] => missingParts(job.state, ALL, job.nowMs);
    job.nowMs += 60_000;
    expect(lacks().join()).toContain("1 of 1 machine is not heard");
    const report = { ...eventOf("job", "over"), what: "ended" as const, ranks: [0, 1] };
    job.send({ type: "event", agent: "a", report });
    job.nowMs += 60_000;
    expect(lacks()).toEqual([]);
  });

  it("opens what evidence does not prove when it lasts, with the evidence that it has", () => {
    const job = silent(5);
    const diagnosis = { verdict: hung("cpu-stall") };
    job.send({ type: "collected", evidence: job.last("collect"), diagnosis });
    const searches = (): number => job.decisions.filter((one) => one.do === "collect").length;
    silent(10, job);
    expect(searches()).toBe(2);
    job.send({ type: "collected", evidence: job.last("collect"), diagnosis: null });
    silent(14, job);
    expect([searches(), job.state.still]).toEqual([3, null]);
    // It is certain while the third is under way: that one ends the search.
    silent(2, job);
    expect(job.state.still).toBeNull();
    job.send({ type: "collected", evidence: job.last("collect"), diagnosis });
    expect(job.last("save").incident).toMatchObject({ state: "suspected" });
    job.send({ type: "saved", save: job.last("save") });
    expect(job.last("save").incident).toMatchObject({ state: "confirmed", ranks: [1] });
    expect(searches()).toBe(3);
  });

  describe("with machines that are not heard", () => {
    const MACHINES = 10;
    const EACH = 4;

    /** Ten machines of four ranks. `late`: by so many seconds reports of a machine are late. */
    class Fleet extends Driver {
      readonly silent = new Set<number>();
      readonly late = new Map<number, number>();
      readonly #underWay: { readonly dueMs: number; send(this: void): void }[] = [];
      #iteration = 1;

      constructor() {
        super();
        for (let machine = 0; machine < MACHINES; machine++) this.introduce(machine);
      }

      introduce(machine: number): void {
        const ranks = Array.from({ length: EACH }, (_, k) => EACH * machine + k);
        const report = { ...jobOf("job", ranks), worldSize: EACH * MACHINES };
        const agent = `a${machine}`;
        this.send({ type: "job", agent, machine: `m${machine}`, report, connected: ALL });
      }

      /** So many iterations; those of a job that stands still are beats alone. */
      play(count: number, ms: number, isStill = false): void {
        for (let i = 0; i < count; i++) {
          this.nowMs += ms;
          const iteration = this.#iteration;
          const endMs = this.nowMs;
          if (!isStill) this.#iteration++;
          for (let machine = 0; machine < MACHINES; machine++) {
            if (this.silent.has(machine)) continue;
            const column = (value: number): number[] => Array.from({ length: EACH }, () => value);
            const report = {
              ...pointsOf(EACH),
              rank: Uint32Array.from(column(0), (_, k) => EACH * machine + k),
              iteration: Float64Array.from(column(iteration)),
              endMs: Float64Array.from(column(endMs)),
              durationMs: Float32Array.from(column(ms)),
            };
            const agent = `a${machine}`;
            const beat = { ...BEAT, alive: EACH, silentMs: 0, lastIteration: iteration };
            this.#underWay.push({
              dueMs: this.nowMs + 1000 * (this.late.get(machine) ?? 0),
              send: () => {
                if (!isStill) this.send({ type: "points", agent, report });
                this.send({ type: "beat", agent, beat });
              },
            });
          }
          const waiting = this.#underWay.splice(0);
          this.#underWay.push(...waiting.filter(({ dueMs }) => dueMs > this.nowMs));
          for (const one of waiting) if (one.dueMs <= this.nowMs) one.send();
          this.send({ type: "tick" });
          this.answer();
        }
      }

      /** Nobody is named. */
      answer(): void {
        const nobody = testVerdict({
          kind: "fail-slow",
          summary: "No rank stands out.",
          confidence: 0.4,
          suspects: [],
        });
        for (let i = 0; i < 20 && this.state.isBusy; i++) {
          const last = this.decisions.findLast(({ do: what }) => what !== "record-iterations")!;
          if (last.do === "explain")
            this.send({ type: "explained", explain: last, diagnosis: { verdict: nobody } });
          else if (last.do === "save") this.send({ type: "saved", save: last });
          else return;
        }
      }

      get counted(): number[] {
        return this.decisions.flatMap((one) =>
          one.do === "record-iterations" ? one.iterations.map(({ iteration }) => iteration) : [],
        );
      }
    }

    const some = (machines: number): number[] => Array.from({ length: machines }, (_, i) => i);

    it.each([1, 5, 9])(
      "tells of a slowdown that the others show, and who is not heard: %i of 10 silent",
      (silent) => {
        const job = new Fleet();
        job.play(40, 1000);
        for (const machine of some(silent)) job.silent.add(machine);
        job.play(20, 1000);
        const onsetMs = job.nowMs;
        job.play(40, 1500);
        const { slow } = job.state;
        expect(slow).toMatchObject({ fromIteration: 61, ranks: [], kind: "fail-slow" });
        expect(Math.abs(slow!.onsetMs - onsetMs)).toBeLessThan(1);
        expect(slow!.openedMs - onsetMs).toBeLessThan(20_000);
        const are = silent === 1 ? "is" : "are";
        expect(slow!.summary).toContain(`${silent} of 10 machines ${are} not heard`);
        // They are back: the same slowdown, each iteration once.
        job.silent.clear();
        job.play(40, 1500);
        expect(job.state.slow?.id).toBe(slow!.id);
        expect(job.state.besides).toEqual([]);
        job.play(20, 1000);
        expect(job.state.recent).toMatchObject({ id: slow!.id, state: "resolved" });
        expect(job.counted).toEqual(Array.from({ length: 160 }, (_, i) => i + 1));
      },
    );

    it.each([1, 5, 9])(
      "opens nothing in a healthy job when %i of 10 fall silent and come back",
      (silent) => {
        const job = new Fleet();
        job.play(40, 1000);
        for (const seconds of [3, 14, 16, 40, 5]) {
          for (const machine of some(silent)) job.silent.add(machine);
          job.play(seconds, 1000);
          job.silent.clear();
          job.play(10, 1000);
        }
        expect(job.decisions.filter((one) => one.do !== "record-iterations")).toEqual([]);
        expect(job.counted).toEqual(Array.from({ length: 168 }, (_, i) => i + 1));
      },
    );

    it.each([
      { of: "half of the machines, a second", late: (k: number) => (k < 5 ? 1 : 0) },
      { of: "half of the machines, five seconds", late: (k: number) => (k < 5 ? 5 : 0) },
      {
        of: "all, as after the network was down, one machine after the other",
        late: (k: number) => 20 + k,
      },
    ])("waits for reports that are late: $of", ({ late }) => {
      const job = new Fleet();
      job.play(40, 1000);
      for (const machine of some(MACHINES)) job.late.set(machine, late(machine));
      const told: number[] = [];
      for (let i = 0; i < 200; i++) {
        const from = job.decisions.length;
        job.play(1, 300);
        for (const one of job.decisions.slice(from))
          if (one.do === "record-iterations")
            told.push(...one.iterations.map(({ iteration }) => one.run.points.toldOf(iteration)));
      }
      expect(told.length).toBeGreaterThan(90);
      expect(new Set(told)).toEqual(new Set([EACH * MACHINES]));
    });

    describe("a crash whose evidence nobody gives", () => {
      function crashed(): Fleet {
        const job = new Fleet();
        job.play(40, 1000);
        const report = {
          ...eventOf("job", "killed by signal 9"),
          what: "gone" as const,
          ranks: [5],
        };
        job.send({ type: "event", agent: "a1", report });
        for (const machine of some(MACHINES)) job.silent.add(machine);
        job.play(3, 1000, true);
        job.answer();
        job.send({
          type: "collected",
          evidence: job.last("collect"),
          diagnosis: null,
          answered: new Set(),
        });
        job.answer();
        return job;
      }
      const asked = (job: Fleet): number =>
        job.decisions.filter((one) => one.do === "collect").length;

      it("is told with what the service knows, and who is not heard since when", () => {
        const { still } = crashed().state;
        expect(still).toMatchObject({ state: "confirmed", kind: "crash", ranks: [5] });
        expect(still!.verdict!.summary).toContain(
          "No evidence could be collected. The last iteration is 40. 10 of 10 machines are not heard: m0, m1, m2, m3 and 6 more",
        );
        expect(still!.verdict!.summary).toContain(
          "m0 reported last at 00:17:20 UTC, m1 at 00:17:20",
        );
        expect(still!.verdict!.missing.join()).toContain("10 of 10 machines are not heard");
      });

      it("asks for the evidence again as soon as agents are heard, and says what it shows", () => {
        const job = crashed();
        job.play(5, 1000, true);
        expect(asked(job)).toBe(1);
        job.silent.clear();
        job.play(1, 1000, true);
        expect(asked(job)).toBe(2);
        const found = testVerdict(
          { kind: "crash", summary: "rank 5: CUDA error", confidence: 0.9, victims: [] },
          { type: "rank", ranks: [5], machine: "m1", cause: "gpu-error" },
        );
        job.send({
          type: "collected",
          evidence: job.last("collect"),
          diagnosis: { verdict: found },
          answered: ALL,
        });
        job.answer();
        expect(job.state.still).toMatchObject({
          ranks: [5],
          verdict: { summary: "rank 5: CUDA error" },
        });
        job.play(100, 1000, true);
        expect(asked(job)).toBe(2);
      });

      it("asks ever more seldom where agents are heard and give none, and writes nothing new", () => {
        const job = crashed();
        const { revision } = job.state.still!;
        job.silent.clear();
        for (let second = 0; second < 240; second++) {
          job.play(1, 1000, true);
          const evidence = job.last("collect");
          if (job.state.isBusy)
            job.send({ type: "collected", evidence, diagnosis: null, answered: new Set() });
          job.answer();
        }
        // At once, and after 15, 30, 60 and 120 s.
        expect(asked(job)).toBe(6);
        expect(job.state.still).toMatchObject({ revision, ranks: [5] });
      });
    });
  });
});
