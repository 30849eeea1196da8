import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { links, routeOf } from "./address.ts";

describe("addresses of the page", () => {
  it("lead to the fleet when they say nothing", () => {
    for (const hash of ["", "#", "#/"]) expect(routeOf(hash)).toEqual({ page: "fleet" });
  });

  it("lead back to any job and any incident that they were made of", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 200 }), (name) => {
        expect(routeOf(links.job(name))).toEqual({ page: "job", job: name });
        expect(routeOf(links.incident(name))).toEqual({ page: "incident", id: name });
        expect(routeOf(links.history(name))).toEqual({ page: "history", words: name });
      }),
    );
  });

  it("are understood as alerts write them", () => {
    expect(routeOf("#/incidents/llama.run-1.fail-slow.i81")).toEqual({
      page: "incident",
      id: "llama.run-1.fail-slow.i81",
    });
  });

  it("are nowhere where they lead to nothing of ours, however long or broken they are", () => {
    expect(routeOf("#/history")).toEqual({ page: "history", words: "" });
    expect(routeOf("#/teapots/1").page).toBe("nothing");
    expect(routeOf("#/jobs/").page).toBe("nothing");
    expect(routeOf(`#/jobs/${"x".repeat(1 << 20)}`).page).toBe("nothing");
    expect(routeOf("#/jobs/%E0%A4%A")).toEqual({ page: "job", job: "%E0%A4%A" });
  });

  it("can be made of names that are not well-formed", () => {
    expect(links.job("a\ud800b")).toBe("#/jobs/a%EF%BF%BDb");
  });
});
