import { expect, it } from "vitest";
import { testVerdict } from "../../test/support/live/incident.ts";
import type { MachinePicture } from "./machine-picture.ts";
import { measuredVerdict } from "./measured-verdict.ts";
import type { Verdict } from "./verdict.ts";

const TIMES = Array.from({ length: 20 }, (_, i) => i * 10);

function picture(metric: string, own: number, peers: number): MachinePicture {
  const all = (value: number): number[] => TIMES.map(() => value);
  const band = { low: all(peers - 1), middle: all(peers), high: all(peers + 1) };
  const about = { machine: "node002", metric, title: metric, unit: "", device: "gpu5" };
  return { ...about, timeS: TIMES, value: all(own), ...band, fromS: 0, toS: 190 };
}

function verdictOf(cause: Verdict["suspects"][number]["cause"]): Verdict {
  const answer = {
    who: "GPU 5 of node002 (rank 21)",
    what: "computes slowly",
    isSeen: false,
    effect: "slows the job down",
    slower: null,
    waiting: null,
    where: [],
    device: "gpu5",
  };
  const summary = `${answer.who} computes slowly, and that slows the job down.`;
  return testVerdict(
    { kind: "fail-slow", summary, answer, confidence: 0.9, victims: [], actions: [] },
    { type: "rank", ranks: [21], machine: "node002", cause },
  );
}

const HOT = [picture("gpu-clocks", 645, 1890), picture("gpu-temperature", 90, 60)];

it("says in answer and summary that the GPU is throttled, once metrics show it", () => {
  const verdict = measuredVerdict(verdictOf("gpu-slow"), HOT)!;
  const what = "is throttled: 645 MHz at 90 °C, peers 1,890 MHz";
  expect(verdict.answer).toMatchObject({ what, isSeen: true });
  expect(verdict.summary).toBe(`GPU 5 of node002 (rank 21) ${what}, and that slows the job down.`);
  // Figures wander: the record changes once.
  expect(measuredVerdict(verdict, HOT)).toBeNull();
});

it("leaves a verdict alone that the metrics say nothing of", () => {
  expect(measuredVerdict(verdictOf("gpu-slow"), [picture("gpu-clocks", 1890, 1890)])).toBeNull();
  expect(
    measuredVerdict(
      verdictOf("gpu-slow"),
      HOT.map((one) => ({ ...one, machine: "node003" })),
    ),
  ).toBeNull();
  expect(measuredVerdict(verdictOf("dataloader"), HOT)).toBeNull();
});
