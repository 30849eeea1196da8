/** The history in a real ClickHouse of the oldest supported version. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { UserError } from "../../src/base/errors.ts";
import { bufferHistory } from "../../src/history/buffered-history.ts";
import { openClickHouseHistory } from "../../src/history/clickhouse-history.ts";
import { TABLES } from "../../src/history/clickhouse-schema.ts";
import {
  type ClickHouseServer,
  startClickHouse,
  whyNoClickHouse,
} from "../support/clickhouse-server.ts";
import { historyContract } from "../support/history-contract.ts";
import { auditRow, incidentOf, iterationRows } from "../support/history-rows.ts";

describe.skipIf(whyNoClickHouse !== "")(`ClickHouse${whyNoClickHouse}`, () => {
  let server: ClickHouseServer;
  beforeAll(async () => {
    server = await startClickHouse();
  }, 60_000);
  afterAll(async () => {
    await server?.stop();
  });
  const ask = async (sql: string): Promise<string> => {
    const { username, password } = new URL(server.url);
    const login = Buffer.from(`${username}:${decodeURIComponent(password)}`).toString("base64");
    const response = await fetch(server.httpUrl, {
      method: "POST",
      body: sql,
      headers: { authorization: `Basic ${login}` },
    });
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return text.trim();
  };
  /** A database of its own for each. */
  let databases = 0;
  const newUrl = async (): Promise<string> => {
    const name = `test${++databases}`;
    await ask(`CREATE DATABASE ${name}`);
    return server.url.replace(/default$/, name);
  };

  historyContract(
    "the history in ClickHouse",
    async () => await openClickHouseHistory(await newUrl(), { pauseMs: 5 }),
  );

  it("lets several services make the tables at once, and see each other's rows", async () => {
    const url = await newUrl();
    const services = await Promise.all(
      Array.from({ length: 5 }, () => openClickHouseHistory(url, { pauseMs: 5 })),
    );
    try {
      await Promise.all(
        services.map(async (service, i) => {
          await service.putIncident(incidentOf("same", 1, "suspected"));
          await service.putAudit(auditRow(`a${i}`, i));
        }),
      );
      for (const service of services) {
        expect(await service.incidents({})).toHaveLength(1);
        expect(await service.audit({})).toHaveLength(5);
      }
      // Rows are written several times; merges decide when the others go.
      const rows = `SELECT count() FROM ${url.split("/").at(-1)}.${TABLES.incidents}`;
      expect(Number(await ask(rows))).toBeGreaterThanOrEqual(1);
    } finally {
      await Promise.all(services.map((service) => service.close()));
    }
  });

  it("lets the last put count although the clock was set back meanwhile", async () => {
    const url = await newUrl();
    const early = await openClickHouseHistory(url, { nowMs: () => 1.8e12 });
    await early.putDocument("k", "first");
    await early.putIncident(incidentOf("i", 1, "suspected", { summary: "first" }));
    await early.close();
    const late = await openClickHouseHistory(url, { nowMs: () => 1.79e12 });
    try {
      await late.putDocument("k", "second");
      await late.putIncident(incidentOf("i", 1, "confirmed", { summary: "second" }));
      expect(await late.document("k")).toBe("second");
      expect((await late.incidents({}))[0]?.summary).toBe("first");
    } finally {
      await late.close();
    }
  });

  it("says in one sentence what is wrong", async () => {
    const refusal = async (url: string): Promise<UserError> => {
      const error: unknown = await openClickHouseHistory(url).then(
        (history) => history.close(),
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(UserError);
      expect((error as UserError).message).not.toMatch(/\n|p@ss|p%40ss/);
      return error as UserError;
    };
    const password = await refusal(server.url.replace(/word@/, "x@"));
    expect(password.message).toMatch(/password/i);
    expect(password.hint).toMatch(/user and password/);
    const database = await refusal(server.url.replace(/default$/, "nowhere"));
    expect(database.message).toMatch(/nowhere/);
    expect(database.hint).toMatch(/CREATE DATABASE/);
    const away = await refusal(server.url.replace(/:\d+\/default$/, ":1/default"));
    expect(away.message).toMatch(/ECONNREFUSED/);
  });

  it("loses nothing when the server is killed under load and comes back", async () => {
    const url = await newUrl();
    const troubles: string[] = [];
    const store = await openClickHouseHistory(url, { pauseMs: 5, timeoutMs: 5000 });
    const history = bufferHistory(store, {
      acknowledge: "stored",
      firstDelayMs: 20,
      mostDelayMs: 200,
      onTrouble: (line) => troubles.push(line),
    });
    try {
      let stored = 0;
      const puts: Promise<void>[] = [];
      const put = (i: number): void => {
        for (const one of [
          history.putIncident(incidentOf(`i${i % 100}`, 1 + Math.floor(i / 100), "confirmed")),
          history.putAudit(auditRow(`a${i}`, i)),
          history.putIterations("j", "r", iterationRows([[i, i, i]])),
          history.putDocument("k", i),
        ]) {
          puts.push(one.then(() => void stored++));
        }
      };
      let next = 0;
      for (let kill = 0; kill < 2; kill++) {
        const from = stored;
        for (let i = 0; i < 100; i++) put(next++);
        // Some are stored, some are on their way.
        await expect.poll(() => stored > from, { timeout: 60_000, interval: 1 }).toBe(true);
        for (let i = 0; i < 100; i++) put(next++);
        await server.kill();
        for (let i = 0; i < 100; i++) put(next++);
        await expect.poll(() => troubles.length > 2 * kill, { timeout: 60_000 }).toBe(true);
        await expect(history.jobs(1)).rejects.toThrow(/ClickHouse at/);
        expect(history.pending).toBeGreaterThanOrEqual(100);
        await server.start();
        await Promise.all(puts);
      }
      expect(history.pending).toBe(0);
      expect(history.lost).toBe(0);
      expect(history.failures).toBeGreaterThan(0);
      const incidents = await history.incidents({ most: 1e5 });
      expect(incidents.map(({ revision }) => revision)).toEqual(
        Array.from({ length: 100 }, () => next / 100),
      );
      expect(await history.incidentHistory("i7")).toHaveLength(next / 100);
      expect(await history.audit({ most: 1e5 })).toHaveLength(next);
      const { iteration } = await history.iterations("j", "r", { most: 1e5 });
      expect(iteration).toEqual(Float64Array.from({ length: next }, (_, i) => i));
      expect(await history.document("k")).toBe(next - 1);
    } finally {
      await history.close();
    }
  });

  it("opens before the server is there, where that is wished", async () => {
    const url = await newUrl();
    await server.kill();
    const history = await openClickHouseHistory(url, { mayBeDown: true });
    try {
      await expect(history.ping()).rejects.toThrow(/ECONNREFUSED/);
      await expect(history.putDocument("k", 1)).rejects.toThrow(/ECONNREFUSED/);
      await server.start();
      await history.putDocument("k", 2);
      expect(await history.document("k")).toBe(2);
    } finally {
      await history.close();
    }
  });

  it("gives up a server that takes connections and says nothing", async () => {
    const history = await openClickHouseHistory(await newUrl(), { timeoutMs: 300 });
    try {
      server.freeze();
      await expect(history.ping()).rejects.toThrow(/ClickHouse at .*time/i);
      await expect(history.putDocument("k", 1)).rejects.toThrow(/time/i);
    } finally {
      server.thaw();
      await history.close();
    }
  });
});
