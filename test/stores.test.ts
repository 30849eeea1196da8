/** Data folders that earlier versions wrote, opened by the service of today (fixtures/stores). */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openJournalHistory } from "../src/history/journal-history.ts";
import type { Incident } from "../src/model/incident.ts";
import { openStore } from "./support/open-store.ts";

const archive = fileURLToPath(new URL("../fixtures/stores/version-1.tar.gz", import.meta.url));
let folder: string;
let before: readonly Incident[];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-stores-"));
  execFileSync("tar", ["xf", archive, "-C", folder]);
  const text = readFileSync(join(folder, "incidents.json"), "utf8");
  before = (JSON.parse(text) as { incidents: Incident[] }).incidents;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the store of version 1", () => {
  it("gives the same answers, evidence and pictures, and its open incident goes on", async () => {
    const service = await openStore(join(folder, "duckdb"));
    try {
      const { text } = await service.get("/api/v1/incidents");
      const now = (JSON.parse(text) as { incidents: Incident[] }).incidents;
      expect(now.map(answerOf)).toEqual(before.map(answerOf));
      expect(now.map(({ state }) => state)).toEqual(["confirmed", "resolved"]);
      const paged: string[] = [];
      for (let from: string | null = ""; from !== null && paged.length < 9;) {
        const page = await service.get(`/api/v1/incidents?most=1${from}`);
        const answer = JSON.parse(page.text) as { incidents: Incident[]; next: string | null };
        paged.push(...answer.incidents.map(({ id }) => id));
        from = answer.next && `&before=${encodeURIComponent(answer.next)}`;
      }
      expect(paged).toEqual(now.map(({ id }) => id));
      for (const { id } of before)
        expect((await service.get(`/api/v1/incidents/${id}/picture`)).status).toBe(200);
      const { text: report } = await service.get(`/api/v1/incidents/${before[0]!.id}/report`);
      expect(report).toMatch(/^<!doctype html>/i);
      const { text: rows } = await service.get("/api/v1/jobs/rehearsal/iterations");
      const { iteration } = JSON.parse(rows) as { iteration: number[] };
      expect(iteration.at(-1)).toBe(169);
    } finally {
      await service.close();
    }
  });

  it("as a plain file gives the same answers", async () => {
    const history = await openJournalHistory(join(folder, "plain", "history.jsonl"));
    const now = await history.incidents({});
    expect(now.map(answerOf)).toEqual(before.map(answerOf));
    expect(await history.documentKeys("job/")).toEqual(["job/rehearsal"]);
    expect((await history.jobs(9)).map(({ job }) => job)).toEqual(["rehearsal"]);
    await history.close();
  });
});

/** What an open incident has wasted goes on with the clock. */
function answerOf(incident: Incident): Incident {
  return { ...incident, wastedGpuMs: 0 };
}
