import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeFrame } from "./codec.ts";
import { createOutbox, type Outbox } from "./outbox.ts";
import { beatOf, eventOf, pointsOf } from "../../../test/support/live/messages.ts";

function sequences(outbox: Outbox): number[] {
  const all: number[] = [];
  outbox.rewind();
  for (let entry = outbox.next(); entry !== null; entry = outbox.next()) all.push(entry.sequence);
  return all;
}

describe("outbox", () => {
  it("drops the oldest points first, then the oldest of the rest, and counts both", () => {
    const outbox = createOutbox(2000, null);
    outbox.push(eventOf("j", "first"), "");
    for (let i = 0; i < 20; i++) outbox.push(pointsOf(2), "");
    expect(outbox.bytes).toBeLessThanOrEqual(2000);
    const { reports, points } = outbox.dropped;
    expect(points).toBe(2 * reports);
    const kept = sequences(outbox);
    expect(kept[0]).toBe(1);
    expect(kept.slice(1)).toEqual(Array.from({ length: 20 - reports }, (_, i) => i + 2 + reports));
    for (let i = 0; i < 20; i++) outbox.push(eventOf("j", "later"), "");
    expect(outbox.dropped.points).toBe(40);
    expect(sequences(outbox)[0]).toBeGreaterThan(21);
  });

  it("keeps only the newest beat of a key, and counts none", () => {
    const outbox = createOutbox(1 << 20, null);
    for (let i = 0; i < 5; i++) {
      outbox.push(beatOf("a", i), "a");
      outbox.push(beatOf("b", i), "b");
    }
    expect(sequences(outbox)).toEqual([9, 10]);
    expect(outbox.dropped).toEqual({ reports: 0, points: 0 });
  });

  it("refuses what no service would take, and says why", () => {
    const outbox = createOutbox(1 << 20, null);
    const points = { ...pointsOf(3), sendMs: new Float32Array(2) };
    expect(outbox.push(points, "")).toMatch(/unequal/);
    expect(outbox.isEmpty).toBe(true);
    expect(outbox.dropped).toEqual({ reports: 1, points: 3 });
  });

  it("holds a report that alone is over the bound not at all", () => {
    const outbox = createOutbox(500, null);
    outbox.push(pointsOf(1000), "");
    expect(outbox.isEmpty).toBe(true);
    expect(outbox.dropped).toEqual({ reports: 1, points: 1000 });
  });

  it("hands out in order, again after a rewind, and never what was taken", () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant("points" as const) }),
      fc.record({ do: fc.constant("event" as const) }),
      fc.record({ do: fc.constant("beat" as const) }),
      fc.record({ do: fc.constant("next" as const) }),
      fc.record({ do: fc.constant("rewind" as const) }),
      fc.record({
        do: fc.constant("taken" as const),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const outbox = createOutbox(3000, null);
        let pushed = 0;
        let through = 0;
        let last = 0;
        for (const one of steps) {
          if (one.do === "points") outbox.push(pointsOf(1), "");
          else if (one.do === "event") outbox.push(eventOf("j", "x"), "");
          else if (one.do === "beat") outbox.push(beatOf("j", 1), "");
          if (one.do === "points" || one.do === "event" || one.do === "beat") pushed++;
          if (one.do === "taken") {
            through = Math.max(through, Math.floor(pushed * one.share));
            outbox.takenThrough(through);
          }
          if (one.do === "rewind") {
            outbox.rewind();
            last = 0;
          }
          if (one.do === "next") {
            const entry = outbox.next();
            if (entry === null) continue;
            expect(entry.sequence).toBeGreaterThan(Math.max(last, through));
            const frame = decodeFrame(entry.bytes!);
            expect(frame).toMatchObject({ type: "report", sequence: entry.sequence });
            last = entry.sequence;
          }
          expect(outbox.bytes).toBeLessThanOrEqual(3000);
        }
        outbox.takenThrough(pushed);
        expect(outbox.isEmpty).toBe(true);
        expect(outbox.bytes).toBe(0);
      }),
    );
  });

  it("takes a long backlog in time that grows with it, not with its square", () => {
    const outbox = createOutbox(1 << 30, null);
    const event = eventOf("j", "x");
    for (let i = 0; i < 50_000; i++) outbox.push(event, "");
    let sum = 0;
    for (let entry = outbox.next(); entry !== null; entry = outbox.next()) {
      outbox.taken(entry);
      sum++;
    }
    expect(sum).toBe(50_000);
    expect(outbox.isEmpty).toBe(true);
  });
});
