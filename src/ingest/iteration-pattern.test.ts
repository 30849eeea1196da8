import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { UserError } from "../base/errors.ts";
import type { Env } from "../model/job.ts";
import { readersFor, recognise } from "./formats.ts";
import { ingest } from "./ingest.ts";
import { checkPattern } from "./iteration-pattern.ts";
import { rankLogWith } from "./rank-log.ts";
import { readAtAllSizes, readBytes } from "../../test/support/ingest/reader-contract.ts";

const env: Env = { signal: new AbortController().signal, progress: () => {} };
const TOOK = String.raw`it=(?<iteration>\d+) took (?<s>[\d.]+)s(?: bs (?<batch>\d+))?(?: by (?<rank>\d+))?`;

describe("a user's pattern", () => {
  it("is refused at the start where it cannot be used", async () => {
    for (const bad of [
      "(?<iteration>",
      "step (\\d+)",
      "(?<iter>\\d+)",
      "(?<iteration>1)(?<ms>2)(?<s>3)",
    ]) {
      const refused = await ingest(["/no/such/place"], env, { pattern: bad }).catch(
        (e: unknown) => e,
      );
      expect(refused).toBeInstanceOf(UserError);
      expect((refused as UserError).exitCode).toBe(2);
    }
    expect(checkPattern("a(?<iteration>\\d+)|b").exec("a12")?.groups?.["iteration"]).toBe("12");
  });

  it("takes the place of the formats that we know", () => {
    const reader = rankLogWith(checkPattern(TOOK));
    const text = "it=1 took 0.5s bs 32\n iteration 7/ 9 | lm loss: 1 |\nit=2 took 0.25s bs 64\n";
    const [first, ...others] = readAtAllSizes(reader, "a.txt", text);
    for (const other of others) expect(other).toEqual(first);
    expect(first!.series).toMatchObject([{ source: "a.txt", basis: "reported", rank: null }]);
    const [series] = first!.series!;
    expect([...series!.iteration]).toEqual([1, 2]);
    expect([...series!.durationMs]).toEqual([500, 250]);
    expect([...series!.batch]).toEqual([32, 64]);
    expect(first!.rankLogs?.[0]).toMatchObject({ lastIteration: 2, lastIterationLine: 3 });
  });

  it("may say whose line it is", () => {
    const reader = rankLogWith(checkPattern(TOOK));
    const { series } = readBytes(
      reader,
      "a.txt",
      "it=1 took 1s by 0\nit=1 took 2s by 1\nit=2 took 3s by 0\nit=2 took 4s by 1\n",
    );
    expect(series?.map((s) => [s.source, s.rank, ...s.durationMs])).toEqual([
      ["a.txt, rank 0", 0, 1000, 3000],
      ["a.txt, rank 1", 1, 2000, 4000],
    ]);
  });

  it("leaves the durations to the times of the lines where it names none", () => {
    const reader = rankLogWith(checkPattern("batch #(?<iteration>\\d+)"));
    const { series } = readBytes(
      reader,
      "a.txt",
      "2026-11-15 00:00:01.5 batch #1\n2026-11-15 00:00:02.5 batch #2\nsaving checkpoint\n2026-11-15 00:00:06.5 batch #3\n",
    );
    expect(series).toMatchObject([{ basis: "timestamps" }]);
    expect([...series![0]!.durationMs]).toEqual([NaN, 1000, 4000]);
    expect([...series![0]!.between]).toEqual([0, 0, 1]);
  });

  it("makes a log of a file that is none otherwise", async () => {
    const text = '{"n": 1, "took": 20}\n{"n": 2, "took": 30}\n';
    const head = { name: "x", bytes: Buffer.from(text), text };
    const pattern = '"n": (?<iteration>\\d+), "took": (?<ms>\\d+)';
    expect(recognise(head)).toBeNull();
    expect(recognise(head, readersFor({ pattern }))?.format).toBe("rank-log");
    expect(recognise({ ...head, text: `\0${text}` }, readersFor({ pattern }))).toBeNull();

    const folder = await mkdtemp(join(tmpdir(), "faultline-pattern-"));
    try {
      await writeFile(join(folder, "x.jsonl"), text);
      const { readings } = await ingest([folder], env, { pattern });
      expect([...readings[0]!.series![0]!.durationMs]).toEqual([20, 30]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
