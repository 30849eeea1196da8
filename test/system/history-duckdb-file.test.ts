/** The file of the embedded history: what a kill -9 leaves, who else may open it, what damage looks like. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UserError } from "../../src/base/errors.ts";
import { openDuckDbHistory } from "../../src/history/duckdb-history.ts";
import type { History } from "../../src/history/history.ts";
import { iterationRows, jobRow } from "../support/history-rows.ts";
import { longTest, runs } from "../support/cases.ts";

const writer = fileURLToPath(new URL("../support/history-writer.ts", import.meta.url));
const ROUNDS = runs(3, 6);

let folder: string;
let path: string;
let children: ChildProcess[];
let histories: History[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-history-"));
  path = join(folder, "history.duckdb");
  children = [];
  histories = [];
});
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  for (const history of histories) await history.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(at = path): Promise<History> {
  const history = await openDuckDbHistory(at);
  histories.push(history);
  return history;
}

async function refused(at = path): Promise<UserError> {
  const error: unknown = await open(at).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(UserError);
  return error as UserError;
}

function startWriter(round: number): { child: ChildProcess; lines: string[]; told: () => string } {
  const child = spawn(process.execPath, ["--import", "tsx", writer, path, String(round)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  const lines: string[] = [];
  let rest = "";
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => {
    const parts = (rest + chunk.toString()).split("\n");
    rest = parts.pop()!;
    lines.push(...parts);
  });
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  return { child, lines, told: () => said };
}

describe("a service that is killed", () => {
  it("loses nothing that was acknowledged, however often", async () => {
    const incidents = new Set<string>();
    const audits = new Set<string>();
    const latest = new Map<string, number>();
    for (let round = 0; round < ROUNDS; round++) {
      const { child, lines, told } = startWriter(round);
      const ended = once(child, "exit");
      // Different amounts, so that kills fall into different moments of writing the file.
      const enough = [0, 501, 97, 23, 190, 333][round]!;
      await expect
        .poll(() => child.exitCode !== null || lines.length > enough, {
          timeout: 60_000,
          interval: 3,
        })
        .toBe(true);
      child.kill("SIGKILL");
      await ended;
      expect(told()).toBe("");
      for (const line of lines) {
        const [what = "", of = "", i = ""] = line.split(" ");
        if (what === "incident") incidents.add(of);
        else if (what === "audit") audits.add(of);
        else if (what !== "open") latest.set(`${what} ${of}`, Number(i));
      }
      const history = await openDuckDbHistory(path);
      try {
        const there = await history.incidents({ most: 1e6 });
        const thereIds = new Set(there.map(({ id }) => id));
        expect(there).toHaveLength(thereIds.size);
        expect([...incidents].filter((id) => !thereIds.has(id))).toEqual([]);
        const rows = new Set((await history.audit({ most: 1e6 })).map(({ id }) => id));
        expect([...audits].filter((id) => !rows.has(id))).toEqual([]);
        const jobs = new Map((await history.jobs(100)).map(({ run, seenMs }) => [run, seenMs]));
        for (const [key, i] of latest) {
          const [what = "", of = ""] = key.split(" ");
          if (what === "job") expect(jobs.get(`r${of}`)).toBeGreaterThanOrEqual(i);
          if (what === "document") {
            const document = (await history.document(`doc${of}`)) as { i: number };
            expect(document.i).toBeGreaterThanOrEqual(i);
          }
          if (what === "iteration") {
            const { iteration } = await history.iterations("job", `r${of}`, { most: 1e6 });
            expect(iteration.length).toBeGreaterThan(i);
            expect(iteration).toEqual(Float64Array.from(iteration, (_, at) => at));
          }
        }
      } finally {
        await history.close();
      }
    }
    expect(incidents.size).toBeGreaterThan(runs(80, 200));
    expect(readdirSync(folder).filter((name) => name.includes(".new-"))).toEqual([]);
  });
});

describe("the file", () => {
  it("remembers over a restart, and replaces iterations of an earlier start", async () => {
    const first = await open();
    await first.putJob(jobRow("j", "r"));
    await first.putIterations("j", "r", iterationRows([[5, 50, 1]]));
    await first.putDocument("k", { a: 1 });
    await first.close();
    const second = await open();
    await second.putIterations(
      "j",
      "r",
      iterationRows([
        [4, 40, 2],
        [5, 55, 2],
      ]),
    );
    expect(await second.jobs(9)).toEqual([jobRow("j", "r")]);
    expect(await second.document("k")).toEqual({ a: 1 });
    expect([...(await second.iterations("j", "r", { most: 9 })).endMs]).toEqual([40, 55]);
  });

  it("belongs to one process, and to one history in it", async () => {
    const { child, lines } = startWriter(0);
    const ended = once(child, "exit");
    await expect.poll(() => lines.length > 0, { timeout: 60_000 }).toBe(true);
    const error = await refused();
    expect(error.message).toContain(`in use by process ${child.pid}`);
    expect(error.hint).toMatch(/one service/);
    child.kill("SIGKILL");
    await ended;
    const history = await open();
    expect((await refused()).message).toMatch(/open already/);
    mkdirSync(join(folder, "x"));
    symlinkSync(folder, join(folder, "x", "again"));
    expect((await refused(join(folder, "x", "again", "history.duckdb"))).message).toMatch(
      /open already/,
    );
    await history.close();
    await open();
  });

  longTest("with its log cut anywhere in the last write, has all that came before", async () => {
    const history = await open();
    await history.putIterations("j", "r", iterationRows([[1, 1, 1]]));
    await history.putDocument("k", { a: "before" });
    const before = statSync(`${path}.wal`).size;
    await history.putDocument("k", { a: "after" });
    const [file, log] = [readFileSync(path), readFileSync(`${path}.wal`)];
    const outcomes: string[] = [];
    for (let cut = before; cut <= log.length; cut++) {
      const torn = join(folder, `torn-${cut}.duckdb`);
      writeFileSync(torn, file);
      writeFileSync(`${torn}.wal`, log.subarray(0, cut));
      const opened = await openDuckDbHistory(torn);
      const { a } = (await opened.document("k")) as { a: string };
      outcomes.push(a);
      expect((await opened.iterations("j", "r", { most: 9 })).iteration).toHaveLength(1);
      await opened.close();
      rmSync(torn);
    }
    expect(outcomes.length).toBeGreaterThan(100);
    const at = outcomes.indexOf("after");
    expect(outcomes).toEqual(outcomes.map((_, i) => (i < at ? "before" : "after")));
    expect(outcomes.at(-1)).toBe("after");
  });

  it("that is too large forgets its oldest iterations, and nothing else", async () => {
    const history = await openDuckDbHistory(path);
    histories.push(history);
    const count = 400_000;
    const column = (of: (i: number) => number): Float64Array =>
      Float64Array.from({ length: count }, (_, i) => of(i));
    await history.putIterations("j", "r", {
      iteration: column((i) => i),
      endMs: column((i) => 1000 * i),
      durationMs: column((i) => Math.sin(i)),
    });
    await history.putJob(jobRow("j", "r"));
    const all = await history.shrink(Infinity);
    expect(await history.shrink(all / 2)).toBeLessThanOrEqual(all / 2);
    const { iteration } = await history.iterations("j", "r", { most: count });
    expect(iteration.length).toBeGreaterThan(count / 10);
    expect(iteration.length).toBeLessThan(0.7 * count);
    expect(iteration.at(-1)).toBe(count - 1);
    expect(await history.jobs(9)).toHaveLength(1);
  });

  const damages: Record<string, (bytes: Buffer) => Buffer> = {
    "is empty": () => Buffer.alloc(0),
    "is text": () => Buffer.from("hello world\n"),
    "is cut": (bytes) => bytes.subarray(0, bytes.length >> 1),
    "has other bytes at its start": (bytes) =>
      Buffer.concat([Buffer.alloc(9000, 7), bytes.subarray(9000)]),
    "has other bytes all over": (bytes) =>
      Buffer.from(bytes.map((b, i) => (i % 97 === 0 ? b ^ 255 : b))),
  };
  it.each(Object.keys(damages))("that %s is refused, and left alone", async (what) => {
    const before = await open();
    const texts = Array.from({ length: 50 }, (_, i) => `${i} `.repeat(2000));
    await Promise.all(texts.map((text) => before.putDocument(text.slice(0, 3), text)));
    await before.close();
    const damaged = damages[what]!(readFileSync(path));
    writeFileSync(path, damaged);
    const error = await refused();
    expect(error.message).toMatch(/cannot be read/);
    expect(error.hint).toContain(`mv '${path}'`);
    expect(readFileSync(path).equals(damaged)).toBe(true);
  });

  it("of something else, of a newer version or without a folder is refused", async () => {
    const other = await DuckDBInstance.create(path);
    const connection = await other.connect();
    await connection.run("CREATE TABLE cats (name VARCHAR)");
    connection.closeSync();
    other.closeSync();
    expect((await refused()).message).toMatch(/something else \(cats\)/);

    const newer = join(folder, "newer.duckdb");
    await (await open(newer)).close();
    const instance = await DuckDBInstance.create(newer);
    const own = await instance.connect();
    await own.run("INSERT INTO faultline_schema VALUES (99)");
    own.closeSync();
    instance.closeSync();
    expect((await refused(newer)).message).toMatch(/newer Faultline .*version 99/);

    expect((await refused(join(folder, "no", "where.duckdb"))).message).toMatch(/no folder/);
    expect((await refused(folder)).message).toMatch(/cannot be/);
  });
});
