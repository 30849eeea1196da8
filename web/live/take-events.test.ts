import { describe, expect, it } from "vitest";
import type { Incident, JobView } from "./api.ts";
import { type FeedEvent, type Known, MOST_RESOLVED, takeEvents } from "./take-events.ts";

const NOTHING: Known = { jobs: null, incidents: new Map() };

const job = (name: string, lastIteration = 1): JobView => ({
  job: name,
  run: "r",
  startedMs: 0,
  seenMs: 0,
  worldSize: 8,
  ranks: 8,
  machines: 1,
  health: "healthy",
  lastIteration,
  levelMs: null,
  baselineMs: null,
  incident: null,
  wastedGpuMs: 0,
  lacks: [],
});

const incident = (
  id: string,
  revision: number,
  state: Incident["state"] = "confirmed",
): Incident => ({
  id,
  job: "a",
  run: "r",
  revision,
  state,
  kind: "fail-slow",
  summary: "",
  onsetMs: 0,
  openedMs: 0,
  changedMs: revision,
  resolvedMs: null,
  fromIteration: null,
  relapses: 0,
  verdict: null,
  machines: [],
  ranks: [],
  wastedGpuMs: 0,
  actions: [],
});

const told = (one: Incident): FeedEvent => ({ type: "incident", incident: one });

describe("what the page knows", () => {
  it("follows the last of many events of a job", () => {
    const events = [1, 2, 3].map((n): FeedEvent => ({ type: "job", job: job("a", n) }));
    expect(takeEvents(NOTHING, events).jobs).toEqual([job("a", 3)]);
  });

  it("keeps the newest revision, whatever comes last", () => {
    const { incidents } = takeEvents(NOTHING, [told(incident("x", 3)), told(incident("x", 2))]);
    expect(incidents.get("x")!.revision).toBe(3);
  });

  it("forgets an open incident that a snapshot does not have, and keeps the ended", () => {
    const before = takeEvents(NOTHING, [
      told(incident("open", 1)),
      told(incident("over", 2, "resolved")),
    ]);
    const after = takeEvents(before, [
      { type: "snapshot", jobs: [job("a")], incidents: [incident("new", 1)], isDemo: false },
    ]);
    expect([...after.incidents.keys()].sort()).toEqual(["new", "over"]);
    expect(after.snapshots).toBe(1);
  });

  it("stays the same object where nothing changed, so that nothing is drawn again", () => {
    const before = takeEvents(NOTHING, [
      { type: "snapshot", jobs: [job("a")], incidents: [], isDemo: false },
    ]);
    const rows = { iteration: [1], endMs: [1], durationMs: [1] };
    const after = takeEvents(before, [{ type: "iterations", job: "a", run: "r", rows }]);
    expect(after.jobs).toBe(before.jobs);
    expect(after.incidents).toBe(before.incidents);
  });

  it("joins the iterations of a run, and keeps runs and jobs apart", () => {
    const rows = (n: number) => ({ iteration: [n], endMs: [n], durationMs: [n] });
    const { iterations } = takeEvents(NOTHING, [
      { type: "iterations", job: "a", run: "r", rows: rows(1) },
      { type: "iterations", job: "b", run: "r", rows: rows(9) },
      { type: "iterations", job: "a", run: "r", rows: rows(2) },
      { type: "iterations", job: "a", run: "s", rows: rows(0) },
    ]);
    expect(iterations.map(({ job, run, rows }) => [job, run, rows.iteration])).toEqual([
      ["a", "r", [1, 2]],
      ["b", "r", [9]],
      ["a", "s", [0]],
    ]);
  });

  it("remembers a bounded number of ended incidents, the last ones", () => {
    const events = Array.from({ length: 1000 }, (_, i) =>
      told(incident(`i${i}`, i + 1, "resolved")),
    );
    const { incidents } = takeEvents(NOTHING, [told(incident("open", 1)), ...events]);
    expect(incidents.size).toBe(MOST_RESOLVED + 1);
    expect(incidents.has("open")).toBe(true);
    expect(incidents.has("i999")).toBe(true);
    expect(incidents.has("i0")).toBe(false);
  });

  it("is not disturbed by events of a newer service", () => {
    const strange = { type: "weather" } as unknown as FeedEvent;
    expect(takeEvents(NOTHING, [strange]).jobs).toBeNull();
  });
});
