import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FoundRing } from "../rings/discover.ts";
import { readTests } from "./request-tests.ts";
import { SlowStorage } from "./slow-storage.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-tests-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const ringOf = (rank: number): FoundRing =>
  ({
    path: join(folder, `job.r${rank}.${100 + rank}.python.ring`),
    header: { rank, writer: "python" },
    process: { state: "S" },
  }) as unknown as FoundRing;

const write = (rank: number, report: unknown): void =>
  writeFileSync(`${ringOf(rank).path}.validation.json`, JSON.stringify(report));

/** What is there by the end of the time, or as soon as all have it. */
async function read(rounds: number, waitMs: number): Promise<string[]> {
  const reply = await readTests(
    { atIteration: 100, rounds, waitMs },
    [ringOf(0), ringOf(1)],
    new SlowStorage(),
  );
  return reply.kind === "evidence" ? reply.files.map(({ name }) => name) : [];
}

describe("reports of tests so far", () => {
  it("are handed over as soon as all ranks have done so many rounds", async () => {
    write(0, { iteration: 100, rounds: 3 });
    write(1, { iteration: 100, rounds: 1 });
    const waiting = read(2, 60_000);
    write(1, { iteration: 100, rounds: 2 });
    const names = [0, 1].map((rank) => `${basename(ringOf(rank).path)}.validation.json`);
    expect(await waiting).toEqual(names);
  });

  it("are none where one has not done so many in time, or has only those of earlier tests", async () => {
    write(0, { iteration: 100, rounds: 2 });
    expect(await read(2, 1)).toEqual([]);
    write(1, { iteration: 40, rounds: 14 });
    expect(await read(2, 1)).toEqual([]);
    write(1, { iteration: 100, rounds: 1 });
    expect(await read(2, 1)).toEqual([]);
    expect(await read(1, 1)).toHaveLength(2);
  });
});
