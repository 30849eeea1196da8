import { expect, it } from "vitest";
import { movedView, zoomedView } from "./timeline-view.ts";

const all = { fromMs: 0, toMs: 400 };

it("zooms around a moment, which stays where it is", () => {
  expect(zoomedView(all, 0.5, 400)).toEqual({ fromMs: 100, toMs: 300 });
  const near = zoomedView(all, 0.5, 400, 40);
  expect(near).toEqual({ fromMs: 20, toMs: 220 });
  expect((40 - near.fromMs) / (near.toMs - near.fromMs)).toBe(40 / 400);
});

it("shows no more than there is, and no less than can be seen", () => {
  expect(zoomedView({ fromMs: 300, toMs: 400 }, 2, 400)).toEqual({ fromMs: 200, toMs: 400 });
  expect(zoomedView(all, 2, 400)).toEqual(all);
  let view = all;
  for (let k = 0; k < 20; k++) view = zoomedView(view, 0.5, 400);
  expect(view.toMs - view.fromMs).toBeCloseTo(4);
});

it("moves to the ends and stops there", () => {
  const view = { fromMs: 100, toMs: 200 };
  expect(movedView(view, 50, 400)).toEqual({ fromMs: 150, toMs: 250 });
  expect(movedView(view, -500, 400)).toEqual({ fromMs: 0, toMs: 100 });
  expect(movedView(view, 500, 400)).toEqual({ fromMs: 300, toMs: 400 });
});
