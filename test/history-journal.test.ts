import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openJournalHistory } from "../src/history/journal-history.ts";
import { historyContract } from "./support/history-contract.ts";
import { incidentOf, jobRow } from "./support/history-rows.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-journal-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const fresh = (): string => join(folder, `${files++}.jsonl`);

historyContract("the history in a plain file", () => openJournalHistory(fresh()));

describe("the history in a plain file", () => {
  it("is there again after a restart, and after a crash in the middle of a line", async () => {
    const path = fresh();
    const first = await openJournalHistory(path);
    await first.putJob(jobRow("a", "r", { startedMs: 1 }));
    await first.putIncident(incidentOf("i1", 1, "suspected"));
    await first.putDocument("k", { a: 1 });
    await first.close();
    appendFileSync(path, '{"to":"document","key":"k","te');
    const second = await openJournalHistory(path);
    expect((await second.jobs(10)).length).toBe(1);
    expect((await second.incidents({})).length).toBe(1);
    expect(await second.document("k")).toEqual({ a: 1 });
    await second.close();
  });

  it("belongs to one process, and to the next one when that is gone", async () => {
    const path = fresh();
    writeFileSync(`${path}.lock`, "1");
    await expect(openJournalHistory(path)).rejects.toThrow(/in use by process 1/);
    writeFileSync(`${path}.lock`, "4194305");
    await (await openJournalHistory(path)).close();
  });

  it("refuses a file that is damaged in the middle, and says what to do", async () => {
    const path = fresh();
    writeFileSync(path, 'rubbish\n{"to":"prune","beforeMs":0}\n{"to":"prune","beforeMs":0}\n');
    await expect(openJournalHistory(path)).rejects.toThrow(/line 1 is damaged/);
  });
});
