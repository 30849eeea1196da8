import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { judged } from "../../../../test/support/live/judged.ts";
import { parseLogStore } from "../../../history/log-store-file.ts";
import { EMPTY_STORE, type LogStore } from "../../../model/log-store.ts";
import { shippedRecords } from "../../../library/shipped.ts";
import { FaultMatchers } from "../../../library/matcher.ts";
import type { Judged } from "./how-right.ts";
import { SiteStore } from "./site-store.ts";

const LINE =
  "2026-11-01 10:00:07 [rank1] zorblax daemon: lease of vault shard 17 was refused by the coordinator";
const ABOUT = { title: "vault full", action: "ask storage", cause: "storage" } as const;
const [FIRST] = shippedRecords();

let documents: Map<string, unknown>;
let audited: string[];
let judgements: Judged[];
let folder: string;
let isAway: boolean;

beforeEach(() => {
  documents = new Map();
  audited = [];
  judgements = [];
  isAway = false;
  folder = mkdtempSync(join(tmpdir(), "faultline-site-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function open(service = ""): SiteStore {
  return new SiteStore({
    service,
    history: {
      document: async (key) => documents.get(key) ?? null,
      putDocument: async (key, document) =>
        void (document === null ? documents.delete(key) : documents.set(key, document)),
      documentKeys: async (prefix) =>
        [...documents.keys()].filter((key) => key.startsWith(prefix)).sort(),
    },
    folder,
    nowMs: () => 1000,
    judgements: () => judgements,
    names: async () => ["acme-gpu017"],
    audit: async (who, what, detail) => {
      if (isAway) throw new Error("away");
      audited.push(`${who} ${what} ${detail}`);
    },
    trouble: () => undefined,
  });
}

describe("what the site knows of logs", () => {
  it("is what all services have learnt: none overwrites another, whoever was first", async () => {
    await open().learn("job-0", ["before"]);
    const [a, b] = [open("a"), open("b")];
    await Promise.all([
      a.learn("job-1", ["step <NUM>", "loss <NUM>"]),
      b.learn("job-2", ["step <NUM>"]),
      a.addRecord({ line: LINE, ...ABOUT }, "ada"),
    ]);
    for (const one of [a, b, open("c")]) {
      const { jobs, normal, records } = await one.store();
      expect([...jobs].sort()).toEqual(["job-0", "job-1", "job-2"]);
      expect(normal).toEqual({ before: 1, "step <NUM>": 2, "loss <NUM>": 1 });
      expect(records).toHaveLength(1);
    }
    expect(await b.hasLearnt("job-1")).toBe(true);
    await expect(b.addRecord({ line: LINE, ...ABOUT }, "ada")).rejects.toMatchObject({
      status: 409,
    });
  });

  it("gives diagnose no file before anything is known", async () => {
    expect(await open().file("llama")).toBeNull();
  });

  it("takes judgements as votes on the records that the verdict rests on", async () => {
    const { id, certainty } = FIRST!;
    const said = { records: [id], cause: "gpu-hang" } as const;
    judgements = [
      judged(true, said),
      judged(false, said, { cause: "storage" }),
      judged(false, said, { cause: "storage" }),
      // Nobody knows what it was, or the machine alone was wrong: nothing against the record.
      judged(false, said),
      judged(false, said, { cause: "gpu-hang", machine: "node7" }),
    ];
    const site = open();
    const store = parseLogStore(readFileSync((await site.file("llama"))!, "utf8"), "");
    expect(store.votes).toEqual({ [id]: { confirmed: 1, disputed: 2, notes: [] } });
    const [record] = (await site.logs()).records;
    expect(record).toMatchObject({ id, isOwn: false, confirmed: 1, disputed: 2 });
    expect(record!.certainty).toBeCloseTo((4 * certainty + 1) / 7);
    // Whoever sees some jobs only has no vote in others; each kind of job has a file of its own.
    judgements = [judged(true, said, { jobs: ["team-a-*"] }), judged(true, said)];
    const votesFor = async (job: string) =>
      parseLogStore(readFileSync((await site.file(job))!, "utf8"), "").votes[id]?.confirmed;
    expect([await votesFor("team-a-1"), await votesFor("llama")]).toEqual([2, 1]);
    expect(await site.file("team-a-1")).not.toBe(await site.file("llama"));
    // A judgement that was changed leaves no trace.
    judgements = [judged(true, said)];
    expect((await site.store()).votes[id]).toMatchObject({ confirmed: 1, disputed: 0 });
  });

  it("makes a record of a line, which matches the next of its kind, and writes down who did it", async () => {
    const site = open();
    const record = await site.addRecord({ ...ABOUT, line: LINE }, "ada");
    expect(record).toMatchObject({
      id: "site.vault-full",
      category: "hardware.storage",
      cause: "storage",
      owner: "storage",
    });
    expect(audited).toEqual(["ada add-record site.vault-full: vault full"]);
    const again = new FaultMatchers([record]);
    const other = LINE.replace("shard 17", "shard 4").replace("rank1", "rank63");
    expect(again.match(other)).toHaveLength(1);
    expect(again.match("zorblax daemon: lease granted")).toEqual([]);
    expect((await open().logs()).records).toMatchObject([{ id: record.id, isOwn: true }]);
  });

  it("refuses a record of what healthy jobs log, of too little text, of a title that is taken", async () => {
    const site = open();
    await site.learn("llama/r1", [
      "zorblax daemon: lease of vault shard <NUM> was refused by the coordinator",
    ]);
    const refused = (line: string) =>
      site.addRecord({ ...ABOUT, line }, "ada").then(
        () => "",
        (error: Error & { status: number }) => `${error.status} ${error.message}`,
      );
    expect(await refused(LINE)).toMatch(/^409 healthy jobs log what site.vault-full matches/);
    expect(await refused("step 17 of 400")).toMatch(/^409 .*too little constant text/);
    expect(await refused("mystery subsystem lost its only quorum of three")).toBe("");
    expect(await refused("mystery subsystem lost its only quorum of three")).toMatch(/^409/);
    isAway = true;
    const other = { ...ABOUT, title: "other", line: "another line that nobody has ever seen" };
    await expect(site.addRecord(other, "ada")).rejects.toMatchObject({ status: 503 });
    expect((await site.logs()).records).toHaveLength(1);
  });

  it("records no line twice, and removes a record that was a mistake, whoever has it", async () => {
    const [a, b] = [open("a"), open("b")];
    const asked = { ...ABOUT, line: LINE };
    const { id } = await a.addRecord(asked, "ada");
    const same = { ...asked, title: "other", line: LINE.replace("17", "18") };
    await expect(b.addRecord(same, "ada")).rejects.toMatchObject({
      status: 409,
      message: `the line is recorded already, as ${id}: remove that one first`,
    });
    const exported = await a.exported(false);
    judgements = [judged(true, { records: [id] })];
    expect((await b.removeRecord(id, "grace")).records).toEqual([]);
    expect(audited.at(-1)).toBe(`grace remove-record ${id}: vault full`);
    expect((await a.store()).records).toEqual([]);
    await expect(a.removeRecord(id, "ada")).rejects.toMatchObject({ status: 404 });
    await a.take(exported, "ada");
    expect((await a.store()).records).toEqual([]);
    // Recorded anew it is another one, which the old judgements say nothing of.
    const again = await a.addRecord({ ...asked, cause: "platform" }, "ada");
    expect(again).toMatchObject({ id: `${id}-2`, cause: "platform" });
    expect((await b.logs()).records).toMatchObject([{ id: `${id}-2`, confirmed: 0 }]);
  });

  it("learns a job once, and keeps changes that come at once", async () => {
    const site = open();
    await Promise.all([
      site.learn("a/1", ["ready <NUM>", "loading"]),
      site.learn("b/1", ["ready <NUM>"]),
      site.addRecord({ ...ABOUT, line: LINE }, "ada"),
    ]);
    await site.learn("a/1", ["ready <NUM>"]);
    expect(await site.store()).toMatchObject({
      jobs: ["a/1", "b/1"],
      normal: { "ready <NUM>": 2, loading: 1 },
      records: [{ id: "site.vault-full" }],
    });
    expect(await site.hasLearnt("a/1")).toBe(true);
  });

  it("goes to another site and back without doubling, and without names", async () => {
    const { id } = FIRST!;
    judgements = [judged(true, { records: [id] })];
    const here = open();
    await here.learn("secret-project/1", ["acme-gpu017: ready", "loading from /home/ada/data"]);
    await here.addRecord({ ...ABOUT, line: LINE }, "ada");
    const exported = await here.exported(true);
    expect(JSON.stringify(exported)).not.toMatch(/acme|secret|ada/);
    expect(await here.exported(false)).toMatchObject({
      jobs: [],
      normal: {},
      records: [{ id: "site.vault-full", title: "site.vault-full", owner: "storage" }],
    });
    await here.take(exported, "ada");
    expect((await here.store()).votes[id]).toMatchObject({ confirmed: 1 });
    judgements = [];
    documents = new Map();
    const there = open();
    const logs = await there.take(exported, "grace");
    expect(logs).toMatchObject({ healthyJobs: 1, normalEvents: 2 });
    expect(logs.records.map((one) => one.id).sort()).toEqual([id, "site.vault-full"].sort());
    expect(audited.at(-1)).toBe("grace import-logs 1 records, 1 jobs");
    await there.take(exported, "grace");
    expect(await there.logs()).toEqual(logs);
  });

  it("takes back a job and an import, with all that came of them, whichever service has them", async () => {
    const [a, b] = [open("a"), open("b")];
    const there = { ...EMPTY_STORE, jobs: ["job-x"], normal: { theirs: 1, "step <NUM>": 1 } };
    const vote = { confirmed: 3, disputed: 0, notes: [] };
    const given = { schema: "faultline.logs-store/1", ...there, votes: { [FIRST!.id]: vote } };
    await a.learn("llama/r1", ["step <NUM>", "bad line"]);
    await b.learn("llama/r2", ["step <NUM>"]);
    const { imports, jobs } = await a.take(given, "ada", "site b");
    expect([...jobs].sort()).toEqual(["llama/r1", "llama/r2"]);
    expect(imports).toEqual([
      {
        id: imports[0]!.id,
        from: "site b",
        who: "ada",
        atMs: 1000,
        jobs: 1,
        normalEvents: 2,
        records: 0,
      },
    ]);
    expect((await b.store()).normal).toEqual({ "step <NUM>": 3, "bad line": 1, theirs: 1 });
    expect((await b.logs()).records).toMatchObject([{ id: FIRST!.id, confirmed: 3 }]);
    await b.forget({ job: "llama/r1" }, "grace");
    expect(audited.at(-1)).toBe("grace forget-logs llama/r1");
    expect((await a.store()).normal).toEqual({ "step <NUM>": 2, theirs: 1 });
    // It is over: what was forgotten is not learnt again.
    expect(await a.hasLearnt("llama/r1")).toBe(true);
    expect(await b.forget({ import: imports[0]!.id }, "grace")).toMatchObject({
      healthyJobs: 1,
      imports: [],
      records: [],
    });
    expect(audited.at(-1)).toBe(`grace forget-logs import ${imports[0]!.id} from site b`);
    for (const one of [a, b, open("c")])
      expect((await one.store()).normal).toEqual({ "step <NUM>": 1 });
    await expect(a.forget({ job: "llama/r1" }, "ada")).rejects.toMatchObject({ status: 404 });
    await expect(a.forget({ import: "none" }, "ada")).rejects.toMatchObject({ status: 404 });
    // Another import brings back nothing; who imports the same again wants it.
    expect((await a.take({ ...given, jobs: ["job-y"], normal: {} }, "ada")).imports).toHaveLength(
      1,
    );
    expect((await a.store()).normal).toEqual({ "step <NUM>": 1 });
    expect((await b.take(given, "ada")).imports).toHaveLength(2);
    expect((await a.store()).normal).toMatchObject({ theirs: 1 });
  });

  it("refuses what is no store, and records with ids of ours", async () => {
    const site = open();
    await expect(site.take({ schema: "x" }, "ada")).rejects.toMatchObject({ status: 409 });
    const store = { schema: "faultline.logs-store/1", records: [FIRST] };
    await expect(site.take(store, "ada")).rejects.toMatchObject({ status: 409 });
    expect(audited).toEqual([]);
  });

  it("refuses another site's record of what healthy jobs of this one log: it would accuse them all", async () => {
    const there = open();
    await there.addRecord({ ...ABOUT, line: LINE }, "ada");
    const given = await there.exported(false);
    documents.clear();
    const here = open();
    await here.learn("llama/r1", [
      "zorblax daemon: lease of vault shard <NUM> was refused by the coordinator",
    ]);
    const before = JSON.stringify([...documents]);
    await expect(here.take(given, "grace")).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining("healthy jobs log what site.vault-full matches"),
    });
    expect(JSON.stringify([...documents])).toBe(before);
    expect(audited.at(-1)).toMatch(/^ada add-record/);
    // What is said to be harmless may be what they log.
    const { records } = given as LogStore;
    const harmless = { ...records[0]!, role: "benign", category: null };
    await here.take({ ...(given as LogStore), records: [harmless] }, "grace");
  });

  it("takes what a stranger wrote for what it says, however deep and whatever it is called", async () => {
    const site = open();
    const deep = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`) as unknown;
    const strange = {
      schema: "faultline.logs-store/1",
      jobs: ["a"],
      normal: JSON.parse('{"__proto__": 3, "step <NUM>": 1}') as unknown,
      eventsOf: { a: deep },
      imports: [{ id: deep, from: deep, who: deep, atMs: deep, known: {} }],
      more: deep,
    };
    const { imports } = await site.take(strange, "ada");
    expect(imports).toMatchObject([{ jobs: 1, who: "ada" }]);
    expect((await site.store()).normal).toMatchObject({ "step <NUM>": 1 });
    const votes = { x: { confirmed: 1, disputed: 0, notes: [deep, "said"], deep } };
    await site.take({ ...strange, votes }, "ada");
    // Also where an earlier version has kept it as it came.
    documents.set("site/logs/b", { ...strange, votes });
    const known = await site.store();
    expect(known.votes["x"]).toEqual({ confirmed: 1, disputed: 0, notes: ["said"] });
  });
});
