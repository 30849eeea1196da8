import { describe, expect, test } from "vitest";
import { lateRows } from "./late-rows.ts";

const tableOf = (...lateMs: number[]) => ({
  count: lateMs.length,
  rank: Int32Array.from(lateMs, (_, row) => row),
  durationMs: Float32Array.from(lateMs, () => 500),
  lateMs: Float32Array.from(lateMs),
});

const late = (table: ReturnType<typeof tableOf>, usualMs = table.lateMs, most = 5) =>
  lateRows(table, usualMs, most);

describe("who holds the job up", () => {
  test("nobody does whose lateness is what ranks always have", () => {
    expect(late(tableOf(1, 9, 3))).toEqual({ shown: [], count: 0 });
  });

  test("nobody is named for one iteration that was long by chance", () => {
    expect(late(tableOf(0, 40, 0), Float32Array.of(0, 4, 0)).shown).toEqual([]);
  });

  test("the latest comes first, and those who only wait for it are left out", () => {
    expect(late(tableOf(60, 0, 250, 400)).shown).toEqual([3, 2]);
  });

  test("of ranks that are about as late the same are shown, in the order of what they need now", () => {
    expect(late(tableOf(402, 404, 408), undefined, 2)).toEqual({ shown: [1, 0], count: 3 });
    expect(late(tableOf(407, 403, 402), undefined, 2)).toEqual({ shown: [0, 1], count: 3 });
  });

  test("what is not known is not late", () => {
    const table = tableOf(Number.NaN, 400);
    expect(late(table).shown).toEqual([1]);
    const durationMs = Float32Array.of(Number.NaN, Number.NaN);
    expect(late({ ...table, durationMs }).shown).toEqual([]);
  });
});
