import { describe, expect, it } from "vitest";
import { nodesOf } from "./nodes.ts";
import { silencesOf, type SilenceResult } from "./silence.ts";
import { digestOf, type TestLine } from "../../../test/support/methods/log-digest.ts";

const START = Date.UTC(2026, 0, 1);
const SECOND = 1000;

/** Eight hosts write every five seconds, `until` some second each. */
function beats(until: (node: number) => number, isTimed = true): TestLine[] {
  const lines: TestLine[] = [];
  for (let second = 0; second < 600; second += 5)
    for (let node = 0; node < 8; node++)
      if (second < until(node))
        lines.push({
          file: "all.log",
          host: `gx-${node}`,
          text: "beat 4",
          ...(isTimed ? { timeMs: START + second * SECOND + node } : {}),
        });
  return lines;
}

function silent(lines: readonly TestLine[]): SilenceResult {
  const digest = digestOf(lines);
  return silencesOf(digest, nodesOf(digest));
}

describe("silence", () => {
  it("tells who stopped before the others", () => {
    const { silences, evidence } = silent(beats((node) => (node === 3 ? 300 : 600)));
    const [stopped, ...more] = silences.filter(({ kind }) => kind === "stopped");
    expect(more).toEqual([]);
    expect(stopped).toMatchObject({ node: 3, sinceMs: START + 295 * SECOND + 3 });
    expect(evidence[0]).toMatchObject({ node: 3, kind: "stopped" });
    expect(evidence[0]!.score).toBeGreaterThan(0.5);
  });

  it("tells it by the order of lines where they have no times", () => {
    const { evidence } = silent(beats((node) => (node === 3 ? 300 : 600), false));
    expect(evidence.map(({ node }) => node)).toEqual([3]);
  });

  it("says nothing where all stop at once, or half of them", () => {
    expect(silent(beats(() => 600)).evidence).toEqual([]);
    expect(silent(beats((node) => (node < 4 ? 300 : 600))).evidence).toEqual([]);
  });

  it("does not miss a beat that was not due", () => {
    const seldom = [0, 250, 500].map((second) => ({
      file: "all.log",
      host: "gx-9",
      text: "rarely",
      timeMs: START + second * SECOND,
    }));
    const lines = [...beats(() => 600), ...seldom].sort((a, b) => a.timeMs! - b.timeMs!);
    expect(silent(lines).evidence).toEqual([]);
  });

  it("does not hold a kernel's log of the boot against a node", () => {
    const boot = { file: "dmesg.gx-44.log", text: "boot", timeMs: START - 3600 * SECOND };
    expect(silent([...beats(() => 600), boot]).evidence).toEqual([]);
  });

  it("tells since when the job makes no progress", () => {
    const steps = [1, 2, 3, 4, 5].map((i) => ({
      file: "all.log",
      text: `iteration ${i}`,
      iteration: i,
      timeMs: START + i * 10 * SECOND,
    }));
    const pulse = { file: "all.log", text: "job is running", timeMs: START + 900 * SECOND };
    const [stalled] = silent([...steps, pulse]).silences;
    expect(stalled).toEqual({
      kind: "stalled",
      sinceMs: START + 50 * SECOND,
      silentMs: 850 * SECOND,
      usualMs: 10 * SECOND,
      lastIteration: 5,
    });
    expect(silent(steps).silences).toEqual([]);
  });
});

describe("pulses", () => {
  it("that go on alone after the last iteration tell of a stall", () => {
    const HOUR = 3_600_000;
    const start = Date.UTC(2026, 10, 15);
    const pulse = (i: number) => ({
      file: "job.out",
      text: `PULSE: job 77 is running since ${i} h`,
      timeMs: start + i * HOUR,
    });
    const report = { file: "job.out", text: " iteration 45/ 900 | loss 2.1", iteration: 45 };
    const pulses = [1, 2, 3, 4].map(pulse);
    const stalled = silencesOf(
      digestOf([report, ...pulses]),
      nodesOf(digestOf([report, ...pulses])),
    );
    expect(stalled.silences).toContainEqual(
      expect.objectContaining({ kind: "stalled", lastIteration: 45, silentMs: 3 * HOUR }),
    );
    const goesOn = digestOf([report, ...pulses, { ...report, iteration: 46 }]);
    expect(silencesOf(goesOn, nodesOf(goesOn)).silences).toEqual([]);
  });
});
