import { describe, expect, it } from "vitest";
import { LAYOUT, PlayedShares } from "../../../../test/support/live/played-shares.ts";
import { JudgeHost, type SessionJudgement } from "./judge-host.ts";

class Job extends PlayedShares {
  readonly host = new JudgeHost();
  readonly said: SessionJudgement[] = [];

  lay(layout = LAYOUT): this {
    this.host.take({ say: "layout", layout });
    return this;
  }

  /** What was said last. */
  get last(): SessionJudgement {
    return this.said.at(-1)!;
  }

  get named(): number[] {
    return this.last.judgement.culprits.flatMap(({ ranks }) => ranks);
  }

  play(seconds: number): this {
    for (let k = 0; k < 2 * seconds; k++)
      for (const message of this.next()) this.said.push(...this.host.take(message));
    return this;
  }
}

describe("JudgeHost", () => {
  it("names who is slow from the columns that agents tell, and says when it is over", () => {
    const job = new Job().lay().play(40);
    expect(job.last).toMatchObject({ session: 1, judgement: { state: "healthy", culprits: [] } });
    job.slow.add(5);
    job.play(6);
    expect(job.named).toEqual([5]);
    expect(job.last.judgement.culprits[0]!.cause).toBe("gpu-slow");
    const since = job.last.judgement.culprits[0]!.sinceMs;
    expect(Math.abs(since - (job.nowMs - 6000))).toBeLessThanOrEqual(1000);
    job.slow.clear();
    job.play(8);
    expect(job.last.judgement.state).toBe("healthy");
    const ended = job.said.flatMap(({ judgement }) => judgement.ended);
    expect(ended).toMatchObject([{ why: "over" }]);
  });

  it("knows what was told before it knew whom to compare", () => {
    const job = new Job().play(40).lay();
    expect(job.said).toEqual([]);
    job.play(1);
    expect(job.said.length).toBeGreaterThan(60);
    expect(job.last.judgement.state).toBe("healthy");
  });

  it("with uneven micro-batches judges anew, and with equal ones goes on where it stopped", () => {
    const job = new Job().lay().play(40);
    const slowFirst = 5;
    job.slow.add(slowFirst);
    job.play(6);
    const { id } = job.last.judgement.culprits[0]!;
    // Less work makes it as fast as the others.
    job.host.take({ say: "micro-batches", shares: "5,3", fromMs: job.nowMs });
    job.slow.clear();
    job.play(40);
    expect(job.last).toMatchObject({ session: -2, judgement: { state: "healthy" } });
    job.slow.add(2);
    job.play(6);
    expect(job.last.session).toBe(-2);
    expect(job.named).toEqual([2]);
    job.slow.clear();
    job.slow.add(slowFirst);
    job.host.take({ say: "micro-batches", shares: null, fromMs: job.nowMs });
    job.play(4);
    expect(job.last.session).toBe(1);
    expect(job.last.judgement.culprits).toMatchObject([{ id, ranks: [slowFirst] }]);
  });

  it("passes over what was told while shares changed", () => {
    const job = new Job().lay().play(40);
    job.host.take({ say: "micro-batches", shares: "5,3", fromMs: job.nowMs + 5000 });
    const { length } = job.said;
    job.play(4);
    expect(job.said).toHaveLength(length);
    job.play(6);
    expect(job.last).toMatchObject({ session: -2, judgement: { state: "learning" } });
  });

  it("begins again with other ranks, but not while somebody is slow", () => {
    const job = new Job().lay().play(40);
    job.slow.add(5);
    job.play(6);
    job.lay({
      ...LAYOUT,
      job: { ...LAYOUT.job, groups: [{ name: "half", places: [0, 1, 2, 3] }] },
    });
    job.play(2);
    expect(job.last.session).toBe(1);
    job.slow.clear();
    job.play(20);
    expect(job.last).toMatchObject({ session: 2, judgement: { culprits: [] } });
  });
});
