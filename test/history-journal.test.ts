import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openJournalHistory } from "../src/history/journal-history.ts";
import { historyContract } from "./support/history-contract.ts";
import { incidentOf, iterationRows, jobRow } from "./support/history-rows.ts";
import { few } from "./support/cases.ts";

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

  it("cut anywhere in its last line, has all that came before, and takes more", async () => {
    const path = fresh();
    const first = await openJournalHistory(path);
    await first.putJob(jobRow("a", "r", { startedMs: 1 }));
    await first.putDocument("k", { a: "é" });
    await first.close();
    const before = readFileSync(path);
    const writing = await openJournalHistory(path);
    await writing.putDocument("k", { a: "ü" });
    await writing.close();
    const whole = readFileSync(path);
    const cuts = Array.from({ length: whole.length - before.length + 1 }, (_, i) => i);
    expect(cuts.length).toBeGreaterThan(40);
    for (const cut of few([...cuts].reverse(), 12)) {
      const torn = fresh();
      writeFileSync(torn, whole.subarray(0, before.length + cut));
      const opened = await openJournalHistory(torn);
      expect(await opened.jobs(9)).toHaveLength(1);
      // The line is whole with or without its end.
      expect(await opened.document("k")).toEqual({ a: cut >= cuts.length - 2 ? "ü" : "é" });
      await opened.putDocument("k", { a: "again" });
      await opened.close();
      const again = await openJournalHistory(torn);
      expect(await again.document("k")).toEqual({ a: "again" });
      await again.close();
    }
  });

  it("of a newer version is refused in one sentence, and left alone", async () => {
    const path = fresh();
    const text = '{"to":"version","version":2}\n';
    writeFileSync(path, text);
    await expect(openJournalHistory(path)).rejects.toThrow(
      /newer Faultline .*version 2, known is 1/,
    );
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  it("that is too large forgets its oldest iterations, and nothing else", async () => {
    const path = fresh();
    const history = await openJournalHistory(path);
    const rows = Array.from({ length: 5000 }, (_, i) => [i, 1000 * i, 1.5] as const);
    await history.putIterations("j", "r", iterationRows(rows));
    await history.putIncident(incidentOf("i1", 1, "confirmed"));
    const all = statSync(path).size;
    expect(await history.shrink(all / 2)).toBeLessThanOrEqual(all / 2);
    expect(statSync(path).size).toBeLessThanOrEqual(all / 2);
    const { iteration } = await history.iterations("j", "r", { most: 9999 });
    expect(iteration.length).toBeGreaterThan(1000);
    expect(iteration.at(-1)).toBe(4999);
    expect(await history.shrink(1)).toBeGreaterThan(1);
    expect(await history.incidents({})).toHaveLength(1);
    await history.putDocument("k", 1);
    await history.close();
    const again = await openJournalHistory(path);
    expect(await again.document("k")).toBe(1);
    expect((await again.iterations("j", "r", { most: 9 })).iteration).toHaveLength(0);
    await again.close();
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
