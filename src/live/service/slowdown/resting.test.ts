import { describe, expect, it } from "vitest";
import { testVerdict } from "../../../../test/support/live/incident.ts";
import { jobOf, pointsOf } from "../../../../test/support/live/messages.ts";
import { slowDownFinding } from "../../../methods/slow/live-findings.ts";
import type { Incident } from "../../../model/incident.ts";
import type { LiveCulprit } from "../../../model/live-judgement.ts";
import type { JobDecision, JobEvent } from "../job/job-events.ts";
import { reduceJob } from "../job/job-reducer.ts";
import { type JobState, newJobState } from "../job/job-state.ts";

const OPTIONS = { hangMs: 1e9, pauseMs: 1e9, relapseMs: 600_000, validation: null };

type Without<E> = E extends JobEvent ? Omit<E, "nowMs"> : never;

/** A job of two ranks with iterations of a second, of which the judge names rank 1 now and then. */
class Job {
  state: JobState = newJobState("job", null, null, OPTIONS);
  nowMs = 1e6;
  #iteration = 0;
  #culprits = 0;
  readonly saved: Incident[] = [];

  constructor() {
    const report = jobOf("job", [0, 1]);
    this.#send({ type: "job", agent: "a", machine: "m", report, connected: { has: () => true } });
    this.play(40, 1000);
  }

  #send(event: Without<JobEvent>): void {
    const { state, decisions } = reduceJob(this.state, { ...event, nowMs: this.nowMs });
    this.state = state;
    for (const one of decisions) this.#carryOut(one);
  }

  #carryOut(decision: JobDecision): void {
    if (decision.do === "save") {
      this.saved.push(decision.incident);
      this.#send({ type: "saved", save: decision });
    } else if (decision.do === "explain") {
      const { culprit, slowdown } = decision;
      const stretch = { ...slowdown, last: slowdown.slowFrom, source: "agents" };
      const pace = { ...slowDownFinding(stretch), id: "f1", method: "iterations/live" as const };
      const verdict = testVerdict(
        { kind: "fail-slow", victims: [], findings: [pace] },
        { type: "rank", ranks: culprit!.ranks, cause: "gpu-slow" },
      );
      this.#send({ type: "explained", explain: decision, diagnosis: { verdict } });
    }
  }

  play(count: number, ms: number): void {
    for (let k = 0; k < count; k++) {
      this.nowMs += ms;
      const two = (value: number): [number, number] => [value, value];
      const report = {
        ...pointsOf(2),
        iteration: Float64Array.from(two(this.#iteration++)),
        endMs: Float64Array.from(two(this.nowMs)),
        durationMs: Float32Array.from(two(ms)),
      };
      this.#send({ type: "points", agent: "a", report });
      this.#send({ type: "tick" });
      if (this.#culprits === 0) this.#judge([], []);
    }
  }

  #judge(culprits: readonly LiveCulprit[], over: readonly number[]): void {
    const ended = over.map((id) => ({ id, untilMs: this.nowMs, why: "over" as const }));
    const state = culprits.length > 0 ? "slow" : "healthy";
    const judgement = { state, untilMs: this.nowMs, culprits, ended } as const;
    this.#send({ type: "judged", run: "run", session: 1, judgement });
  }

  /** So many slow iterations, and the judge sees their beginning and their end. */
  slow(iterations: number, rank = 1): void {
    const id = ++this.#culprits;
    const sinceMs = this.nowMs;
    this.play(iterations, 1500);
    this.#judge([culpritOf(id, rank, sinceMs)], []);
    this.#judge([], [id]);
  }

  /** States of all records, a word each. */
  get states(): string[] {
    return this.saved.map(({ state, ending }) => ending ?? state);
  }
}

function culpritOf(id: number, rank: number, sinceMs: number): LiveCulprit {
  return {
    id,
    type: "rank",
    ranks: [rank],
    cause: "gpu-slow",
    probability: 0.95,
    causeProbability: 0.9,
    shape: "lasting",
    sinceMs,
    compared: { group: "all ranks", iterations: 20, leadMs: [0, 500], chanceMs: 4, ranks: [] },
  };
}

describe("a culprit that rests", () => {
  it("is fixed at once where it was slow for ten iterations or more", () => {
    const job = new Job();
    job.slow(10);
    expect(job.states).toEqual(["suspected", "confirmed", "fixed"]);
  });

  it("keeps one incident open while it is slow for a few iterations now and then, and says so", () => {
    const job = new Job();
    for (let k = 0; k < 6; k++) {
      job.slow(4);
      job.play(6, 1000);
    }
    expect(job.states).toEqual(["suspected", "confirmed", "confirmed"]);
    expect(new Set(job.saved.map(({ id }) => id)).size).toBe(1);
    expect(job.state.slow!.intermittent).toMatchObject({ slow: 8, of: 14 });
    job.play(24, 1000);
    expect(job.state.slow).not.toBeNull();
    job.play(8, 1000);
    expect(job.states.at(-1)).toBe("fixed");
  });

  it("waits for twice the longest gap between its stretches", () => {
    const job = new Job();
    job.slow(4);
    job.play(25, 1000);
    job.slow(4);
    job.play(45, 1000);
    expect(job.state.slow).not.toBeNull();
    job.play(10, 1000);
    expect(job.state.slow).toBeNull();
  });

  it("rests also after a long stretch where it came back before", () => {
    const job = new Job();
    for (let k = 0; k < 4; k++) {
      job.slow(12);
      job.play(5, 1000);
    }
    expect(job.states).toEqual(["suspected", "confirmed", "fixed", "relapsed", "relapsed"]);
  });

  it("is over when somebody else is slow", () => {
    const job = new Job();
    job.slow(4);
    job.play(3, 1000);
    job.slow(4, 0);
    expect(job.states).toEqual(["suspected", "confirmed", "suspected", "confirmed", "fixed"]);
    expect(job.state.slow!.ranks).toEqual([0]);
  });
});
