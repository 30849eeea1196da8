import { describe, expect, it } from "vitest";
import { healthOf, type Standing } from "./health.ts";

const WELL: Standing = { noRoom: null, answers: true, waiting: null, broker: "none" };
const health = (more: Partial<Standing>) => healthOf({ ...WELL, ...more });

describe("the health of a service", () => {
  it("is fine where store and broker answer", () => {
    expect(health({})).toEqual({ error: null, degraded: null, store: "ok", broker: "none" });
    expect(health({ broker: "ok", waiting: 12 })).toMatchObject({ degraded: null, broker: "ok" });
  });

  it("is an error where its own file does not answer", () => {
    expect(health({ answers: false })).toMatchObject({
      error: "the history cannot be reached; see the service's log",
      store: "away",
    });
  });

  it("is no error where a restart would not help: a database, a broker, a full disk", () => {
    expect(health({ answers: false, waiting: 7 })).toMatchObject({
      error: null,
      degraded: "the history cannot be reached: 7 writes wait in memory",
      store: "away",
    });
    expect(health({ broker: "away" })).toMatchObject({
      error: null,
      degraded: "the broker cannot be reached: agents keep their reports",
      broker: "away",
    });
    expect(health({ noRoom: "the data folder is full", answers: false })).toMatchObject({
      error: null,
      degraded: "the data folder is full",
      store: "full",
    });
  });
});
