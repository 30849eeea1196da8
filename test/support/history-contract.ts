/** What every history owes, whatever keeps it. Run for a DuckDB file and for a real ClickHouse. */
import { describe, expect, it } from "vitest";
import type { History, IterationRows, RowAt } from "../../src/history/history.ts";
import type { Incident } from "../../src/model/incident.ts";
import {
  auditRow,
  HOSTILE,
  incidentOf,
  iterationRows,
  jobRow,
  suspect,
  verdictOf,
} from "./history-rows.ts";

const numbersOf = (rows: IterationRows): number[] => [...rows.iteration];

/** `fresh`: a history with nothing in it. It is closed here. */
export function historyContract(name: string, fresh: () => Promise<History>): void {
  describe(name, () => {
    let history: History;
    const withHistory = (title: string, check: () => Promise<void>): void =>
      it(title, async () => {
        history = await fresh();
        try {
          await check();
        } finally {
          await history.close();
        }
      });

    withHistory("is empty at first", async () => {
      expect(await history.jobs(10)).toEqual([]);
      expect(await history.incidents({})).toEqual([]);
      expect(await history.incidentHistory("i1")).toEqual([]);
      expect(await history.audit({})).toEqual([]);
      expect(numbersOf(await history.iterations("j", "r", { most: 10 }))).toEqual([]);
      expect(await history.offenders(0, 10)).toEqual([]);
      expect(await history.document("x")).toBeNull();
      expect(await history.documentKeys("")).toEqual([]);
      await history.ping();
    });

    withHistory("keeps one row a run, the one seen last", async () => {
      const first = jobRow("a", "r1", { startedMs: 1 });
      await history.putJob(first);
      await history.putJob(first);
      expect(await history.jobs(10)).toEqual([first]);
      const later = jobRow("a", "r1", { startedMs: 1, seenMs: 3000, endedMs: 3000 });
      await history.putJob(later);
      await history.putJob(jobRow("a", "r1", { startedMs: 1, seenMs: 2500, lastIteration: 1 }));
      const equal = { ...later, lastIteration: 99 };
      await history.putJob(equal);
      expect(await history.jobs(10)).toEqual([equal]);
      const other = jobRow("a", "r2", { startedMs: 5, baselineMs: null });
      const third = jobRow("b", "r1", { startedMs: 3, worldSize: 2 ** 53 - 1 });
      // The separator between two names must not be guessable.
      const close = jobRow("", "ar1", { startedMs: 0 });
      await Promise.all([other, third, close].map((row) => history.putJob(row)));
      expect(await history.jobs(10)).toEqual([other, third, equal, close]);
      expect(await history.jobs(2)).toEqual([other, third]);
      expect(await history.jobs(0)).toEqual([]);
    });

    withHistory("keeps every revision of an incident as it was first written", async () => {
      const first = incidentOf("i1", 1, "suspected");
      const second = incidentOf("i1", 2, "confirmed", {
        verdict: verdictOf(suspect("node1", "gpu-slow")),
        machines: ["node1"],
      });
      // Out of order, twice, and once with other content under a revision that is there.
      await history.putIncident(second);
      await history.putIncident(first);
      await history.putIncident(second);
      await history.putIncident(incidentOf("i1", 2, "resolved", { summary: "another" }));
      expect(await history.incidentHistory("i1")).toEqual([first, second]);
      expect(await history.incidents({})).toEqual([second]);
      const tenth = incidentOf("i1", 10, "resolved", { resolvedMs: 5000 });
      await history.putIncident(tenth);
      expect(await history.incidents({})).toEqual([tenth]);
      expect(await history.incidents({ open: true })).toEqual([]);
      expect(await history.incidents({ open: false })).toEqual([tenth]);
    });

    withHistory("finds incidents by every filter", async () => {
      const all = [
        incidentOf("i1", 1, "confirmed", { openedMs: 1000, machines: ["node1", "node2"] }),
        incidentOf("i2", 1, "suspected", { openedMs: 2000, job: "other" }),
        incidentOf("i3", 1, "resolved", { openedMs: 3000, machines: ["node2"] }),
        incidentOf("i4", 1, "relapsed", { openedMs: 3000, machines: ["node22"], job: "other" }),
      ];
      await Promise.all(all.map((incident) => history.putIncident(incident)));
      // The machine of an earlier revision is not one of the latest.
      await history.putIncident(incidentOf("i1", 2, "confirmed", { machines: ["node1"] }));
      const ids = async (query: Parameters<History["incidents"]>[0]): Promise<string[]> =>
        (await history.incidents(query)).map(({ id }) => id);
      expect(await ids({})).toEqual(["i4", "i3", "i2", "i1"]);
      expect(await ids({ job: "other" })).toEqual(["i4", "i2"]);
      expect(await ids({ open: true })).toEqual(["i4", "i2", "i1"]);
      expect(await ids({ sinceMs: 2000 })).toEqual(["i4", "i3", "i2"]);
      expect(await ids({ sinceMs: 2000.5 })).toEqual(["i4", "i3"]);
      expect(await ids({ sinceMs: -Infinity })).toHaveLength(4);
      expect(await ids({ machine: "node2" })).toEqual(["i3"]);
      expect(await ids({ machine: "node1" })).toEqual(["i1"]);
      expect(await ids({ most: 2 })).toEqual(["i4", "i3"]);
      expect(await ids({ ids: ["i1", "i3", "none", "o'x"] })).toEqual(["i3", "i1"]);
      expect(await ids({ ids: ["i1", "i3"], job: "other" })).toEqual([]);
      expect(await ids({ ids: [] })).toEqual([]);
      expect(await ids({ job: "other", open: true, sinceMs: 2500, machine: "node22" })).toEqual([
        "i4",
      ]);
      const over = { openedMs: 10, machines: [], summary: '"resolvedMs":9e9' };
      await history.putIncident(incidentOf("i5", 1, "resolved", { ...over, resolvedMs: 2500 }));
      await history.putIncident(incidentOf("i6", 1, "resolved", { ...over, resolvedMs: 1999 }));
      expect(await ids({ lastedMs: 2000 })).toEqual(["i4", "i3", "i2", "i1", "i5"]);
      expect(await ids({ lastedMs: 2500.5 })).toEqual(["i4", "i3", "i2", "i1"]);
      await expect(ids({ sinceMs: Number.NaN })).rejects.toThrow(/not a number/);
    });

    withHistory("counts offenders over jobs", async () => {
      const put = (incident: Incident): Promise<void> => history.putIncident(incident);
      const slow = verdictOf(suspect("node1", "gpu-slow"), suspect("node2", "network-slow"));
      await put(incidentOf("a", 1, "suspected", { machines: ["innocent"] }));
      await put(
        incidentOf("a", 2, "confirmed", { machines: ["node1", "node2", "node1"], verdict: slow }),
      );
      await put(incidentOf("a", 3, "resolved", { machines: [] }));
      await put(
        incidentOf("b", 1, "relapsed", {
          job: "other",
          openedMs: 4000,
          machines: ["node1"],
          verdict: verdictOf(suspect(null, "gpu-error")),
        }),
      );
      await put(incidentOf("c", 1, "suspected", { machines: ["node3"] }));
      await put(incidentOf("d", 1, "confirmed", { machines: ["node4"], openedMs: 10 }));
      expect(await history.offenders(0, 10)).toEqual([
        {
          machine: "node1",
          incidents: 2,
          jobs: 2,
          lastMs: 4000,
          causes: ["gpu-error", "gpu-slow"],
        },
        { machine: "node2", incidents: 1, jobs: 1, lastMs: 1000, causes: ["network-slow"] },
        { machine: "node4", incidents: 1, jobs: 1, lastMs: 10, causes: [] },
      ]);
      const recent = await history.offenders(2000, 10);
      expect(recent.map(({ machine, incidents }) => [machine, incidents])).toEqual([["node1", 1]]);
      expect(await history.offenders(0, 1)).toHaveLength(1);
      const ofOther = await history.offenders(0, 10, ["oth?r", "nobody-*"]);
      expect(ofOther.map(({ machine, incidents }) => [machine, incidents])).toEqual([["node1", 1]]);
      expect(await history.offenders(0, 10, [])).toEqual([]);
      const without = await history.offenders(0, 10, undefined, ["b", "d", "no'ne"]);
      expect(without).toMatchObject([
        { machine: "node1", incidents: 1, jobs: 1, lastMs: 1000 },
        { machine: "node2", incidents: 1 },
      ]);
    });

    withHistory("never changes the audit trail", async () => {
      const rows = [auditRow("b", 5), auditRow("a", 5), auditRow("c", 7, { incident: "i2" })];
      for (const row of rows) await history.putAudit(row);
      await history.putAudit(auditRow("a", 99, { who: "mallory" }));
      expect(await history.audit({})).toEqual([rows[2], rows[0], rows[1]]);
      expect(await history.audit({ most: 1 })).toEqual([rows[2]]);
      expect(await history.audit({ incident: "i2" })).toEqual([rows[2]]);
      expect(await history.audit({ incident: "i9" })).toEqual([]);
    });

    withHistory("pages incidents, also where many were opened at one moment", async () => {
      const all = [1, 2, 3, 4, 5].map((i) =>
        incidentOf(`i${i}`, 1, "resolved", { openedMs: i < 4 ? 5.25 : 6 }),
      );
      for (const incident of all) await history.putIncident(incident);
      const seen: string[] = [];
      for (let before: RowAt | undefined, page = 0; page < 9; page++) {
        const found = await history.incidents({ most: 2, ...(before ? { before } : {}) });
        if (found.length === 0) break;
        seen.push(...found.map(({ id }) => id));
        const { openedMs, id } = found.at(-1)!;
        before = { atMs: openedMs, id };
      }
      expect(seen).toEqual(["i5", "i4", "i3", "i2", "i1"]);
    });

    withHistory("pages the audit trail, also where many rows are of one moment", async () => {
      const rows = [1, 2, 3, 4, 5].map((i) => auditRow(`r${i}`, i < 4 ? 5 : 6));
      for (const row of rows) await history.putAudit(row);
      const seen: string[] = [];
      for (let before: RowAt | undefined, page = 0; page < 9; page++) {
        const found = await history.audit({ most: 2, ...(before ? { before } : {}) });
        if (found.length === 0) break;
        seen.push(...found.map(({ id }) => id));
        before = found.at(-1)!;
      }
      expect(seen).toEqual(["r5", "r4", "r3", "r2", "r1"]);
      const since = await history.audit({ sinceMs: 6, before: { atMs: 6, id: "r5" } });
      expect(since.map(({ id }) => id)).toEqual(["r4"]);
    });

    withHistory("tells rows and incidents by patterns of jobs", async () => {
      for (const [id, job] of [
        ["i1", "team-a-7b"],
        ["i2", "team-ab"],
        ["i3", "team_a-x"],
      ] as const)
        await history.putIncident(incidentOf(id, 1, "confirmed", { job }));
      for (const [i, incident] of ["i1", "i2", "i3", "", "unknown"].entries())
        await history.putAudit(auditRow(`r${i}`, i, { incident }));
      const incidents = async (...jobs: string[]): Promise<string[]> =>
        (await history.incidents({ jobs })).map(({ id }) => id).sort();
      const audit = async (...jobs: string[]): Promise<string[]> =>
        (await history.audit({ jobs })).map(({ incident }) => incident).sort();
      for (const [patterns, expected] of [
        [["team-a-*"], ["i1"]],
        [["team-a?"], ["i2"]],
        [
          ["team?a*", "nobody"],
          ["i1", "i2", "i3"],
        ],
        [["*"], ["i1", "i2", "i3"]],
        [["team-a"], []],
        [["team-a.*"], []],
        [["(team|x"], []],
        [[], []],
      ] as const) {
        expect(await incidents(...patterns), patterns.join()).toEqual(expected);
        expect(await audit(...patterns), patterns.join()).toEqual(expected);
      }
      expect(await history.incidents({ job: "team-ab", jobs: ["team-a-*"] })).toEqual([]);
    });

    withHistory("keeps an iteration once, the last put", async () => {
      const put = (...rows: (readonly [number, number, number])[]): Promise<void> =>
        history.putIterations("j", "r", iterationRows(rows));
      await put([3, 3000, 10], [1, 1000, 11], [2, 2000, 12]);
      await put([2, 2500, Number.NaN], [4, 4000, 13.125], [4, 4100, 1e300]);
      await history.putIterations("j", "other", iterationRows([[9, 9000, 9]]));
      await put();
      expect(await history.iterations("j", "r", { most: 10 })).toEqual(
        iterationRows([
          [1, 1000, 11],
          [2, 2500, Number.NaN],
          [3, 3000, 10],
          [4, 4100, 1e300],
        ]),
      );
      // Iteration 2 was put at 2000 and at 2500: only the last counts.
      expect(numbersOf(await history.iterations("j", "r", { toMs: 2000, most: 9 }))).toEqual([1]);
      const some = await history.iterations("j", "r", { fromMs: 2500, toMs: 3000, most: 9 });
      expect(numbersOf(some)).toEqual([2, 3]);
      await expect(put([1, Number.NaN, 1])).rejects.toThrow(/row 0/);
      const uneven = { ...iterationRows([[1, 2, 3]]), endMs: new Float64Array(2) };
      await expect(history.putIterations("j", "r", uneven)).rejects.toThrow(/unequal/);
    });

    withHistory("thins iterations out evenly, the newest stays", async () => {
      const n = 100_000;
      const rows: IterationRows = {
        iteration: Float64Array.from({ length: n }, (_, i) => i),
        endMs: Float64Array.from({ length: n }, (_, i) => 1.7e12 + i * 1000),
        durationMs: Float64Array.from({ length: n }, (_, i) => (i * 7919) % 1009),
      };
      const kept = rows.durationMs.slice();
      const put = history.putIterations("j", "r", rows);
      // Whoever puts may use its arrays again at once.
      rows.durationMs.fill(-1);
      await put;
      const thin = await history.iterations("j", "r", { most: 1000 });
      expect(numbersOf(thin)).toEqual(Array.from({ length: 1000 }, (_, i) => i * 100 + 99));
      expect([...thin.durationMs]).toEqual(numbersOf(thin).map((i) => kept[i]));
      const uneven = numbersOf(await history.iterations("j", "r", { most: 7 }));
      expect(uneven).toHaveLength(7);
      expect(uneven.at(-1)).toBe(n - 1);
      expect(numbersOf(await history.iterations("j", "r", { most: 1 }))).toEqual([n - 1]);
      expect(numbersOf(await history.iterations("j", "r", { most: 0 }))).toEqual([]);
      const all = await history.iterations("j", "r", { most: Infinity });
      expect(all.durationMs).toEqual(kept);
    });

    withHistory("keeps documents by key", async () => {
      await history.putDocument("job/a", { version: 1, of: ["x"] });
      await history.putDocument("job/a", { version: 2 });
      await history.putDocument("job/b", "text");
      await history.putDocument("jobs", false);
      expect(await history.document("job/a")).toEqual({ version: 2 });
      expect(await history.document("jobs")).toBe(false);
      expect(await history.documentKeys("job/")).toEqual(["job/a", "job/b"]);
      expect(await history.documentKeys("")).toEqual(["job/a", "job/b", "jobs"]);
      await history.putDocument("job/a", null);
      expect(await history.document("job/a")).toBeNull();
      expect(await history.documentKeys("job/")).toEqual(["job/b"]);
      await history.putDocument("job/a", 3);
      expect(await history.document("job/a")).toBe(3);
      const circle: unknown[] = [];
      circle.push(circle);
      await expect(history.putDocument("job/c", circle)).rejects.toThrow(/not JSON/);
    });

    withHistory("bears hostile text in every place", async () => {
      const texts = HOSTILE;
      for (const [i, text] of texts.entries()) {
        const incident = incidentOf(`${text}#${i}`, 1, "confirmed", {
          job: text,
          summary: text,
          machines: [`${text}#${i}`],
          openedMs: i,
        });
        const audit = auditRow(`${text}#${i}`, i, { incident: text, detail: text, who: text });
        const job = jobRow(text, `${text}#${i}`);
        const rows = iterationRows([[i, 1, 2]]);
        await Promise.all([
          history.putJob(job),
          history.putIncident(incident),
          history.putAudit(audit),
          history.putIterations(text, text, rows),
          history.putDocument(`${text}#${i}`, { text }),
        ]);
        expect(await history.incidents({ job: text })).toEqual([incident]);
        expect(await history.incidents({ machine: `${text}#${i}` })).toEqual([incident]);
        expect(await history.incidentHistory(incident.id)).toEqual([incident]);
        expect(await history.audit({ incident: text })).toEqual([audit]);
        expect(await history.iterations(text, text, { most: 10 })).toEqual(rows);
        expect(await history.document(`${text}#${i}`)).toEqual({ text });
        expect(await history.documentKeys(`${text}#${i}`)).toHaveLength(1);
        expect(await history.jobs(100)).toContainEqual(job);
      }
      expect(await history.jobs(100)).toHaveLength(texts.length);
      expect(await history.incidents({})).toHaveLength(texts.length);
      expect(await history.offenders(-1, 100)).toHaveLength(texts.length);
      expect(await history.documentKeys("")).toHaveLength(texts.length);
    });

    withHistory("bears long text", async () => {
      const text = "long 'text' \\ ".repeat(80_000);
      const audit = auditRow("a", 1, { detail: text, incident: text });
      const incident = incidentOf("i", 1, "confirmed", { summary: text, job: text });
      await Promise.all([
        history.putAudit(audit),
        history.putIncident(incident),
        history.putJob(jobRow(text, text)),
        history.putDocument(text, { text }),
      ]);
      expect(await history.audit({})).toEqual([audit]);
      expect(await history.incidents({})).toEqual([incident]);
      expect(await history.jobs(1)).toEqual([jobRow(text, text)]);
      expect(await history.document(text)).toEqual({ text });
    });

    withHistory("bears huge numbers and refuses what is none", async () => {
      const row = jobRow("j", "r", { startedMs: 1e300, seenMs: -1e300, baselineMs: 5e-324 });
      await history.putJob(row);
      expect(await history.jobs(1)).toEqual([row]);
      const incident = incidentOf("i", Number.MAX_SAFE_INTEGER, "confirmed", {
        openedMs: Number.MAX_VALUE,
        wastedGpuMs: 2 ** 80,
      });
      await history.putIncident(incident);
      expect(await history.incidents({ sinceMs: Infinity })).toEqual([incident]);
      const rows = iterationRows([
        [2 ** 53, -1e300, -0],
        [1e300, 1.7e12 + 0.1, 0.1 + 0.2],
      ]);
      await history.putIterations("j", "r", rows);
      expect(await history.iterations("j", "r", { most: 10 })).toEqual(rows);
      await expect(history.putIncident(incidentOf("i", 0, "confirmed"))).rejects.toThrow(
        /revision/,
      );
      await expect(
        history.putIncident(incidentOf("i", 1, "confirmed", { openedMs: Number.NaN })),
      ).rejects.toThrow(/missing/);
      await expect(history.putJob(jobRow("j", "r", { seenMs: Infinity }))).rejects.toThrow();
      await expect(history.putAudit(auditRow("x", Number.NaN))).rejects.toThrow();
      await expect(history.jobs(Number.NaN)).rejects.toThrow();
    });

    withHistory("takes many puts at once", async () => {
      const puts: Promise<void>[] = [];
      for (let i = 0; i < 300; i++) {
        puts.push(history.putJob(jobRow(`job${i % 20}`, "r", { seenMs: i })));
        puts.push(
          history.putIncident(incidentOf(`i${i % 50}`, 1 + Math.floor(i / 50), "confirmed")),
        );
        puts.push(history.putAudit(auditRow(`a${i % 100}`, i)));
        puts.push(history.putIterations(`job${i % 20}`, "r", iterationRows([[i, i, i]])));
        puts.push(history.putDocument(`d${i % 10}`, i));
        if (i % 60 === 0) puts.push(history.jobs(5).then(() => {}));
      }
      await Promise.all(puts);
      const jobs = await history.jobs(100);
      expect(jobs.map(({ seenMs }) => seenMs).sort((a, b) => a - b)).toEqual(
        Array.from({ length: 20 }, (_, i) => 280 + i),
      );
      const incidents = await history.incidents({});
      expect(incidents).toHaveLength(50);
      expect(new Set(incidents.map(({ revision }) => revision))).toEqual(new Set([6]));
      expect(await history.incidentHistory("i7")).toHaveLength(6);
      const audit = await history.audit({});
      expect(audit.map(({ atMs }) => atMs)).toEqual(Array.from({ length: 100 }, (_, i) => 99 - i));
      const some = await history.iterations("job3", "r", { most: 100 });
      expect(numbersOf(some)).toEqual(Array.from({ length: 15 }, (_, i) => 3 + i * 20));
      for (let i = 0; i < 10; i++) expect(await history.document(`d${i}`)).toBe(290 + i);
    });

    withHistory("forgets iterations, and nothing else", async () => {
      await history.putJob(jobRow("j", "r"));
      await history.putIterations(
        "j",
        "r",
        iterationRows([
          [1, 1000, 1],
          [2, 2000, 1],
          [3, 3000, 1],
        ]),
      );
      await history.prune?.(2000);
      await expect
        .poll(async () => numbersOf(await history.iterations("j", "r", { most: 9 })), {
          timeout: 30_000,
        })
        .toEqual([2, 3]);
      expect(await history.jobs(9)).toHaveLength(1);
    });

    withHistory(
      "forgets old incidents that are over, with all their revisions, and old runs",
      async () => {
        if (!history.pruneIncidents) return;
        await Promise.all([
          history.putIncident(incidentOf("old", 1, "confirmed", { openedMs: 1000 })),
          history.putIncident(incidentOf("old", 2, "resolved", { openedMs: 1000 })),
          history.putIncident(incidentOf("open", 1, "confirmed", { openedMs: 1000 })),
          history.putIncident(incidentOf("new", 1, "resolved", { openedMs: 2000 })),
          history.putAudit(auditRow("a", 1000)),
          history.putJob(jobRow("j", "r1", { seenMs: 1000 })),
          history.putJob(jobRow("j", "r2", { seenMs: 2000 })),
        ]);
        await history.pruneIncidents(2000);
        expect((await history.incidents({})).map(({ id }) => id).sort()).toEqual(["new", "open"]);
        expect(await history.incidentHistory("old")).toEqual([]);
        expect((await history.jobs(9)).map(({ run }) => run)).toEqual(["r2"]);
        expect(await history.audit({})).toHaveLength(1);
      },
    );

    it("takes nothing after it is closed", async () => {
      const closed = await fresh();
      const last = closed.putDocument("x", 1);
      await closed.close();
      await closed.close();
      await last;
      await expect(closed.putDocument("x", 2)).rejects.toThrow(/closed/);
      await expect(closed.jobs(1)).rejects.toThrow(/closed/);
    });
  });
}
