import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EMPTY_STORE, withVotes } from "../model/log-store.ts";
import { shippedRecords } from "../library/shipped.ts";
import {
  learnt,
  merged,
  readLogStore,
  voted,
  withImport,
  withoutJob,
  writeLogStore,
} from "./log-store-file.ts";

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

  it("forgets a job with what only that job had, also after it was written and read", async () => {
    const file = join(folder, "site.json");
    let store = learnt(EMPTY_STORE, "job-1", ["a", "b", "7"]);
    store = learnt(store, "job-2", ["a", "c"]);
    await writeLogStore(file, store);
    store = withoutJob(await readLogStore(file), "job-1");
    expect(store).toMatchObject({ jobs: ["job-2"], eventsOf: { "job-2": ["a", "c"] } });
    expect(store.normal).toEqual({ a: 1, c: 1 });
    expect(withoutJob(store, "job-1")).toEqual(store);
  });

  it("forgets jobs together whose events were not kept apart", () => {
    const old = { ...EMPTY_STORE, jobs: ["old-1", "old-2"], normal: { a: 2, bad: 1 } };
    const store = withoutJob(learnt(old, "job-1", ["a"]), "old-2");
    expect(store.jobs).toEqual(["job-1"]);
    expect(store.normal).toEqual({ a: 1 });
  });

  it("keeps imports apart, each once, and knows what they know", async () => {
    const file = join(folder, "site.json");
    const about = { from: "site b", who: "ada", atMs: 1 };
    const other = learnt(EMPTY_STORE, "job-2", ["a", "c"]);
    const store = withImport(learnt(EMPTY_STORE, "job-1", ["a"]), other, about);
    expect(withImport(store, other, { ...about, atMs: 2 })).toEqual(store);
    await writeLogStore(file, store);
    expect((await readLogStore(file)).normal).toEqual({ a: 2, c: 1 });
    expect(store.imports).toMatchObject([about]);
    expect(store.normal).toEqual({ a: 1 });
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
