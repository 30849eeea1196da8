/** The queue before a store that goes away: nothing lost, bounded, in order. Over a real store with a switch before it. */
import { describe, expect, it } from "vitest";
import { bufferHistory, type BufferOptions } from "../src/history/buffered-history.ts";
import { openDuckDbHistory } from "../src/history/duckdb-history.ts";
import type { History } from "../src/history/history.ts";
import { historyContract } from "./support/history-contract.ts";
import { auditRow, incidentOf, iterationRows, jobRow } from "./support/history-rows.ts";

historyContract("a buffered history", async () =>
  bufferHistory(await openDuckDbHistory(":memory:"), { acknowledge: "stored" }),
);

interface Switch {
  /** Puts that fail: null none. */
  fails: ((method: string, args: readonly unknown[]) => boolean) | null;
  /** Stored, but the answer is lost on its way. */
  losesAnswers: boolean;
  puts: number;
}

function withSwitch(store: History): { history: History; state: Switch } {
  const state: Switch = { fails: null, losesAnswers: false, puts: 0 };
  const history = new Proxy(store, {
    get(target, name: keyof History) {
      const method = target[name] as (...args: unknown[]) => Promise<unknown>;
      if (name === "close") return method;
      return async (...args: unknown[]) => {
        if (name.startsWith("put")) state.puts++;
        if (state.fails?.(name, args) === true) throw new Error("the store is away");
        const answer = await method(...args);
        if (state.losesAnswers) throw new Error("the answer was lost");
        return answer;
      };
    },
  });
  return { history, state };
}

const quick: BufferOptions = { acknowledge: "queued", firstDelayMs: 1, mostDelayMs: 5 };

async function check(
  options: Partial<BufferOptions>,
  body: (
    history: ReturnType<typeof bufferHistory>,
    state: Switch,
    troubles: readonly string[],
  ) => Promise<void>,
): Promise<void> {
  const { history: store, state } = withSwitch(await openDuckDbHistory(":memory:"));
  const troubles: string[] = [];
  const onTrouble = (line: string): void => void troubles.push(line);
  const history = bufferHistory(store, { ...quick, onTrouble, ...options });
  try {
    await body(history, state, troubles);
  } finally {
    state.fails = null;
    state.losesAnswers = false;
    await history.close();
  }
}
const drained = (history: { readonly pending: number }): Promise<void> =>
  expect.poll(() => history.pending, { timeout: 30_000 }).toBe(0);
const always = (): boolean => true;

describe("a store that goes away", () => {
  it("has everything when it is back; reads fail meanwhile", async () => {
    await check({}, async (history, state, troubles) => {
      state.fails = always;
      for (let i = 0; i < 50; i++) {
        await history.putIncident(incidentOf("i", i + 1, "confirmed"));
        await history.putAudit(auditRow(`a${i}`, i));
        await history.putJob(jobRow("j", "r", { seenMs: i }));
        await history.putDocument("k", i);
        await history.putIterations("j", "r", iterationRows([[i, i, i]]));
      }
      await expect(history.incidents({})).rejects.toThrow(/away/);
      await expect(history.ping()).rejects.toThrow(/away/);
      await expect.poll(() => history.failures > 10, { timeout: 30_000 }).toBe(true);
      // Of a job and a document at most the one on its way and the newest wait.
      expect(history.pending).toBeLessThanOrEqual(150 + 4);
      expect(history.pending).toBeGreaterThanOrEqual(150 + 2);
      state.fails = null;
      await drained(history);
      expect(await history.incidentHistory("i")).toHaveLength(50);
      expect(await history.audit({})).toHaveLength(50);
      expect((await history.jobs(9)).map(({ seenMs }) => seenMs)).toEqual([49]);
      expect(await history.document("k")).toBe(49);
      expect((await history.iterations("j", "r", { most: 99 })).iteration).toHaveLength(50);
      expect(history.lost).toBe(0);
      expect(troubles).toHaveLength(2);
    });
  });

  it("that stores but does not say so keeps each row once, the last", async () => {
    await check({ acknowledge: "stored" }, async (history, state) => {
      state.losesAnswers = true;
      const puts = [1, 2, 3].flatMap((i) => [
        history.putDocument("k", i),
        history.putAudit(auditRow(`a${i}`, i)),
        history.putIterations("j", "r", iterationRows([[1, i, i]])),
      ]);
      await expect.poll(() => history.failures > 20, { timeout: 30_000 }).toBe(true);
      state.losesAnswers = false;
      await Promise.all(puts);
      expect(await history.document("k")).toBe(3);
      expect(await history.audit({})).toHaveLength(3);
      const { endMs } = await history.iterations("j", "r", { most: 9 });
      expect([...endMs]).toEqual([3]);
    });
  });

  it("for one key only holds nothing else up, and keeps that key's order", async () => {
    await check({}, async (history, state) => {
      // Only the first document fails: the second must not end up under it.
      let failed = 0;
      state.fails = (method, [, document]) =>
        method === "putDocument" && document === 1 && failed++ < 20;
      await history.putDocument("k", 1);
      await expect.poll(() => failed > 1, { timeout: 30_000 }).toBe(true);
      await history.putDocument("k", 2);
      await history.putDocument("other", 3);
      await expect.poll(async () => await history.document("other"), { timeout: 30_000 }).toBe(3);
      await drained(history);
      expect(await history.document("k")).toBe(2);
    });
  });
});

