import { describe, expect, it } from "vitest";
import type { Suspect, Verdict } from "../../../model/verdict.ts";
import { testVerdict } from "../../../../test/support/live/incident.ts";
import { unheardWords, withUnheard } from "./partial-view.ts";

const suspect = (ranks: readonly number[]): Suspect => ({
  type: "rank",
  ranks,
  machine: null,
  link: null,
  name: null,
  cause: "gpu-hang",
  score: 0.9,
  why: "",
  evidence: [],
});
const verdictOf = (...suspects: Suspect[]): Verdict =>
  testVerdict({ summary: "somebody hangs.", confidence: 0.9, suspects, victims: [] });
const ALL = { machines: [], ranks: [], of: 4, agentless: [], worldSize: 32 };
const UNHEARD = { ...ALL, machines: ["n1", "n2"], ranks: [8, 9] };

describe("withUnheard", () => {
  it("leaves a verdict alone where all are heard", () => {
    const verdict = verdictOf(suspect([8]));
    expect(withUnheard(verdict, ALL)).toBe(verdict);
  });

  it("accuses nobody who is only silent, and says who that is", () => {
    const { suspects, confidence, summary, missing } = withUnheard(
      verdictOf(suspect([8]), suspect([8, 9])),
      UNHEARD,
    );
    expect([suspects, confidence]).toEqual([[], 0.3]);
    expect(summary).toContain("2 of 4 machines are not heard: n1, n2 (ranks 8 and 9)");
    expect(missing).toEqual(["2 of 4 machines are not heard: n1, n2 (ranks 8 and 9)"]);
  });

  it("takes nothing from a verdict whose first suspect is silent: not its sentence, not the runner-up", () => {
    const { suspects, confidence, summary } = withUnheard(
      verdictOf(suspect([8]), suspect([1])),
      UNHEARD,
    );
    expect([suspects, confidence]).toEqual([[], 0.3]);
    expect(summary).not.toContain("somebody hangs");
  });

  it("keeps suspects that are heard, and links with one end that is", () => {
    const { suspects, summary } = withUnheard(
      verdictOf(suspect([1]), suspect([8]), suspect([1, 9])),
      UNHEARD,
    );
    expect(suspects.map(({ ranks }) => ranks)).toEqual([[1], [1, 9]]);
    expect(summary).toBe("somebody hangs.");
  });
});

describe("ranks that no agent ever reported", () => {
  const agentless = [16, 17, 18, 19];

  it("are accused of nothing", () => {
    const { suspects, confidence, summary } = withUnheard(verdictOf(suspect([16, 17])), {
      ...ALL,
      agentless,
    });
    expect([suspects, confidence]).toEqual([[], 0.3]);
    expect(summary).toContain("4 of 32 ranks have no agent (ranks 16–19)");
  });

  it("are named where nobody is accused", () => {
    const { summary, missing } = withUnheard(verdictOf(), { ...UNHEARD, agentless });
    expect(missing).toHaveLength(2);
    expect(summary).toBe(
      "somebody hangs. 2 of 4 machines are not heard: n1, n2 (ranks 8 and 9); 4 of 32 ranks have no agent (ranks 16–19).",
    );
  });
});

describe("unheardWords", () => {
  it("names a few of many", () => {
    const machines = Array.from({ length: 9 }, (_, i) => `n${i}`);
    expect(unheardWords({ ...ALL, machines, ranks: [0], of: 10 })).toMatch(
      /n3 and 5 more \(rank 0\)$/,
    );
  });
});
