import { expect, test } from "vitest";
import { slowGpu } from "../../test/support/report/picture.ts";
import { healthOf } from "../shell/health.tsx";
import { changesOf, effectOf, sayingOf } from "./kinds.ts";

const { incident } = slowGpu();

test("an incident that is over speaks of the past, and says how it ended", () => {
  const over = {
    ...incident,
    state: "resolved" as const,
    resolvedMs: incident.onsetMs + 60_000,
    summary: "over: iterations take as long as before",
  };
  expect(sayingOf(over)).toMatch(/^Resolved\. It was: The GPU of rank 17/);
  expect(effectOf(over)).toBe("It ended: iterations take as long as before.");
  const answer = {
    who: "the NIC of rank 4",
    what: "is slow: communication takes 70 ms longer per iteration",
    isSeen: false,
    effect: "slows the job down",
    slower: null,
    waiting: null,
    where: [],
    device: null,
  };
  const verdict = { ...incident.verdict!, confidence: 0.9, answer };
  expect(sayingOf({ ...over, verdict })).toBe(
    "Resolved. The NIC of rank 4 was slow: communication took 70 ms longer per iteration.",
  );
  const ended = {
    ...over,
    ending: "fixed" as const,
    endingSays: "fixed; iterations take 510 ms again",
  };
  const slower = "1.24 times as long: 778 ms → 964 ms per iteration";
  const action = { ...incident.actions[0]!, do: "cordon-node", target: "node002" };
  const actions = [
    { ...action, state: "done" as const, changedMs: incident.onsetMs + 50_000 },
    { ...action, state: "proposed" as const, do: "replace-link" },
  ];
  expect(
    effectOf({ ...ended, actions, verdict: { ...verdict, answer: { ...answer, slower } } }),
  ).toBe(
    "It ended after “Cordon the node” (node002): fixed; iterations take 510 ms again. " +
      "The job took 1.24 times as long: 778 ms → 964 ms per iteration.",
  );
  expect(sayingOf(incident)).not.toMatch(/Resolved|It was/);
});

test("no job is called healthy beside a pace that is slower than its own", () => {
  expect(healthOf({ health: "healthy", levelMs: 155, baselineMs: 100 })).toBe("slow");
  expect(healthOf({ health: "healthy", levelMs: 101, baselineMs: 100 })).toBe("healthy");
  expect(healthOf({ health: "ended", levelMs: 155, baselineMs: 100 })).toBe("ended");
});

test("lists are asked for anew when an incident ends, not while it only costs more", () => {
  const of = (change: object): string => changesOf(new Map([["a", { ...incident, ...change }]]));
  expect(of({ wastedGpuMs: 9, revision: 9 })).toBe(of({}));
  expect(of({ state: "resolved" })).not.toBe(of({}));
});
