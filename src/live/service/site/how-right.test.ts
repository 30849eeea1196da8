import { describe, expect, it } from "vitest";
import { judged } from "../../../../test/support/live/judged.ts";
import type { AuditRow } from "../../../history/history.ts";
import type { Handling } from "../../../model/handling.ts";
import { handlingsOf, untouched } from "../workflow/deeds.ts";
import { countingFor, howRight, judgementsOf, withoutLimited } from "./how-right.ts";

const handling = (incident: string, change: Partial<Handling>): [string, Handling] => [
  incident,
  { ...untouched(incident), ...change },
];

describe("how right verdicts were", () => {
  it("is counted by kind, with Wilson's interval, by confidence, and with what was true instead", () => {
    const many = (n: number, ...rest: Parameters<typeof judged>) =>
      Array.from({ length: n }, () => judged(...rest));
    const report = howRight([
      ...many(8, true, { confidence: 0.95 }),
      ...many(2, false, { confidence: 0.85 }, { cause: "network-hang" }),
      ...many(1, false, { confidence: 0.85 }),
      ...many(1, false, { kind: "crash", confidence: 0.4, cause: null }, { cause: "storage" }),
    ]);
    expect(report.all).toMatchObject({ judged: 12, right: 8 });
    expect(report.kinds.map(({ kind, judged: of, right }) => [kind, of, right])).toEqual([
      ["hang", 11, 8],
      ["crash", 1, 0],
    ]);
    // Wilson for 8 of 11: 43.4 % to 90.3 %.
    expect(report.kinds[0]!.low).toBeCloseTo(0.4344, 3);
    expect(report.kinds[0]!.high).toBeCloseTo(0.9025, 3);
    expect(report.kinds[0]!.calibration).toEqual([
      { from: 0.8, to: 0.9, judged: 3, right: 0, said: expect.closeTo(0.85) },
      { from: 0.9, to: 1, judged: 8, right: 8, said: expect.closeTo(0.95) },
    ]);
    expect(report.kinds[0]!.calibrationError).toBeCloseTo((3 * 0.85 + 8 * 0.05) / 11);
    expect(report.confusions).toEqual([
      { said: "gpu-hang", truth: "network-hang", incidents: 2 },
      { said: null, truth: "storage", incidents: 1 },
    ]);
  });

  it("counts a confidence of 1 and of 0, and nothing where nobody judged", () => {
    const report = howRight([judged(true, { confidence: 1 }), judged(false, { confidence: 0 })]);
    expect(report.all.calibration.map(({ from }) => from)).toEqual([0, 0.9]);
    expect(howRight([]).all).toMatchObject({ judged: 0, low: 0, high: 1, calibrationError: 0 });
  });

  it("takes nothing that somebody said who sees some jobs for what holds everywhere", () => {
    const all = new Map([
      handling("a", { judgement: judged(true, {}, { jobs: ["llama"] }) }),
      handling("b", { judgement: judged(false), mergedInto: "a" }),
    ]);
    // Merged into one that a team has judged, it still counts.
    expect(countingFor(judgementsOf(all), null).map(({ incident }) => incident)).toEqual(["b"]);
    expect([...withoutLimited(all).values()].map(({ judgement }) => judgement?.isRight)).toEqual([
      undefined,
      false,
    ]);
  });

  it("takes the last judgement of each incident, and one of those that are the same", () => {
    const found = judgementsOf(
      new Map([
        handling("a", { judgement: judged(true) }),
        handling("b", { judgement: judged(false), mergedInto: "a" }),
        handling("c", { judgement: judged(false), mergedInto: "d" }),
        handling("d", {}),
      ]),
    );
    expect(found.map(({ isRight }) => isRight)).toEqual([true, false]);
    // Also where merges are a chain, or several are the same as one that nobody judged.
    const chain = new Map([
      handling("a", { judgement: judged(true, {}, { atMs: 1 }) }),
      handling("b", { mergedInto: "a" }),
      handling("c", { judgement: judged(false, {}, { atMs: 2 }), mergedInto: "b" }),
      handling("x", { judgement: judged(true, {}, { atMs: 3 }), mergedInto: "z" }),
      handling("y", { judgement: judged(false, {}, { atMs: 4 }), mergedInto: "z" }),
    ]);
    expect(judgementsOf(chain).map(({ incident }) => incident)).toEqual(["a", "y"]);
    const row = (id: string, isRight: boolean): AuditRow => ({
      id,
      atMs: Number(id),
      who: "ada",
      what: "judge",
      incident: "a",
      action: "",
      detail: JSON.stringify(judged(isRight)),
    });
    const trail = handlingsOf([row("1", false), row("2", true)]);
    expect(judgementsOf(trail)).toMatchObject([{ isRight: true, atMs: 2 }]);
  });
});
