import { describe, expect, it } from "vitest";
import { parseRecords } from "./load.ts";
import { shippedMatchers, shippedRecords } from "./shipped.ts";

describe("shipped records", () => {
  it.each(shippedRecords().map((record) => [record.id, record] as const))(
    "%s matches its example, and is what is said of it",
    (_, record) => {
      const matches = shippedMatchers().match(record.example);
      expect(matches.map((one) => one.record.id)).toContain(record.id);
      // Among all that match, it must be the most telling one, or the example is another record's.
      expect(matches[0]!.record.id).toBe(record.id);
      expect(shippedMatchers().couldMatch(record.example)).toBe(true);
    },
  );

  it("have names of their own", () => {
    const ids = shippedRecords().map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe("record files of users", () => {
  it.each(["boom (a|aa)+$", "(\\w+\\s?)*$", "(.*a){25}$", ".*.*.*.*z$", "(?:a+|b)+?$", "(a+)+$"])(
    "with a pattern that may never finish are refused: %s",
    (regex) => {
      const [record] = shippedRecords();
      const own = { ...record, id: "site.own", match: { all: ["boom"], regex } };
      expect(() => parseRecords(JSON.stringify([own]), "mine.json")).toThrow(/may never finish/);
    },
  );

  it("with endless literals are refused", () => {
    const [record] = shippedRecords();
    const own = { ...record, id: "site.own", match: { all: ["boom".repeat(1000)] } };
    expect(() => parseRecords(JSON.stringify([own]), "mine.json")).toThrow(/200 characters/);
  });

  it("are refused with the field that is wrong", () => {
    expect(() => parseRecords("{", "mine.json")).toThrow(/mine.json is not JSON/);
    expect(() => parseRecords('[{ "id": "x" }]', "mine.json")).toThrow(/record 1 \(x\): "match"/);
    const [record] = shippedRecords();
    const own = JSON.stringify([{ ...record, id: "site.own", tells: "lies" }]);
    expect(() => parseRecords(own, "mine.json")).toThrow(/"tells" must be one of end, died/);
  });
});
