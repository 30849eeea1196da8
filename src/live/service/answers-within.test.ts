import { describe, expect, it } from "vitest";
import { answersWithin } from "./answers-within.ts";

describe("an answer of the store", () => {
  const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

  it("that fails, or does not come, is none", async () => {
    expect(await answersWithin(Promise.reject(new Error("no")), 1000)).toBe(false);
    expect(await answersWithin(new Promise(() => undefined), 20)).toBe(false);
    expect(await answersWithin(Promise.resolve(), 1000)).toBe(true);
  });

  it("that came while the service was busy counts", async () => {
    const heard = answersWithin(after(30), 20);
    const untilMs = performance.now() + 200;
    while (performance.now() < untilMs);
    expect(await heard).toBe(true);
  });
});