describe("the queue", () => {
  it("drops the oldest iterations first, and records only beyond their own bound", async () => {
    await check({ mostIterationRows: 10, mostRecords: 30 }, async (history, state, troubles) => {
      state.fails = always;
      for (let i = 0; i < 25; i++) {
        await history.putIterations("j", "r", iterationRows([[i, i, i]]));
        await history.putAudit(auditRow(`a${i}`, i));
      }
      expect(history.lost).toBe(15);
      expect(history.pending).toBe(35);
      for (let i = 25; i < 40; i++) await history.putAudit(auditRow(`a${i}`, i));
      expect(history.lost).toBe(25);
      state.fails = null;
      await drained(history);
      const { iteration } = await history.iterations("j", "r", { most: 99 });
      expect([...iteration]).toEqual(Array.from({ length: 10 }, (_, i) => 15 + i));
      const audit = await history.audit({});
      expect(audit.map(({ atMs }) => atMs)).toEqual(Array.from({ length: 30 }, (_, i) => 39 - i));
      expect(troubles.some((line) => /lost so far/.test(line))).toBe(true);
    });
  });

  it("gives up at once what no store can keep", async () => {
    await check({}, async (history) => {
      await history.putIncident(incidentOf("bad", 0, "confirmed"));
      await history.putIncident(incidentOf("good", 1, "confirmed"));
      await drained(history);
      expect(history.lost).toBe(1);
      expect(await history.incidents({})).toHaveLength(1);
    });
  });

  it("hands what waits to the store at once, so that it makes one group of it", async () => {
    await check({ acknowledge: "stored", atOnce: 64 }, async (history, state) => {
      await Promise.all(
        Array.from({ length: 200 }, (_, i) => history.putAudit(auditRow(`a${i}`, i))),
      );
      expect(state.puts).toBe(200);
      expect(await history.audit({})).toHaveLength(200);
    });
  });

  it("is emptied before the end; what cannot be stored until then is counted and told", async () => {
    const { history: store, state } = withSwitch(await openDuckDbHistory(":memory:"));
    const kept = bufferHistory(store, quick);
    await kept.putAudit(auditRow("a", 1));
    await kept.close();
    expect([kept.pending, kept.lost, state.puts]).toEqual([0, 0, 1]);

    const away = withSwitch(await openDuckDbHistory(":memory:"));
    away.state.fails = always;
    const lost = bufferHistory(away.history, {
      ...quick,
      acknowledge: "stored",
      closeWithinMs: 20,
    });
    const put = lost.putAudit(auditRow("a", 1));
    const told = expect(put).rejects.toThrow(/away until the end/);
    await lost.close();
    await told;
    expect([lost.pending, lost.lost]).toEqual([0, 1]);
    await expect(lost.putAudit(auditRow("b", 1))).rejects.toThrow(/closed/);
  });

  it("ends although the store hangs", async () => {
    const { history: store } = withSwitch(await openDuckDbHistory(":memory:"));
    const hanging: History = {
      ...bufferHistory(store, quick),
      putAudit: () => new Promise(() => {}),
    };
    const history = bufferHistory(hanging, { ...quick, closeWithinMs: 20 });
    await history.putAudit(auditRow("a", 1));
    await history.close();
    expect(history.lost).toBe(1);
  });
});
