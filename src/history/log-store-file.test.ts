import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EMPTY_STORE, withVotes } from "../model/log-store.ts";
import { shippedRecords } from "../library/shipped.ts";
import { learnt, merged, readLogStore, voted, writeLogStore } from "./log-store-file.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-store-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("the store of logs", () => {
  it("comes back as it was written", async () => {
    const file = join(folder, "site.json");
    const [record] = shippedRecords();
    let store = learnt(EMPTY_STORE, "job-1", ["a <NUM>", "b"]);
    store = voted({ ...store, records: [record!] }, record!.id, "confirmed", "seen again");
    await writeLogStore(file, store);
    expect(await readLogStore(file)).toEqual(store);
  });

  it("counts jobs, not how often one was learnt", () => {
    let store = learnt(EMPTY_STORE, "job-1", ["a", "b", "a"]);
    store = learnt(store, "job-1", ["a"]);
    store = learnt(store, "job-2", ["a", "__proto__"]);
    expect(store.jobs).toEqual(["job-1", "job-2"]);
    expect(store.normal["a"]).toBe(2);
    expect(store.normal["b"]).toBe(1);
  });

  it("adds up with another's", () => {
    const mine = voted(learnt(EMPTY_STORE, "job-1", ["a"]), "x", "disputed", "no");
    const other = voted(learnt(EMPTY_STORE, "job-2", ["a", "c"]), "x", "confirmed", "yes");
    const both = merged(mine, other);
    expect(both.normal).toEqual({ a: 2, c: 1 });
    expect(both.votes["x"]).toEqual({ confirmed: 1, disputed: 1, notes: ["no", "yes"] });
  });

  it("makes a record surer or less sure", () => {
    const record = { ...shippedRecords()[0]!, certainty: 0.5 };
    const sure = withVotes(record, { confirmed: 4, disputed: 0, notes: [] }).certainty;
    const unsure = withVotes(record, { confirmed: 0, disputed: 4, notes: [] }).certainty;
    expect(sure).toBeCloseTo(0.75);
    expect(unsure).toBeCloseTo(0.25);
  });

  it.each(["{", "[]", '{"schema":"other"}', '{"schema":"faultline.logs-store/1","jobs":5}'])(
    "refuses %s and leaves it alone",
    async (text) => {
      const file = join(folder, "site.json");
      writeFileSync(file, text);
      await expect(readLogStore(file)).rejects.toThrow(/site.json/);
      expect(readFileSync(file, "utf8")).toBe(text);
    },
  );
});
